//! Extractors of handlers: users, posts and stories in paths, and JSON bodies. All checks are here, so that handlers
//! get valid input only.

use std::convert::Infallible;
use std::sync::Arc;

use axum::RequestExt as _;
use axum::body::HttpBody as _;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use budget::Reservation;
use edge::{BodyLimits, Held, HeldBody};
use feed::accounts::GrantId;
use feed::{Handle, NotificationId, PostId, SampleId, Stamp, StoryId, Tag, UserId, UserRef};
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::{Deserialize, de};

use crate::auth::{grant, may_read};
use crate::current_session::{CurrentSession, confirm, current};
use crate::error::ApiError;
use crate::idempotency::{Key, NoKey};
use crate::state::AppState;
use crate::unsent::Client;

/// Default maximum length of a body, and maximum length of a line of a batch, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1_024;

/// Parses a number in canonical form: decimal digits, no sign, no leading zero.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = text == "0" || !text.starts_with('0');
    if plain && canonical { text.parse().ok() } else { None }
}

/// Parses a user in a path or batch: an id or `@handle`.
pub(crate) fn user(text: &str) -> Result<UserRef, ApiError> {
    match text.strip_prefix('@') {
        Some(handle) => {
            let handle = Handle::parse(handle).map_err(ApiError::from);
            Ok(UserRef::Handle(handle.map_err(|error| error.at("user"))?))
        }
        None => user_number(decimal(text)),
    }
}

/// Checks the range of a user's id.
pub(crate) fn user_number(number: Option<u64>) -> Result<UserRef, ApiError> {
    let id = number.and_then(|number| u32::try_from(number).ok());
    let id =
        id.ok_or_else(|| ApiError::bad_request("a user must be a number or @handle").at("user"))?;
    Ok(UserRef::Id(UserId(id)))
}

fn stamp(number: Option<u64>) -> Result<u64, ApiError> {
    let id = number.filter(|id| *id <= Stamp::MAX.0);
    id.ok_or_else(|| ApiError::bad_request("an id must be a number of at most 63 bits").at("id"))
}

/// Checks the range of a post's id.
pub(crate) fn post_number(number: Option<u64>) -> Result<PostId, ApiError> {
    stamp(number).map(PostId)
}

/// Checks the range of a story's id.
pub(crate) fn story_number(number: Option<u64>) -> Result<StoryId, ApiError> {
    stamp(number).map(StoryId)
}

/// Checks the range of a sample's id.
pub(crate) fn sample_number(number: Option<u64>) -> Result<SampleId, ApiError> {
    stamp(number).map(SampleId)
}

/// The user in the path.
pub(crate) struct OneUser(pub(crate) UserRef);

/// The two users in the path, in order.
pub(crate) struct TwoUsers(pub(crate) UserRef, pub(crate) UserRef);

/// The post in the path.
pub(crate) struct OnePost(pub(crate) PostId);

/// The story in the path.
pub(crate) struct OneStory(pub(crate) StoryId);

/// The hashtag in the path.
pub(crate) struct OneTag(pub(crate) Tag);

/// The user in the path, and the item named by the last part of the path.
pub(crate) struct UserAnd<T>(pub(crate) UserRef, pub(crate) T);

/// The sample in the path.
pub(crate) struct OneSample(pub(crate) SampleId);

impl<S: Send + Sync> FromRequestParts<S> for OneUser {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(path::<Param<UserRef>>(parts).await?.0?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TwoUsers {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let (user, other) = path::<(Param<UserRef>, Param<UserRef>)>(parts).await?;
        Ok(Self(user.0?, other.0.map_err(|error| error.at("other"))?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OnePost {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(path::<Param<PostId>>(parts).await?.0?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OneTag {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(path::<Param<Tag>>(parts).await?.0?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OneStory {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(path::<Param<StoryId>>(parts).await?.0?))
    }
}

impl<S: Send + Sync, T: FromParam + Send> FromRequestParts<S> for UserAnd<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let (user, other) = path::<(Param<UserRef>, Param<T>)>(parts).await?;
        Ok(Self(user.0?, other.0?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for OneSample {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(path::<Param<SampleId>>(parts).await?.0?))
    }
}

/// Reads the parameters of the path. Fails only if a parameter is not UTF-8.
pub(crate) async fn path<T: DeserializeOwned + Send>(parts: &mut Parts) -> Result<T, ApiError> {
    let parameters = Path::<T>::from_request_parts(parts, &()).await;
    let Path(parameters) =
        parameters.map_err(|_| ApiError::bad_request("the path is not UTF-8"))?;
    Ok(parameters)
}

/// Parameter, or the error of parsing it. Deserializing a parameter never fails, so that the client gets the error of
/// parsing.
struct Param<T>(Result<T, ApiError>);

/// Item that a parameter of a path can name.
pub(crate) trait FromParam: Sized {
    fn from_param(text: &str) -> Result<Self, ApiError>;
}

impl FromParam for UserRef {
    fn from_param(text: &str) -> Result<Self, ApiError> {
        user(text)
    }
}

impl FromParam for Tag {
    fn from_param(text: &str) -> Result<Self, ApiError> {
        Ok(Self::parse(text)?)
    }
}

impl FromParam for PostId {
    fn from_param(text: &str) -> Result<Self, ApiError> {
        post_number(decimal(text))
    }
}

impl FromParam for NotificationId {
    fn from_param(text: &str) -> Result<Self, ApiError> {
        stamp(decimal(text)).map(Self)
    }
}

impl FromParam for GrantId {
    fn from_param(text: &str) -> Result<Self, ApiError> {
        stamp(decimal(text)).map(Self)
    }
}

impl FromParam for StoryId {
    fn from_param(text: &str) -> Result<Self, ApiError> {
        story_number(decimal(text))
    }
}

impl FromParam for SampleId {
    fn from_param(text: &str) -> Result<Self, ApiError> {
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

/// A JSON body and the idempotency key of the header.
pub(crate) struct Input<T> {
    pub(crate) body: T,
    pub(crate) key: Option<Key>,
    /// Whether the response may contain stored data: see [`may_read`].
    pub(crate) may_read: bool,
    /// Client whose memory the response takes; `None` for a user.
    pub(crate) client: Option<Client>,
    /// Memory of the body, held until the response is complete.
    pub(crate) _held: (Reservation, Option<Held>),
}

impl<T: DeserializeOwned> FromRequest<Arc<AppState>> for Input<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<AppState>) -> Result<Self, ApiError> {
        Self::read(request, state, None).await
    }
}

impl<T: DeserializeOwned> Input<T> {
    /// Reads a request; `absent` makes the value for a request without a body.
    async fn read(
        request: Request,
        state: &AppState,
        absent: Option<fn() -> T>,
    ) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let absent = absent.filter(|_| body.is_end_stream());
        if absent.is_none() {
            require_media_type(&parts.headers, "application/json")?;
        }
        let key = Key::of(&parts)?;
        let limits = BodyLimits::new(BODY_BYTES_MAX);
        let (given, counted) = match current(&parts) {
            Some(CurrentSession(session)) => {
                let client = parts.extensions.get().copied();
                session
                    .read_body(client, body)
                    .await
                    .map(|(body, counted)| (body, Some(counted)))?
            }
            None => (HeldBody::read(body, limits, &state.memory).await?, None),
        };
        confirm(&parts).await?;
        let body = absent.map_or_else(|| object(given.bytes()), |make| Ok(make()))?;
        let grant = grant(&state.access, &parts.headers);
        let (may_read, client) = (may_read(grant, &parts), grant.map(|grant| grant.client()));
        let key = key.map(|key| key.of_client(client.unwrap_or_default()));
        Ok(Self { body, key, may_read, client, _held: (given.into_parts().1, counted) })
    }
}

/// [`Input`] whose body is optional.
pub(crate) struct OrDefault<T>(pub(crate) Input<T>);

impl<T: DeserializeOwned + Default> FromRequest<Arc<AppState>> for OrDefault<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<AppState>) -> Result<Self, ApiError> {
        Input::read(request, state, Some(T::default)).await.map(Self)
    }
}

/// [`Input`] of a change that does not support idempotency keys: a request with a key is refused.
pub(crate) struct WithoutKey<T>(pub(crate) Input<T>);

impl<T: DeserializeOwned> FromRequest<Arc<AppState>> for WithoutKey<T> {
    type Rejection = ApiError;

    async fn from_request(mut request: Request, state: &Arc<AppState>) -> Result<Self, ApiError> {
        request.extract_parts::<NoKey>().await?;
        Input::from_request(request, state).await.map(Self)
    }
}

/// Whether the response to a request may contain stored data.
pub(crate) struct MayRead(pub(crate) bool);

impl FromRequestParts<Arc<AppState>> for MayRead {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &Arc<AppState>,
    ) -> Result<Self, Infallible> {
        Ok(Self(may_read(grant(&state.access, &parts.headers), parts)))
    }
}

/// Refuses a body whose `Content-Type` is not `expected`, which has no parameters.
pub(crate) fn require_media_type(
    headers: &HeaderMap,
    expected: &'static str,
) -> Result<(), ApiError> {
    if media_type(headers).eq_ignore_ascii_case(expected) {
        Ok(())
    } else {
        Err(ApiError::unsupported_media_type(expected))
    }
}

/// `Content-Type` without its parameters; empty if there is none.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    given.split(';').next().unwrap_or("").trim()
}

/// Parses a JSON object. The first byte is checked, because the parser would also accept an array of the fields in
/// order.
pub(crate) fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, ApiError> {
    if json.trim_ascii_start().first() != Some(&b'{') {
        return Err(ApiError::bad_json("a JSON object is expected"));
    }
    serde_json::from_slice(json).map_err(|error| bad_object::<T>(json, &error))
}

/// Makes the error for invalid JSON. Parses the JSON again to find the path of the error.
fn bad_object<'a, T: Deserialize<'a>>(json: &'a [u8], error: &serde_json::Error) -> ApiError {
    let bad = ApiError::bad_json(error.to_string());
    let mut again = serde_json::Deserializer::from_slice(json);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut again) else { return bad };
    let path = error.path().to_string();
    let said = error.inner().to_string();
    // Errors about a whole object name the field only in the message.
    let named = ["missing field `", "unknown field `", "duplicate field `"].iter();
    let named = named.filter_map(|start| said.strip_prefix(start)?.split('`').next());
    match named.into_iter().next() {
        Some(name) => bad.at(name.to_owned()),
        None if error.inner().is_data() && path != "." => bad.at(path),
        None => bad,
    }
}

/// Deserializes a field that may be absent but not `null`.
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
    fn an_error_in_json_names_the_field() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Body {
            #[serde(rename = "text")]
            _text: String,
            #[serde(rename = "list")]
            _list: Option<Vec<u8>>,
        }
        for (json, field) in [
            ("{}", Some("text")),
            (r#"{"text":1}"#, Some("text")),
            (r#"{"text":"","list":[1,-1]}"#, Some("list[1]")),
            (r#"{"text":"","more":1}"#, Some("more")),
            (r#"{"text":"","text":""}"#, Some("text")),
            ("{", None),
            ("[]", None),
        ] {
            let error = object::<Body>(json.as_bytes()).unwrap_err();
            assert_eq!((error.status.as_u16(), error.field.as_deref()), (400, field), "{json}");
        }
    }
}
