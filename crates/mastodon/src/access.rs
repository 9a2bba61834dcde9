//! Guard of the API's routes: checks the token of a request against the needs of the route, and adds the headers of all
//! responses.

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
    Admission, SESSION_HEADER, SessionError, bearer, revocable_request, revocable_response,
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

/// Token that a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// No token: the handler checks the client itself, or the response is the same for all.
    Nothing,
    /// A valid token.
    Token,
    /// A user's token with one of these scopes. If the operator allows anonymous reads, an app's own token with one of
    /// these scopes, or no token, is enough.
    Anyone(&'static [AccessScope]),
    /// An app's own token with this scope.
    App(AccessScope),
    /// A user's token with one of these scopes.
    User(&'static [AccessScope]),
    /// A user's token as for [`Needs::User`], for a stream. It may also be in the query or in the protocol of a
    /// WebSocket, because pages cannot set headers of these requests.
    Stream(&'static [AccessScope]),
}

impl Needs {
    pub(crate) const ANYONE_ACCOUNTS: Self = Self::Anyone(&[AccessScope::ReadAccounts]);
    pub(crate) const ANYONE_STATUSES: Self = Self::Anyone(&[AccessScope::ReadStatuses]);
    pub(crate) const MY_STATUSES: Self = Self::User(&[AccessScope::ReadStatuses]);
    pub(crate) const WRITE_STATUSES: Self = Self::User(&[AccessScope::WriteStatuses]);
    pub(crate) const WRITE_ACCOUNTS: Self = Self::User(&[AccessScope::WriteAccounts]);

    /// Describes the token, for the documentation.
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

/// Checks the token and passes it to the handler as an extension of the request.
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
            if user.is_some() {
                Admission::admit(&request);
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

/// Allows pages of all origins to read a response.
fn open_to_pages(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(rate_headers::EXPOSED));
}

/// Response to a method that a route does not have.
pub(crate) async fn bad_method() -> Response {
    let mut response = ApiError::bad_method().into_response();
    open_to_pages(response.headers_mut());
    response
}

/// Runs the handler, within the client's limits on requests and on unsent bytes.
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

/// Client to whom the limits of a request apply.
fn client(state: &Shared, user: Option<UserId>, request: &Request) -> Client {
    let address = || client_address(request.extensions());
    user.map_or_else(|| Client::Address(state.limiter.address(address())), Client::User)
}

/// Responds to a preflight request. Pages of all origins are allowed: a page must set the token itself, so it has no
/// more rights than a program.
pub(crate) async fn preflight() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, Content-Type, Idempotency-Key"),
        (ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Whether a route uploads pictures. On these routes, minted tokens and browser sessions of `/v1` are also valid.
const fn is_for_pictures(needs: Needs) -> bool {
    matches!(needs, Needs::User(&[AccessScope::WriteMedia]))
}

/// Access by the session of a browser for a page of this server: only to upload pictures. `None` for other requests and
/// routes.
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

/// Token of a request; `None` if the request has no token and needs none.
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

/// Token in the query, or in the first protocol of a WebSocket.
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
