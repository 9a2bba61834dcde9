//! Tokens: issued for a code, to the app itself, or for a password if the operator allows it; and revoked.

use axum::Json;
use axum::extract::State;
use axum::http::{Extensions, HeaderMap, StatusCode};
use feed::accounts::{
    AccessScopes, AccountCommand, AccountDone, App, AppId, GrantId, RedirectUri, SecretHash,
};
use serde_json::{Value, json};

use super::apps::DEFAULT_SCOPES;
use node::Secret;

use crate::access::Needs;
use crate::endpoints::Endpoints;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::limiter::What;
use crate::state::{Server, Shared, client_address};

/// Adds the routes of tokens.
pub(crate) fn routes(table: &mut Endpoints) {
    // The handler checks the client by its secret.
    table.post("/oauth/token", Needs::Nothing, token);
    table.post("/oauth/revoke", Needs::Nothing, revoke);
}

/// Length of a code verifier, in characters (RFC 7636).
const VERIFIER_CHARS: std::ops::RangeInclusive<usize> = 43..=128;

pub(crate) async fn token(
    State(state): State<Shared>,
    headers: HeaderMap,
    extensions: Extensions,
    fields: Fields,
) -> Result<Json<Value>, ApiError> {
    let kind = fields.need("grant_type")?;
    let address = client_address(&extensions);
    let (id, app) = state.client(&fields, &headers).await?;
    let token = Secret::random()?;
    let (grant, scopes) = match kind {
        "authorization_code" => {
            state.limit_address(What::Tokens, address)?;
            state.exchange(id, &fields, token.hash()).await?
        }
        "client_credentials" => {
            state.limit_address(What::Tokens, address)?;
            let scopes = asked(&fields, &app)?;
            let command = AccountCommand::GrantApp { app: id, scopes, token: token.hash() };
            (granted(state.submit(command).await?)?, scopes)
        }
        "password" if state.options.password_grant => {
            let scopes = asked(&fields, &app)?;
            let (name, password) = (fields.need("username")?, fields.need("password")?);
            let (user, password) = state.compare(name, password, address).await?;
            let token = token.hash();
            let command = AccountCommand::GrantUser { app: id, user, password, scopes, token };
            (granted(state.submit(command).await?)?, scopes)
        }
        _ => {
            let why = "the grant type must be authorization_code or client_credentials";
            return Err(ApiError::oauth(StatusCode::BAD_REQUEST, "unsupported_grant_type", why));
        }
    };
    Ok(Json(entity(&token, scopes, grant)))
}

/// Entity `Token`.
pub(crate) fn entity(token: &Secret, scopes: AccessScopes, grant: GrantId) -> Value {
    json!({
        "access_token": token.as_str(),
        "token_type": "Bearer",
        "scope": scopes.to_string(),
        "created_at": grant.unix_ms() / 1_000,
    })
}

/// The grant created by a command.
pub(crate) fn granted(done: AccountDone) -> Result<GrantId, ApiError> {
    match done {
        AccountDone::Granted(grant) => Ok(grant),
        _ => Err(ApiError::invalid_grant()),
    }
}

/// Requested scopes, all of which the app has registered.
fn asked(fields: &Fields, app: &App) -> Result<AccessScopes, ApiError> {
    let scopes = AccessScopes::parse_for_grant(fields.one("scope")?.unwrap_or(DEFAULT_SCOPES))?;
    if app.scopes.includes(scopes) { Ok(scopes) } else { Err(ApiError::invalid_scope()) }
}

impl Server {
    async fn exchange(
        &self,
        app: AppId,
        fields: &Fields,
        token: SecretHash,
    ) -> Result<(GrantId, AccessScopes), ApiError> {
        let code = Secret::hash_of(fields.need("code")?);
        let redirect = fields.one("redirect_uri")?.unwrap_or(RedirectUri::OUT_OF_BAND);
        let redirect = Secret::hash_of(redirect);
        let verifier = fields.one("code_verifier")?;
        if verifier.is_some_and(|verifier| !VERIFIER_CHARS.contains(&verifier.len())) {
            return Err(ApiError::invalid_grant());
        }
        let challenge = verifier.map(Secret::hash_of);
        let command = AccountCommand::Exchange { app, code, redirect, challenge, token };
        let id = granted(self.submit(command).await?)?;
        // The grant may have ended since it was created.
        let grant = self.read(move |node| node.facts().grant(id)).await?;
        Ok((id, grant.ok_or_else(ApiError::invalid_grant)?.scopes))
    }
}

pub(crate) async fn revoke(
    State(state): State<Shared>,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Json<Value>, ApiError> {
    let refused = |_| {
        let why = "the client may not revoke this token";
        ApiError::oauth(StatusCode::FORBIDDEN, "unauthorized_client", why)
    };
    let (id, _) = state.client(&fields, &headers).await.map_err(refused)?;
    let token = Secret::hash_of(fields.need("token")?);
    let found = state.read(move |node| node.facts().grant_of(&token)).await?;
    // A token that does not exist counts as revoked (RFC 7009).
    let Some((grant, found)) = found else { return Ok(Json(json!({}))) };
    if found.app != Some(id) {
        return Err(refused(ApiError::invalid_client()));
    }
    state.submit(AccountCommand::Revoke { grant }).await?;
    Ok(Json(json!({})))
}
