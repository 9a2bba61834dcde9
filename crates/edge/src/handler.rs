//! Type-erased handler of requests.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;

type Responding = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Type-erased handler. Wrappers of handlers and routes are compiled once, not once per handler. Handlers must be
/// functions. A request needs no additional allocation, because axum boxes the futures of handlers anyway.
pub struct ErasedHandler<S>(Arc<dyn Fn(Request, S) -> Responding + Send + Sync>);

impl<S: 'static> ErasedHandler<S> {
    /// Erases the type of a handler.
    pub fn new<H, T>(handler: H) -> Self
    where
        H: Handler<T, S, Future = Responding>,
    {
        Self(Arc::new(move |request, state| handler.clone().call(request, state)))
    }
}

impl<S> Clone for ErasedHandler<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for ErasedHandler<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErasedHandler")
    }
}

impl<S: 'static> Handler<(), S> for ErasedHandler<S> {
    type Future = Responding;

    fn call(self, request: Request, state: S) -> Self::Future {
        (self.0)(request, state)
    }
}
