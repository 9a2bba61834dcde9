//! Keys of buckets: writing, reading and deleting values as raw bytes, and listing keys.
//!
//! An `ETag` is the version of a key: it is different after every change, also when the value is the same
//! again. `If-Match` and `If-None-Match` make a change depend on it.

mod given;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use kv::Stamp;
use kv::limits::VALUE_BYTES_MAX;
use kv::{BucketId, Bytes as Slice, KeyAnswer, KeyOp, KeyRow, Only};
use node::{Found, Node};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde::Serialize;
use utoipa::ToSchema;

use crate::body::read_body;
use crate::error::{ErrorBody, Problem};
use crate::guard::Entry;
use crate::input::decimal;
use crate::page::json;
use crate::routes::Routes;
use crate::state::Edge;
use crate::v1::buckets::{OneBucket, operate, resolved};
pub(super) use given::ListQuery;
use given::{Life, OneKey, condition};

const PATH: &str = "/v1/buckets/{bucket}/keys/{*key}";
/// When a key expires, in milliseconds since 1970.
const EXPIRES: HeaderName = HeaderName::from_static("x-expires-at-ms");
/// Keys that a page looks at before it ends, although it is not full: some 10 ms of a read.
const LOOKED_MAX: usize = 10_000;
/// Bytes of keys and values after which it ends.
const LOOKED_BYTES: usize = 4 << 20;
/// Bytes of a page and of what it is made from, for each byte of a key: as `%XX`, both times.
const LISTED_TIMES: usize = 6;
/// Keys that are read at a time, with their values.
const LOOK_AT_ONCE: usize = 256;
/// What stands in a path as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(crate) fn route(routes: &mut Routes<'_>) {
    routes.on("GET", "/v1/buckets/{bucket}/keys", Entry::Query, list);
    routes.on("PUT", PATH, Entry::Query, put);
    routes.on("GET", PATH, Entry::Plain, read);
    routes.on("DELETE", PATH, Entry::Plain, delete);
}

/// A key in a list.
#[derive(Serialize, ToSchema)]
pub(crate) struct KeyView {
    /// As it stands in a path: every byte that is no letter, digit, `-`, `.`, `_` or `~` as `%XX`.
    #[schema(example = "draft%3A1")]
    key: String,
    /// Bytes of the value.
    #[schema(example = 42)]
    bytes: usize,
    #[schema(example = "\"381482917519855616\"")]
    etag: String,
    /// Milliseconds since 1970; null if it does not expire.
    expires_at_ms: Option<u64>,
}

/// A page of keys.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes the answer, which is written as bytes")]
pub(crate) struct KeyPage {
    items: Vec<KeyView>,
    /// Path of the next page.
    next: Option<String>,
}

fn etag(version: Stamp) -> String {
    format!("\"{}\"", version.0)
}

fn mark(response: &mut Response, version: Stamp) {
    if let Ok(tag) = HeaderValue::try_from(etag(version)) {
        response.headers_mut().insert(ETAG, tag);
    }
}

/// Set a key
///
/// The body is the value, as it is: at most 16 MiB.
#[utoipa::path(
    put, path = "/v1/buckets/{bucket}/keys/{key}", tag = "buckets",
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    params(
        ("bucket" = String, Path),
        ("key" = String, Path, description = "1 to 65,472 bytes, percent-encoded"),
        ("ttl_s" = Option<u64>, Query, description = "seconds until it expires; never if not given"),
        ("keep_ttl" = Option<bool>, Query, description = "`true`: expires when it did before; not with ttl_s"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if there is none"),
        ("If-Match" = Option<String>, Header, description = "an ETag or `*`: only if it is as it was"),
    ),
    responses(
        (status = 201, description = "there was none", headers(("ETag" = String))),
        (status = 204, description = "it was replaced", headers(("ETag" = String))),
        (status = 404, description = "`bucket_not_found`", body = ErrorBody),
        (status = 412, description = "`precondition_failed`", body = ErrorBody),
        (status = 413, description = "`body_too_large`", body = ErrorBody),
        (status = 422, description = "`bad_key`, `bad_bucket`", body = ErrorBody),
    )
)]
pub(super) async fn put(
    State(edge): State<Arc<Edge>>,
    OneKey { bucket, key }: OneKey,
    Life(expiry): Life,
    request: Request,
) -> Result<Response, Problem> {
    let only = condition(request.headers())?;
    let bucket = resolved(&edge, &bucket).await?;
    let mut body = read_body(request.into_body(), VALUE_BYTES_MAX, &edge.memory).await?;
    // A copy is on its way into the log until the answer.
    body.hold_more(&edge.memory, body.bytes().len())?;
    let (key, value) = (Slice::new(&key), Slice::new(body.bytes()));
    let op = KeyOp::Put { bucket, key, value, expiry, only, old: false };
    let KeyAnswer::Written { version, created } = operate(&edge, op).await? else {
        return Err(Problem::precondition_failed());
    };
    let status = if created { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
    let mut response = status.into_response();
    mark(&mut response, version);
    Ok(response)
}

/// Get a value
#[utoipa::path(
    get, path = "/v1/buckets/{bucket}/keys/{key}", tag = "buckets",
    params(
        ("bucket" = String, Path), ("key" = String, Path),
        ("If-None-Match" = Option<String>, Header, description = "an ETag: 304 if it is still so"),
    ),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream",
         headers(("ETag" = String), ("X-Expires-At-Ms" = u64))),
        (status = 304, description = "it is as it was"),
        (status = 404, description = "`key_not_found`, `bucket_not_found`", body = ErrorBody),
    )
)]
pub(super) async fn read(
    State(edge): State<Arc<Edge>>,
    OneKey { bucket, key }: OneKey,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let bucket = resolved(&edge, &bucket).await?;
    let found = edge.node.keys().try_row(bucket, &key);
    let row = match found {
        Found::Row(row) => Some(row),
        Found::Absent => None,
        Found::Unknown => edge.read(move |node| node.keys().row(bucket, &key)).await?,
    };
    let row = row.ok_or_else(Problem::key_not_found)?;
    let version = row.version();
    let known = headers.get(IF_NONE_MATCH).is_some_and(|tag| tag == etag(version).as_str());
    let expires_ms = row.expires_ms();
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => {
            // What is sent without a copy is counted until then, as every answer is: the row may be
            // gone from everywhere else.
            Bytes::from_owner(Value(row)).into_response()
        }
    };
    mark(&mut response, version);
    let headers = response.headers_mut();
    // Whatever the bytes look like, a browser shall not take them for a page.
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.extend(expires_ms.map(|ms| (EXPIRES, HeaderValue::from(ms))));
    Ok(response)
}

/// The value of a row, sent without a copy.
struct Value(KeyRow);

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        self.0.value()
    }
}

/// Delete a key
#[utoipa::path(
    delete, path = "/v1/buckets/{bucket}/keys/{key}", tag = "buckets",
    params(
        ("bucket" = String, Path), ("key" = String, Path),
        ("If-Match" = Option<String>, Header, description = "an ETag: only if it is as it was"),
    ),
    responses(
        (status = 204),
        (status = 404, description = "`key_not_found`, `bucket_not_found`", body = ErrorBody),
        (status = 412, description = "`precondition_failed`", body = ErrorBody),
    )
)]
pub(super) async fn delete(
    State(edge): State<Arc<Edge>>,
    OneKey { bucket, key }: OneKey,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let only = match condition(&headers)? {
        Only::IfAbsent => return Err(Problem::bad_request("what is not there cannot be deleted")),
        only => only,
    };
    let bucket = resolved(&edge, &bucket).await?;
    match operate(&edge, KeyOp::Take { bucket, key: Slice::new(&key), only }).await? {
        KeyAnswer::Row(_) => Ok(StatusCode::NO_CONTENT.into_response()),
        _ if only == Only::Always => Err(Problem::key_not_found()),
        _ => Err(Problem::precondition_failed()),
    }
}

/// List keys
///
/// In no order that means anything, and each at least once if it exists all the while, as SCAN of the Redis
/// protocol. A page may have fewer keys than asked for, or none, although there are more: `next` leads on
/// until it is null.
#[utoipa::path(
    get, path = "/v1/buckets/{bucket}/keys", tag = "buckets",
    params(
        ("bucket" = String, Path),
        ("prefix" = Option<String>, Query, description = "only keys that begin so, percent-encoded"),
        ("after" = Option<String>, Query, description = "where to go on, as `next` of the page before says"),
        ("limit" = Option<usize>, Query, description = "about so many keys: 1 to 1,000, by default 20"),
    ),
    responses(
        (status = 200, body = KeyPage),
        (status = 400, description = "`bad_cursor`, `bad_request`", body = ErrorBody),
        (status = 404, description = "`bucket_not_found`", body = ErrorBody),
    )
)]
pub(super) async fn list(
    State(edge): State<Arc<Edge>>,
    OneBucket(name): OneBucket,
    query: ListQuery<true>,
) -> Result<Response, Problem> {
    let from = cursor(query.after.as_deref())?;
    let bucket = resolved(&edge, &name).await?;
    let ListQuery { prefix, limit, .. } = query;
    let begin = prefix.clone();
    let mut held = edge.memory.reserve(LOOKED_BYTES)?;
    let memory = edge.memory.clone();
    let walk = move |node: &Node| {
        let found = walk(node, bucket, from, &begin, limit);
        // Its keys as they are on the page, and the page.
        let bytes: usize = found.0.iter().map(|row| row.key().len() * LISTED_TIMES).sum();
        memory.grow(&mut held, LOOKED_BYTES + bytes)?;
        let views: Vec<KeyView> = found.0.iter().map(KeyView::of).collect();
        Ok::<_, Problem>((views, found.1, held))
    };
    let node = edge.node.clone();
    // Among the long reads: it looks at many rows, and quick ones shall not wait for it.
    let (views, next, _held) = edge.reads.run_long(move |_| walk(&node)).await??;
    let next = next.map(|next| {
        let prefix = encoded(&prefix);
        format!("/v1/buckets/{}/keys?prefix={prefix}&limit={limit}&after={next}", name.as_str())
    });
    Ok(page(&views, next.as_deref()))
}

/// Where a walk begins: what `next` gave out, or the start.
fn cursor(after: Option<&[u8]>) -> Result<u64, Problem> {
    let number = |text: &[u8]| decimal(std::str::from_utf8(text).ok()?);
    let bad = || Problem::bad_cursor("after is a cursor as this server gave it out in next");
    after.map_or(Ok(0), |after| number(after).ok_or_else(bad))
}

/// About `limit` keys that begin with `prefix`, and where to go on. Looks at a bounded number of keys.
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
        // One that finds nothing has looked at many rows of other buckets.
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
        Self { key, bytes: row.value().len(), etag, expires_at_ms: row.expires_ms() }
    }
}

fn encoded(bytes: &[u8]) -> String {
    percent_encode(bytes, PLAIN).to_string()
}

pub(crate) fn to_json(body: &impl Serialize) -> Vec<u8> {
    let Ok(json) = serde_json::to_vec(body) else {
        unreachable!("strings and numbers serialise into memory")
    };
    json
}

/// A page as JSON: `items`, and `next`, which is null on the last one.
pub(super) fn page(items: &[impl Serialize], next: Option<&str>) -> Response {
    #[derive(Serialize)]
    struct Page<'a, T> {
        items: &'a [T],
        next: Option<&'a str>,
    }
    json(to_json(&Page { items, next }))
}
