//! What requests about keys say: keys as any bytes, lists, lives and conditions.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use kv::Stamp;
use kv::limits::KEY_BYTES_MAX;
use kv::{BucketName, Expiry, Only};
use percent_encoding::percent_decode_str;

use crate::error::Problem;
use crate::input::decimal;

/// Keys on a page unless the caller says, and at most.
const LIST_DEFAULT: usize = 20;
const LIST_MAX: usize = 1_000;

/// The bucket and the key in the path.
pub(crate) struct OneKey {
    pub(super) bucket: BucketName,
    pub(super) key: Vec<u8>,
}

impl<S: Send + Sync> FromRequestParts<S> for OneKey {
    type Rejection = Problem;

    /// Keys are any bytes, so the path is not read as text.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let rest = parts.uri.path().strip_prefix("/v1/buckets/");
        let Some((bucket, key)) = rest.and_then(|rest| rest.split_once("/keys/")) else {
            unreachable!("the route has both")
        };
        let name = percent_decode_str(bucket).decode_utf8().ok();
        let bucket = name.and_then(|name| BucketName::parse(&name));
        let key: Vec<u8> = percent_decode_str(key).collect();
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            return Err(Problem::bad_key(KEY_BYTES_MAX));
        }
        Ok(Self { bucket: bucket.ok_or_else(Problem::bad_bucket)?, key })
    }
}

/// How a list is asked for: `after` and `limit`, and `prefix` if there can be one.
pub(crate) struct ListQuery<const PREFIX: bool> {
    pub(crate) prefix: Vec<u8>,
    pub(crate) after: Option<Vec<u8>>,
    pub(crate) limit: usize,
}

impl<S: Send + Sync, const PREFIX: bool> FromRequestParts<S> for ListQuery<PREFIX> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let (mut prefix, mut after, mut limit) = (None, None, None);
        for (name, value) in pairs(parts.uri.query().unwrap_or("")) {
            let slot = match name {
                "prefix" if PREFIX => &mut prefix,
                "after" => &mut after,
                "limit" => &mut limit,
                _ if PREFIX => {
                    return Err(Problem::bad_request(
                        "known parameters are prefix, after and limit",
                    ));
                }
                _ => return Err(Problem::bad_request("known parameters are after and limit")),
            };
            if slot.replace(value).is_some() {
                return Err(Problem::bad_request("a query parameter is given twice"));
            }
        }
        let number = |bytes: Vec<u8>| decimal(std::str::from_utf8(&bytes).ok()?);
        let limit = limit.map_or(Some(LIST_DEFAULT as u64), number);
        let limit = limit.filter(|limit| (1..=LIST_MAX as u64).contains(limit));
        let limit = limit.ok_or_else(|| Problem::bad_request("limit is 1 to 1000"))?;
        Ok(Self { prefix: prefix.unwrap_or_default(), after, limit: limit as usize })
    }
}

/// Names and values of a query; values are any bytes.
fn pairs(query: &str) -> impl Iterator<Item = (&str, Vec<u8>)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name, percent_decode_str(&value.replace('+', " ")).collect())
    })
}

/// The only parameter of a change: the life of the key.
pub(crate) struct Life(pub(super) Expiry);

impl<S: Send + Sync> FromRequestParts<S> for Life {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut expiry = Expiry::Never;
        for (name, value) in pairs(parts.uri.query().unwrap_or("")) {
            let seconds = std::str::from_utf8(&value).ok().and_then(decimal);
            let ms = seconds.filter(|s| *s > 0).and_then(|s| s.checked_mul(1_000));
            expiry = match (name, ms, expiry) {
                ("ttl_s", Some(ms), Expiry::Never) => Expiry::In(ms),
                ("keep_ttl", _, Expiry::Never) if value == b"true" => Expiry::Keep,
                _ => {
                    return Err(Problem::bad_request(
                        "give ttl_s, at least 1, or keep_ttl=true, or neither",
                    ));
                }
            };
        }
        Ok(Self(expiry))
    }
}

/// What `If-Match` and `If-None-Match` ask of a change.
pub(super) fn condition(headers: &HeaderMap) -> Result<Only, Problem> {
    let bad = || Problem::bad_request("If-Match is * or one ETag; If-None-Match is *; not both");
    match (headers.get(IF_MATCH), headers.get(IF_NONE_MATCH)) {
        (None, None) => Ok(Only::Always),
        (Some(tag), None) if tag == "*" => Ok(Only::IfPresent),
        (Some(tag), None) => {
            let tag = tag.to_str().map_err(|_| bad())?;
            let tag =
                tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).ok_or_else(bad)?;
            // An ETag that is none of ours matches nothing.
            Ok(Only::IfVersion(Stamp(decimal(tag).unwrap_or(0))))
        }
        (None, Some(tag)) if tag == "*" => Ok(Only::IfAbsent),
        _ => Err(bad()),
    }
}
