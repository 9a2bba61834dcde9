//! Lists: chosen followed users whose posts form a separate timeline.

pub(crate) mod cost;
pub(crate) mod facts;
pub(crate) mod mend;
pub(crate) mod rules;
pub(crate) mod timeline;

use serde::{Deserialize, Serialize};

use crate::ids::{UserId, UserRef};
use crate::limits;
use crate::names::names;
use crate::refusal::Refusal;
use crate::text::fits;

/// Id of a list: the [`Stamp`](rows::Stamp) of the command that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ListId(pub u64);

/// The title of a list: 1 to 255 user-perceived characters on one line, trimmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListTitle(Box<str>);

impl ListTitle {
    /// Trims and checks `text`.
    ///
    /// # Errors
    /// [`Refusal::BadListTitle`] if nothing is left, it is too long, or it holds control characters.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let text = text.trim();
        let plain = !text.is_empty() && !text.chars().any(char::is_control);
        let fits = fits(text, limits::LIST_TITLE_CHARS_MAX, limits::LIST_TITLE_BYTES_MAX);
        if plain && fits { Ok(Self(text.into())) } else { Err(Refusal::BadListTitle) }
    }

    /// The checked text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Replies to other users that the timeline of a list shows, in addition to replies to the owner. Stored as the
/// position in the enum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListReplies {
    /// Replies to members of the list.
    #[default]
    List,
    /// Replies to users whom the owner follows and does not mute.
    Followed,
    /// No replies to other users.
    None,
}

names!(ListReplies {
    List = "list",
    Followed = "followed",
    None = "none",
});

/// A list without its members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct List {
    /// Title of the list.
    pub title: ListTitle,
    /// Replies shown in the timeline.
    pub replies: ListReplies,
}

/// A change of the lists of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListCommand {
    /// The owner of the list.
    pub user: UserRef,
    /// The change.
    pub change: ListChange,
}

/// A change in a [`ListCommand`]. Stored as the position in the enum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ListChange {
    /// Create a list.
    Create(List),
    /// Change a list. `None` leaves a field unchanged.
    Edit {
        /// The list.
        list: ListId,
        /// The new title.
        title: Option<ListTitle>,
        /// The new choice of replies.
        replies: Option<ListReplies>,
    },
    /// Delete a list.
    Delete {
        /// The list.
        list: ListId,
    },
    /// Add users whom the owner follows. If one is refused, none is added.
    Add {
        /// The list.
        list: ListId,
        /// The users to add, at most [`limits::LIST_CHANGED_MAX`].
        users: Vec<UserId>,
    },
    /// Remove members.
    Remove {
        /// The list.
        list: ListId,
        /// The users to remove, at most [`limits::LIST_CHANGED_MAX`]. Users who are not members are ignored.
        users: Vec<UserId>,
    },
}

impl ListChange {
    /// The list to change; `None` for a new one.
    #[must_use]
    pub const fn list(&self) -> Option<ListId> {
        match self {
            Self::Create(_) => None,
            Self::Edit { list, .. }
            | Self::Delete { list }
            | Self::Add { list, .. }
            | Self::Remove { list, .. } => Some(*list),
        }
    }

    /// Whether the change only removes something.
    #[must_use]
    pub const fn removes(&self) -> bool {
        matches!(self, Self::Delete { .. } | Self::Remove { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_of_lists_are_one_short_line() {
        let long = "\u{4e00}".repeat(limits::LIST_TITLE_CHARS_MAX);
        let marks = format!("a{}", "\u{301}".repeat(limits::LIST_TITLE_BYTES_MAX / 2));
        for (text, expect) in [
            (" Friends ", Some("Friends")),
            (long.as_str(), Some(long.as_str())),
            ("", None),
            (" \n", None),
            ("a\nb", None),
            (&format!("{long}x"), None),
            (&marks, None),
        ] {
            let title = ListTitle::parse(text).ok();
            assert_eq!(title.as_ref().map(ListTitle::as_str), expect, "{text:?}");
        }
    }
}
