//! Registration of apps.

use axum::extract::State;
use axum::http::Extensions;
use axum::{Extension, Json};
use feed::accounts::{
    AccessScopes, AccountCommand, AccountDone, App, AppId, AppName, AppRequest, RedirectUri,
    Website,
};
use feed::limits::REDIRECT_URIS_MAX;
use node::Secret;
use serde_json::{Value, json};

use crate::access::Needs;
use crate::endpoints::Endpoints;
use crate::error::ApiError;
use crate::fields::{Fields, Params};
use crate::limiter::What;
use crate::state::{Shared, client_address};
use crate::tokens::Access;
use feed::Refusal;

/// Adds the routes of apps.
pub(crate) fn routes(table: &mut Endpoints) {
    table.post("/api/v1/apps", Needs::Nothing, register);
    table.get("/api/v1/apps/verify_credentials", Needs::Token, verify);
}

/// Default scopes of an app and of a token.
pub(crate) const DEFAULT_SCOPES: &str = "read";

pub(crate) async fn register(
    State(state): State<Shared>,
    extensions: Extensions,
    // The parameters may also be in the query, where some apps send them.
    Params(fields): Params,
) -> Result<Json<Value>, ApiError> {
    let secret = Secret::random()?;
    let request = request(&fields, &secret)?;
    state.limit_address(What::Apps, client_address(&extensions))?;
    let app = App {
        name: request.name.clone(),
        website: request.website.clone(),
        redirects: request.redirects.clone(),
        scopes: request.scopes,
        secret: request.secret,
    };
    let done = state.submit(AccountCommand::RegisterApp(Box::new(request))).await?;
    let AccountDone::AppRegistered(id) = done else { return Err(ApiError::internal()) };
    let mut body = entity(id, &app);
    if let Some(body) = body.as_object_mut() {
        body.insert("client_id".into(), id.0.to_string().into());
        body.insert("client_secret".into(), secret.as_str().into());
        body.insert("client_secret_expires_at".into(), 0.into());
    }
    Ok(Json(body))
}

pub(crate) async fn verify(
    State(state): State<Shared>,
    Extension(access): Extension<Access>,
) -> Result<Json<Value>, ApiError> {
    let id = access.app.ok_or_else(ApiError::bad_token)?;
    let app = state.read(move |node| node.facts().app(id)).await?;
    Ok(Json(entity(id, &app.ok_or_else(ApiError::bad_token)?)))
}

fn request(fields: &Fields, secret: &Secret) -> Result<AppRequest, ApiError> {
    let name = AppName::parse(fields.one("client_name")?.unwrap_or_default())?;
    let website = fields.one("website")?.map(Website::parse).transpose()?;
    // The redirect URIs are one text with a URI per line, or a list.
    let redirects = fields.all("redirect_uris").flat_map(str::split_whitespace);
    let redirects: Vec<_> = redirects.take(REDIRECT_URIS_MAX + 1).map(RedirectUri::parse).collect();
    let redirects: Vec<_> = redirects.into_iter().collect::<Result<_, _>>()?;
    if redirects.is_empty() || redirects.len() > REDIRECT_URIS_MAX {
        return Err(Refusal::BadRedirectUri.into());
    }
    let scopes = AccessScopes::parse(fields.one("scopes")?.unwrap_or(DEFAULT_SCOPES))?;
    Ok(AppRequest { name, website, redirects, scopes, secret: secret.hash() })
}

/// Entity `Application` without fields that only its owner may see.
fn entity(id: AppId, app: &App) -> Value {
    let redirects: Vec<_> = app.redirects.iter().map(RedirectUri::as_str).collect();
    let scopes: Vec<_> = app.scopes.scopes().map(feed::accounts::AccessScope::name).collect();
    json!({
        "id": id.0.to_string(),
        "name": app.name.as_str(),
        "website": app.website.as_ref().map(Website::as_str),
        "scopes": scopes,
        "redirect_uri": redirects.join("\n"),
        "redirect_uris": redirects,
        "vapid_key": "",
    })
}
