//! Session of the browser, which the pages at `/` read first.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse as _, Response};
use feed::UserId;
use node::Node;
use serde_json::{Value, json};

use super::session::Browser;
use crate::Registrations;
use crate::answers;
use crate::error::ApiError;
use crate::sessions::is_own_page;
use crate::state::Shared;

/// `GET /auth/session`
pub(crate) async fn session(
    State(state): State<Shared>,
    browser: Browser,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let options = &state.options;
    let session = browser.session.filter(|_| !options.open && is_own_page(&headers, &options.base));
    let user = match session {
        Some((_, user)) => state.read(move |node| described(node, user)).await?,
        None => None,
    };
    // Without a session a page cannot use the token.
    let form_token = user.is_some().then(|| browser.form_token());
    let body = json!({
        "open": options.open,
        "pictures": state.node.accepts_pictures(),
        "sign_up": options.registrations != Registrations::Closed,
        "server": { "title": options.about.title, "description": options.about.description },
        "user": user,
        "form_token": form_token,
    });
    let bytes = serde_json::to_vec(&body).map_err(|_| ApiError::internal())?;
    Ok(([(CACHE_CONTROL, "no-store")], answers::json(bytes)).into_response())
}

fn described(node: &Node, user: UserId) -> Option<Value> {
    let profile = node.facts().user(user)?;
    Some(json!({
        "id": user.0.to_string(),
        "handle": profile.handle.as_str(),
        "name": profile.name.as_str(),
        "visibility": profile.defaults.visibility.name(),
    }))
}
