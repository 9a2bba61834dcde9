//! What goes wrong, as callers see it: the only place where a refusal becomes a status and JSON.
//!
//! **Invariant:** internal detail is logged here and never sent.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use edge::{LineGate, ReadError, Scope};
use feed::Refusal;
use kv::KeyRefusal;
use node::{SubmitError, TooManySnapshots};
use serde::Serialize;

/// Longest message in bytes: some quote input.
const MESSAGE_BYTES_MAX: usize = 300;

/// A request that is answered with an error.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: Cow<'static, str>,
}

/// The body of every error.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct ErrorBody<'a> {
    /// Stable name of what went wrong.
    #[schema(example = "user_not_found")]
    pub(crate) error: &'a str,
    /// The same as a sentence.
    #[schema(example = "there is no such user")]
    pub(crate) message: &'a str,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        let mut message = message.into();
        if message.len() > MESSAGE_BYTES_MAX {
            let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
            message.to_mut().truncate(end);
        }
        Self { status, code, message }
    }

    pub(crate) fn unauthorized() -> Self {
        let message = "this needs the application's key: Authorization: Bearer KEY";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(crate) fn missing_scope(scope: Scope) -> Self {
        let message = format!("this needs an application key with the scope {}", scope.name());
        Self::new(StatusCode::FORBIDDEN, "missing_scope", message)
    }

    pub(crate) fn forbidden_origin(message: &'static str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden_origin", message)
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "there is nothing at this path")
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "this path does not know the method; see the Allow header";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
    }

    pub(crate) fn body_too_large(bytes_max: usize) -> Self {
        let message = format!("a body is at most {bytes_max} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    }

    pub(crate) fn unsupported_media_type(expected: &'static str) -> Self {
        let message = format!("the Content-Type must be {expected}");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    pub(crate) fn bad_json(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_json", why)
    }

    pub(crate) fn bad_cursor(why: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_cursor", why)
    }

    pub(crate) fn bad_request(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", why)
    }

    pub(crate) fn bad_sample(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_sample", why)
    }

    pub(crate) fn bad_image(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_image", why)
    }

    pub(crate) fn set_not_found() -> Self {
        let message = "there is no such set of samples";
        Self::new(StatusCode::NOT_FOUND, "set_not_found", message)
    }

    pub(crate) fn bad_bucket() -> Self {
        let message = format!(
            "the name of a bucket is 1 to {} of a-z A-Z 0-9 _ -",
            kv::limits::BUCKET_NAME_CHARS_MAX
        );
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_bucket", message)
    }

    pub(crate) fn bad_key(bytes_max: usize) -> Self {
        let message = format!("a key is 1 to {bytes_max} bytes, percent-encoded");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_key", message)
    }

    pub(crate) fn key_not_found() -> Self {
        let message = "there is no such key in this bucket";
        Self::new(StatusCode::NOT_FOUND, "key_not_found", message)
    }

    pub(crate) fn precondition_failed() -> Self {
        let message = "the key is not as If-Match or If-None-Match says; nothing was changed";
        Self::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", message)
    }

    pub(crate) fn bad_idempotency_key(why: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_idempotency_key", why)
    }

    pub(crate) fn body_too_slow() -> Self {
        let message = "the body did not arrive in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", message)
    }

    pub(crate) fn line_too_long(bytes_max: usize) -> Self {
        let message = format!("a line is at most {bytes_max} bytes; nothing behind it was read");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "line_too_long", message)
    }

    /// What a request takes would not fit if it were the only one.
    pub(crate) fn beyond_memory() -> Self {
        let message = "this takes more memory than the server gives to all requests together";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "beyond_memory", message)
    }

    pub(crate) fn overloaded() -> Self {
        let message = "the server has too much to do; try again in 1 to 3 seconds";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message)
    }

    pub(crate) fn stopping() -> Self {
        let message = "the server is shutting down; try again when it is back";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", message)
    }

    /// Something that must not happen: logged here, at most once per second, and sent without detail.
    pub(crate) fn internal(error: &dyn Display) -> Self {
        static LINES: LineGate = LineGate::new();
        if let Some(failures) = LINES.due() {
            tracing::error!(%error, failures, "requests failed inside the server; this is the last");
        }
        let message = "the server failed at this request and has logged why";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    /// The error as JSON, without a line end.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let body = ErrorBody { error: self.code, message: &self.message };
        let Ok(json) = serde_json::to_vec(&body) else {
            unreachable!("two strings serialise into memory");
        };
        json
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::UserNotFound
            | Refusal::PostNotFound
            | Refusal::StoryNotFound
            | Refusal::SampleNotFound => StatusCode::NOT_FOUND,
            Refusal::HandleTaken | Refusal::SampleBuiltIn => StatusCode::CONFLICT,
            Refusal::Full
            | Refusal::SetFull
            | Refusal::TooManyLabels
            | Refusal::TooManySets
            | Refusal::SamplesFull => StatusCode::INSUFFICIENT_STORAGE,
            Refusal::BadHandle
            | Refusal::BadName
            | Refusal::BadBio
            | Refusal::BadText
            | Refusal::BadLifetime
            | Refusal::BadLabel
            | Refusal::BadSet
            | Refusal::SelfFollow
            | Refusal::SelfFriend
            | Refusal::TooManyFollows
            | Refusal::TooManyFriends
            | Refusal::TooManyPosts
            | Refusal::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Self::new(status, refusal.code(), refusal.to_string())
    }
}

impl From<KeyRefusal> for Problem {
    fn from(refusal: KeyRefusal) -> Self {
        if refusal == KeyRefusal::Busy {
            return Self::overloaded();
        }
        let (status, code) = match refusal {
            KeyRefusal::BucketNotFound => (StatusCode::NOT_FOUND, "bucket_not_found"),
            KeyRefusal::BucketStays => (StatusCode::CONFLICT, "bucket_stays"),
            KeyRefusal::TooManyBuckets | KeyRefusal::SpacesUsedUp => {
                (StatusCode::INSUFFICIENT_STORAGE, "too_many_buckets")
            }
            // Of operations that are not asked for over HTTP.
            KeyRefusal::KeyNotFound
            | KeyRefusal::NotInteger
            | KeyRefusal::NotFloat
            | KeyRefusal::Overflow
            | KeyRefusal::NotFinite
            | KeyRefusal::TooLong
            | KeyRefusal::TooLarge
            | KeyRefusal::BadKey
            | KeyRefusal::Busy
            | KeyRefusal::SameKey => (StatusCode::UNPROCESSABLE_ENTITY, "bad_value"),
        };
        Self::new(status, code, refusal.to_string())
    }
}

impl From<TooManySnapshots> for Problem {
    fn from(_: TooManySnapshots) -> Self {
        Self::overloaded()
    }
}

impl From<SubmitError> for Problem {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Busy => Self::overloaded(),
            SubmitError::Stopped => Self::stopping(),
        }
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Overloaded => Self::overloaded(),
            ReadError::Panicked(error) => Self::internal(&error),
        }
    }
}

/// Seconds after which to come back. They differ, so that all who are refused at once do not come back at
/// once.
fn retry_after() -> &'static str {
    static REFUSED: AtomicUsize = AtomicUsize::new(0);
    // Nothing depends on the order: each refusal gets the next of the three.
    match REFUSED.fetch_add(1, Ordering::Relaxed) % 3 {
        0 => "1",
        1 => "2",
        _ => "3",
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.to_json().into_response();
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static(retry_after()));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn those_refused_at_once_are_not_sent_back_at_once() {
        let after = |_| {
            let response = Problem::overloaded().into_response();
            let after = response.headers()[RETRY_AFTER].to_str().unwrap().to_owned();
            after.parse::<u64>().unwrap()
        };
        // Other tests may be refused meanwhile.
        let all: BTreeSet<u64> = (0..100).map(after).collect();
        assert!(all.len() > 1 && all.iter().all(|secs| (1..=3).contains(secs)), "{all:?}");
    }
}
