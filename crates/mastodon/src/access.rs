//! The guard of the API's routes: compares the token of a request with what the route needs, and adds the headers
//! that all responses have.

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, AUTHORIZATION, CACHE_CONTROL,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use feed::accounts::AccessScope;

use crate::error::ApiError;
use crate::state::Shared;
use crate::tokens::Access;

/// What a route needs of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: the handler checks the client itself, or the response is the same for all.
    Nothing,
    /// A valid token.
    Token,
    /// If there is a token, a valid one with one of these scopes.
    Anyone(&'static [AccessScope]),
    /// A token of an app itself, with this scope.
    App(AccessScope),
    /// A token that acts for a user, with one of these scopes.
    User(&'static [AccessScope]),
}

impl Needs {
    /// The token that a route needs, for its documentation.
    pub(crate) fn in_words(self) -> String {
        let any_of = |scopes: &[AccessScope]| {
            let names: Vec<_> = scopes.iter().map(|scope| format!("`{}`", scope.name())).collect();
            names.join(" or ")
        };
        match self {
            Self::Nothing => "none".to_owned(),
            Self::Token => "any".to_owned(),
            Self::Anyone(scopes) => format!("none, or {}", any_of(scopes)),
            Self::App(scope) => format!("of the app, {}", any_of(&[scope])),
            Self::User(scopes) => format!("of a user, {}", any_of(scopes)),
        }
    }
}

/// Checks the token, which the handler gets as an extension of the request.
pub(crate) async fn check(
    State((state, needs)): State<(Shared, Needs)>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut response = match admit(&state, needs, request.headers()).await {
        Ok(access) => {
            access.map(|access| request.extensions_mut().insert(access));
            next.run(request).await
        }
        Err(error) => error.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Link"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Answers a browser that asks whether a page of another origin may send a request. Tokens are in a header that pages
/// must name, so no page has more rights than a program.
pub(crate) async fn preflight() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, Content-Type, Idempotency-Key"),
        (ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

async fn admit(
    state: &Shared,
    needs: Needs,
    headers: &HeaderMap,
) -> Result<Option<Access>, ApiError> {
    if needs == Needs::Nothing {
        return Ok(None);
    }
    if matches!(needs, Needs::Anyone(_)) && !headers.contains_key(AUTHORIZATION) {
        return Ok(None);
    }
    let token = bearer(headers).ok_or_else(ApiError::bad_token)?;
    let access = state.token(token).await?.ok_or_else(ApiError::bad_token)?;
    let is_allowed = match needs {
        Needs::Nothing | Needs::Token => true,
        Needs::Anyone(scopes) => scopes.iter().any(|scope| access.allows(*scope)),
        Needs::App(scope) => access.user.is_none() && access.allows(scope),
        Needs::User(scopes) => {
            if access.user.is_none() {
                return Err(ApiError::no_user());
            }
            scopes.iter().any(|scope| access.allows(*scope))
        }
    };
    if is_allowed { Ok(Some(access)) } else { Err(ApiError::out_of_scope()) }
}

/// The token of `Bearer TOKEN`. The scheme is case-insensitive (RFC 9110).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (scheme, token) = given.next()?.to_str().ok()?.split_at_checked(7)?;
    let is_one = given.next().is_none() && scheme.eq_ignore_ascii_case("bearer ");
    is_one.then_some(token.trim())
}
