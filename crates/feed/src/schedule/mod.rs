//! Scheduled posts, which the node publishes at a given time.
//!
//! A scheduled post is checked when it is scheduled, and again when it is published: its mentions and parent are
//! resolved at that moment. A post that is refused then is removed, because nobody waits for an answer.

pub(crate) mod cost;
pub(crate) mod facts;
pub(crate) mod mend;
pub(crate) mod rules;

use serde::{Deserialize, Serialize};

use crate::ids::{ScheduledId, UserRef};
use crate::limits;
use crate::posts::draft::Draft;

/// A post to publish later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledPost {
    /// The post.
    pub draft: Draft,
    /// Time of publication, in milliseconds since 1970.
    pub due_ms: u64,
}

/// A command about scheduled posts. Variants are stored by their position, as in [`Command`](crate::Command).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScheduleCommand {
    /// Schedule a post.
    Create(Box<ScheduledPost>),
    /// Change the time of a scheduled post.
    Move {
        /// Author of the scheduled post.
        user: UserRef,
        /// The scheduled post.
        id: ScheduledId,
        /// New time of publication, in milliseconds since 1970.
        due_ms: u64,
    },
    /// Cancel a scheduled post. Its pictures become unattached, up to the author's limit.
    Cancel {
        /// Author of the scheduled post.
        user: UserRef,
        /// The scheduled post.
        id: ScheduledId,
    },
}

impl ScheduleCommand {
    /// Whether the command only removes something.
    #[must_use]
    pub fn removes(&self) -> bool {
        matches!(self, Self::Cancel { .. })
    }
}

/// The result of a command about scheduled posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScheduleDone {
    /// The post was scheduled or moved.
    Saved(ScheduledId),
    /// The scheduled post was cancelled.
    Cancelled,
}

/// Whether a post can be scheduled for `due_ms` at `now_ms`.
pub(crate) fn is_ahead(due_ms: u64, now_ms: u64) -> bool {
    due_ms
        .checked_sub(now_ms)
        .is_some_and(|ms| (limits::SCHEDULED_MS_MIN..=limits::SCHEDULED_MS_MAX).contains(&ms))
}
