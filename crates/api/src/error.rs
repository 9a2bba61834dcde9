//! Errors of the API: the only place where a refusal becomes a status and JSON.
//!
//! 400 means that the request cannot be parsed: syntax, types, unknown or missing fields and parameters. 422
//! means that it can be parsed, but a rule refuses it: lengths, ranges, formats of values.
//!
//! An error is passed to the guard as an extension of the response. The guard knows the request's id and calls
//! [`ApiError::finish`] to write the body.
//!
//! **Invariant:** internal detail is logged and never sent.

mod refusal;
mod session;

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use edge::{BodyError, LineGate, NoMemory, ReadError, Scope};
use node::{SubmitError, TooManySnapshots, Unreadable};
use serde::Serialize;

/// Maximum length of a message, in bytes: some quote input.
const MESSAGE_BYTES_MAX: usize = 300;

/// Maximum length of a field name, in bytes: unknown names come from the input.
const FIELD_BYTES_MAX: usize = 64;

/// An error response.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: Cow<'static, str>,
    /// The invalid field, parameter or header, if any.
    pub(crate) field: Option<Cow<'static, str>>,
    /// Detail for the log only.
    detail: Option<Arc<str>>,
    /// Time after which the client may try again, if it was too fast.
    retry_after: Option<Duration>,
}

/// The body of every error.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct ErrorBody<'a> {
    /// Stable error code.
    #[schema(example = "user_not_found")]
    error: &'a str,
    /// The error as a sentence.
    #[schema(example = "there is no such user")]
    message: &'a str,
    /// The invalid field, parameter or header; absent if none is.
    #[schema(nullable = false, example = "user")]
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    /// As in the header `X-Request-Id` and in the server's log.
    #[schema(example = "5f0c9a1e22b7d301")]
    #[serde(skip_serializing_if = "str::is_empty")]
    request_id: &'a str,
}

/// Cuts text at a character.
fn shortened(text: impl Into<Cow<'static, str>>, bytes_max: usize) -> Cow<'static, str> {
    let mut text = text.into();
    if text.len() > bytes_max {
        let end = text.floor_char_boundary(bytes_max);
        text.to_mut().truncate(end);
    }
    text
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        let message = shortened(message, MESSAGE_BYTES_MAX);
        Self { status, code, message, field: None, detail: None, retry_after: None }
    }

    /// Adds the field, parameter or header that is invalid.
    pub(crate) fn at(mut self, field: impl Into<Cow<'static, str>>) -> Self {
        self.field = Some(shortened(field, FIELD_BYTES_MAX));
        self
    }

    pub(crate) fn unauthorized() -> Self {
        let message = "this request needs an application key: Authorization: Bearer KEY";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(crate) fn missing_scope(scope: Scope) -> Self {
        let message = format!("the application key needs the scope {}", scope.name());
        Self::new(StatusCode::FORBIDDEN, "missing_scope", message)
    }

    pub(crate) fn forbidden_origin(message: &'static str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden_origin", message)
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "there is nothing at this path")
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "this path does not support the method; see the Allow header";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
    }

    pub(crate) fn body_too_large(bytes_max: usize) -> Self {
        let message = format!("a body is at most {bytes_max} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    }

    pub(crate) fn unsupported_media_type(expected: &'static str) -> Self {
        let message = format!("the Content-Type must be {expected}");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
            .at("Content-Type")
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

    pub(crate) fn bad_limit(limit_max: usize) -> Self {
        let message = format!("a page has 1 to {limit_max} items");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_limit", message).at("limit")
    }

    pub(crate) fn bad_k(k_max: usize) -> Self {
        let message = format!("1 to {k_max} neighbors can vote");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_k", message).at("k")
    }

    pub(crate) fn bad_ttl(secs_max: u64) -> Self {
        let message = format!("a time to live is 1 to {secs_max} seconds");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_ttl", message).at("ttl_s")
    }

    pub(crate) fn bad_bucket() -> Self {
        let chars_max = kv::limits::BUCKET_NAME_CHARS_MAX;
        let message = format!("the name of a bucket is 1 to {chars_max} of a-z A-Z 0-9 _ -");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_bucket", message).at("bucket")
    }

    pub(crate) fn bad_key(bytes_max: usize) -> Self {
        let message = format!("a key is 1 to {bytes_max} bytes, percent-encoded");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_key", message).at("key")
    }

    pub(crate) fn key_not_found() -> Self {
        let message = "there is no such key in this bucket";
        Self::new(StatusCode::NOT_FOUND, "key_not_found", message)
    }

    pub(crate) fn precondition_failed() -> Self {
        let message = "the condition of If-Match or If-None-Match is false; nothing was changed";
        Self::new(StatusCode::PRECONDITION_FAILED, "precondition_failed", message)
    }

    pub(crate) fn bad_idempotency_key(why: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_idempotency_key", why).at("Idempotency-Key")
    }

    pub(crate) fn idempotency_key_not_supported(why: &'static str) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self::new(status, "idempotency_key_not_supported", why).at("Idempotency-Key")
    }

    pub(crate) fn backup_running() -> Self {
        let message = "another backup is in progress; try again when it has ended";
        Self::new(StatusCode::CONFLICT, "backup_running", message)
    }

    pub(crate) fn body_too_slow() -> Self {
        let message = "the body did not arrive in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", message)
    }

    pub(crate) fn line_too_long(bytes_max: usize) -> Self {
        let message = format!("a line is at most {bytes_max} bytes; later lines were not read");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "line_too_long", message)
    }

    /// The request needs more memory than all requests may use together.
    pub(crate) fn beyond_memory() -> Self {
        let message =
            "this request needs more memory than the server allows for all requests together";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "beyond_memory", message)
    }

    pub(crate) fn no_cluster() -> Self {
        let message = "this server is not one of a cluster";
        Self::new(StatusCode::NOT_FOUND, "no_cluster", message)
    }

    /// The node has not reached a position in time.
    pub(crate) fn lagging(position: u64) -> Self {
        let message = format!("this server has not reached position {position} yet; try again");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "lagging", message)
    }

    /// The node lacks changes of others, or cannot know.
    pub(crate) fn lags(lag: Duration) -> Self {
        let message = format!("this server has lacked changes for {} ms", lag.as_millis());
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "lagging", message)
    }

    pub(crate) fn overloaded() -> Self {
        let message = "the server is overloaded; try again in 1 to 3 seconds";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message)
    }

    /// A row on the disk is damaged. The store has logged which.
    pub(crate) fn unreadable() -> Self {
        let message = "the server cannot read the data for this request: its disk is damaged";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", message)
    }

    pub(crate) fn stopping() -> Self {
        let message = "the server is shutting down; try again when it is back";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", message)
    }

    /// A fault of the server: `error` is for the log.
    pub(crate) fn internal(error: &dyn Display) -> Self {
        let message = "the server failed to handle this request and has logged the cause";
        let mut internal = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message);
        internal.detail = Some(error.to_string().into());
        internal
    }

    /// Logs the detail that is not sent, at most once per second.
    pub(crate) fn log(&self, request_id: &str) {
        static LINES: LineGate = LineGate::new();
        if let Some(error) = &self.detail
            && let Some(failures) = LINES.due()
        {
            let text = "requests failed with an internal error; this is the last";
            tracing::error!(%error, request_id, failures, "{text}");
        }
    }

    /// The error as JSON, without a line end. `request_id` may be empty.
    pub(crate) fn to_json(&self, request_id: &str) -> Vec<u8> {
        let field = self.field.as_deref();
        let body = ErrorBody { error: self.code, message: &self.message, field, request_id };
        let Ok(json) = serde_json::to_vec(&body) else {
            unreachable!("strings can be serialized into memory");
        };
        json
    }

    /// Writes the body of a response that carries an error.
    pub(crate) fn finish(response: &mut Response, request_id: &str) {
        let Some(error) = response.extensions_mut().remove::<Self>() else { return };
        error.log(request_id);
        *response.body_mut() = Body::from(error.to_json(request_id));
    }
}

impl From<TooManySnapshots> for ApiError {
    fn from(_: TooManySnapshots) -> Self {
        Self::overloaded()
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Busy => Self::overloaded(),
            SubmitError::NoLog => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "log_unavailable", error.to_string())
            }
            SubmitError::Upgrading => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "upgrading", error.to_string())
            }
            SubmitError::Unconfirmed => {
                let message = format!("{error}; try again with the same Idempotency-Key");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unconfirmed", message)
            }
            SubmitError::Stopped => Self::stopping(),
            SubmitError::Unreadable => Self::unreadable(),
            SubmitError::DiskFull => {
                Self::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", error.to_string())
            }
        }
    }
}

impl From<NoMemory> for ApiError {
    fn from(error: NoMemory) -> Self {
        match error {
            NoMemory::Now => Self::overloaded(),
            NoMemory::Ever => Self::beyond_memory(),
        }
    }
}

impl From<BodyError> for ApiError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge(bytes_max) => Self::body_too_large(bytes_max),
            BodyError::TooSlow => Self::body_too_slow(),
            BodyError::Incomplete => {
                Self::bad_request("the connection failed before the end of the body")
            }
            BodyError::Revoked => Self::unauthorized(),
            BodyError::NoMemory(error) => error.into(),
        }
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Overloaded => Self::overloaded(),
            ReadError::Panicked(payload) if payload.is::<Unreadable>() => Self::unreadable(),
            ReadError::Panicked(_) => Self::internal(&"a read panicked"),
        }
    }
}

/// Seconds until the client should retry. The values differ, so that clients refused at the same time do not
/// retry at the same time.
fn retry_after() -> &'static str {
    static REFUSED: AtomicUsize = AtomicUsize::new(0);
    // Nothing depends on the order: each refusal gets the next of the three.
    match REFUSED.fetch_add(1, Ordering::Relaxed) % 3 {
        0 => "1",
        1 => "2",
        _ => "3",
    }
}

impl IntoResponse for ApiError {
    /// Without a body, which [`ApiError::finish`] writes.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        let headers = response.headers_mut();
        if let Some(after) = self.retry_after {
            let secs = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, secs.max(1).into());
        }
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
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn clients_refused_at_the_same_time_retry_at_different_times() {
        let after = |_| {
            let response = ApiError::overloaded().into_response();
            let after = response.headers()[RETRY_AFTER].to_str().unwrap().to_owned();
            after.parse::<u64>().unwrap()
        };
        // Requests of other tests may be refused at the same time.
        let all: BTreeSet<u64> = (0..100).map(after).collect();
        assert!(all.len() > 1 && all.iter().all(|secs| (1..=3).contains(secs)), "{all:?}");
    }
}
