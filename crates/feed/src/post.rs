//! Who may see a post, and what lists know about it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::home_authors::HomeAuthors;
use crate::ids::{PostId, UserId};

/// Who may see a post, besides its author and the users it mentions. A block hides it in any case. Stored as the
/// position in the enum.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Visibility {
    /// Everybody, also in lists of the newest posts of all users.
    #[default]
    Public,
    /// Everybody, but not in those lists.
    Unlisted,
    /// The followers of the author.
    Followers,
    /// Nobody else.
    Direct,
}

impl Visibility {
    /// All of them, in the order of the enum.
    pub const ALL: [Self; 4] = [Self::Public, Self::Unlisted, Self::Followers, Self::Direct];

    /// Its name in interfaces.
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

    /// Whether a post of this visibility may be named to all who see a reply to it of the other one: it is for everybody,
    /// or the reply is for fewer.
    #[must_use]
    pub const fn shows_to_all_of(self, reply: Self) -> bool {
        self.is_open() || self as u8 <= reply as u8
    }

    /// Whether a user who sees a post of this visibility may boost it: it is for everybody, or it is the user's own for
    /// their followers, for whom the boost is too.
    #[must_use]
    pub const fn allows_boost(self, is_author: bool) -> bool {
        self.is_open() || is_author && matches!(self, Self::Followers)
    }

    /// Of its position in the enum.
    pub(crate) const fn of_number(number: u64) -> Self {
        match number {
            0 => Self::Public,
            1 => Self::Unlisted,
            2 => Self::Followers,
            _ => Self::Direct,
        }
    }

    /// Whether everybody may see it who is not separated from the author by a block.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Public | Self::Unlisted)
    }
}

/// What a list knows about a post, so that most lists are read without reading posts: the number of its row.
///
/// Of a post, the user replied to plus 1, or 0, in 33 bits; of a boost, the author of the boosted post in the same way.
/// Then who may see it in 2 bits, and whether it is a boost, recent, and has earlier ones (see [`ListedBoost`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed(u64);

/// What a list knows about a boost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedBoost {
    /// The author of the boosted post.
    pub author: UserId,
    /// See [`Boost::is_recent`](crate::Boost::is_recent).
    pub is_recent: bool,
    /// Whether others boosted it shortly before: see [`Boost::earlier`](crate::Boost::earlier).
    pub has_earlier: bool,
}

impl Listed {
    const VISIBILITY_SHIFT: u32 = 33;
    const BOOST: u64 = 1 << 35;
    const RECENT: u64 = 1 << 36;
    const EARLIER: u64 = 1 << 37;

    /// A post that replies to this user, or to nobody.
    #[must_use]
    pub fn new(reply_to: Option<UserId>, visibility: Visibility) -> Self {
        let reply = reply_to.map_or(0, |user| u64::from(user.0) + 1);
        Self(reply | (visibility as u64) << Self::VISIBILITY_SHIFT)
    }

    /// A boost.
    #[must_use]
    pub fn boost(boost: ListedBoost, visibility: Visibility) -> Self {
        let recent = if boost.is_recent { Self::RECENT } else { 0 };
        let earlier = if boost.has_earlier { Self::EARLIER } else { 0 };
        Self(Self::new(Some(boost.author), visibility).0 | Self::BOOST | recent | earlier)
    }

    /// The user it replies to, if it is a reply.
    #[must_use]
    pub fn reply_to(self) -> Option<UserId> {
        if self.is_boost() { None } else { self.user() }
    }

    /// Whether it is a reply to another user than `author`, who wrote it.
    #[must_use]
    pub fn is_reply_to_other(self, author: UserId) -> bool {
        self.reply_to().is_some_and(|to| to != author)
    }

    /// Who may see it.
    #[must_use]
    pub const fn visibility(self) -> Visibility {
        Visibility::of_number(self.0 >> Self::VISIBILITY_SHIFT & 3)
    }

    /// Whether it is a boost.
    #[must_use]
    pub const fn is_boost(self) -> bool {
        self.0 & Self::BOOST != 0
    }

    /// What is known of it if it is a boost.
    #[must_use]
    pub fn boosted(self) -> Option<ListedBoost> {
        let author = self.user().filter(|_| self.is_boost())?;
        let (is_recent, has_earlier) = (self.0 & Self::RECENT != 0, self.0 & Self::EARLIER != 0);
        Some(ListedBoost { author, is_recent, has_earlier })
    }

    /// Whether a post with these [`HomeUsers`] is in the home timeline of `reader`, as far as they decide it: a direct post
    /// mentions the reader; a post was boosted by nobody before whose boosts the reader has at `home`, or who is the reader.
    #[must_use]
    pub fn allows(self, reader: UserId, home: &HomeAuthors, users: &[UserId]) -> bool {
        let is_at_home = |user| user == reader || home.has_boosts_by(user);
        match self.is_boost() {
            true => !users.iter().copied().any(is_at_home),
            false => users.contains(&reader),
        }
    }

    /// The number of its row.
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

/// A post in a list: its id, and what the list knows about it.
pub type Posted = (PostId, Listed);

/// The users on whom it depends in whose home a post is, beside what a list knows: whom a direct post mentions, or who
/// boosted before. See [`Listed::allows`].
pub type HomeUsers = Arc<Vec<UserId>>;

/// A post as it is loaded into memory for many readers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Its author.
    pub author: UserId,
    /// Its id, and what lists know about it.
    pub posted: Posted,
    /// See [`Post::home_users`](crate::Post::home_users).
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
