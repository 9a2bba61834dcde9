//! Conversations of a user: threads of direct posts.
//!
//! A **conversation** is a direct post that does not reply to a direct post, and all direct posts below it. Every user
//! who sees one of its posts has it; its id is that of the first post. Conversations follow from the posts. Only the
//! read position of each user and the removal of a conversation are stored.
//!
//! **Invariant:** a user has at most [`CONVERSATION_MARKS_MAX`] marks, those of the newest posts.

pub(crate) mod direct;
pub(crate) mod rules;

use serde::{Deserialize, Serialize};

use crate::ids::{PostId, UserRef};
use crate::limits::CONVERSATION_MARKS_MAX;
use crate::page::Item;

/// A conversation as seen by one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// First post, which may be deleted: the id of the conversation.
    pub first: PostId,
    /// Newest post that the user sees.
    pub last: PostId,
    /// Whether the newest post is an unread post by another user, or the user has marked the conversation as unread.
    pub is_unread: bool,
}

impl Item for Conversation {
    fn id(&self) -> u64 {
        self.last.0
    }
}

/// Read position of a user in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationMark {
    /// First post of the conversation.
    pub first: PostId,
    /// Last read post. If the user has marked the conversation as unread, the id directly before the newest post.
    pub read: PostId,
    /// Whether the user has removed the conversation. A later post brings it back.
    pub is_removed: bool,
}

/// A change of a user's mark of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationUpdate {
    /// The user.
    pub user: UserRef,
    /// New mark. A mark of an earlier post changes nothing.
    pub mark: ConversationMark,
}

impl ConversationMark {
    /// Adds the mark to a user's marks, which are in descending order of the read posts and limited to
    /// [`CONVERSATION_MARKS_MAX`]. Returns whether they changed.
    pub fn add_to(self, marks: &mut Vec<Self>) -> bool {
        let mut new = self;
        if let Some(at) = marks.iter().position(|mark| mark.first == self.first) {
            let Some(old) = marks.get(at).copied().filter(|old| old.read <= self.read) else {
                return false;
            };
            new.is_removed |= old.is_removed && old.read == self.read;
            if new == old {
                return false;
            }
            marks.remove(at);
        }
        new.insert_in(marks)
    }

    /// Inserts the mark in its place. Returns whether it is within the limit.
    fn insert_in(self, marks: &mut Vec<Self>) -> bool {
        let place = marks.partition_point(|mark| mark.read > self.read);
        if place >= CONVERSATION_MARKS_MAX {
            return false;
        }
        marks.insert(place, self);
        marks.truncate(CONVERSATION_MARKS_MAX);
        true
    }

    /// Marks the conversation with these first and newest posts as unread, unless a later post is read, or the user has
    /// removed the conversation. Returns whether the marks changed.
    pub fn mark_unread(marks: &mut Vec<Self>, first: PostId, last: PostId) -> bool {
        let read = PostId(last.0.saturating_sub(1));
        let new = Self { first, read, is_removed: false };
        if let Some(at) = marks.iter().position(|mark| mark.first == first) {
            let replaced = |old: &Self| *old != new && old.read <= last && !old.removes(last);
            if !marks.get(at).is_some_and(replaced) {
                return false;
            }
            marks.remove(at);
            new.insert_in(marks);
            return true;
        }
        new.insert_in(marks)
    }

    /// Whether the conversation is removed and has no post after `last`.
    #[must_use]
    pub fn removes(&self, last: PostId) -> bool {
        self.is_removed && self.reads(last)
    }

    /// Whether the post is read.
    #[must_use]
    pub fn reads(&self, last: PostId) -> bool {
        self.read >= last
    }

    /// Whether the user has marked the conversation with this newest post as unread.
    #[must_use]
    pub fn unreads(&self, last: PostId) -> bool {
        self.read.0.checked_add(1) == Some(last.0)
    }
}
