//! Errors of users who are logged in.

use std::time::Duration;

use axum::http::StatusCode;
use edge::SessionError;

use super::ApiError;

impl ApiError {
    pub(crate) fn not_logged_in() -> Self {
        let message = "nobody is logged in in this browser; log in again";
        Self::new(StatusCode::UNAUTHORIZED, "not_logged_in", message)
    }

    pub(crate) fn not_for_users() -> Self {
        let message = "this needs an application key; users may not do it";
        Self::new(StatusCode::FORBIDDEN, "not_for_users", message)
    }

    pub(crate) fn not_own() -> Self {
        let message = "a user who is logged in acts and reads for themselves only, by their id";
        Self::new(StatusCode::FORBIDDEN, "not_own", message)
    }

    fn too_many_requests(retry_after: Duration) -> Self {
        let message = "there were too many requests of this user; try again later";
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message);
        Self { retry_after: Some(retry_after), ..error }
    }

    /// The client has too many live streams and batches open.
    pub(crate) fn too_many_streams() -> Self {
        let message = "too many live streams and batches are open; close some of them";
        Self { message: message.into(), ..Self::too_many_requests(Duration::from_secs(5)) }
    }
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Ended => Self::not_logged_in(),
            SessionError::OtherSite => {
                Self::forbidden_origin("only pages of this server may use its sessions")
            }
            SessionError::TooMany(retry_after) => Self::too_many_requests(retry_after),
            SessionError::Overloaded => Self::overloaded(),
        }
    }
}
