//! Favourites, bookmarks, pins and boosts.

use rows::{SetTable, Span};
use serde::{Deserialize, Serialize};

use crate::ids::UserId;

/// What a user does with a post besides replying. Stored as the position in the enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reaction {
    /// To like it. Its author is notified, and others see who does.
    Favourite,
    /// To find it again. Only the user sees it.
    Bookmark,
    /// To show a post of one's own on the profile.
    Pin,
    /// To show it to the followers of the user, as a post of its own: see [`Boost`](crate::Boost).
    Boost,
}

impl Reaction {
    /// All of them, in the order of the enum.
    pub const ALL: [Self; 4] = [Self::Favourite, Self::Bookmark, Self::Pin, Self::Boost];

    /// Its name in interfaces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Favourite => "favourite",
            Self::Bookmark => "bookmark",
            Self::Pin => "pin",
            Self::Boost => "boost",
        }
    }

    /// Reverses [`Reaction::name`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reaction| reaction.name() == name)
    }

    /// The table with the reactions of each user by their stamps. Boosts are among the posts of the user instead, each
    /// with its stamp as its id.
    #[must_use]
    pub const fn table(self) -> Option<SetTable> {
        match self {
            Self::Favourite => Some(SetTable::Favourites),
            Self::Bookmark => Some(SetTable::Bookmarks),
            Self::Pin => Some(SetTable::Pins),
            Self::Boost => None,
        }
    }

    /// The item of a reaction by `user` among those to a post.
    pub(crate) const fn item(self, user: UserId) -> u64 {
        (self as u64) << 32 | user.0 as u64
    }

    /// Reverses [`Reaction::item`].
    pub(crate) fn of_item(item: u64) -> Option<(Self, UserId)> {
        let kind = usize::try_from(item >> 32).ok()?;
        Some((*Self::ALL.get(kind)?, UserId(item as u32)))
    }

    /// The items of reactions of this kind by the users of a span.
    pub(crate) fn items(self, users: Span) -> Span {
        let item = |user: u64| self.item(UserId(user.min(u64::from(u32::MAX)) as u32));
        Span { low: item(users.low), high: item(users.high), ..users }
    }
}
