//! Metadata of the server for OAuth clients (RFC 8414).

use axum::Json;
use axum::extract::State;
use feed::accounts::AccessScope;
use serde_json::{Value, json};

use crate::access::Needs;
use crate::endpoints::Endpoints;
use crate::state::Shared;

/// Adds the route of the metadata.
pub(crate) fn routes(table: &mut Endpoints) {
    table.get("/.well-known/oauth-authorization-server", Needs::Nothing, metadata);
}

pub(crate) async fn metadata(State(state): State<Shared>) -> Json<Value> {
    let base = &state.options.base;
    let mut grants = vec!["authorization_code", "client_credentials"];
    if state.options.password_grant {
        grants.push("password");
    }
    Json(json!({
        "issuer": format!("{base}/"),
        "authorization_endpoint": format!("{base}/oauth/authorize"),
        "token_endpoint": format!("{base}/oauth/token"),
        "revocation_endpoint": format!("{base}/oauth/revoke"),
        "app_registration_endpoint": format!("{base}/api/v1/apps"),
        "scopes_supported": AccessScope::ALL.map(AccessScope::name),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": grants,
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "code_challenge_methods_supported": ["S256"],
        "service_documentation": "https://docs.joinmastodon.org/",
    }))
}
