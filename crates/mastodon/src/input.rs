//! What handlers take from a request beside its parameters: who asks, ids in the path, and `Idempotency-Key`.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use feed::media::MediaId;
use feed::{Command, Idempotency, PostId, Stamp, UserId};
use sha2::{Digest as _, Sha256};

use crate::error::ApiError;
use crate::tokens::Access;

/// Longest `Idempotency-Key`, in bytes.
const KEY_BYTES_MAX: usize = feed::limits::IDEMPOTENCY_KEY_BYTES_MAX;

/// The user for whom the app acts.
#[derive(Clone, Copy)]
pub(crate) struct Me(pub(crate) UserId);

/// The user for whom the app acts, if there is a token of a user.
#[derive(Clone, Copy)]
pub(crate) struct Reader(pub(crate) Option<UserId>);

/// The user of the path, who need not exist.
pub(crate) struct AccountInPath(pub(crate) UserId);

/// The post of the path, which need not exist.
pub(crate) struct StatusInPath(pub(crate) PostId);

/// The picture of the path, which need not exist.
pub(crate) struct MediaInPath(pub(crate) MediaId);

/// The key under which a request is carried out once, for one user and path.
pub(crate) struct Once(Option<Sha256>);

impl Once {
    /// What the command is logged with.
    pub(crate) fn of(self, me: UserId, command: &Command) -> Option<Idempotency> {
        let Ok(content) = serde_json::to_vec(command) else {
            unreachable!("a command is written to memory");
        };
        let key = self.0?.chain_update(me.0.to_be_bytes()).finalize();
        let content = Sha256::digest(content);
        Some(Idempotency { key: *key.first_chunk()?, content: *content.first_chunk()? })
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
        let Some(key) = parts.headers.get("idempotency-key") else { return Ok(Self(None)) };
        if key.len() > KEY_BYTES_MAX {
            let why = format!("an Idempotency-Key has at most {KEY_BYTES_MAX} bytes");
            return Err(ApiError::invalid(why));
        }
        // Neither a method nor a path contains a zero byte.
        let digest = Sha256::new_with_prefix(b"mastodon\0");
        let digest = digest.chain_update(parts.method.as_str()).chain_update([0]);
        let digest = digest.chain_update(parts.uri.path()).chain_update([0]);
        let digest = digest.chain_update((key.len() as u32).to_be_bytes());
        Ok(Self(Some(digest.chain_update(key))))
    }
}

async fn in_path<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<String, ApiError> {
    let path = Path::<String>::from_request_parts(parts, state).await;
    path.map(|Path(text)| text).map_err(|_| ApiError::not_found())
}

/// The user with an id as clients write it.
pub(crate) fn user(id: &str) -> Option<UserId> {
    number(id).and_then(|id| u32::try_from(id).ok()).map(UserId)
}

/// The post with an id as clients write it.
pub(crate) fn post(id: &str) -> Option<PostId> {
    number(id).filter(|id| *id <= Stamp::MAX.0).map(PostId)
}

/// A number of decimal digits.
pub(crate) fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
