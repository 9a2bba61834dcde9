//! Errors of the API. Only this module and its folder turn a refusal into a status and JSON.
//!
//! 400 means that the request cannot be parsed: syntax, types, unknown or missing fields and parameters. 422 means that
//! a rule refuses a parsed request: lengths, ranges, formats of values.
//!
//! An error travels to the guard as an extension of the response. The guard knows the id of the request and calls
//! [`ApiError::finish`] to write the body.
//!
//! **Invariant:** internal detail is logged and never sent.

mod refusal;
mod table;

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use edge::{BodyError, Ended, LineGate, NoMemory, ReadError, SessionError};
use feed::Refusal;
use kv::KeyRefusal;
use node::{SubmitError, TooManySnapshots, Unreadable};
use serde::Serialize;

pub(crate) use table::ErrorKind;

/// Maximum length of a message, in bytes. Some messages quote input.
const MESSAGE_BYTES_MAX: usize = 300;

/// Maximum length of a field name, in bytes. Unknown names come from the input.
const FIELD_BYTES_MAX: usize = 64;

/// Retry time for a client with too many open streams.
const STREAMS_RETRY: Duration = Duration::from_secs(5);

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
    /// Time after which the client may try again, if any.
    retry_after: Option<Duration>,
}

/// Body of every error response.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct ErrorBody<'a> {
    /// Stable error code.
    error: &'a str,
    /// The error as a sentence.
    message: &'a str,
    /// Invalid field, parameter or header; null if there is none.
    field: Option<&'a str>,
    /// Id of the request, also in the header `X-Request-Id` and in the server's log.
    #[schema(example = "5f0c9a1e22b7d301")]
    #[serde(skip_serializing_if = "str::is_empty")]
    request_id: &'a str,
}

/// Truncates text at a character boundary.
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

    /// Names the invalid field, parameter or header.
    pub(crate) fn at(mut self, field: impl Into<Cow<'static, str>>) -> Self {
        self.field = Some(shortened(field, FIELD_BYTES_MAX));
        self
    }

    /// Error for a fault of the server; `error` is only logged.
    pub(crate) fn fault(error: &dyn Display) -> Self {
        Self { detail: Some(error.to_string().into()), ..Self::internal() }
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

    /// Renders the error as JSON without a line end. `request_id` may be empty.
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

/// All errors of the API and all refusals of the rules. Several of them may share a code.
pub(crate) fn kinds() -> impl Iterator<Item = ErrorKind> {
    let of_feed = Refusal::ALL.iter().map(|refusal| ApiError::from(*refusal).into());
    let of_keys = KeyRefusal::ALL.iter().map(|refusal| ApiError::from(*refusal).into());
    table::kinds().chain(of_feed).chain(of_keys)
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
            SubmitError::NoLog => Self::log_unavailable(error.to_string()),
            SubmitError::Upgrading => Self::upgrading(error.to_string()),
            SubmitError::Unconfirmed => {
                Self::unconfirmed(format!("{error}; try again with the same Idempotency-Key"))
            }
            SubmitError::Stopped => Self::stopping(),
            SubmitError::Unreadable => Self::damaged(),
            SubmitError::DiskFull => Self::disk_full(error.to_string()),
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
            BodyError::Ended(ended) => ended.into(),
            BodyError::TooMany => {
                let after = Some(Duration::from_secs(10));
                Self { retry_after: after, ..Self::too_many_requests() }
            }
            BodyError::NoMemory(error) => error.into(),
        }
    }
}

impl From<Ended> for ApiError {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Revoked => Self::unauthorized(),
            Ended::Unreadable => Self::damaged(),
        }
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Overloaded => Self::overloaded(),
            ReadError::Panicked(payload) if payload.is::<Unreadable>() => Self::damaged(),
            ReadError::Panicked(_) => Self::fault(&"a read panicked"),
        }
    }
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Ended => Self::not_logged_in(),
            SessionError::OtherSite => {
                Self::forbidden_origin("only pages of this server may use its sessions")
            }
            SessionError::TooMany(after) => {
                Self { retry_after: Some(after), ..Self::too_many_requests() }
            }
            SessionError::Overloaded => Self::overloaded(),
        }
    }
}

/// Seconds until the client should retry. The values vary, so that clients refused at the same time retry at different
/// times.
fn retry_after() -> &'static str {
    static REFUSED: AtomicUsize = AtomicUsize::new(0);
    // The order is relaxed, because refusals may get the three values in any order.
    match REFUSED.fetch_add(1, Ordering::Relaxed) % 3 {
        0 => "1",
        1 => "2",
        _ => "3",
    }
}

impl IntoResponse for ApiError {
    /// Builds a response without a body, which [`ApiError::finish`] writes.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        let headers = response.headers_mut();
        let of_streams = (self.status == StatusCode::TOO_MANY_REQUESTS).then_some(STREAMS_RETRY);
        if let Some(after) = self.retry_after.or(of_streams) {
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
    fn every_error_is_in_the_reference_or_in_the_guide() {
        let reference = crate::routes::document().to_json().unwrap();
        let guide = include_str!("../../../docs/api.md");
        for ErrorKind { code, .. } in table::kinds() {
            let code = format!("`{code}`");
            assert!(reference.contains(&code) || guide.contains(&code), "{code}");
        }
    }

    #[test]
    fn clients_refused_at_the_same_time_retry_at_different_times() {
        let after = |_| {
            let response = ApiError::overloaded().into_response();
            let after = response.headers()[RETRY_AFTER].to_str().unwrap().to_owned();
            after.parse::<u64>().unwrap()
        };
        // Refusals in other tests may use up some values.
        let all: BTreeSet<u64> = (0..100).map(after).collect();
        assert!(all.len() > 1 && all.iter().all(|secs| (1..=3).contains(secs)), "{all:?}");
    }
}
