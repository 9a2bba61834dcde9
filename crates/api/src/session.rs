//! What a user may do who has logged in in a browser: a route of [`ROUTES`], as themselves. A request with a session
//! names the user twice, in the session and in its path or query, and both must be the same.
//!
//! **Invariant:** a route that is not in [`ROUTES`] is closed for users, so a new one is. **Invariant:** with a session no
//! handler acts for another user or reads on behalf of one.

use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse as _, Response};
use edge::{
    ErasedHandler, GuestConnection, SESSION_HEADER, Session, SessionUse, held_until_sent,
    revocable_response,
};
use feed::{Refusal, UserId};
use hyper::body::Body as _;

use crate::auth;
use crate::current_session::CurrentSession;
use crate::error::ApiError;
use crate::input::{decimal, post_number};
use crate::positions::ROOST_AFTER;
use crate::query;
use crate::state::AppState;

/// Of what a user may use a route. `viewer`, if a request has it, must be the user in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum May {
    /// Of what belongs to the `{user}` of the path, who must be the user.
    Own,
    /// Of everything that the user may see: the query must have `viewer`.
    See,
    /// Of posts that the user wrote. `{id}` is the last part of the path.
    Author,
}

use May::{Author, Own, See};

/// The routes that are open for users. Not among them: what a product does for all users (registering and deleting
/// users, batches, backups), what belongs to nobody (buckets, samples, metrics), and stories with friendships, which a
/// user could begin without the consent of the other.
pub(crate) const ROUTES: [(&str, &str, May); 45] = [
    ("GET", "/v1/users", See),
    ("GET", "/v1/users/{user}", See),
    ("PATCH", "/v1/users/{user}", Own),
    ("GET", "/v1/users/{user}/followers", See),
    ("GET", "/v1/users/{user}/following", See),
    ("PUT", "/v1/users/{user}/following/{other}", Own),
    ("DELETE", "/v1/users/{user}/following/{other}", Own),
    ("GET", "/v1/users/{user}/follow_requests", Own),
    ("PUT", "/v1/users/{user}/follow_requests/{other}", Own),
    ("DELETE", "/v1/users/{user}/follow_requests/{other}", Own),
    ("GET", "/v1/users/{user}/blocks", Own),
    ("PUT", "/v1/users/{user}/blocks/{other}", Own),
    ("DELETE", "/v1/users/{user}/blocks/{other}", Own),
    ("GET", "/v1/users/{user}/mutes", Own),
    ("PUT", "/v1/users/{user}/mutes/{other}", Own),
    ("DELETE", "/v1/users/{user}/mutes/{other}", Own),
    ("GET", "/v1/users/{user}/relations/{other}", Own),
    ("GET", "/v1/users/{user}/posts", See),
    ("POST", "/v1/users/{user}/posts", Own),
    ("GET", "/v1/posts/{id}", See),
    ("PATCH", "/v1/posts/{id}", Author),
    ("DELETE", "/v1/posts/{id}", Author),
    ("GET", "/v1/posts/{id}/context", See),
    ("GET", "/v1/posts/{id}/history", See),
    ("GET", "/v1/posts/{id}/favourites", See),
    ("GET", "/v1/posts/{id}/boosts", See),
    ("GET", "/v1/tags/{tag}/posts", See),
    ("GET", "/v1/users/{user}/favourites", Own),
    ("PUT", "/v1/users/{user}/favourites/{id}", Own),
    ("DELETE", "/v1/users/{user}/favourites/{id}", Own),
    ("GET", "/v1/users/{user}/bookmarks", Own),
    ("PUT", "/v1/users/{user}/bookmarks/{id}", Own),
    ("DELETE", "/v1/users/{user}/bookmarks/{id}", Own),
    ("PUT", "/v1/users/{user}/boosts/{id}", Own),
    ("DELETE", "/v1/users/{user}/boosts/{id}", Own),
    ("GET", "/v1/users/{user}/pins", See),
    ("PUT", "/v1/users/{user}/pins/{id}", Own),
    ("DELETE", "/v1/users/{user}/pins/{id}", Own),
    ("GET", "/v1/users/{user}/reactions", Own),
    ("GET", "/v1/users/{user}/notifications", Own),
    ("DELETE", "/v1/users/{user}/notifications", Own),
    ("DELETE", "/v1/users/{user}/notifications/{id}", Own),
    ("GET", "/v1/users/{user}/timeline", Own),
    ("GET", "/v1/users/{user}/mentions", Own),
    ("GET", "/v1/users/{user}/events", Own),
];

/// What a route permits users, and how its requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserRule {
    /// None if it is closed for them.
    may: Option<May>,
    /// Whether it is no route: unknown paths and methods are as unknown to users as to others.
    is_nowhere: bool,
    usage: SessionUse,
}

impl UserRule {
    pub(crate) fn of(method: &str, path: &str) -> Self {
        let found = ROUTES.iter().find(|route| (route.0, route.1) == (method, path));
        let usage = match (method, path) {
            ("POST", "/v1/users/{user}/posts")
            | ("PATCH", "/v1/posts/{id}")
            | ("PUT", "/v1/users/{user}/boosts/{id}") => SessionUse::Post,
            ("GET", _) => SessionUse::Read,
            _ => SessionUse::Change,
        };
        Self { may: found.map(|route| route.2), is_nowhere: method == "*", usage }
    }
}

/// Whether a request asks for its session: it has no key, which would decide alone.
pub(crate) fn is_asked(state: &AppState, headers: &HeaderMap) -> bool {
    state.sessions.is_some()
        && headers.contains_key(SESSION_HEADER)
        && !headers.contains_key(AUTHORIZATION)
}

/// Lets the handler respond to a user, if the query is right, too.
pub(crate) async fn respond(
    handler: ErasedHandler<Arc<AppState>>,
    (rule, query): (UserRule, Result<(), ApiError>),
    request: Request,
    state: Arc<AppState>,
) -> Response {
    let admitted = admit(rule, request, &state).await;
    match admitted.and_then(|admitted| query.map(|()| admitted)) {
        Ok((request, session)) => {
            let response = handler.call(request, Arc::clone(&state)).await;
            let response = revocable_response(response, || session.permission());
            counted(response, &*session, rule.usage)
        }
        Err(error) => error.into_response(),
    }
}

async fn admit(
    rule: UserRule,
    mut request: Request,
    state: &AppState,
) -> Result<(Request, Arc<dyn Session>), ApiError> {
    auth::the_host(request.version(), request.headers())?;
    let sessions = state.sessions.as_ref().ok_or_else(ApiError::unauthorized)?;
    let session = sessions.find(request.headers(), rule.usage).await?;
    if let Some(connection) = request.extensions().get::<GuestConnection>() {
        connection.0.admit();
    }
    if !rule.is_nowhere {
        let may = rule.may.ok_or_else(ApiError::not_for_users)?;
        check(may, UserId(session.user()), request.uri(), state).await?;
    }
    // Waiting for a position takes time in which the session may end, and users have no use for it.
    request.headers_mut().remove(ROOST_AFTER);
    request.extensions_mut().insert(CurrentSession(Arc::clone(&session)));
    Ok((request, session))
}

/// Checks that a request is about what the user may use.
async fn check(may: May, me: UserId, uri: &Uri, state: &AppState) -> Result<(), ApiError> {
    // Compared as they are written: one user has one id, and one id one form.
    let own = me.0.to_string();
    let viewers = query::values(uri, "viewer");
    if !viewers.iter().all(|viewer| viewer == own.as_bytes()) {
        return Err(ApiError::not_own().at("viewer"));
    }
    match may {
        Own if uri.path().split('/').nth(3) == Some(&own) => Ok(()),
        Own => Err(ApiError::not_own().at("user")),
        See if !viewers.is_empty() => Ok(()),
        See => Err(ApiError::not_own().at("viewer")),
        Author => {
            let id = uri.path().rsplit('/').next().unwrap_or_default();
            let post = post_number(decimal(id))?;
            match state.read(move |node| node.facts().post(post).map(|post| post.author)).await? {
                Some(author) if author == me => Ok(()),
                // Also if the user may see it: to others it is as if it did not exist.
                _ => Err(Refusal::PostNotFound.into()),
            }
        }
    }
}

/// Counts the bytes of a response as sent to the user. The response to a change is sent in any case: there was room for
/// it before.
fn counted(response: Response, session: &dyn Session, usage: SessionUse) -> Response {
    let bytes = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
    let Some(bytes) = bytes else { return response };
    match session.hold(bytes, usage) {
        Some(held) => held_until_sent(response, held),
        None if usage == SessionUse::Read => ApiError::overloaded().into_response(),
        None => response,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::docs;

    #[test]
    fn every_route_for_users_exists_once_and_has_what_is_compared() {
        let described = serde_json::to_value(docs::openapi()).unwrap();
        let mut found = BTreeSet::new();
        for (method, path, may) in ROUTES {
            assert!(found.insert((method, path)), "{method} {path} is there twice");
            let route = &described["paths"][path][method.to_lowercase()];
            assert!(route.is_object(), "{method} {path}");
            let parameters = route["parameters"].as_array();
            let has_viewer =
                parameters.into_iter().flatten().any(|parameter| parameter["name"] == "viewer");
            match may {
                Own => assert!(path.starts_with("/v1/users/{user}"), "{method} {path}"),
                See => assert!(has_viewer && method == "GET", "{method} {path}"),
                Author => assert_eq!(path, "/v1/posts/{id}"),
            }
        }
        let rule = UserRule::of("DELETE", "/v1/users/{user}");
        assert_eq!(rule, UserRule { may: None, is_nowhere: false, usage: SessionUse::Change });
    }
}
