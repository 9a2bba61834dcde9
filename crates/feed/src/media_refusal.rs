//! Why commands about pictures are refused.

use crate::limits;
use serde::{Deserialize, Serialize};

/// Why a command about pictures changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum MediaRefusal {
    /// No such picture, or it is of another user.
    #[error("there is no such picture")]
    NotFound,
    /// The picture is attached to a post or a profile.
    #[error("the picture is in use; one that is in use cannot be changed or used again")]
    Attached,
    /// The post has too many pictures.
    #[error("a post has at most {} pictures", limits::POST_MEDIA_MAX)]
    TooManyOfPost,
    /// The user has uploaded too many pictures that no post has.
    #[error(
        "a user has at most {} pictures that no post has; post or delete one of them first",
        limits::UNATTACHED_MEDIA_MAX
    )]
    TooManyUnattached,
    /// The pictures of the user are too many, or take too many bytes.
    #[error(
        "a user has at most {} pictures, of {} GiB together; delete some of them first",
        limits::USER_MEDIA_MAX,
        limits::USER_MEDIA_BYTES_MAX >> 30
    )]
    TooMany,
    /// A description is malformed.
    #[error(
        "a description is at most {} characters (at most {} bytes) without control characters",
        limits::DESCRIPTION_CHARS_MAX,
        limits::DESCRIPTION_BYTES_MAX
    )]
    BadDescription,
    /// A focal point is malformed.
    #[error("a focus is two numbers between -1.0 and 1.0")]
    BadFocus,
}

impl MediaRefusal {
    /// The stable name of this refusal in replies.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotFound => "media_not_found",
            Self::Attached => "media_attached",
            Self::TooManyOfPost => "too_many_media",
            Self::TooManyUnattached => "too_many_unattached_media",
            Self::TooMany => "media_of_user_full",
            Self::BadDescription => "bad_description",
            Self::BadFocus => "bad_focus",
        }
    }
}
