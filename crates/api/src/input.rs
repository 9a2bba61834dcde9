//! What handlers take from a request: people, posts and stories named in paths, JSON bodies, idempotency
//! keys. Everything is checked here, so that a handler that runs has valid input.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri};
use feed::{Handle, Idempotency, PostId, SampleId, Stamp, StoryId, UserId, UserRef, limits};
use node::Reservation;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::{Deserialize, de};
use sha2::{Digest as _, Sha256};

use crate::body::read_body;
use crate::error::Problem;
use crate::state::Edge;

/// Most bytes of a body where nothing else is said, and of a line of a batch.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1_024;
/// A number as we write it: decimal digits, no sign, no leading zero.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = text == "0" || !text.starts_with('0');
    if plain && canonical { text.parse().ok() } else { None }
}

/// A person as named in paths and batches: a number or `@handle`.
pub(crate) fn user(text: &str) -> Result<UserRef, Problem> {
    match text.strip_prefix('@') {
        Some(handle) => Ok(UserRef::Handle(Handle::parse(handle)?)),
        None => user_number(decimal(text)),
    }
}

/// A person's number, if it can be one.
pub(crate) fn user_number(number: Option<u64>) -> Result<UserRef, Problem> {
    let id = number.and_then(|number| u32::try_from(number).ok());
    let id = id.ok_or_else(|| Problem::bad_request("a user is a number or @handle"))?;
    Ok(UserRef::Id(UserId(id)))
}

/// A post's number, if it can be one.
pub(crate) fn post_number(number: Option<u64>) -> Result<PostId, Problem> {
    let id = number.filter(|id| *id <= Stamp::MAX.0);
    id.map(PostId).ok_or_else(|| Problem::bad_request("a post is a number of at most 63 bits"))
}

/// A story's number, if it can be one.
pub(crate) fn story_number(number: Option<u64>) -> Result<StoryId, Problem> {
    let id = number.filter(|id| *id <= Stamp::MAX.0);
    id.map(StoryId).ok_or_else(|| Problem::bad_request("a story is a number of at most 63 bits"))
}

/// A sample's number, if it can be one.
pub(crate) fn sample_number(number: Option<u64>) -> Result<SampleId, Problem> {
    let id = number.filter(|id| *id <= Stamp::MAX.0);
    id.map(SampleId).ok_or_else(|| Problem::bad_request("a sample is a number of at most 63 bits"))
}

/// The person in the path.
pub(crate) struct OneUser(pub(crate) UserRef);

/// The two people in the path, in order.
pub(crate) struct TwoUsers(pub(crate) UserRef, pub(crate) UserRef);

/// The post in the path.
pub(crate) struct OnePost(pub(crate) PostId);

/// The story in the path.
pub(crate) struct OneStory(pub(crate) StoryId);

/// The sample in the path.
pub(crate) struct OneSample(pub(crate) SampleId);

impl<S: Send + Sync> FromRequestParts<S> for OneUser {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(path::<Param<UserRef>>(parts).await?.0?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TwoUsers {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let (user, other) = path::<(Param<UserRef>, Param<UserRef>)>(parts).await?;
        Ok(Self(user.0?, other.0?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OnePost {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(path::<Param<PostId>>(parts).await?.0?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OneStory {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(path::<Param<StoryId>>(parts).await?.0?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OneSample {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(path::<Param<SampleId>>(parts).await?.0?))
    }
}

/// The parameters of the path. Only bytes that are not UTF-8 make it fail.
pub(crate) async fn path<T: DeserializeOwned + Send>(parts: &mut Parts) -> Result<T, Problem> {
    let parameters = Path::<T>::from_request_parts(parts, &()).await;
    let Path(parameters) = parameters.map_err(|_| Problem::bad_request("the path is not UTF-8"))?;
    Ok(parameters)
}

/// A parameter that carries its own problem: deserialising it never fails, so that the problem
/// reaches the caller as it is.
struct Param<T>(Result<T, Problem>);

trait FromParam: Sized {
    fn from_param(text: &str) -> Result<Self, Problem>;
}

impl FromParam for UserRef {
    fn from_param(text: &str) -> Result<Self, Problem> {
        user(text)
    }
}

impl FromParam for PostId {
    fn from_param(text: &str) -> Result<Self, Problem> {
        post_number(decimal(text))
    }
}

impl FromParam for StoryId {
    fn from_param(text: &str) -> Result<Self, Problem> {
        story_number(decimal(text))
    }
}

impl FromParam for SampleId {
    fn from_param(text: &str) -> Result<Self, Problem> {
        sample_number(decimal(text))
    }
}

impl<'de, T: FromParam> Deserialize<'de> for Param<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text<T>(std::marker::PhantomData<T>);
        impl<T: FromParam> Visitor<'_> for Text<T> {
            type Value = Param<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("text")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Param(T::from_param(text)))
            }
        }
        deserializer.deserialize_str(Text(std::marker::PhantomData))
    }
}

/// A JSON body and the idempotency key beside it.
pub(crate) struct Input<T> {
    pub(crate) body: T,
    pub(crate) idempotency: Option<Idempotency>,
    /// What the body took: it is held until the answer is made.
    pub(crate) _held: Reservation,
}

impl<T: DeserializeOwned> FromRequest<Arc<Edge>> for Input<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, edge: &Arc<Edge>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        require_media_type(&parts.headers, "application/json")?;
        let key = idempotency_key(&parts.headers)?;
        let given = read_body(body, BODY_BYTES_MAX, &edge.memory).await?;
        let idempotency = key.map(|key| digest(&parts.method, &parts.uri, key, given.bytes()));
        let body = object(given.bytes())?;
        Ok(Self { body, idempotency, _held: given.into_reservation() })
    }
}

/// The idempotency key of a change that has no body: what it is about is in the path and the query.
pub(crate) struct Once(pub(crate) Option<Idempotency>);

impl<S: Send + Sync> FromRequestParts<S> for Once {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let key = idempotency_key(&parts.headers)?;
        let about = parts.uri.query().unwrap_or("");
        Ok(Self(key.map(|key| digest(&parts.method, &parts.uri, key, about.as_bytes()))))
    }
}

/// Refuses bodies that are not said to be of `expected`, which has no parameters.
pub(crate) fn require_media_type(
    headers: &HeaderMap,
    expected: &'static str,
) -> Result<(), Problem> {
    if media_type(headers).eq_ignore_ascii_case(expected) {
        Ok(())
    } else {
        Err(Problem::unsupported_media_type(expected))
    }
}

/// The `Content-Type` without its parameters; empty if there is none.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    given.split(';').next().unwrap_or("").trim()
}

/// The `Idempotency-Key`, if there is one.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&[u8]>, Problem> {
    let mut keys = headers.get_all("idempotency-key").iter();
    match (keys.next(), keys.next()) {
        (None, _) => Ok(None),
        (Some(key), None) => checked_key(key.as_bytes()).map(Some),
        (Some(_), Some(_)) => {
            Err(Problem::bad_idempotency_key("there is more than one Idempotency-Key"))
        }
    }
}

/// Checks the form of an idempotency key.
pub(crate) fn checked_key(key: &[u8]) -> Result<&[u8], Problem> {
    let right_length = (1..=limits::IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len());
    if right_length && key.iter().all(u8::is_ascii_graphic) {
        Ok(key)
    } else {
        Err(Problem::bad_idempotency_key("an Idempotency-Key is 1 to 255 visible ASCII characters"))
    }
}

/// A key counts for one method and path: the same key elsewhere is another key.
fn digest(method: &Method, uri: &Uri, key: &[u8], body: &[u8]) -> Idempotency {
    idempotency(&[method.as_str().as_bytes(), uri.path().as_bytes(), key], body)
}

/// Digests of what a key is for and of the content it came with.
pub(crate) fn idempotency(scope: &[&[u8]], content: &[u8]) -> Idempotency {
    let mut key = Sha256::new();
    for part in scope {
        // None of the parts holds a zero byte, so different parts make different input.
        key.update(part);
        key.update([0]);
    }
    Idempotency { key: first(&key.finalize()), content: first(&Sha256::digest(content)) }
}

fn first<const N: usize>(digest: &[u8]) -> [u8; N] {
    let Some(first) = digest.first_chunk() else {
        unreachable!("a SHA-256 digest is longer than what is kept of it");
    };
    *first
}

/// Reads a JSON object. The first byte is looked at because an array of the fields in order would
/// pass otherwise.
pub(crate) fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, Problem> {
    if json.trim_ascii_start().first() != Some(&b'{') {
        return Err(Problem::bad_json("a JSON object is expected"));
    }
    serde_json::from_slice(json).map_err(|error| Problem::bad_json(error.to_string()))
}

/// For fields that may be absent but, if they are there, must hold a value: `null` is refused.
pub(crate) fn given<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_form() {
        for (text, expect) in [
            ("0", Some(0)),
            ("12", Some(12)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("", None),
            ("00", None),
            ("012", None),
            ("+1", None),
            ("-1", None),
            ("1 ", None),
            ("1e3", None),
            ("\u{0661}", None),
        ] {
            assert_eq!(decimal(text), expect, "{text:?}");
        }
    }

    #[test]
    fn keys_of_different_scopes_differ_and_equal_ones_are_equal() {
        let key = |scope: &[&[u8]]| idempotency(scope, b"").key;
        assert_eq!(key(&[b"a", b"b"]), key(&[b"a", b"b"]));
        assert_ne!(key(&[b"a", b"b"]), key(&[b"ab", b""]));
        assert_ne!(key(&[b"a", b"b"]), key(&[b"ab"]));
        assert_ne!(idempotency(&[], b"x").content, idempotency(&[], b"y").content);
    }
}
