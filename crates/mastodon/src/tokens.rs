//! What a presented token or session permits.
//!
//! The node counts the commands that ended grants. A cached entry is valid while that number is the one from before it
//! was read: so a revocation is effective with its reply, whoever sent it.

use feed::UserId;
use feed::accounts::{AccessScope, AccessScopes, AppId, GrantId, SecretHash};
use quick_cache::sync::Cache;

use crate::error::ApiError;
use crate::secret;
use crate::state::Server;

/// Most cached tokens.
const CACHED_MAX: usize = 65_536;
/// Most memory of the cache, in bytes: an entry, and what the cache adds.
pub(crate) const MEMORY: usize = CACHED_MAX * 192;
/// Longest token that is looked up, in bytes.
const TOKEN_BYTES_MAX: usize = 256;

/// What a client may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) grant: GrantId,
    /// The app; none for the session of a browser.
    pub(crate) app: Option<AppId>,
    /// The user; none if an app acts for itself.
    pub(crate) user: Option<UserId>,
    scopes: AccessScopes,
    /// Hash of the token.
    hash: SecretHash,
}

impl Access {
    /// Whether the token permits what `scope` names.
    pub(crate) fn allows(&self, scope: AccessScope) -> bool {
        self.scopes.allows(scope)
    }
}

/// A cached entry.
#[derive(Clone, Copy)]
struct Cached {
    /// Number of revocations before it was read.
    revocations: u64,
    access: Access,
    expires_ms: u64,
}

/// The cache.
pub(crate) struct Tokens(Cache<SecretHash, Cached>);

impl Tokens {
    pub(crate) fn new() -> Self {
        Self(Cache::new(CACHED_MAX))
    }
}

impl Server {
    /// What a token of an app permits; none if it is not valid.
    pub(crate) async fn token(&self, token: &str) -> Result<Option<Access>, ApiError> {
        Ok(self.access(token).await?.filter(|access| access.app.is_some()))
    }

    /// Whose session this is; none if it is not valid.
    pub(crate) async fn session(
        &self,
        session: &str,
    ) -> Result<Option<(GrantId, UserId)>, ApiError> {
        let access = self.access(session).await?.filter(|access| access.app.is_none());
        Ok(access.and_then(|access| Some((access.grant, access.user?))))
    }

    async fn access(&self, text: &str) -> Result<Option<Access>, ApiError> {
        if text.len() > TOKEN_BYTES_MAX {
            return Ok(None);
        }
        self.access_of(secret::hash(text)).await
    }

    /// Whether what a token permitted is still permitted.
    pub(crate) async fn is_valid(&self, access: &Access) -> bool {
        matches!(self.access_of(access.hash).await, Ok(Some(found)) if found == *access)
    }

    async fn access_of(&self, hash: SecretHash) -> Result<Option<Access>, ApiError> {
        // Before the rows are read: a revocation meanwhile makes the entry invalid.
        let revocations = self.node.facts().totals().revocations;
        let now_ms = self.node.now_ms();
        let is_valid =
            |cached: &Cached| cached.revocations == revocations && now_ms < cached.expires_ms;
        if let Some(cached) = self.tokens.0.get(&hash).filter(is_valid) {
            return Ok(Some(cached.access));
        }
        let found = self.read(move |node| node.facts().granted(&hash, now_ms)).await?;
        let Some((id, grant)) = found else { return Ok(None) };
        let access =
            Access { grant: id, app: grant.app, user: grant.user, scopes: grant.scopes, hash };
        let expires_ms = match grant.app {
            Some(_) => u64::MAX,
            None => grant.expires_ms().unwrap_or(u64::MAX),
        };
        self.tokens.0.insert(hash, Cached { revocations, access, expires_ms });
        Ok(Some(access))
    }
}
