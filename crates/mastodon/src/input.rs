//! Extractors other than parameters: the user, ids in the path, and `Idempotency-Key`.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use edge::only;
use feed::media::MediaId;
use feed::{Command, Idempotency, PostId, Stamp, UserId};
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

/// User in the path, who may not exist.
pub(crate) struct AccountInPath(pub(crate) UserId);

/// Post in the path, which may not exist.
pub(crate) struct StatusInPath(pub(crate) PostId);

/// Picture in the path, which may not exist.
pub(crate) struct MediaInPath(pub(crate) MediaId);

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

impl<S: Send + Sync> FromRequestParts<S> for AccountInPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        user(&in_path(parts, state).await?).map(Self).ok_or_else(ApiError::not_found)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for StatusInPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        post(&in_path(parts, state).await?).map(Self).ok_or_else(ApiError::not_found)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for MediaInPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let id = number(&in_path(parts, state).await?);
        id.map(|id| Self(MediaId(id))).ok_or_else(ApiError::not_found)
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

async fn in_path<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<String, ApiError> {
    let path = Path::<String>::from_request_parts(parts, state).await;
    path.map(|Path(text)| text).map_err(|_| ApiError::not_found())
}

/// Parses the id of a user.
pub(crate) fn user(id: &str) -> Option<UserId> {
    number(id).and_then(|id| u32::try_from(id).ok()).map(UserId)
}

/// Parses the id of a post.
pub(crate) fn post(id: &str) -> Option<PostId> {
    number(id).filter(|id| *id <= Stamp::MAX.0).map(PostId)
}

/// Parses a decimal number.
pub(crate) fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
