//! Tokens that an application mints for its users, so that the users' own clients can send requests. They are grants,
//! like those of apps: see [`feed::accounts`].

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::header::LOCATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use edge::{Access, Scope};
use feed::accounts::{
    AccessScope, AccessScopes, AccountCommand, AccountDone, AppName, Grant, GrantId,
};
use feed::limits::TOKEN_SECS_MAX;
use feed::{Command, Done, Refusal, UserId, UserRef};
use node::{Node, Secret};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::grant;
use crate::error::ApiError;
use crate::idempotency::NoKey;
use crate::input::{Input, OneUser, UserAnd, WithoutKey};
use crate::page;
use crate::query::Query;
use crate::route::{Inputs, Reads, Route};
use crate::state::AppState;
use crate::time::rfc3339;

/// Maximum number of a key's tokens that are revoked together.
const REVOKED_AT_ONCE: usize = 1_000;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::delete("/v1/tokens", revoke_of_key)
            .named("revoke_tokens_of_key", "Revoke the tokens that a key minted")
            .scope(Scope::Admin)
            .text(
                "Ends requests with these tokens. Revoking a key leaves the tokens of its users \
                 valid: use this if the key was stolen, after its revocation, on each node of a \
                 cluster. Idempotent.",
            )
            .answers(204, "The tokens are invalid"),
        Route::post("/v1/users/{user}/tokens", mint)
            .named("create_token", "Mint a token for a user")
            .scope(Scope::Admin)
            .text(
                "The user's own clients send it as `Authorization: Bearer TOKEN`. It acts and \
                 reads for this user only, on the routes of this API that users may use. Only \
                 this response contains the secret. A user has at most 32 tokens.",
            )
            .creates::<NewTokenView>("The new token", "Path of the token")
            .errors(&["bad_scope", "account_not_active", "too_many_tokens"])
            .error(ApiError::bad_ttl(TOKEN_SECS_MAX.into())),
        Route::get("/v1/users/{user}/tokens", list)
            .named("list_tokens", "List the tokens of a user")
            .scope(Scope::Admin)
            .text("Minted tokens that have not expired, oldest first.")
            .lists::<TokenView>("All tokens of the user, on one page"),
        Route::delete("/v1/users/{user}/tokens", revoke_all)
            .named("revoke_tokens", "Revoke the tokens of a user")
            .scope(Scope::Admin)
            .text("Revokes all minted tokens and ends their requests in progress. Idempotent.")
            .answers(204, "The tokens are revoked"),
        Route::delete("/v1/users/{user}/tokens/{id}", revoke)
            .named("revoke_token", "Revoke a token")
            .scope(Scope::Admin)
            .text("Also ends its requests in progress. Idempotent.")
            .answers(204, "The token is revoked"),
    ]
}

/// Permission of a token.
#[derive(Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TokenScope {
    /// Requests that change nothing.
    Read,
    /// Requests that change something.
    Write,
}

/// A token to be minted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewToken {
    /// Permissions of the token.
    #[schema(example = json!(["read", "write"]))]
    scopes: Vec<TokenScope>,
    /// Seconds until the token expires: 1 to 7776000 (90 days).
    #[schema(minimum = 1, maximum = 7_776_000, example = 86_400)]
    ttl_s: u64,
}

/// A token.
#[derive(Serialize, ToSchema)]
pub(crate) struct TokenView {
    #[schema(example = "381482917519855616")]
    id: String,
    scopes: Vec<TokenScope>,
    #[schema(format = DateTime, example = "2026-11-21T09:30:00.123Z")]
    created_at: String,
    #[schema(format = DateTime, example = "2026-11-22T09:30:00.123Z")]
    expires_at: String,
    /// Name of the key that minted the token; null if it had none.
    #[schema(example = "shop")]
    key: Option<String>,
}

/// A token that was just minted.
#[derive(Serialize, ToSchema)]
pub(crate) struct NewTokenView {
    #[serde(flatten)]
    token: TokenView,
    /// Token that clients send in `Authorization`; returned only here.
    #[schema(example = "mF_9.B5f-4.1JqM")]
    secret: String,
}

impl TokenView {
    fn of(id: GrantId, grant: &Grant) -> Self {
        let scopes =
            [(TokenScope::Read, AccessScope::Read), (TokenScope::Write, AccessScope::Write)];
        let scopes = scopes.into_iter().filter(|(_, scope)| grant.scopes.allows(*scope));
        Self {
            id: id.0.to_string(),
            scopes: scopes.map(|(name, _)| name).collect(),
            created_at: rfc3339(id.unix_ms()),
            expires_at: rfc3339(grant.token_expires_ms().unwrap_or(u64::MAX)),
            key: grant.key.as_ref().map(|key| key.as_str().to_owned()),
        }
    }
}

/// Minted tokens of a user. May block.
fn minted(node: &Node, user: UserId) -> impl Iterator<Item = (GrantId, Grant)> {
    let grants = node.facts().grants_of_user(user).into_iter();
    grants.filter(|(_, grant)| grant.is_minted())
}

/// Returns the name of the key of a request, if it has one.
///
/// # Errors
/// `unauthorized` if the key was revoked since the request began: no revocation by its name would end the token.
fn minting_key(access: &Access, headers: &HeaderMap) -> Result<Option<AppName>, ApiError> {
    let name = grant(access, headers).and_then(|grant| access.key_name(&grant));
    // The key is checked after its name is read, because a revoked key has no name.
    grant(access, headers).ok_or_else(ApiError::unauthorized)?;
    Ok(name.and_then(|name| AppName::parse(&name).ok()))
}

pub(crate) async fn mint(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    headers: HeaderMap,
    WithoutKey(Input { body, .. }): WithoutKey<NewToken>,
) -> Result<Response, ApiError> {
    let scopes = body.scopes.iter().map(|scope| match scope {
        TokenScope::Read => AccessScope::Read,
        TokenScope::Write => AccessScope::Write,
    });
    let scopes: AccessScopes = scopes.collect();
    let life_secs =
        u32::try_from(body.ttl_s).ok().filter(|secs| (1..=TOKEN_SECS_MAX).contains(secs));
    let life_secs = life_secs.ok_or_else(|| ApiError::bad_ttl(TOKEN_SECS_MAX.into()))?;
    let secret = Secret::random().map_err(|error| ApiError::fault(&error))?;
    let key = minting_key(&state.access, &headers)?;
    let command = AccountCommand::Mint { user, scopes, life_secs, token: secret.hash(), key };
    let reply = state.node.submit(Command::Account(command).into()).await?;
    let Done::Account(AccountDone::Granted(id)) = reply.outcome? else {
        unreachable!("the outcome of a command is one of its kind");
    };
    let grant = state.read_done(move |node| node.facts().grant(id)).await?;
    // The grant may have ended together with its user.
    let grant = grant.ok_or(Refusal::UserNotFound)?;
    let user = grant.user.map_or(0, |user| user.0);
    let token = TokenView::of(id, &grant);
    let view = NewTokenView { token, secret: secret.as_str().to_owned() };
    let mut response = page::json(page::to_json(&view));
    *response.status_mut() = StatusCode::CREATED;
    if let Ok(location) = HeaderValue::try_from(format!("/v1/users/{user}/tokens/{}", id.0)) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
) -> Result<Response, ApiError> {
    let read = move |node: &Node| {
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        let now_ms = node.now_ms();
        let is_live = |grant: &Grant| grant.token_expires_ms().is_none_or(|at| now_ms < at);
        let tokens = minted(node, user).filter(|(_, grant)| is_live(grant));
        Ok::<_, Refusal>(tokens.map(|(id, grant)| TokenView::of(id, &grant)).collect::<Vec<_>>())
    };
    let tokens = state.read(read).await??;
    Ok(page::answer(page::opened_with(tokens.iter()), None))
}

pub(crate) async fn revoke_all(
    State(state): State<Arc<AppState>>,
    OneUser(user): OneUser,
    NoKey: NoKey,
) -> Result<Response, ApiError> {
    end(&state, user, |_| true).await
}

pub(crate) async fn revoke(
    State(state): State<Arc<AppState>>,
    UserAnd(user, grant): UserAnd<GrantId>,
    NoKey: NoKey,
) -> Result<Response, ApiError> {
    end(&state, user, move |id| id == grant).await
}

/// Ends the minted tokens of a user that `meant` selects.
async fn end(
    state: &AppState,
    user: UserRef,
    meant: impl Fn(GrantId) -> bool + Send + 'static,
) -> Result<Response, ApiError> {
    let find = move |node: &Node| {
        let user = node.resolve(&user).ok_or(Refusal::UserNotFound)?;
        let ids = minted(node, user).map(|(id, _)| id).filter(|id| meant(*id));
        Ok::<_, Refusal>(ids.collect::<Vec<_>>())
    };
    submit_ends(state, state.read(find).await??).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Submits the commands that end these tokens.
async fn submit_ends(state: &AppState, grants: Vec<GrantId>) -> Result<(), ApiError> {
    let end = |grant| Command::Account(AccountCommand::Revoke { grant }).into();
    for reply in state.node.submit_all(grants.into_iter().map(end).collect()).await? {
        reply.outcome?;
    }
    Ok(())
}

/// Name of an application key in the query.
pub(crate) struct OfKey(AppName);

impl<S: Send + Sync> FromRequestParts<S> for OfKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let name = Query::parse(&parts.uri, &["key"])?.text("key")?.unwrap_or_default();
        let wrong = |_| ApiError::bad_request("key is the name of an application key").at("key");
        AppName::parse(&name).map(Self).map_err(wrong)
    }
}

impl Reads for OfKey {
    fn describe(inputs: &mut Inputs) {
        inputs.required("key", "Name of the key, which may be revoked.", "shop");
    }
}

pub(crate) async fn revoke_of_key(
    State(state): State<Arc<AppState>>,
    OfKey(key): OfKey,
    NoKey: NoKey,
) -> Result<Response, ApiError> {
    // Tokens that are minted after this moment are not revoked.
    let newest = GrantId(state.node.visible_up_to().0);
    let mut from = Some(GrantId(0));
    while let Some(first) = from.filter(|first| *first <= newest) {
        let key = key.clone();
        let find = move |node: &Node| node.facts().minted_by(&key, first, REVOKED_AT_ONCE);
        let (mut grants, next) = state.read(find).await?;
        grants.retain(|grant| *grant <= newest);
        submit_ends(&state, grants).await?;
        from = next;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

#[cfg(test)]
mod tests {
    use axum::http::header::AUTHORIZATION;

    use super::*;

    #[test]
    fn a_key_that_was_revoked_meanwhile_mints_no_token() {
        let headers = HeaderMap::from_iter([(AUTHORIZATION, "Bearer revoked".parse().unwrap())]);
        assert!(minting_key(&Access::with_keys(vec![]), &headers).is_err());
        assert_eq!(minting_key(&Access::Open, &HeaderMap::new()).ok(), Some(None));
    }
}
