//! Favourites, bookmarks, pins, boosts and wishes to see less like a post, and the stored data of boosts: the boosted
//! post, and the last boosters of a post.

pub(crate) mod cost;
pub(crate) mod facts;
pub(crate) mod mend;
pub(crate) mod rules;

use rows::{SetTable, Span, Stamp, Value};
use serde::{Deserialize, Serialize};

use crate::ids::{PostId, UserId};
use crate::limits::BOOST_RECENT_MS;
use crate::names::names;

/// Kind of a reaction to a post. Stored as the position in the enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reaction {
    /// Like the post. Notifies its author, and is public.
    Favourite,
    /// Save the post for later. Private.
    Bookmark,
    /// Show one's own post on top of the profile.
    Pin,
    /// Share the post with one's followers, as a post of its own: see [`Boost`](crate::Boost).
    Boost,
    /// See less like the post in ranked feeds. Private.
    Less,
}

names!(Reaction {
    Favourite = "favourite",
    Bookmark = "bookmark",
    Pin = "pin",
    Boost = "boost",
    Less = "less",
});

impl Reaction {
    /// Table of users' reactions by their stamps; `None` for boosts, which are posts of the user with the stamp as id.
    #[must_use]
    pub const fn table(self) -> Option<SetTable> {
        match self {
            Self::Favourite => Some(SetTable::Favourites),
            Self::Bookmark => Some(SetTable::Bookmarks),
            Self::Pin => Some(SetTable::Pins),
            Self::Boost => None,
            Self::Less => Some(SetTable::Less),
        }
    }

    /// Item of a reaction by `user` in the rows of a post.
    pub(crate) const fn item(self, user: UserId) -> u64 {
        (self as u64) << 32 | user.0 as u64
    }

    /// Reverses [`Reaction::item`].
    pub(crate) fn of_item(item: u64) -> Option<(Self, UserId)> {
        let kind = usize::try_from(item >> 32).ok()?;
        Some((*Self::ALL.get(kind)?, UserId(item as u32)))
    }

    /// Range of the items of this kind by the users of a span.
    pub(crate) fn items(self, users: Span) -> Span {
        let item = |user: u64| self.item(UserId(user.min(u64::from(u32::MAX)) as u32));
        Span { low: item(users.low), high: item(users.high), ..users }
    }
}

/// Content of a boost. The boosted post is public or unlisted, or the booster's own post for followers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boost {
    /// Boosted post, which is not a boost.
    pub post: PostId,
    /// Author of the boosted post.
    pub author: UserId,
    /// Whether followers of the author have the post at home already, near the top: it is not a reply to another user,
    /// and was younger than [`limits::BOOST_RECENT_MS`](crate::limits::BOOST_RECENT_MS) when boosted.
    pub is_recent: bool,
    /// Other users who boosted the post within [`limits::BOOST_RECENT_MS`](crate::limits::BOOST_RECENT_MS) before this
    /// boost, most recent first, without those who have ended their boosts: at most
    /// [`limits::EARLIER_BOOSTS_MAX`](crate::limits::EARLIER_BOOSTS_MAX).
    pub earlier: Vec<UserId>,
}

/// Counts of reactions to a post.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostCounts {
    /// Number of users who favourited the post.
    pub favourites: u32,
    /// Number of users who boosted the post.
    pub boosts: u32,
    /// Last boosters, most recent first: at most [`limits::EARLIER_BOOSTS_MAX`](crate::limits::EARLIER_BOOSTS_MAX). The
    /// next boost records them as earlier ones.
    pub boosters: Vec<UserId>,
}

impl Boost {
    /// Creates a boost of a post with this id, author and user replied to, and these earlier boosters.
    #[must_use]
    pub fn new(
        (post, author, reply_to): (PostId, UserId, Option<UserId>),
        stamp: Stamp,
        earlier: Vec<UserId>,
    ) -> Self {
        let is_young = stamp.unix_ms() < post.unix_ms() + BOOST_RECENT_MS;
        let is_recent = is_young && reply_to.is_none_or(|to| to == author);
        Self { post, author, is_recent, earlier }
    }
}

impl PostCounts {
    /// Encodes the counts as little-endian words of 4 bytes: the favourites, and if there are boosts, their number and
    /// the last boosters. `None` if all counts are 0.
    #[must_use]
    pub fn encode(&self) -> Option<Value> {
        let mut bytes = Value::from_slice(&self.favourites.to_le_bytes());
        if self.boosts > 0 {
            bytes.extend_from_slice(&self.boosts.to_le_bytes());
            self.boosters.iter().for_each(|user| bytes.extend_from_slice(&user.0.to_le_bytes()));
        }
        (self.favourites > 0 || self.boosts > 0).then_some(bytes)
    }

    /// Reverses [`PostCounts::encode`]; `None` if the bytes are invalid.
    #[must_use]
    pub fn try_decode(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<4>() else { return None };
        let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
        let (favourites, boosts) = (words.next()?, words.next().unwrap_or(0));
        Some(Self { favourites, boosts, boosters: words.map(UserId).collect() })
    }
}
