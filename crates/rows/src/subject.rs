//! Subjects of rows: the users, posts, pictures or marks that look different when a row changes.

use crate::table::{NameTable, PointTable, SetTable};

/// A user, a post, a picture, or the marks of posts for one user.
///
/// A store counts the changes of each subject's rows, so that a cache can check whether an entry that was made from
/// them is current. Rows without a subject are read again each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// User with this id: profile, counts, whether the user exists and approves follows, and the user's posts.
    User(u64),
    /// Profile of the user with this id, whether the user exists and approves follows. It is a part of
    /// [`Subject::User`]: a change of it changes both.
    Profile(u64),
    /// Post with this id: content, reactions with their counts, and replies.
    Post(u64),
    /// Content of the post with this id, and whether it exists. It is a part of [`Subject::Post`]: a change of it
    /// changes both.
    Content(u64),
    /// Picture with this id.
    Media(u64),
    /// Marks of posts for the user with this id: the user's filters and muted threads.
    Marks(u32),
}

impl Subject {
    /// Returns the subject of a point, if it has one.
    #[must_use]
    pub const fn of_point(table: PointTable, key: u64) -> Option<Self> {
        match table {
            PointTable::User => Some(Self::Profile(key)),
            PointTable::Counts => Some(Self::User(key)),
            PointTable::Post => Some(Self::Content(key)),
            PointTable::PostCounts => Some(Self::Post(key)),
            _ => None,
        }
    }

    /// Returns the subject of the items of an owner, if they have one.
    #[must_use]
    pub const fn of_member(table: SetTable, owner: u64) -> Option<Self> {
        match table {
            SetTable::DeletedUsers | SetTable::LockedUsers => Some(Self::Profile(owner)),
            // Rows of a deleted user are removed after they are counted.
            SetTable::AuthorPosts | SetTable::Following | SetTable::Followers => {
                Some(Self::User(owner))
            }
            SetTable::Replies | SetTable::OpenReplies | SetTable::Reactions => {
                Some(Self::Post(owner))
            }
            _ => None,
        }
    }

    /// Returns the subject of a name, if it has one.
    #[must_use]
    pub fn of_name(table: NameTable, key: &[u8]) -> Option<Self> {
        match table {
            NameTable::Media => key.try_into().ok().map(u64::from_be_bytes).map(Self::Media),
            NameTable::Filters | NameTable::MutedThreads => {
                key.try_into().ok().map(u32::from_be_bytes).map(Self::Marks)
            }
            _ => None,
        }
    }
}
