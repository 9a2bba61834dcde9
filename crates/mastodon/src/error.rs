//! Error responses of the API: `{"error": …}`, with the fields that Mastodon documents.

use std::time::Duration;

use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use edge::{BodyError, Ended, LineGate, ReadError};
use feed::{Refusal, RefusalClass};
use media::MediaError;
use node::{FileError, SubmitError, Unreadable, UploadError};
use serde_json::{Map, Value, json};

use crate::password::PasswordError;

/// An error response.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    error: String,
    description: Option<String>,
    details: Option<Value>,
    retry_after_secs: Option<u64>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
            description: None,
            details: None,
            retry_after_secs: None,
        }
    }

    /// Makes an OAuth error: a code and its description.
    pub(crate) fn oauth(status: StatusCode, code: &str, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..Self::new(status, code) }
    }

    pub(crate) fn invalid_request(description: impl Into<String>) -> Self {
        Self::oauth(StatusCode::BAD_REQUEST, "invalid_request", description)
    }

    pub(crate) fn invalid_grant() -> Self {
        let why = "the authorization code, the password or the code verifier is not valid";
        Self::oauth(StatusCode::BAD_REQUEST, "invalid_grant", why)
    }

    pub(crate) fn invalid_client() -> Self {
        let why = "the client is unknown, or its secret is wrong";
        Self::oauth(StatusCode::UNAUTHORIZED, "invalid_client", why)
    }

    pub(crate) fn invalid_scope() -> Self {
        let why = "the scope is unknown, or the app has not registered it";
        Self::oauth(StatusCode::BAD_REQUEST, "invalid_scope", why)
    }

    pub(crate) fn bad_token() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "The access token is invalid")
    }

    pub(crate) fn no_user() -> Self {
        let why = "This method requires an authenticated user";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, why)
    }

    pub(crate) fn out_of_scope() -> Self {
        Self::new(StatusCode::FORBIDDEN, "This action is outside the authorized scopes")
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Record not found")
    }

    pub(crate) fn bad_method() -> Self {
        let why = "This endpoint has no such method";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, why)
    }

    /// Error for an invalid parameter or request.
    pub(crate) fn invalid(why: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, format!("Validation failed: {why}"))
    }

    /// Error for a request for too many items.
    pub(crate) fn too_long(why: &str) -> Self {
        Self::new(StatusCode::URI_TOO_LONG, why)
    }

    /// Error for a request that the data model cannot express.
    pub(crate) fn not_supported(what: &str) -> Self {
        let why = format!("This server has no {what}");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, why)
    }

    /// Error for a client with too many open requests, which end soon.
    pub(crate) fn too_many() -> Self {
        Self::above_rate(Duration::from_secs(10))
    }

    /// Error for a client with too many open streams.
    pub(crate) fn too_many_streams() -> Self {
        let why = "Too many streams are open; close one, or try again later";
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, why);
        Self { retry_after_secs: Some(5), ..error }
    }

    /// Error for a client above a rate; it may try again after `rest`.
    pub(crate) fn above_rate(rest: Duration) -> Self {
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "Too many requests; try again later");
        let secs = rest.as_secs() + u64::from(rest.subsec_nanos() > 0);
        Self { retry_after_secs: Some(secs.max(1)), ..error }
    }

    pub(crate) fn overloaded() -> Self {
        let why = "The server is busy; try again in a second";
        Self { retry_after_secs: Some(1), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, why) }
    }

    pub(crate) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "The server has failed")
    }

    /// Error for a read of damaged rows on the disk.
    pub(crate) fn unreadable() -> Self {
        let message = "The server cannot read the data for this request: its disk is damaged";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Error for a sign-up with wrong fields: name, Mastodon's `ERR_` code, and reason of each.
    pub(crate) fn of_fields(wrong: &[(&str, &str, String)]) -> Self {
        let mut details = Map::new();
        for (field, code, why) in wrong {
            let entry = details.entry((*field).to_owned()).or_insert_with(|| json!([]));
            if let Some(list) = entry.as_array_mut() {
                list.push(json!({"error": code, "description": why}));
            }
        }
        let reasons: Vec<String> =
            wrong.iter().map(|(field, _, why)| format!("{field}: {why}")).collect();
        let error = format!("Validation failed: {}", reasons.join(", "));
        let details = Some(Value::Object(details));
        Self { details, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, error) }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Seconds after which the client may try again, if any.
    pub(crate) fn retry_after_secs(&self) -> Option<u64> {
        self.retry_after_secs
    }

    /// Text for a page.
    pub(crate) fn message(&self) -> &str {
        self.description.as_deref().unwrap_or(&self.error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut body = json!({"error": self.error});
        if let Some(fields) = body.as_object_mut() {
            self.description.map(|text| fields.insert("error_description".into(), text.into()));
            self.details.map(|details| fields.insert("details".into(), details));
        }
        let mut response = (self.status, Json(body)).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"roost\""));
        }
        self.retry_after_secs.map(|secs| headers.insert(RETRY_AFTER, secs.into()));
        response
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge(_) => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "The body is too large")
            }
            BodyError::TooSlow => {
                Self::new(StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time")
            }
            BodyError::Incomplete => Self::invalid_request("the body is incomplete"),
            BodyError::Ended(Ended::Revoked) => Self::bad_token(),
            BodyError::Ended(Ended::Unreadable) => Self::unreadable(),
            BodyError::TooMany => Self::too_many(),
            BodyError::NoMemory(_) => Self::overloaded(),
        }
    }
}

impl From<Refusal> for ApiError {
    /// Maps a refusal by its class, except for errors of OAuth and errors that apps recognize by Mastodon's texts.
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::AppNotFound => Self::invalid_client(),
            Refusal::BadScope => Self::invalid_scope(),
            Refusal::BadCode
            | Refusal::AccountNotActive
            | Refusal::PasswordChanged
            | Refusal::NoAccount => Self::invalid_grant(),
            Refusal::ParentNotFound | Refusal::QuotedNotFound | Refusal::NotFollowed => {
                Self::not_found()
            }
            Refusal::Blocked => Self::new(
                StatusCode::FORBIDDEN,
                "This action is not allowed: unblock the user first",
            ),
            Refusal::StaleMarker => Self::new(StatusCode::CONFLICT, refusal.to_string()),
            Refusal::AlreadyVoted | Refusal::OneChoice => {
                Self::invalid("You have already voted on this poll")
            }
            Refusal::BadChoice => Self::invalid("The chosen vote option does not exist"),
            Refusal::PollEnded => Self::invalid("The poll has already ended"),
            Refusal::OwnPoll => Self::invalid("You cannot vote in your own polls"),
            refusal => match refusal.class() {
                RefusalClass::NotFound => Self::not_found(),
                RefusalClass::Conflict | RefusalClass::Precondition | RefusalClass::Invalid => {
                    Self::invalid(refusal)
                }
                RefusalClass::Full => {
                    Self::new(StatusCode::INSUFFICIENT_STORAGE, refusal.to_string())
                }
                RefusalClass::Busy => Self::overloaded(),
                RefusalClass::Internal => Self::internal(),
            },
        }
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::DiskFull => Self::new(StatusCode::INSUFFICIENT_STORAGE, error.to_string()),
            SubmitError::Unreadable => Self::unreadable(),
            SubmitError::Busy
            | SubmitError::NoLog
            | SubmitError::Upgrading
            | SubmitError::Unconfirmed
            | SubmitError::Stopped => Self::overloaded(),
        }
    }
}

impl From<UploadError> for ApiError {
    fn from(error: UploadError) -> Self {
        let status = match &error {
            UploadError::Refused(refusal) => return (*refusal).into(),
            UploadError::Unavailable(error) => return (*error).into(),
            UploadError::File(FileError::Write(error)) => {
                tracing::error!(%error, "a picture could not be stored");
                return Self::internal();
            }
            UploadError::Converter(error) => {
                tracing::error!(%error, "the process that converts pictures does not start");
                StatusCode::SERVICE_UNAVAILABLE
            }
            UploadError::Busy => StatusCode::SERVICE_UNAVAILABLE,
            UploadError::Picture(MediaError::Bytes) => StatusCode::PAYLOAD_TOO_LARGE,
            UploadError::Picture(_) => return Self::invalid(error),
            UploadError::File(FileError::Full) => StatusCode::INSUFFICIENT_STORAGE,
        };
        let retry_after_secs = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(5);
        Self { retry_after_secs, ..Self::new(status, error.to_string()) }
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Overloaded => Self::overloaded(),
            // The code that found the damage has logged it.
            ReadError::Panicked(payload) if payload.is::<Unreadable>() => Self::unreadable(),
            ReadError::Panicked(_) => {
                static LINES: LineGate = LineGate::new();
                if let Some(failures) = LINES.due() {
                    tracing::error!(failures, "reads panicked");
                }
                Self::internal()
            }
        }
    }
}

impl From<PasswordError> for ApiError {
    fn from(error: PasswordError) -> Self {
        match error {
            PasswordError::Length => {
                Self::of_fields(&[("password", "ERR_INVALID", error.to_string())])
            }
            PasswordError::Busy => Self::overloaded(),
            PasswordError::Failed => Self::internal(),
        }
    }
}

impl From<getrandom::Error> for ApiError {
    fn from(error: getrandom::Error) -> Self {
        tracing::error!(%error, "the operating system provides no random bytes");
        Self::internal()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_of_damaged_rows_says_that_the_disk_is_damaged() {
        let errors =
            [ReadError::Panicked(Box::new(Unreadable)).into(), SubmitError::Unreadable.into()];
        for error in errors {
            let ApiError { status, error, .. } = error;
            assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
            assert!(error.contains("its disk is damaged"), "{error}");
        }
        let panicked = ApiError::from(ReadError::Panicked(Box::new("a bug")));
        assert!(!panicked.message().contains("disk"), "{}", panicked.message());
    }
}
