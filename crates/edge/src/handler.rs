//! A handler of requests whose type is erased.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;

type Responding = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler whose type is erased, so that what wraps handlers and routes is compiled once, and not for each of them. It
/// takes functions only, whose futures axum boxes anyway, so a request costs no further allocation.
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
