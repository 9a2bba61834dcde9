//! Why commands about filters are refused.

use crate::limits;
use serde::{Deserialize, Serialize};

/// Why a command about filters changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum FilterRefusal {
    /// No such filter, keyword or filtered post of the user.
    #[error("there is no such filter")]
    NotFound,
    /// A title or a keyword is malformed.
    #[error(
        "the title of a filter, and a keyword, is 1 to {} characters (at most {} bytes) on one line",
        limits::FILTER_TEXT_CHARS_MAX,
        limits::FILTER_TEXT_BYTES_MAX
    )]
    BadText,
    /// A filter is for no context.
    #[error("a filter is for at least one of home, notifications, public, thread and account")]
    NoContext,
    /// The time after which a filter expires is malformed.
    #[error("a filter expires after at most {} seconds", limits::FILTER_SECS_MAX)]
    BadTime,
    /// The user has the maximum number of filters.
    #[error("a user has at most {} filters; delete one of them first", limits::FILTERS_MAX)]
    TooMany,
    /// The user has the maximum number of keywords.
    #[error(
        "the filters of a user have at most {} keywords; remove one of them first",
        limits::FILTER_KEYWORDS_MAX
    )]
    TooManyKeywords,
    /// The user has the maximum number of filtered posts.
    #[error(
        "the filters of a user have at most {} posts; remove one of them first",
        limits::FILTERED_POSTS_MAX
    )]
    TooManyPosts,
}

impl FilterRefusal {
    /// The stable name of this refusal in replies.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotFound => "filter_not_found",
            Self::BadText => "bad_filter_text",
            Self::NoContext => "no_filter_context",
            Self::BadTime => "bad_filter_time",
            Self::TooMany => "too_many_filters",
            Self::TooManyKeywords => "too_many_keywords",
            Self::TooManyPosts => "too_many_filtered_posts",
        }
    }
}
