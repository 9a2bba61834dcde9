//! Extractors other than parameters: the user, ids in the path, and `Idempotency-Key`.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use edge::only;
use feed::filters::{FilterId, FilterPartId};
use feed::media::MediaId;
use feed::{Command, Idempotency, ListId, NotificationId, PostId, ScheduledId, Stamp, UserId};
use node::IdempotencyKey;

use crate::error::ApiError;
use crate::tokens::Access;

/// Header with the idempotency key of a request.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// User for whom the app acts.
#[derive(Clone, Copy)]
pub(crate) struct Me(pub(crate) UserId);

/// User for whom the app acts, if any.
#[derive(Clone, Copy)]
pub(crate) struct Reader(pub(crate) Option<UserId>);

/// Id in the path. An item with this id need not exist.
pub(crate) struct InPath<T>(pub(crate) T);

/// Id that a path can have.
pub(crate) trait PathId: Sized {
    /// Id with this number, if there can be one.
    fn of_number(number: u64) -> Option<Self>;
}

impl PathId for UserId {
    fn of_number(number: u64) -> Option<Self> {
        u32::try_from(number).ok().map(Self)
    }
}

/// Declares ids that are stamps.
macro_rules! stamps {
    ($($id:ident)+) => {
        $(impl PathId for $id {
            fn of_number(number: u64) -> Option<Self> {
                (number <= Stamp::MAX.0).then_some(Self(number))
            }
        })+
    };
}
stamps!(FilterId FilterPartId ListId MediaId NotificationId PostId ScheduledId);

/// Idempotency key of a request, for one user and path.
pub(crate) struct Once(Option<(IdempotencyKey, String)>);

impl Once {
    /// Key and digest with which a command is logged.
    pub(crate) fn of(self, me: UserId, command: &Command) -> Option<Idempotency> {
        let (key, request) = self.0?;
        Some(key.digest(&format!("mastodon {request} {}", me.0), command))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Me {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let access = parts.extensions.get::<Access>();
        access.and_then(|access| access.user).map(Self).ok_or_else(ApiError::no_user)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Reader {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(parts.extensions.get::<Access>().and_then(|access| access.user)))
    }
}

impl<S: Send + Sync, T: PathId> FromRequestParts<S> for InPath<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.ok().and_then(|Path(text)| id(&text)).map(Self).ok_or_else(ApiError::not_found)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Once {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let wrong = || {
            let why =
                "an Idempotency-Key is 1 to 255 visible ASCII characters, with spaces between them";
            ApiError::invalid(why)
        };
        let key = only(&parts.headers, &IDEMPOTENCY_KEY).map_err(|_| wrong())?;
        // As in Mastodon, an empty key counts as absent.
        let Some(key) = key.map(HeaderValue::as_bytes).filter(|key| !key.is_empty()) else {
            return Ok(Self(None));
        };
        let key = IdempotencyKey::parse(key).ok_or_else(wrong)?;
        Ok(Self(Some((key, format!("{} {}", parts.method, parts.uri.path())))))
    }
}

/// Parses an id.
pub(crate) fn id<T: PathId>(text: &str) -> Option<T> {
    number(text).and_then(T::of_number)
}

/// Parses the id of a user.
pub(crate) fn user(text: &str) -> Option<UserId> {
    id(text)
}

/// Parses the id of a post.
pub(crate) fn post(text: &str) -> Option<PostId> {
    id(text)
}

/// Parses a decimal number.
pub(crate) fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
