//! Entity tags of posts, profiles and stories, and conditions of requests about them (RFC 9110).
//!
//! A tag has the revision of the item and a digest of the response, which also contains counts and names of other
//! users. `If-None-Match` compares the whole tag, so no cache keeps an old response. `If-Match` compares only the
//! revision, when the change is applied. So a change is refused if another change of the item came first, but not
//! because the item's counts have changed.

use axum::extract::FromRequestParts;
use axum::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use edge::etag::Tags;
use feed::{Command, Condition, Conditional, Revision, UserRef};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::ApiError;
use crate::page::json;
use crate::route::{Inputs, Reads};

/// Parses the tags of a header; `None` without the header.
pub(crate) fn tags(
    headers: &HeaderMap,
    name: &HeaderName,
    field: &'static str,
) -> Result<Option<Tags>, ApiError> {
    let why = "expected * or entity tags in double quotes, with commas between them";
    Tags::of(headers, name).map_err(|_| ApiError::bad_request(why).at(field))
}

/// Header `If-None-Match` of a read.
pub(crate) struct Unless(Option<Tags>);

impl<S: Send + Sync> FromRequestParts<S> for Unless {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        tags(&parts.headers, &IF_NONE_MATCH, "If-None-Match").map(Self)
    }
}

impl Reads for Unless {
    fn describe(inputs: &mut Inputs) {
        inputs.header("If-None-Match", "ETags: 304 if the response is still one of these");
    }
}

impl Unless {
    /// Returns JSON with its tag, or 304 if the client has it. The JSON must not be older than the revision: otherwise
    /// a client that has read the state before an edit could overwrite the edit.
    pub(crate) fn answer(&self, revision: Revision, body: Vec<u8>) -> Response {
        let tag = opaque(revision, &body);
        let is_known = self.0.as_ref().is_some_and(|tags| tags.matches_weak(tag.as_bytes()));
        let mut response = match is_known {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => json(body),
        };
        add_tag(&mut response, &tag);
        response
    }
}

/// Makes the tag, without its quotes, of JSON that is not older than the revision.
pub(crate) fn opaque(revision: Revision, body: &[u8]) -> String {
    format!("{:016x}-{:016x}", revision.0, xxh3_64(body))
}

/// Adds a tag without quotes to a response.
pub(crate) fn add_tag(response: &mut Response, tag: &str) {
    if let Ok(tag) = HeaderValue::try_from(format!("\"{tag}\"")) {
        response.headers_mut().insert(ETAG, tag);
    }
}

/// Revisions that `If-Match` of a change accepts; `None` accepts every revision.
#[derive(Default)]
pub(crate) struct OnlyIf(Option<Vec<Revision>>);

impl<S: Send + Sync> FromRequestParts<S> for OnlyIf {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(match tags(&parts.headers, &IF_MATCH, "If-Match")? {
            None | Some(Tags::Any) => None,
            Some(Tags::List(tags)) => {
                let strong = tags.iter().filter(|tag| !tag.weak);
                Some(strong.filter_map(|tag| revision(&tag.opaque)).collect())
            }
        }))
    }
}

impl Reads for OnlyIf {
    fn describe(inputs: &mut Inputs) {
        inputs.header(
            "If-Match",
            "ETags or `*`: 412 if it was changed since the client read one of these",
        );
        inputs.errors(&["precondition_failed"]);
    }
}

impl OnlyIf {
    /// Adds the condition to a change by the author of a post or story, or by the application.
    pub(crate) fn on(self, author: Option<UserRef>, change: Conditional) -> Command {
        match (author, self.0) {
            (None, None) => change.into(),
            (author, revisions) => Command::If(Box::new(Condition { author, revisions, change })),
        }
    }
}

/// Parses the revision in a tag; `None` if the tag has another form.
fn revision(tag: &[u8]) -> Option<Revision> {
    let (revision, rest) = tag.split_first_chunk::<16>()?;
    let is_tag = rest.len() == 17 && rest.first() == Some(&b'-');
    let is_tag = is_tag && revision.iter().all(u8::is_ascii_hexdigit);
    let text = std::str::from_utf8(revision).ok().filter(|_| is_tag)?;
    u64::from_str_radix(text, 16).ok().map(Revision)
}
