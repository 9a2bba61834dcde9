//! What happens around every handler: admission before it, counting and a common header after it.
//! One wrapper instead of a stack of layers, so that a request pays for no box and no lookup.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::extract::Request;
use axum::handler::Handler;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse as _, Response};
use pin_project_lite::pin_project;

use crate::http::Edge;
use crate::http::auth;
use crate::http::error::Problem;
use crate::metrics::RouteCounters;

/// Who may reach a handler, and with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// With the key, and without a query.
    Plain,
    /// With the key; the handler reads the query.
    Query,
    /// Anybody; the query is not looked at.
    Public,
    /// With the key; the query is not looked at, since there is nobody to read it.
    Nowhere,
}

/// A handler with its counters and its admission.
#[derive(Clone)]
pub(crate) struct Guarded<H> {
    handler: H,
    entry: Entry,
    counters: Arc<RouteCounters>,
}

impl<H> Guarded<H> {
    pub(crate) fn new(handler: H, entry: Entry, counters: Arc<RouteCounters>) -> Self {
        Self { handler, entry, counters }
    }
}

fn admit(entry: Entry, request: &Request, edge: &Edge) -> Result<(), Problem> {
    let public = entry == Entry::Public;
    auth::admit(&edge.access, public, request.version(), request.uri(), request.headers())?;
    if entry == Entry::Plain && request.uri().query().is_some_and(|query| !query.is_empty()) {
        return Err(Problem::bad_request("this path takes no query parameters"));
    }
    Ok(())
}

impl<H, T> Handler<T, Arc<Edge>> for Guarded<H>
where
    H: Handler<T, Arc<Edge>>,
{
    type Future = Answer<H::Future>;

    fn call(self, request: Request, edge: Arc<Edge>) -> Self::Future {
        let started = Instant::now();
        let run = match admit(self.entry, &request, &edge) {
            Ok(()) => Run::Handler { future: self.handler.call(request, edge) },
            Err(problem) => Run::Refused { response: Some(problem.into_response()) },
        };
        Answer { run, started, counters: self.counters }
    }
}

pin_project! {
    /// The answer to come.
    pub(crate) struct Answer<F> {
        #[pin]
        run: Run<F>,
        started: Instant,
        counters: Arc<RouteCounters>,
    }
}

pin_project! {
    #[project = RunPinned]
    enum Run<F> {
        Handler { #[pin] future: F },
        Refused { response: Option<Response> },
    }
}

impl<F: Future<Output = Response>> Future for Answer<F> {
    type Output = Response;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let this = self.project();
        let mut response = match this.run.project() {
            RunPinned::Handler { future } => ready!(future.poll(cx)),
            RunPinned::Refused { response } => match response.take() {
                Some(response) => response,
                None => unreachable!("a future is not polled after it is done"),
            },
        };
        let no_store = HeaderValue::from_static("no-store");
        response.headers_mut().entry(CACHE_CONTROL).or_insert(no_store);
        let (status, elapsed) = (response.status(), this.started.elapsed());
        this.counters.count(status, elapsed);
        let (method, path) = this.counters.name();
        if status.is_server_error() {
            tracing::warn!(
                method,
                path,
                status = status.as_u16(),
                ?elapsed,
                "answered with an error"
            );
        } else {
            tracing::debug!(method, path, status = status.as_u16(), ?elapsed, "answered");
        }
        Poll::Ready(response)
    }
}
