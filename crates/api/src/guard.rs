//! Wrapper of every handler. It authorizes the request before the handler runs. Afterwards it writes the body of an
//! error, counts the request, adds a common header, and reserves the memory of the response until the response is sent.
//! All of this is in one wrapper instead of several layers, so that only requests with a session need another boxed
//! future.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::handler::Handler;
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::{BoxFuture, FutureExt as _};
use hyper::body::Body as _;

use crate::auth::{self, Identity, KeyInUse, Needs};
use crate::cors::OfOtherPage;
use crate::error::ApiError;
use crate::metrics::RouteCounters;
use crate::positions;
use crate::rule::Rule;
use crate::session;
use crate::state::AppState;
use crate::unsent::{Client, HeldResponse};
use edge::request_id::{RequestId, X_REQUEST_ID, within};
use edge::{
    ANSWER_BYTES_FREE, Admission, ErasedHandler, LineGate, held_until_sent, revocable_request,
    revocable_response,
};

/// Handler with its counters and its authorization.
#[derive(Clone)]
pub(crate) struct Guarded {
    handler: ErasedHandler<Arc<AppState>>,
    rule: Rule,
    counters: Arc<RouteCounters>,
}

impl Guarded {
    pub(crate) fn new(
        handler: ErasedHandler<Arc<AppState>>,
        rule: Rule,
        counters: Arc<RouteCounters>,
    ) -> Self {
        Self { handler, rule, counters }
    }
}

fn admit(rule: Rule, request: &Request, state: &AppState) -> Result<Identity, ApiError> {
    let (version, uri, headers) = (request.version(), request.uri(), request.headers());
    let identity = auth::identify(&state.access, rule.needs, version, uri, headers)?;
    if let Identity::Other = identity {
        let is_of_user = session::is_presented(state, headers);
        return if is_of_user { Ok(identity) } else { Err(ApiError::unauthorized()) };
    }
    let is_key = matches!(identity, Identity::Application(Some(_)));
    if is_key && request.extensions().get::<OfOtherPage>().is_some() {
        return Err(ApiError::forbidden_origin("pages of other origins may not use a key"));
    }
    if rule.needs != Needs::Nothing {
        Admission::admit(request);
    }
    check_query(rule, request).map(|()| identity)
}

/// Refuses a query if the handler reads none.
fn check_query(rule: Rule, request: &Request) -> Result<(), ApiError> {
    if !rule.reads_query && request.uri().query().is_some_and(|query| !query.is_empty()) {
        return Err(ApiError::bad_request("this path takes no query parameters"));
    }
    Ok(())
}

impl Handler<(), Arc<AppState>> for Guarded {
    type Future = Answer;

    fn call(self, request: Request, state: Arc<AppState>) -> Self::Future {
        let started = Instant::now();
        // Public responses are the same for every client and take no memory of their own.
        let counted = (self.rule.needs != Needs::Nothing).then(|| Arc::clone(&state));
        let may_change = positions::may_change(request.method());
        let id = RequestId::current();
        let admitted = admit(self.rule, &request, &state);
        let (key, of_user) = match admitted {
            Ok(Identity::Application(key)) => (key, false),
            Ok(Identity::Other) => (None, true),
            Err(_) => (None, false),
        };
        let run = match admitted {
            Ok(Identity::Other) => {
                // A wrong query is refused only after the authorization: otherwise a user would not learn that the
                // route is closed to users.
                let query = check_query(self.rule, &request);
                let response = session::respond(self.handler, (self.rule, query), request, state);
                Run::Handler(response.boxed())
            }
            Ok(Identity::Application(key)) => {
                let request = match key {
                    Some(key) => {
                        revocable_request(request, || auth::permission(&state.access, key))
                    }
                    None => request,
                };
                Run::Handler(within(id, || self.handler.call(request, state)))
            }
            Err(problem) => Run::Refused(Some(problem.into_response())),
        };
        let client = (!of_user).then(|| key.map_or([0; 32], |(grant, _)| grant.client()));
        let counters = self.counters;
        Answer { run, id, started, counters, state: counted, key, client, may_change }
    }
}

/// Future of the response.
pub(crate) struct Answer {
    run: Run,
    id: RequestId,
    started: Instant,
    counters: Arc<RouteCounters>,
    /// State for reserving the memory of the response; set for all routes that need a key.
    state: Option<Arc<AppState>>,
    /// Key of the client, and the scope that the request needs; `None` without a key.
    key: Option<KeyInUse>,
    /// Client whose memory the response takes; `None` for a user.
    client: Option<Client>,
    may_change: bool,
}

enum Run {
    Handler(BoxFuture<'static, Response>),
    Refused(Option<Response>),
}

impl Future for Answer {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let this = &mut *self;
        let id = this.id;
        let response = match &mut this.run {
            Run::Handler(future) => ready!(within(id, || future.as_mut().poll(cx))),
            Run::Refused(response) => match response.take() {
                Some(response) => response,
                None => unreachable!("a future is not polled after it is done"),
            },
        };
        let mut response = match &this.state {
            Some(state) => {
                let mut response = hold(state, this.client, response);
                if let Some(key) = this.key {
                    let permission = || auth::permission(&state.access, key);
                    response = revocable_response(response, permission);
                }
                if this.may_change {
                    positions::add_position(&state.node, &mut response);
                }
                response
            }
            None => response,
        };
        ApiError::finish(&mut response, id.as_str());
        response.headers_mut().insert(X_REQUEST_ID, id.to_header());
        let no_store = HeaderValue::from_static("no-store");
        response.headers_mut().entry(CACHE_CONTROL).or_insert(no_store);
        let status = response.status();
        let is_logged = status.is_server_error() || tracing::enabled!(tracing::Level::DEBUG);
        let key = this.key.filter(|_| is_logged);
        let name =
            this.state.as_ref().zip(key).and_then(|(state, key)| state.access.key_name(&key.0));
        count(&this.counters, status, this.started.elapsed(), id, name.as_deref());
        Poll::Ready(response)
    }
}

fn count(
    counters: &RouteCounters,
    status: StatusCode,
    elapsed: Duration,
    id: RequestId,
    key: Option<&str>,
) {
    static LINES: LineGate = LineGate::new();
    counters.count(status, elapsed);
    let ((method, path), status, request_id) = (counters.name(), status.as_u16(), id.as_str());
    if status < 500 {
        tracing::debug!(method, path, status, request_id, key, ?elapsed, "response");
    } else if let Some(answers) = LINES.due() {
        let text = "responses with a server error; this is the last";
        tracing::warn!(method, path, status, request_id, key, answers, "{text}");
    }
}

/// Mark of a response whose memory was reserved before the change was submitted.
#[derive(Clone, Copy, Debug)]
struct AlreadyReserved;

/// Marks a response whose memory is already reserved.
pub(crate) fn reserved(response: Response, held: HeldResponse) -> Response {
    let mut response = held_until_sent(response, held);
    response.extensions_mut().insert(AlreadyReserved);
    response
}

/// Reserves the memory of a response until it is sent, or refuses the request.
fn hold(state: &AppState, client: Option<Client>, response: Response) -> Response {
    let bytes = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
    let is_free = bytes.is_none_or(|bytes| bytes <= ANSWER_BYTES_FREE)
        || response.extensions().get::<AlreadyReserved>().is_some();
    let Some(bytes) = bytes.filter(|_| !is_free) else { return response };
    match state.unsent.response(client, bytes) {
        Ok(held) => held_until_sent(response, held),
        Err(error) => ApiError::from(error).into_response(),
    }
}
