//! Access of users, who send requests with a token or from a browser session. They may use the routes whose [`Rule`]
//! allows it, and only as themselves: the user in the path, and `viewer` if given, must be the user who sends the
//! request.
//!
//! Routes that are closed to users: changes for all users (registering and deleting users, batches, backups), data
//! without an owner (buckets, samples, metrics), and beginning a friendship, which needs no consent of the other user.
//!
//! **Invariant:** a route is closed to users unless it declares otherwise. **Invariant:** for a user, no handler acts
//! for another user or reads on behalf of another.

use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse as _, Response};
use edge::{
    Admission, ErasedHandler, SESSION_HEADER, Session, SessionError, SessionUse, bearer,
    held_until_sent, revocable_response,
};
use feed::UserId;
use hyper::body::Body as _;

use crate::auth::Needs;
use crate::current_session::CurrentSession;
use crate::error::ApiError;
use crate::positions::ROOST_AFTER;
use crate::query;
use crate::rule::May::{self, Own, See};
use crate::rule::Rule;
use crate::state::AppState;

/// Whether users have access, and a request has a user's token or the header of a browser session.
pub(crate) fn is_presented(state: &AppState, headers: &HeaderMap) -> bool {
    let is_of_user = match headers.contains_key(AUTHORIZATION) {
        true => bearer(headers).is_some_and(|token| !token.is_empty()),
        false => headers.contains_key(SESSION_HEADER),
    };
    is_of_user && state.sessions.is_some()
}

/// Lets the handler respond to a user, if `query` is also valid.
pub(crate) async fn respond(
    handler: ErasedHandler<Arc<AppState>>,
    (rule, query): (Rule, Result<(), ApiError>),
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
    rule: Rule,
    mut request: Request,
    state: &AppState,
) -> Result<(Request, Arc<dyn Session>), ApiError> {
    let sessions = state.sessions.as_ref().ok_or_else(ApiError::unauthorized)?;
    let session = sessions.find(request.headers()).await.map_err(|error| match error {
        SessionError::Ended if request.headers().contains_key(AUTHORIZATION) => {
            ApiError::unauthorized()
        }
        error => error.into(),
    })?;
    Admission::admit(&request);
    // Users get the same errors for unknown paths and methods as other clients.
    if let Needs::Scope(scope) = rule.needs {
        let may = rule.may.ok_or_else(|| ApiError::not_for_users(scope))?;
        if !session.allows(scope) {
            return Err(ApiError::missing_scope(scope));
        }
        check(may, UserId(session.user()), request.uri())?;
        session.begin(rule.usage)?;
    }
    // Users have no need to wait for a position, and their session might end while they wait.
    request.headers_mut().remove(ROOST_AFTER);
    request.extensions_mut().insert(CurrentSession(Arc::clone(&session)));
    Ok((request, session))
}

/// Checks that a request is about items that the user may use.
fn check(may: May, me: UserId, uri: &Uri) -> Result<(), ApiError> {
    // Ids are compared as text, because each has only one spelling.
    let own = me.0.to_string();
    let viewers = query::values(uri, "viewer");
    if !viewers.iter().all(|viewer| viewer == own.as_bytes()) {
        return Err(ApiError::not_own().at("viewer"));
    }
    match may {
        Own if uri.path().split('/').nth(3) == Some(&own) => Ok(()),
        Own => Err(ApiError::not_own().at("user")),
        See => Ok(()),
    }
}

/// Counts the bytes of a response as sent to the user. The response to a change is always sent: its memory was reserved
/// before the change.
fn counted(response: Response, session: &dyn Session, usage: SessionUse) -> Response {
    let bytes = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
    let Some(bytes) = bytes else { return response };
    match session.hold(bytes, usage) {
        Some(held) => held_until_sent(response, held),
        None if usage == SessionUse::Read => ApiError::overloaded().into_response(),
        None => response,
    }
}
