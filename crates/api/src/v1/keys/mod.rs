//! Keys of buckets: write, read and delete values as raw bytes, and list keys.
//!
//! An `ETag` is the version of a key: every write changes it, even with an equal value. `If-Match` and `If-None-Match`
//! make a request conditional on it (RFC 9110).

mod given;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, ETAG, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use edge::{BodyLimits, HeldBody};
use feed::Refusal;
use kv::Stamp;
use kv::limits::VALUE_BYTES_MAX;
use kv::{BucketId, Bytes as Slice, KeyAnswer, KeyOp, KeyRefusal, KeyRow, Only};
use node::{Found, Node};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::described::Binary;
use crate::error::ApiError;
use crate::idempotency::NoKey;
use crate::page;
use crate::route::{Route, reference};
use crate::state::AppState;
use crate::time::rfc3339;
use crate::v1::buckets::{OneBucket, operate, resolved};
use given::{Listing, OneKey, Precondition, Ttl};

const PATH: &str = "/v1/buckets/{bucket}/keys/{*key}";
/// Time at which the key expires: `expires_at` in a list.
const EXPIRES: HeaderName = HeaderName::from_static("x-expires-at");
/// Maximum number of attempts of a conditional change while other requests change the key.
const ATTEMPTS_MAX: usize = 8;
/// Maximum number of keys that are scanned for a page, even if the page is not full. Such a read takes about 10 ms.
const LOOKED_MAX: usize = 10_000;
/// Maximum size of the keys and values that are scanned for a page, in bytes.
const LOOKED_BYTES: usize = 4 << 20;
/// Memory of a listed key, in bytes per byte of the key: `%XX` in the page and in the source of the page.
const LISTED_TIMES: usize = 6;
/// Number of keys read together, with their values.
const LOOK_AT_ONCE: usize = 256;
/// Bytes to percent-encode in a path: all except letters, digits, `-`, `.`, `_` and `~`.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/buckets/{bucket}/keys", list)
            .named("list_keys", "List keys")
            .text(
                "In no particular order. A key that exists during the whole iteration is listed \
                 at least once, like with Redis SCAN. A page may have fewer keys than requested, \
                 or no keys, although there are more: follow `next` until it is null.",
            )
            .lists::<KeyView>("A page of keys")
            .errors(&["bucket_not_found"]),
        Route::put(PATH, put)
            .named("put_key", "Set a key")
            .text(
                "The body is the raw value. The key expires after `ttl_s` seconds; without it, \
                 the key does not expire.",
            )
            .reads_header("If-Match", "ETags or `*`: only if the key has one of these versions")
            .reads_header(
                "If-None-Match",
                "ETags or `*`: only if the key has none of these versions",
            )
            .body(Some(VALUE_BYTES_MAX), vec![("application/octet-stream", reference::<Binary>)])
            .answers(204, "The key is set")
            .with_header("ETag", "Version of the key")
            .errors(&["precondition_failed"])
            .error(KeyRefusal::TooLarge),
        Route::get(PATH, read)
            .named("get_key", "Read a key")
            .reads_header("If-Match", "ETags or `*`: 412 if the key has none of these versions")
            .reads_header("If-None-Match", "ETags: 304 if the key still has one of these versions")
            .answers_with("The value", "application/octet-stream", reference::<Binary>)
            .with_header("ETag", "Version of the key")
            .with_header(
                "X-Expires-At",
                "Time at which the key expires; absent if it does not expire",
            )
            .answers(304, "Not modified")
            .errors(&["key_not_found", "precondition_failed"]),
        Route::delete(PATH, delete)
            .named("delete_key", "Delete a key")
            .reads_header("If-Match", "ETags or `*`: only if the key has one of these versions")
            .reads_header("If-None-Match", "ETags: only if the key has none of these versions")
            .answers(204, "The key is deleted")
            .errors(&["key_not_found", "precondition_failed"]),
    ]
}

/// A key in a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct KeyView {
    /// Percent-encoded key: every byte except letters, digits, `-`, `.`, `_` and `~` is `%XX`.
    #[schema(example = "draft%3A1")]
    key: String,
    /// Size of the value in bytes.
    #[schema(example = 42)]
    size_bytes: usize,
    #[schema(example = "\"381482917519855616\"")]
    etag: String,
    /// Time at which the key expires; null if it does not expire.
    #[schema(format = DateTime, example = "2026-11-22T09:30:00.123Z")]
    expires_at: Option<String>,
}

fn etag(version: Stamp) -> String {
    format!("\"{}\"", version.0)
}

fn mark(response: &mut Response, version: Stamp) {
    if let Ok(tag) = HeaderValue::try_from(etag(version)) {
        response.headers_mut().insert(ETAG, tag);
    }
}

pub(super) async fn put(
    State(state): State<Arc<AppState>>,
    OneKey { bucket, key }: OneKey,
    Ttl(expiry): Ttl,
    _: NoKey,
    request: Request,
) -> Result<Response, ApiError> {
    let precondition = Precondition::of(request.headers())?;
    let bucket = resolved(&state, &bucket).await?;
    let limits = BodyLimits::new(VALUE_BYTES_MAX);
    let mut body = HeldBody::read(request.into_body(), limits, &state.memory).await?;
    // The log gets a copy of the body, so the memory of a second body is held until the response.
    body.hold_more(&state.memory, body.bytes().len())?;
    for _ in 0..ATTEMPTS_MAX {
        let only = only(&state, bucket, &key, &precondition).await?;
        let (key, value) = (Slice::new(&key), Slice::new(body.bytes()));
        let op = KeyOp::Put { bucket, key, value, expiry, only, old: false };
        if let KeyAnswer::Written { version, .. } = operate(&state, op).await? {
            let mut response = StatusCode::NO_CONTENT.into_response();
            mark(&mut response, version);
            return Ok(response);
        }
        if precondition.as_only().is_some() {
            return Err(Refusal::PreconditionFailed.into());
        }
    }
    Err(ApiError::overloaded())
}

/// Checks the request's conditions on the current version of the key. Returns a condition for the change: that the key
/// still has this version.
async fn only(
    state: &AppState,
    bucket: BucketId,
    key: &[u8],
    precondition: &Precondition,
) -> Result<Only, ApiError> {
    if let Some(only) = precondition.as_only() {
        return Ok(only);
    }
    let version = row(state, bucket, key).await?.map(|row| row.version());
    if !precondition.is_matched_by(version) || precondition.knows(version) {
        return Err(Refusal::PreconditionFailed.into());
    }
    Ok(version.map_or(Only::IfAbsent, Only::IfVersion))
}

async fn row(state: &AppState, bucket: BucketId, key: &[u8]) -> Result<Option<KeyRow>, ApiError> {
    match state.node.keys().try_row(bucket, key) {
        Found::Row(row) => return Ok(Some(row)),
        Found::Absent => return Ok(None),
        Found::Unknown => {}
    }
    let key = key.to_vec();
    state.read(move |node| node.keys().row(bucket, &key)).await
}

pub(super) async fn read(
    State(state): State<Arc<AppState>>,
    OneKey { bucket, key }: OneKey,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let precondition = Precondition::of(&headers)?;
    let bucket = resolved(&state, &bucket).await?;
    let row = row(&state, bucket, &key).await?.ok_or_else(ApiError::key_not_found)?;
    let (version, expires_ms) = (row.version(), row.expires_ms());
    if !precondition.is_matched_by(Some(version)) {
        return Err(Refusal::PreconditionFailed.into());
    }
    let mut response = match precondition.knows(Some(version)) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => {
            // The value is sent without a copy. Its memory is counted until it is sent, because the store may drop the
            // row meanwhile.
            Bytes::from_owner(Value(row)).into_response()
        }
    };
    mark(&mut response, version);
    let headers = response.headers_mut();
    // A browser must not render the value as a page.
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(Ok(time)) = expires_ms.map(|ms| HeaderValue::try_from(rfc3339(ms))) {
        headers.insert(EXPIRES, time);
    }
    Ok(response)
}

/// Value of a row, sent without a copy.
struct Value(KeyRow);

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self.0.value()
    }
}

pub(super) async fn delete(
    State(state): State<Arc<AppState>>,
    OneKey { bucket, key }: OneKey,
    _: NoKey,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let precondition = Precondition::of(&headers)?;
    let bucket = resolved(&state, &bucket).await?;
    for _ in 0..ATTEMPTS_MAX {
        let only = match only(&state, bucket, &key, &precondition).await? {
            // A delete on the condition that the key does not exist cannot change anything.
            Only::IfAbsent => {
                let exists = row(&state, bucket, &key).await?.is_some();
                return Err(if exists {
                    Refusal::PreconditionFailed.into()
                } else {
                    ApiError::key_not_found()
                });
            }
            only => only,
        };
        let op = KeyOp::Take { bucket, key: Slice::new(&key), only };
        match operate(&state, op).await? {
            KeyAnswer::Row(_) => return Ok(StatusCode::NO_CONTENT.into_response()),
            _ if only == Only::Always => return Err(ApiError::key_not_found()),
            _ if precondition.as_only().is_some() => return Err(Refusal::PreconditionFailed.into()),
            _ => {}
        }
    }
    Err(ApiError::overloaded())
}

pub(super) async fn list(
    State(state): State<Arc<AppState>>,
    OneBucket(name): OneBucket,
    Listing { prefix, place, limit }: Listing,
) -> Result<Response, ApiError> {
    let bucket = resolved(&state, &name).await?;
    let mut held = state.memory.reserve(LOOKED_BYTES)?;
    let memory = state.memory.clone();
    let walk = move |node: &Node| {
        let found = walk(node, bucket, place, &prefix, limit);
        // Reserves memory for the encoded keys and the page.
        let bytes: usize = found.0.iter().map(|row| row.key().len() * LISTED_TIMES).sum();
        memory.grow(&mut held, LOOKED_BYTES + bytes)?;
        let views: Vec<KeyView> = found.0.iter().map(KeyView::of).collect();
        Ok::<_, ApiError>((views, found.1, held))
    };
    let node = state.node.clone();
    // The scan of many rows is a long read, so that quick reads do not wait for it.
    let (views, next, _held) = state.reads.run_long(move |_| walk(&node)).await??;
    let next = next.map(|next| next.to_string());
    Ok(page::answer(page::opened_with(views.iter()), next.as_deref()))
}

/// About `limit` keys that begin with `prefix`, and the next cursor. Scans a bounded number of keys.
fn walk(
    node: &Node,
    bucket: BucketId,
    from: u64,
    prefix: &[u8],
    limit: usize,
) -> (Vec<KeyRow>, Option<u64>) {
    let keys = node.keys();
    let (mut found, mut looked, mut bytes) = (Vec::new(), 0, 0);
    let mut next = Some(from);
    while let Some(from) =
        next.filter(|_| found.len() < limit && looked < LOOKED_MAX && bytes < LOOKED_BYTES)
    {
        let (rows, after) = keys.walk(bucket, from, (limit - found.len()).min(LOOK_AT_ONCE));
        // A scan that finds nothing has read many rows of other buckets.
        looked += if rows.is_empty() { LOOK_AT_ONCE } else { rows.len() };
        bytes += rows.iter().map(|row| row.key().len() + row.value().len()).sum::<usize>();
        found.extend(rows.into_iter().filter(|row| row.key().starts_with(prefix)));
        next = after;
    }
    (found, next)
}

impl KeyView {
    fn of(row: &KeyRow) -> Self {
        let (key, etag) = (encoded(row.key()), etag(row.version()));
        Self { key, size_bytes: row.value().len(), etag, expires_at: row.expires_ms().map(rfc3339) }
    }
}

fn encoded(bytes: &[u8]) -> String {
    percent_encode(bytes, PLAIN).to_string()
}
