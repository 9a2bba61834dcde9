//! Audience of posts, and the entries of posts in lists.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::home_authors::HomeAuthors;
use crate::ids::{PostId, UserId};

/// Audience of a post. The author and mentioned users always see it, except across a block. Stored as the position in
/// the enum.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Visibility {
    /// Everybody, and listed on public timelines.
    #[default]
    Public,
    /// Everybody, but not listed on public timelines.
    Unlisted,
    /// The followers of the author.
    Followers,
    /// Only the author and mentioned users.
    Direct,
}

impl Visibility {
    /// All visibilities, in the order of the enum.
    pub const ALL: [Self; 4] = [Self::Public, Self::Unlisted, Self::Followers, Self::Direct];

    /// Name of the visibility in APIs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Unlisted => "unlisted",
            Self::Followers => "followers",
            Self::Direct => "direct",
        }
    }

    /// Reverses [`Visibility::name`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|visibility| visibility.name() == name)
    }

    /// Whether a post of this visibility may be shown to everybody who sees a reply of visibility `reply`: the post is
    /// for everybody, or the reply has no larger audience.
    #[must_use]
    pub const fn shows_to_all_of(self, reply: Self) -> bool {
        self.is_open() || self as u8 <= reply as u8
    }

    /// Whether a user who sees a post of this visibility may boost it: anybody may if it is for everybody; the author
    /// may boost their own post to followers, and the boost then also goes to followers.
    #[must_use]
    pub const fn allows_boost(self, is_author: bool) -> bool {
        self.is_open() || is_author && matches!(self, Self::Followers)
    }

    /// Finds the visibility at this position in the enum.
    pub(crate) const fn of_number(number: u64) -> Self {
        match number {
            0 => Self::Public,
            1 => Self::Unlisted,
            2 => Self::Followers,
            _ => Self::Direct,
        }
    }

    /// Whether everybody may see the post, except across a block.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Public | Self::Unlisted)
    }
}

/// Entry of a post in a list, stored as the number of the row. Most lists can be read without reading posts.
///
/// The low 33 bits are 0, or the user replied to plus 1; for a boost, the author of the boosted post plus 1. Then
/// follow the visibility in 2 bits, and flags of a boost: boost, recent, has earlier ones (see [`ListedBoost`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed(u64);

/// Entry of a boost in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedBoost {
    /// Author of the boosted post.
    pub author: UserId,
    /// Whether the boosted post was recent: see [`Boost::is_recent`](crate::Boost::is_recent).
    pub is_recent: bool,
    /// Whether others boosted the post shortly before: see [`Boost::earlier`](crate::Boost::earlier).
    pub has_earlier: bool,
}

impl Listed {
    const VISIBILITY_SHIFT: u32 = 33;
    const BOOST: u64 = 1 << 35;
    const RECENT: u64 = 1 << 36;
    const EARLIER: u64 = 1 << 37;

    /// Creates the entry of a post that replies to this user, or to nobody.
    #[must_use]
    pub fn new(reply_to: Option<UserId>, visibility: Visibility) -> Self {
        let reply = reply_to.map_or(0, |user| u64::from(user.0) + 1);
        Self(reply | (visibility as u64) << Self::VISIBILITY_SHIFT)
    }

    /// Creates the entry of a boost.
    #[must_use]
    pub fn boost(boost: ListedBoost, visibility: Visibility) -> Self {
        let recent = if boost.is_recent { Self::RECENT } else { 0 };
        let earlier = if boost.has_earlier { Self::EARLIER } else { 0 };
        Self(Self::new(Some(boost.author), visibility).0 | Self::BOOST | recent | earlier)
    }

    /// User replied to, if the post is a reply.
    #[must_use]
    pub fn reply_to(self) -> Option<UserId> {
        if self.is_boost() { None } else { self.user() }
    }

    /// Whether the post replies to a user other than its `author`.
    #[must_use]
    pub fn is_reply_to_other(self, author: UserId) -> bool {
        self.reply_to().is_some_and(|to| to != author)
    }

    /// Audience of the post.
    #[must_use]
    pub const fn visibility(self) -> Visibility {
        Visibility::of_number(self.0 >> Self::VISIBILITY_SHIFT & 3)
    }

    /// Whether the post is a boost.
    #[must_use]
    pub const fn is_boost(self) -> bool {
        self.0 & Self::BOOST != 0
    }

    /// Entry of the boost; `None` for other posts.
    #[must_use]
    pub fn boosted(self) -> Option<ListedBoost> {
        let author = self.user().filter(|_| self.is_boost())?;
        let (is_recent, has_earlier) = (self.0 & Self::RECENT != 0, self.0 & Self::EARLIER != 0);
        Some(ListedBoost { author, is_recent, has_earlier })
    }

    /// Whether these [`HomeUsers`] permit the post in the home timeline of `reader`. A direct post must mention the
    /// reader. A boost is hidden if an earlier booster is the reader, or a user whose boosts `home` shows.
    #[must_use]
    pub fn allows(self, reader: UserId, home: &HomeAuthors, users: &[UserId]) -> bool {
        let is_at_home = |user| user == reader || home.has_boosts_by(user);
        match self.is_boost() {
            true => !users.iter().copied().any(is_at_home),
            false => users.contains(&reader),
        }
    }

    /// Number of the row.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Reverses [`Listed::number`].
    #[must_use]
    pub const fn of_number(number: u64) -> Self {
        Self(number)
    }

    fn user(self) -> Option<UserId> {
        let user = self.0 & ((1 << Self::VISIBILITY_SHIFT) - 1);
        user.checked_sub(1).and_then(|user| u32::try_from(user).ok()).map(UserId)
    }
}

/// A post in a list: its id and entry.
pub type Posted = (PostId, Listed);

/// Users that decide whose home shows a post, in addition to its list entry: users mentioned by a direct post, or
/// earlier boosters. See [`Listed::allows`].
pub type HomeUsers = Arc<Vec<UserId>>;

/// A post loaded into memory for many readers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Author of the post.
    pub author: UserId,
    /// Id of the post and its entry in lists.
    pub posted: Posted,
    /// Users that decide whose home shows the post: see [`Post::home_users`](crate::Post::home_users).
    pub users: Option<HomeUsers>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_what_lists_know() {
        for user in [0, 7, u32::MAX - 1].map(UserId) {
            for visibility in Visibility::ALL {
                let listed = Listed::new(Some(user), visibility);
                assert_eq!((listed.reply_to(), listed.boosted()), (Some(user), None));
                assert_eq!(listed.visibility(), visibility);
                for (is_recent, has_earlier) in [(false, false), (true, false), (false, true)] {
                    let boost = ListedBoost { author: user, is_recent, has_earlier };
                    let listed = Listed::boost(boost, visibility);
                    assert_eq!((listed.reply_to(), listed.boosted()), (None, Some(boost)));
                    assert_eq!(listed.visibility(), visibility);
                    assert_eq!(listed.number() >> 38, 0, "the bits above are free");
                }
                assert_eq!(Visibility::named(visibility.name()), Some(visibility));
                assert_eq!(Listed::new(None, visibility).reply_to(), None);
            }
        }
    }
}
