//! Why commands about polls and scheduled posts are refused.

use crate::limits;
use serde::{Deserialize, Serialize};

/// Why a command about polls changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum PollRefusal {
    /// No such poll, or the user may not see its post.
    #[error("there is no such poll")]
    NotFound,
    /// An option is malformed.
    #[error(
        "an option of a poll is 1 to {} characters (at most {} bytes) on one line",
        limits::POLL_OPTION_CHARS_MAX,
        limits::POLL_OPTION_BYTES_MAX
    )]
    BadOption,
    /// Too few or too many options, or two that are the same.
    #[error(
        "a poll has {} to {} different options",
        limits::POLL_OPTIONS_MIN,
        limits::POLL_OPTIONS_MAX
    )]
    BadOptions,
    /// It would end too early or too late.
    #[error("a poll ends after {} to {} seconds", limits::POLL_SECS_MIN, limits::POLL_SECS_MAX)]
    BadTime,
    /// A post has pictures and a poll.
    #[error("a post has a poll or pictures, not both")]
    WithMedia,
    /// A user voted in their own poll.
    #[error("users cannot vote in their own polls")]
    Own,
    /// The poll has ended.
    #[error("the poll has already ended")]
    Ended,
    /// The user has voted.
    #[error("you have already voted in this poll")]
    Voted,
    /// No option was chosen, or one that the poll lacks.
    #[error("choose one of the options of the poll")]
    BadChoice,
    /// Several options were chosen where only one can be.
    #[error("choose only one option of this poll")]
    OneChoice,
}

impl PollRefusal {
    /// The stable name of this refusal in replies.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotFound => "poll_not_found",
            Self::BadOption => "bad_poll_option",
            Self::BadOptions => "bad_poll_options",
            Self::BadTime => "bad_poll_time",
            Self::WithMedia => "poll_with_media",
            Self::Own => "own_poll",
            Self::Ended => "poll_ended",
            Self::Voted => "already_voted",
            Self::BadChoice => "bad_choice",
            Self::OneChoice => "one_choice",
        }
    }
}

/// Why a command about scheduled posts changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ScheduleRefusal {
    /// No such scheduled post of the user.
    #[error("there is no such scheduled post")]
    NotFound,
    /// It would be published too soon or too late.
    #[error("a post is scheduled at least 5 minutes and at most 10 years ahead")]
    BadTime,
    /// The user has the maximum number of scheduled posts.
    #[error(
        "a user has at most {} scheduled posts; cancel one of them first",
        limits::SCHEDULED_MAX
    )]
    TooMany,
}

impl ScheduleRefusal {
    /// The stable name of this refusal in replies.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotFound => "scheduled_not_found",
            Self::BadTime => "bad_scheduled_time",
            Self::TooMany => "too_many_scheduled",
        }
    }
}
