//! What a presented token or session permits: tokens of apps on both APIs, those that applications mint on `/v1`
//! and for pictures.
//!
//! The node counts the commands that ended grants. A cached entry is valid while that number is the one from before it
//! was read: so a revocation is effective with its reply, whoever sent it.

use edge::{Ended, Pending, Permission, Scope};
use feed::UserId;
use feed::accounts::{AccessScope, AccessScopes, AppId, Grant, GrantId, SecretHash};
use node::Secret;
use quick_cache::sync::Cache;

use crate::error::ApiError;
use crate::state::{Server, Shared};

/// Most cached tokens.
const CACHED_MAX: usize = 65_536;
/// Most memory of the cache, in bytes: an entry, and what the cache adds.
pub(crate) const MEMORY: usize = CACHED_MAX * 192;

/// What a client may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) grant: GrantId,
    /// The app; none for the session of a browser and for what an application minted.
    pub(crate) app: Option<AppId>,
    is_session: bool,
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

    /// Whether it permits routes of `/v1` with this scope. A browser has what its user has.
    pub(crate) fn allows_in_v1(&self, scope: Scope) -> bool {
        match scope {
            Scope::Read => self.is_session || self.allows(AccessScope::Read),
            Scope::Write => self.is_session || self.allows(AccessScope::Write),
            Scope::Admin => false,
        }
    }
}

/// A token while a long request of it is in progress.
struct TokenPermission {
    state: Shared,
    access: Access,
}

impl Access {
    /// What a long request with the token needs.
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

/// A cached entry.
#[derive(Clone, Copy)]
struct Cached {
    /// Number of revocations before it was read.
    revocations: u64,
    access: Access,
    expires_ms: u64,
}

/// A point in time.
#[derive(Clone, Copy)]
struct Now {
    /// Number of revocations until now.
    revocations: u64,
    ms: u64,
}

/// The cache.
pub(crate) struct Tokens(Cache<SecretHash, Cached>);

impl Tokens {
    pub(crate) fn new() -> Self {
        Self(Cache::new(CACHED_MAX))
    }
}

impl Server {
    /// What the token of an app permits; none if it is not valid.
    pub(crate) async fn token(&self, token: &str) -> Result<Option<Access>, ApiError> {
        Ok(self.access(token).await?.filter(|access| access.app.is_some()))
    }

    /// What a token permits in `/v1`, also one that an application minted; none if it is not valid.
    pub(crate) async fn token_in_v1(&self, token: &str) -> Result<Option<Access>, ApiError> {
        Ok(self.access(token).await?.filter(|access| !access.is_session))
    }

    /// Whose session this is; none if it is not valid.
    pub(crate) async fn session(
        &self,
        session: &str,
    ) -> Result<Option<(GrantId, UserId)>, ApiError> {
        let access = self.access_of_session(session).await?;
        Ok(access.and_then(|access| Some((access.grant, access.user?))))
    }

    /// What a session permits; none if it is not valid.
    pub(crate) async fn access_of_session(
        &self,
        session: &str,
    ) -> Result<Option<Access>, ApiError> {
        Ok(self.access(session).await?.filter(|access| access.is_session))
    }

    async fn access(&self, text: &str) -> Result<Option<Access>, ApiError> {
        // Before anything is read.
        if !Secret::is_well_formed(text) {
            return Ok(None);
        }
        self.access_of(Secret::hash_of(text)).await
    }

    /// Checks that what a token permitted is still permitted, for a long request or response. The read waits for its turn: a
    /// server that is busy ends none.
    async fn confirm_in_turn(&self, access: &Access) -> Result<(), Ended> {
        let (hash, now, node) = (access.hash, self.now(), self.node.clone());
        let read = move || node.facts().granted(&hash, now.ms);
        let found = self.options.reads.permissions().run(read).await;
        // The conversion logs what nobody has logged.
        let found = found.map_err(ApiError::from).map_err(|_| Ended::Unreadable)?;
        match self.cache(hash, now, found) == Some(*access) {
            true => Ok(()),
            false => Err(Ended::Revoked),
        }
    }

    /// Checks that what a token permitted is still permitted.
    ///
    /// # Errors
    /// 401 if it ended.
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

    /// Before the rows are read: a revocation meanwhile makes the entry invalid.
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
