//! Posts: their stored records, their audience, and their entries in lists.

pub(crate) mod content;
pub(crate) mod cost;
pub(crate) mod draft;
pub(crate) mod facts;
pub(crate) mod mend;
pub mod post_lists;
pub mod profile;
pub(crate) mod rules;
pub mod thread;
pub(crate) mod version;

use std::sync::Arc;

use rows::Stamp;
use serde::{Deserialize, Serialize};

use crate::follows::HomeAuthors;
use crate::ids::{PostId, UserId};
use crate::names::names;
use crate::parts::parts;
use crate::polls::Poll;
use crate::posts::content::Content;
use crate::quotes::{Quote, QuotePolicy};
use crate::reactions::Boost;
use crate::tags::Tag;
use crate::token;

parts! {
    /// A post. The id contains the time of writing. See also [`Draft`](crate::Draft).
    pub struct Post {
        /// Author of the post.
        pub author: UserId,
        /// Content; empty for a boost.
        pub content: Content,
    }
    parts {
        /// Parent post, for a reply; may be deleted.
        pub in_reply_to: Option<PostId> = 1,
        /// User replied to: the author of the parent post, or in a post of the 2014 report the user whose mention
        /// begins the text.
        pub reply_to: Option<UserId> = 2,
        /// Audience of the post.
        pub visibility: Visibility = 3,
        /// Poll. Posts with pictures and boosts have no poll.
        pub poll: Option<Poll> = 8,
        /// Its quote of another post.
        pub quote: Option<Quote> = 10,
        /// Users who may quote it.
        pub quote_policy: QuotePolicy = 11,
        /// Author of the parent post unless it is the same author, then every user mentioned in the text; each once.
        pub mentions: Vec<UserId> = 32,
        /// Stamp of the last edit.
        pub edited: Option<Stamp> = 33,
        /// Boosted post, for a boost, which has no text, mentions or parent of its own.
        pub boost: Option<Boost> = 34,
        /// First post of the conversation, for a direct post that replies to a direct post.
        pub conversation: Option<PostId> = 35,
        /// First post of the thread, for a reply: see [`Post::thread_or`].
        pub thread: Option<PostId> = 36,
    }
}

impl Post {
    /// Creates a boost by `author`.
    #[must_use]
    pub fn of_boost(author: UserId, visibility: Visibility, boost: Boost) -> Self {
        Self { visibility, boost: Some(boost), ..Self::of(author, Content::default()) }
    }

    /// Number of the post's mention rows: the author plus 1 for a direct post, else 0.
    #[must_use]
    pub fn mention_number(&self) -> u64 {
        match self.visibility {
            Visibility::Direct => u64::from(self.author.0) + 1,
            _ => 0,
        }
    }

    /// Mentioned users other than the author, whose self-mention has no row and no notification.
    pub fn mentioned_others(&self) -> impl Iterator<Item = UserId> + '_ {
        self.mentions.iter().copied().filter(|user| *user != self.author)
    }

    /// Entry of the post in list rows.
    #[must_use]
    pub fn listed(&self) -> Listed {
        let Some(boost) = &self.boost else { return Listed::new(self.reply_to, self.visibility) };
        let Boost { author, is_recent, .. } = *boost;
        let has_earlier = !boost.earlier.is_empty();
        Listed::boost(ListedBoost { author, is_recent, has_earlier }, self.visibility)
    }

    /// Hashtags in the index, which covers public posts only.
    #[must_use]
    pub fn tags(&self) -> Vec<Tag> {
        match self.visibility {
            Visibility::Public => token::tags(self.content.text.as_str()),
            _ => Vec::new(),
        }
    }

    /// Id of the boosted post if this is a boost, else the post's own `id`. Reactions to a boost go to the boosted
    /// post.
    #[must_use]
    pub fn boosted_or(&self, id: PostId) -> PostId {
        self.boost.as_ref().map_or(id, |boost| boost.post)
    }

    /// First post of the thread: the post's own `id` unless it is a reply.
    #[must_use]
    pub fn thread_or(&self, id: PostId) -> PostId {
        self.thread.unwrap_or(id)
    }

    /// First post of the conversation of a direct post: the post's own `id` if it begins the conversation.
    #[must_use]
    pub fn conversation_or(&self, id: PostId) -> Option<PostId> {
        (self.visibility == Visibility::Direct).then(|| self.conversation.unwrap_or(id))
    }

    /// Users that decide whose home shows the post, if any: those mentioned by a direct post, or the earlier boosters
    /// of the boosted post.
    #[must_use]
    pub fn home_users(&self) -> Option<HomeUsers> {
        match &self.boost {
            Some(boost) => (!boost.earlier.is_empty()).then(|| boost.earlier.clone().into()),
            None => (self.visibility == Visibility::Direct).then(|| self.mentions.clone().into()),
        }
    }
}

/// Audience of a post. The author and mentioned users always see it, except across a block. Stored as the position in
/// the enum.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
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

names!(Visibility {
    Public = "public",
    Unlisted = "unlisted",
    Followers = "followers",
    Direct = "direct",
});

impl Visibility {
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
