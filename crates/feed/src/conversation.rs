//! Conversations of a user: direct posts, by threads.
//!
//! A **conversation** is a direct post that replies to no direct post, and all direct posts below it. It is one of each
//! user who sees a post of it, and named after its first post. Conversations follow from the posts: stored is only up to
//! where a user has read them, and which ones the user has removed.
//!
//! **Invariant:** a user has at most [`CONVERSATION_MARKS_MAX`] marks: those of the newest posts.

use serde::{Deserialize, Serialize};

use crate::ids::{PostId, UserRef};
use crate::limits::CONVERSATION_MARKS_MAX;
use crate::page::Item;

/// A conversation, as its user sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// Its first post, which may be deleted: the id of the conversation.
    pub first: PostId,
    /// The newest post of it that the user sees.
    pub last: PostId,
    /// Whether another user wrote that and the user has not read it, or the user has marked it as unread.
    pub is_unread: bool,
}

impl Item for Conversation {
    fn id(&self) -> u64 {
        self.last.0
    }
}

/// Up to where a user has read a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationMark {
    /// The first post of the conversation.
    pub first: PostId,
    /// Posts up to this one are read. Directly before the newest post, if the user has marked the conversation as unread.
    pub read: PostId,
    /// Whether the user has removed the conversation then. A later post brings it back.
    pub is_removed: bool,
}

/// What a user does with a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationUpdate {
    /// The user.
    pub user: UserRef,
    /// The new mark; none of an earlier post changes one.
    pub mark: ConversationMark,
}

impl ConversationMark {
    /// Adds a mark to those of a user, which are in the order of what was read, the newest first. The first
    /// [`CONVERSATION_MARKS_MAX`] are kept; returns whether they changed.
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

    /// Puts a mark in its place; returns whether it is kept.
    fn insert_in(self, marks: &mut Vec<Self>) -> bool {
        let place = marks.partition_point(|mark| mark.read > self.read);
        if place >= CONVERSATION_MARKS_MAX {
            return false;
        }
        marks.insert(place, self);
        marks.truncate(CONVERSATION_MARKS_MAX);
        true
    }

    /// Marks the conversation with these first and newest posts as unread, unless a later post was read, or the user has
    /// removed the conversation; returns whether the marks changed.
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

    /// Whether the conversation was removed, and has no post after this one.
    #[must_use]
    pub fn removes(&self, last: PostId) -> bool {
        self.is_removed && self.reads(last)
    }

    /// Whether a post is read.
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
