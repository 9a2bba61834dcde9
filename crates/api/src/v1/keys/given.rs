//! Extractors of the routes of keys: keys of any bytes, lists, TTLs, preconditions.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use edge::etag::Tags;
use kv::limits::KEY_BYTES_MAX;
use kv::{BucketName, Expiry, Only, Stamp};
use percent_encoding::percent_decode_str;

use crate::conditions::tags;
use crate::described;
use crate::error::ApiError;
use crate::input::decimal;
use crate::page;
use crate::query::Query;
use crate::route::{Inputs, Reads};
use crate::v1::buckets::OneBucket;

/// Maximum TTL in seconds: 100 years.
pub(super) const TTL_SECS_MAX: u64 = 100 * 365 * 86_400;

/// The bucket and the key in the path.
pub(crate) struct OneKey {
    pub(super) bucket: BucketName,
    pub(super) key: Vec<u8>,
}

impl<S: Send + Sync> FromRequestParts<S> for OneKey {
    type Rejection = ApiError;

    /// Keys may have any bytes, so the path is not read as text.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let rest = parts.uri.path().strip_prefix("/v1/buckets/");
        let Some((bucket, key)) = rest.and_then(|rest| rest.split_once("/keys/")) else {
            unreachable!("the route has both")
        };
        let name = percent_decode_str(bucket).decode_utf8().ok();
        let bucket = name.and_then(|name| BucketName::parse(&name));
        let key: Vec<u8> = percent_decode_str(key).collect();
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            return Err(ApiError::bad_key(KEY_BYTES_MAX));
        }
        Ok(Self { bucket: bucket.ok_or_else(ApiError::bad_bucket)?, key })
    }
}

impl Reads for OneKey {
    fn describe(inputs: &mut Inputs) {
        OneBucket::describe(inputs);
        inputs.path("key", "Key of 1 to 65,472 bytes, percent-encoded.", "greeting");
        inputs.errors(&["bucket_not_found"]);
        inputs.error(ApiError::bad_key(KEY_BYTES_MAX));
    }
}

/// The requested page of keys.
pub(crate) struct Listing {
    pub(super) prefix: Vec<u8>,
    /// Cursor: a position in this server's order.
    pub(super) place: u64,
    pub(super) limit: usize,
}

impl<S: Send + Sync> FromRequestParts<S> for Listing {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut query = Query::parse(&parts.uri, &["limit", "cursor", "prefix"])?;
        Ok(Self {
            prefix: query.bytes("prefix").unwrap_or_default(),
            place: page::cursor(&mut query, decimal)?.unwrap_or(0),
            limit: page::limit(&mut query)?,
        })
    }
}

impl Reads for Listing {
    fn describe(inputs: &mut Inputs) {
        described::page(inputs);
        inputs.query("prefix", "Only keys that begin with these bytes, percent-encoded.");
    }
}

/// TTL parameters of a write.
pub(crate) struct Ttl(pub(super) Expiry);

impl<S: Send + Sync> FromRequestParts<S> for Ttl {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut query = Query::parse(&parts.uri, &["ttl_s", "keep_ttl"])?;
        let keeps = match query.text("keep_ttl")?.as_deref() {
            None => false,
            Some("true") => true,
            Some(_) => return Err(ApiError::bad_request("keep_ttl must be true").at("keep_ttl")),
        };
        match query.number("ttl_s")? {
            None if keeps => Ok(Self(Expiry::Keep)),
            None => Ok(Self(Expiry::Never)),
            Some(_) if keeps => {
                Err(ApiError::bad_request("give ttl_s or keep_ttl, not both").at("keep_ttl"))
            }
            Some(secs) if (1..=TTL_SECS_MAX).contains(&secs) => Ok(Self(Expiry::In(secs * 1_000))),
            Some(_) => Err(ApiError::bad_ttl(TTL_SECS_MAX)),
        }
    }
}

impl Reads for Ttl {
    fn describe(inputs: &mut Inputs) {
        let ttl = "Seconds until the key expires. Default: the key does not expire.";
        inputs.number("ttl_s", ttl, 1..=TTL_SECS_MAX);
        inputs.boolean("keep_ttl", "`true` keeps the current expiry; not with `ttl_s`.");
        inputs.error(ApiError::bad_ttl(TTL_SECS_MAX));
    }
}

/// Conditions of `If-Match` and `If-None-Match` on the current version of a key.
#[derive(Debug)]
pub(super) struct Precondition {
    matching: Option<Tags>,
    none_matching: Option<Tags>,
}

impl Precondition {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        Ok(Self {
            matching: tags(headers, &IF_MATCH, "If-Match")?,
            none_matching: tags(headers, &IF_NONE_MATCH, "If-None-Match")?,
        })
    }

    /// Whether `If-Match` allows this version.
    pub(super) fn is_matched_by(&self, version: Option<Stamp>) -> bool {
        let Some(tags) = &self.matching else { return true };
        version.is_some_and(|version| tags.matches_strong(version.0.to_string().as_bytes()))
    }

    /// Whether `If-None-Match` lists this version.
    pub(super) fn knows(&self, version: Option<Stamp>) -> bool {
        let Some(tags) = &self.none_matching else { return false };
        version.is_some_and(|version| tags.matches_weak(version.0.to_string().as_bytes()))
    }

    /// The equivalent condition of the `kv` rules, if it does not depend on the current version.
    pub(super) fn as_only(&self) -> Option<Only> {
        match (&self.matching, &self.none_matching) {
            (None, None) => Some(Only::Always),
            (Some(Tags::Any), None) => Some(Only::IfPresent),
            (None, Some(Tags::Any)) => Some(Only::IfAbsent),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preconditions_are_those_of_rfc_9110() {
        // Columns: If-Match, If-None-Match, current version, whether a change is allowed.
        for (matching, none_matching, version, allowed) in [
            ("", "", None, true),
            ("", "", Some(7), true),
            ("*", "", Some(7), true),
            ("*", "", None, false),
            ("\"7\"", "", Some(7), true),
            ("\"5\", \"7\"", "", Some(7), true),
            ("W/\"7\"", "", Some(7), false),
            ("\"07\", \"x\"", "", Some(7), false),
            ("\"7\"", "", None, false),
            ("", "*", Some(7), false),
            ("", "*", None, true),
            ("", "\"7\"", Some(7), false),
            ("", "W/\"7\"", Some(7), false),
            ("", "\"5\", \"6,7\"", Some(7), true),
            ("", "\"7\"", None, true),
            ("*", "\"5\"", Some(7), true),
            ("*", "*", Some(7), false),
            ("*", "*", None, false),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [(IF_MATCH, matching), (IF_NONE_MATCH, none_matching)] {
                if !value.is_empty() {
                    headers.insert(name, value.parse().unwrap());
                }
            }
            let version = version.map(Stamp);
            let precondition = Precondition::of(&headers).unwrap();
            let may = precondition.is_matched_by(version) && !precondition.knows(version);
            assert_eq!(may, allowed, "{matching:?} {none_matching:?} {version:?}");
            let expect = match precondition.as_only() {
                None => continue,
                Some(Only::Always) => true,
                Some(Only::IfPresent) => version.is_some(),
                Some(Only::IfAbsent) => version.is_none(),
                Some(Only::IfVersion(_)) => unreachable!(),
            };
            assert_eq!(may, expect, "{matching:?} {none_matching:?} {version:?}");
        }
    }
}
