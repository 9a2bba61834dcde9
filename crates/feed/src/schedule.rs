//! Scheduled posts: posts that the node publishes when their time has come.
//!
//! A scheduled post is checked when it is scheduled, and again when it is published, as a post of that moment: whom it
//! mentions and what it replies to are those of then. One that is refused then is removed; nobody waits for an answer.

use serde::{Deserialize, Serialize};

use crate::draft::Draft;
use crate::ids::{ScheduledId, UserRef};
use crate::limits;

/// A post to be published later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledPost {
    /// The post.
    pub draft: Draft,
    /// When it is published, in milliseconds since 1970.
    pub due_ms: u64,
}

/// A command about scheduled posts. Variants are stored as those of [`Command`](crate::Command) are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScheduleCommand {
    /// Schedule a post.
    Create(Box<ScheduledPost>),
    /// Publish it at another time.
    Move {
        /// Its author.
        user: UserRef,
        /// The scheduled post.
        id: ScheduledId,
        /// When it is published, in milliseconds since 1970.
        due_ms: u64,
    },
    /// Cancel it. Its pictures are unattached from then on, as many as the author may have.
    Cancel {
        /// Its author.
        user: UserRef,
        /// The scheduled post.
        id: ScheduledId,
    },
}

impl ScheduleCommand {
    /// Whether it only removes something.
    #[must_use]
    pub fn removes(&self) -> bool {
        matches!(self, Self::Cancel { .. })
    }
}

/// The result of a command about scheduled posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScheduleDone {
    /// The post is scheduled.
    Saved(ScheduledId),
    /// It is scheduled no more.
    Cancelled,
}

/// Whether a post can be scheduled for `due_ms` at `now_ms`.
pub(crate) fn is_ahead(due_ms: u64, now_ms: u64) -> bool {
    due_ms
        .checked_sub(now_ms)
        .is_some_and(|ms| (limits::SCHEDULED_MS_MIN..=limits::SCHEDULED_MS_MAX).contains(&ms))
}
