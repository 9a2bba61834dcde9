//! Access by tokens and sessions: tokens of apps on both APIs, and tokens that applications mint, on `/v1` and for
//! pictures.
//!
//! The node counts the commands that ended grants. A cached entry is valid while the count equals its value before the
//! entry was read. So a revocation is effective when its response arrives, whichever client sent it.

use edge::{Ended, Pending, Permission, Scope};
use feed::UserId;
use feed::accounts::{AccessScope, AccessScopes, AppId, Grant, GrantId, SecretHash};
use node::Secret;
use quick_cache::sync::Cache;

use crate::error::ApiError;
use crate::state::{Server, Shared};

/// Maximum number of cached tokens.
const CACHED_MAX: usize = 65_536;
/// Maximum memory of the cache, in bytes: an entry and the cache's overhead.
pub(crate) const MEMORY: usize = CACHED_MAX * 192;

/// Access that a token or session gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) grant: GrantId,
    /// App; `None` for a browser session and for a minted token.
    pub(crate) app: Option<AppId>,
    is_session: bool,
    /// User; `None` if an app acts for itself.
    pub(crate) user: Option<UserId>,
    scopes: AccessScopes,
    /// Hash of the token.
    hash: SecretHash,
}

impl Access {
    /// Whether the token permits `scope`.
    pub(crate) fn allows(&self, scope: AccessScope) -> bool {
        self.scopes.allows(scope)
    }

    /// Whether the token permits routes of `/v1` with this scope. A browser session has all rights of its user.
    pub(crate) fn allows_in_v1(&self, scope: Scope) -> bool {
        match scope {
            Scope::Read => self.is_session || self.allows(AccessScope::Read),
            Scope::Write => self.is_session || self.allows(AccessScope::Write),
            Scope::Admin => false,
        }
    }
}

/// Permission of a long request, valid while its token is.
struct TokenPermission {
    state: Shared,
    access: Access,
}

impl Access {
    /// Makes the permission of a long request with the token.
    pub(crate) fn permission(self, state: &Shared) -> Box<dyn Permission> {
        Box::new(TokenPermission { state: Shared::clone(state), access: self })
    }
}

impl Permission for TokenPermission {
    fn is_valid_now(&mut self) -> Option<bool> {
        let cached = self.state.cached(&self.access.hash, self.state.now())?;
        Some(cached == self.access)
    }

    fn confirm(&mut self) -> Pending<'static, Result<(), Ended>> {
        let (state, access) = (Shared::clone(&self.state), self.access);
        Box::pin(async move { state.confirm_in_turn(&access).await })
    }
}

/// Entry of the cache.
#[derive(Clone, Copy)]
struct Cached {
    /// Number of revocations before the entry was read.
    revocations: u64,
    access: Access,
    expires_ms: u64,
}

/// Number of revocations and time at a moment.
#[derive(Clone, Copy)]
struct Now {
    /// Number of revocations so far.
    revocations: u64,
    ms: u64,
}

/// Cache of tokens.
pub(crate) struct Tokens(Cache<SecretHash, Cached>);

impl Tokens {
    pub(crate) fn new() -> Self {
        Self(Cache::new(CACHED_MAX))
    }
}

impl Server {
    /// Access by the token of an app; `None` if it is invalid.
    pub(crate) async fn token(&self, token: &str) -> Result<Option<Access>, ApiError> {
        Ok(self.access(token).await?.filter(|access| access.app.is_some()))
    }

    /// Access to `/v1` by a token of an app or a minted token; `None` if it is invalid.
    pub(crate) async fn token_in_v1(&self, token: &str) -> Result<Option<Access>, ApiError> {
        Ok(self.access(token).await?.filter(|access| !access.is_session))
    }

    /// User and secret of a session; `None` if it is invalid.
    pub(crate) async fn session(
        &self,
        session: &str,
    ) -> Result<Option<(GrantId, UserId)>, ApiError> {
        let access = self.access_of_session(session).await?;
        Ok(access.and_then(|access| Some((access.grant, access.user?))))
    }

    /// Access by a session; `None` if it is invalid.
    pub(crate) async fn access_of_session(
        &self,
        session: &str,
    ) -> Result<Option<Access>, ApiError> {
        Ok(self.access(session).await?.filter(|access| access.is_session))
    }

    async fn access(&self, text: &str) -> Result<Option<Access>, ApiError> {
        // A malformed secret is refused before anything is read.
        if !Secret::is_well_formed(text) {
            return Ok(None);
        }
        self.access_of(Secret::hash_of(text)).await
    }

    /// Checks that access is still given, for a long request or response. The read waits for its turn, so a busy server
    /// does not end the request.
    async fn confirm_in_turn(&self, access: &Access) -> Result<(), Ended> {
        let (hash, now, node) = (access.hash, self.now(), self.node.clone());
        let read = move || node.facts().granted(&hash, now.ms);
        let found = self.options.reads.permissions().run(read).await;
        // The conversion logs an error of the server that was not logged yet.
        let found = found.map_err(ApiError::from).map_err(|_| Ended::Unreadable)?;
        match self.cache(hash, now, found) == Some(*access) {
            true => Ok(()),
            false => Err(Ended::Revoked),
        }
    }

    /// Checks that access is still given.
    ///
    /// # Errors
    /// 401 if it has ended.
    pub(crate) async fn confirm(&self, access: &Access) -> Result<(), ApiError> {
        match self.access_of(access.hash).await? == Some(*access) {
            true => Ok(()),
            false => Err(ApiError::bad_token()),
        }
    }

    async fn access_of(&self, hash: SecretHash) -> Result<Option<Access>, ApiError> {
        let now = self.now();
        if let Some(cached) = self.cached(&hash, now) {
            return Ok(Some(cached));
        }
        let found = self.read(move |node| node.facts().granted(&hash, now.ms)).await?;
        Ok(self.cache(hash, now, found))
    }

    /// Returns the current time and number of revocations. Call it before the rows are read, so that a revocation in
    /// between makes the cached entry invalid.
    fn now(&self) -> Now {
        Now { revocations: self.node.facts().totals().revocations, ms: self.node.now_ms() }
    }

    fn cached(&self, hash: &SecretHash, now: Now) -> Option<Access> {
        let cached = self.tokens.0.get(hash)?;
        let is_valid = cached.revocations == now.revocations && now.ms < cached.expires_ms;
        is_valid.then_some(cached.access)
    }

    fn cache(&self, hash: SecretHash, now: Now, found: Option<(GrantId, Grant)>) -> Option<Access> {
        let (id, grant) = found?;
        let is_session = grant.app.is_none() && !grant.is_minted();
        let (app, user, scopes) = (grant.app, grant.user, grant.scopes);
        let access = Access { grant: id, app, is_session, user, scopes, hash };
        let expires_ms = grant.token_expires_ms().unwrap_or(u64::MAX);
        let revocations = now.revocations;
        self.tokens.0.insert(hash, Cached { revocations, access, expires_ms });
        Some(access)
    }
}
