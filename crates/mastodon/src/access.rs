//! The guard of the API's routes: compares the token of a request with what the route needs, and adds the headers
//! that all responses have.

use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, AUTHORIZATION, CACHE_CONTROL,
    SEC_WEBSOCKET_PROTOCOL,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use edge::{
    GuestConnection, SESSION_HEADER, SessionError, bearer, revocable_request, revocable_response,
};
use feed::UserId;
use feed::accounts::AccessScope;

use crate::answers::Client;
use crate::error::ApiError;
use crate::limiter::What;
use crate::rate_headers;
use crate::sessions;
use crate::state::{Shared, client_address};
use crate::tokens::Access;

/// What a route needs of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: the handler checks the client itself, or the response is the same for all.
    Nothing,
    /// A valid token.
    Token,
    /// The same as [`Needs::User`], or if the operator allows it, no token at all or one of an app with such a scope.
    Anyone(&'static [AccessScope]),
    /// A token of an app itself, with this scope.
    App(AccessScope),
    /// A token that acts for a user, with one of these scopes.
    User(&'static [AccessScope]),
    /// The same, of a stream: the token may also be in the query, or the protocol of a WebSocket, since pages of a
    /// browser cannot set headers of these requests.
    Stream(&'static [AccessScope]),
}

impl Needs {
    pub(crate) const ANYONE_ACCOUNTS: Self = Self::Anyone(&[AccessScope::ReadAccounts]);
    pub(crate) const ANYONE_STATUSES: Self = Self::Anyone(&[AccessScope::ReadStatuses]);
    pub(crate) const MY_STATUSES: Self = Self::User(&[AccessScope::ReadStatuses]);
    pub(crate) const WRITE_STATUSES: Self = Self::User(&[AccessScope::WriteStatuses]);
    pub(crate) const WRITE_ACCOUNTS: Self = Self::User(&[AccessScope::WriteAccounts]);

    /// The token that a route needs, for its documentation.
    pub(crate) fn in_words(self) -> String {
        let any_of = |scopes: &[AccessScope]| {
            let names: Vec<_> = scopes.iter().map(|scope| format!("`{}`", scope.name())).collect();
            names.join(" or ")
        };
        match self {
            Self::Nothing => "none".to_owned(),
            Self::Token => "any".to_owned(),
            Self::Anyone(scopes) => format!("{}; or none", any_of(scopes)),
            Self::App(scope) => format!("of the app, {}", any_of(&[scope])),
            Self::User(scopes) | Self::Stream(scopes) => format!("of a user, {}", any_of(scopes)),
        }
    }
}

/// Checks the token, which the handler gets as an extension of the request.
pub(crate) async fn check(
    State((state, needs)): State<(Shared, Needs)>,
    mut request: Request,
    next: Next,
) -> Response {
    let admitted = match of_session(&state, needs, request.headers()).await {
        Some(of_session) => of_session.map(Some),
        None => admit(&state, needs, presented(needs, request.headers(), request.uri())).await,
    };
    let mut response = match admitted {
        Ok(access) => {
            let user = access.as_ref().and_then(|access| access.user);
            if let Some(connection) = request.extensions().get::<GuestConnection>()
                && user.is_some()
            {
                connection.0.admit();
            }
            if let Some(access) = access {
                request.extensions_mut().insert(access);
                request = revocable_request(request, || access.permission(&state));
            }
            let run = run(&state, needs, user, request, next);
            let run = async { run.await.unwrap_or_else(ApiError::into_response) };
            let response = rate_headers::add_to(run, || state.node.now_ms()).await;
            match access {
                Some(access) => revocable_response(response, || access.permission(&state)),
                None => response,
            }
        }
        Err(error) => error.into_response(),
    };
    open_to_pages(response.headers_mut());
    response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Lets pages of all origins read a response.
fn open_to_pages(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(rate_headers::EXPOSED));
}

/// The response to a method that a route lacks.
pub(crate) async fn bad_method() -> Response {
    let mut response = ApiError::bad_method().into_response();
    open_to_pages(response.headers_mut());
    response
}

/// Lets the handler respond, within what one client may ask for and be sent.
async fn run(
    state: &Shared,
    needs: Needs,
    user: Option<UserId>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let client = client(state, user, &request);
    match client {
        Client::User(user) => state.limit(What::Requests, u64::from(user.0))?,
        Client::Address(address) if matches!(needs, Needs::Anyone(_)) => {
            state.limit(What::AnonymousReads, address)?;
        }
        Client::Address(_) => {}
    }
    let is_change = !request.method().is_safe();
    if is_change {
        state.answers.check(client)?;
    }
    let response = next.run(request).await;
    state.answers.send(client, is_change, response)
}

/// Whom the limits of a request are for.
fn client(state: &Shared, user: Option<UserId>, request: &Request) -> Client {
    let address = || client_address(request.extensions());
    user.map_or_else(|| Client::Address(state.limiter.address(address())), Client::User)
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

/// Whether a route is for pictures, which users of `/v1` upload here, too.
const fn is_for_pictures(needs: Needs) -> bool {
    matches!(needs, Needs::User(&[AccessScope::WriteMedia]))
}

/// What the session of a browser permits, if a page of this server asks for it: only to upload pictures. None
/// if no page asks, or the route is another one.
async fn of_session(
    state: &Shared,
    needs: Needs,
    headers: &HeaderMap,
) -> Option<Result<Access, ApiError>> {
    let asks = is_for_pictures(needs)
        && headers.contains_key(SESSION_HEADER)
        && !headers.contains_key(AUTHORIZATION);
    if !asks || state.options.open {
        return None;
    }
    Some(sessions::access(state, headers).await.map_err(|error| match error {
        SessionError::Ended | SessionError::OtherSite => ApiError::bad_token(),
        SessionError::TooMany(rest) => ApiError::above_rate(rest),
        SessionError::Overloaded => ApiError::overloaded(),
    }))
}

async fn admit(
    state: &Shared,
    needs: Needs,
    token: Result<Option<String>, ApiError>,
) -> Result<Option<Access>, ApiError> {
    let is_closed = matches!(needs, Needs::Anyone(_)) && !state.options.anonymous_reads;
    let Some(token) = token? else {
        return if is_closed { Err(ApiError::bad_token()) } else { Ok(None) };
    };
    let access = match is_for_pictures(needs) {
        true => state.token_in_v1(&token).await?,
        false => state.token(&token).await?,
    };
    let access = access.ok_or_else(ApiError::bad_token)?;
    if is_closed && access.user.is_none() {
        return Err(ApiError::no_user());
    }
    let is_allowed = match needs {
        Needs::Nothing | Needs::Token => true,
        Needs::Anyone(scopes) => scopes.iter().any(|scope| access.allows(*scope)),
        Needs::App(scope) => access.user.is_none() && access.allows(scope),
        Needs::User(scopes) | Needs::Stream(scopes) => {
            if access.user.is_none() {
                return Err(ApiError::no_user());
            }
            scopes.iter().any(|scope| access.allows(*scope))
        }
    };
    if is_allowed { Ok(Some(access)) } else { Err(ApiError::out_of_scope()) }
}

/// The token of a request; none if it needs none.
fn presented(needs: Needs, headers: &HeaderMap, uri: &Uri) -> Result<Option<String>, ApiError> {
    let is_optional = matches!(needs, Needs::Anyone(_)) && !headers.contains_key(AUTHORIZATION);
    if needs == Needs::Nothing || is_optional {
        return Ok(None);
    }
    let given = bearer(headers).and_then(|token| std::str::from_utf8(token).ok());
    let mut token = given.map(str::to_owned);
    if let Needs::Stream(_) = needs {
        token = token.or_else(|| elsewhere(headers, uri));
    }
    token.map(Some).ok_or_else(ApiError::bad_token)
}

/// The token in the query, or the first protocol of a WebSocket.
fn elsewhere(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let query = uri.query().unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let in_query = pairs.find(|(name, _)| name == "access_token").map(|(_, token)| token.into());
    let protocol = || {
        let protocols = headers.get(SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
        protocols.split(',').next().map(|first| first.trim().to_owned())
    };
    in_query.or_else(protocol)
}
