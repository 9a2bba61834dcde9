//! Errors of the API itself: status, field, code and message. The name of a row is the constructor of the error.
//! Refusals of the rules are in other tables.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::StatusCode;
use edge::Scope;

use super::ApiError;

/// Parts of an error that are the same in every response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorKind {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) field: Option<Cow<'static, str>>,
    /// Message, with `…` for values that depend on the request.
    pub(crate) sentence: Cow<'static, str>,
}

impl From<ApiError> for ErrorKind {
    fn from(ApiError { status, code, field, message, .. }: ApiError) -> Self {
        Self { status, code, field, sentence: message }
    }
}

/// Declares the constructors of errors from a table with rows of the form `name(values) = STATUS("field") "code":
/// "message", key = value;`. With `why` instead of values, the caller passes the message, and the row has a message
/// that describes all of them.
macro_rules! errors {
    ($(
        $name:ident $values:tt = $status:ident $(($field:literal))? $code:literal:
            $sentence:literal $(, $key:ident = $value:expr)*;
    )*) => {
        impl ApiError {$(
            errors! { @constructor $name $values $status [$($field)?] $code $sentence [$($key = $value),*] }
        )*}

        /// All errors of the table.
        pub(super) fn kinds() -> impl Iterator<Item = ErrorKind> {
            let rows = [$((StatusCode::$status, $code, errors! { @field $($field)? }, $sentence)),*];
            rows.into_iter().map(|(status, code, field, sentence): (_, _, Option<&str>, _)| {
                ErrorKind { status, code, field: field.map(Cow::from), sentence: without_values(sentence) }
            })
        }
    };
    (@field) => { None };
    (@field $field:literal) => { Some($field) };
    (@constructor $name:ident (why) $status:ident [$($field:literal)?] $code:literal $sentence:literal []) => {
        #[doc = $sentence]
        pub(crate) fn $name(why: impl Into<Cow<'static, str>>) -> Self {
            Self::new(StatusCode::$status, $code, why)$(.at($field))?
        }
    };
    (
        @constructor $name:ident ($($given:ident: $type:ty),*) $status:ident [$($field:literal)?] $code:literal
        $sentence:literal [$($key:ident = $value:expr),*]
    ) => {
        #[doc = $sentence]
        pub(crate) fn $name($($given: $type),*) -> Self {
            let sentence = match format_args!($sentence $(, $key = $value)*).as_str() {
                Some(fixed) => Cow::Borrowed(fixed),
                None => format!($sentence $(, $key = $value)*).into(),
            };
            Self::new(StatusCode::$status, $code, sentence)$(.at($field))?
        }
    };
}

/// Replaces the names of values in a message by `…`.
fn without_values(sentence: &'static str) -> Cow<'static, str> {
    let mut parts = sentence.split(['{', '}']);
    let (start, rest) = (parts.next().unwrap_or_default(), parts.skip(1).step_by(2));
    rest.fold(start.into(), |before: Cow<'_, str>, after| format!("{before}\u{2026}{after}").into())
}

errors! {
    bad_request(why) = BAD_REQUEST "bad_request": "the request cannot be read";
    bad_json(why) = BAD_REQUEST "bad_json": "the body is not valid JSON for this route";
    bad_idempotency_key() = BAD_REQUEST("Idempotency-Key") "bad_idempotency_key":
        "there is one Idempotency-Key, of 1 to 255 visible ASCII characters, with spaces between them";

    unauthorized() = UNAUTHORIZED "unauthorized":
        "this request needs an application key or a token of a user: Authorization: Bearer KEY";
    not_logged_in() = UNAUTHORIZED "not_logged_in":
        "this browser has no session; log in again";
    missing_scope(scope: Scope) = FORBIDDEN "missing_scope":
        "the application key or token needs the scope {scope}", scope = scope.name();
    forbidden_origin(why) = FORBIDDEN "forbidden_origin":
        "a page of another origin sent the request, or in open mode another machine";
    not_for_users(scope: Scope) = FORBIDDEN "not_for_users":
        "users cannot use this route; it needs an application key with the scope {scope}", scope = scope.name();
    not_own() = FORBIDDEN "not_own":
        "a user can act and read only for themselves, by their id";

    not_found() = NOT_FOUND "not_found": "there is nothing at this path";
    set_not_found() = NOT_FOUND "set_not_found": "there is no such set of samples";
    key_not_found() = NOT_FOUND "key_not_found": "there is no such key in this bucket";
    changes_off() = NOT_FOUND "changes_off":
        "this server keeps no change feed: start it with --changes-max";
    changes_gone() = GONE("after") "changes_gone":
        "changes after this position are not kept: read after=end, then all data, and continue from that next";
    feed_not_found() = NOT_FOUND "feed_not_found": "there is no feed with this name";
    bad_feed(why) = UNPROCESSABLE_ENTITY "bad_feed": "the definition of the feed is wrong";
    feed_in_file() = CONFLICT("name") "feed_in_file":
        "the server's file of feeds defines this feed, and a stored one would have no effect";
    changes_failed() = SERVICE_UNAVAILABLE "changes_failed":
        "the files of the change feed have failed: see the server's log; a restart begins again";
    no_cluster() = NOT_FOUND "no_cluster": "this server is not a node of a cluster";
    method_not_allowed() = METHOD_NOT_ALLOWED "method_not_allowed":
        "this path does not support the method; see the Allow header";
    body_too_slow() = REQUEST_TIMEOUT "body_too_slow": "the body did not arrive in time";
    backup_running() = CONFLICT "backup_running":
        "another backup is in progress; try again when it has ended";
    ranking_expired() = GONE("cursor") "ranking_expired":
        "the ranking of this cursor is no longer kept; read the first page again";
    body_too_large(bytes_max: usize) = PAYLOAD_TOO_LARGE "body_too_large":
        "a body is at most {bytes_max} bytes";
    line_too_long(bytes_max: usize) = PAYLOAD_TOO_LARGE "line_too_long":
        "a line is at most {bytes_max} bytes; later lines were not read";
    beyond_memory() = PAYLOAD_TOO_LARGE "beyond_memory":
        "this request needs more memory than all requests together may use";
    unsupported_media_type(expected: &str) = UNSUPPORTED_MEDIA_TYPE("Content-Type") "unsupported_media_type":
        "the Content-Type must be {expected}";

    bad_limit(limit_max: usize) = UNPROCESSABLE_ENTITY("limit") "bad_limit":
        "limit must be between 1 and {limit_max}";
    bad_cursor() = UNPROCESSABLE_ENTITY("cursor") "bad_cursor":
        "cursor must be next or prev of another page of the list";
    bad_position() = UNPROCESSABLE_ENTITY("after") "bad_position":
        "after must be next or position of the change feed, or end";
    bad_wait(secs_max: u64) = UNPROCESSABLE_ENTITY("wait_s") "bad_wait":
        "wait_s must be at most {secs_max}";
    bad_event_id() = UNPROCESSABLE_ENTITY("Last-Event-ID") "bad_event_id":
        "Last-Event-ID must be an id of an earlier event";
    bad_k(k_max: usize) = UNPROCESSABLE_ENTITY("k") "bad_k": "k must be between 1 and {k_max}";
    bad_ttl(secs_max: u64) = UNPROCESSABLE_ENTITY("ttl_s") "bad_ttl":
        "a time to live is 1 to {secs_max} seconds";
    bad_bucket() = UNPROCESSABLE_ENTITY("bucket") "bad_bucket":
        "the name of a bucket is 1 to {chars_max} characters of a-z A-Z 0-9 _ -",
        chars_max = kv::limits::BUCKET_NAME_CHARS_MAX;
    bad_key(bytes_max: usize) = UNPROCESSABLE_ENTITY("key") "bad_key":
        "a key is 1 to {bytes_max} bytes, percent-encoded";
    bad_sample(why) = UNPROCESSABLE_ENTITY "bad_sample": "the sample is not a drawing";
    bad_image(why) = UNPROCESSABLE_ENTITY "bad_image": "the image cannot be read as a drawing";
    idempotency_key_not_supported(why) = UNPROCESSABLE_ENTITY("Idempotency-Key") "idempotency_key_not_supported":
        "the route does not accept an Idempotency-Key header";

    too_many_requests() = TOO_MANY_REQUESTS "too_many_requests":
        "there were too many requests of this user; try again later";
    too_many_streams() = TOO_MANY_REQUESTS "too_many_requests":
        "too many live streams and batches are open; close some of them";

    internal() = INTERNAL_SERVER_ERROR "internal":
        "the server failed to handle this request and has logged the cause";
    damaged() = INTERNAL_SERVER_ERROR "damaged":
        "the server cannot read the data for this request: its disk is damaged";
    overloaded() = SERVICE_UNAVAILABLE "overloaded":
        "the server is overloaded; try again in 1 to 3 seconds";
    stopping() = SERVICE_UNAVAILABLE "stopping":
        "the server is shutting down; try again after the restart";
    lagging(position: u64) = SERVICE_UNAVAILABLE "lagging":
        "this server has not reached position {position} yet; try again";
    lags(lag: Duration) = SERVICE_UNAVAILABLE "lagging":
        "this server is {lag_ms} ms behind the cluster", lag_ms = lag.as_millis();
    log_unavailable(why) = SERVICE_UNAVAILABLE "log_unavailable":
        "this cluster node cannot reach the log; nothing was changed";
    upgrading(why) = SERVICE_UNAVAILABLE "upgrading":
        "not all nodes of the cluster know this change yet; nothing was changed";
    unconfirmed(why) = SERVICE_UNAVAILABLE "unconfirmed":
        "the log of the cluster has not confirmed the change, which may still be made; try again with the same Idempotency-Key";
    disk_full(why) = INSUFFICIENT_STORAGE "disk_full":
        "the disk is full: nothing was changed, and only deletions are accepted";
}
