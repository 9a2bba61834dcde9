//! What a row is about: the user, post, picture or marks that look different when the row changes.

use crate::table::{NameTable, PointTable, SetTable};

/// A user, a post, a picture, or what marks posts for one user.
///
/// A store counts the changes of its rows. So who keeps something that was made from the rows of a subject knows whether it
/// is still current. Rows without a subject are read anew each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The user with this id: profile, counts, whether they exist and must be asked, and which posts are theirs.
    User(u64),
    /// The profile of the user with this id, whether they exist and must be asked: a part of [`Subject::User`], so a change of
    /// it is one of both.
    Profile(u64),
    /// The post with this id: content, reactions with their counts, and replies.
    Post(u64),
    /// The content of the post with this id, and whether it exists: a part of [`Subject::Post`], so a change of it is one of
    /// both.
    Content(u64),
    /// The picture with this id.
    Media(u64),
    /// What marks posts for the user with this id alone: their filters, and the threads that they muted.
    Marks(u32),
}

impl Subject {
    /// The subject of a point, if it has one.
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

    /// The subject of the items of an owner, if they have one.
    #[must_use]
    pub const fn of_member(table: SetTable, owner: u64) -> Option<Self> {
        match table {
            SetTable::DeletedUsers | SetTable::LockedUsers => Some(Self::Profile(owner)),
            // Of a deleted user they are removed after they are counted.
            SetTable::AuthorPosts | SetTable::Following | SetTable::Followers => {
                Some(Self::User(owner))
            }
            SetTable::Replies | SetTable::OpenReplies | SetTable::Reactions => {
                Some(Self::Post(owner))
            }
            _ => None,
        }
    }

    /// The subject of a name, if it has one.
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
