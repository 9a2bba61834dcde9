//! Favourites, bookmarks, pins and boosts.

use rows::{SetTable, Span};
use serde::{Deserialize, Serialize};

use crate::ids::UserId;

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
}

impl Reaction {
    /// All kinds, in the order of the enum.
    pub const ALL: [Self; 4] = [Self::Favourite, Self::Bookmark, Self::Pin, Self::Boost];

    /// Name of the reaction in APIs.
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

    /// Table of users' reactions by their stamps; `None` for boosts, which are posts of the user with the stamp as id.
    #[must_use]
    pub const fn table(self) -> Option<SetTable> {
        match self {
            Self::Favourite => Some(SetTable::Favourites),
            Self::Bookmark => Some(SetTable::Bookmarks),
            Self::Pin => Some(SetTable::Pins),
            Self::Boost => None,
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
