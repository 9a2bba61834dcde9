//! Positions in requests to a cluster node and in its responses, and the requests that wait for a position.
//!
//! **Invariant:** at most [`WAITING_MAX`] requests wait at once, all with a checked key.

use std::task::{Context, Poll};

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::Response;
use futures_util::future::{BoxFuture, Either, FutureExt as _};
use node::Node;
use tokio::sync::Semaphore;
use tower::{Layer, Service};

use crate::error::ApiError;

/// Header of requests: the position that the node must reach before it responds.
pub(crate) const ROOST_AFTER: HeaderName = HeaderName::from_static("roost-after");
/// Header of responses to changes: a position in the cluster's log that includes the change.
const ROOST_POSITION: HeaderName = HeaderName::from_static("roost-position");

/// Maximum number of waiting requests. Each holds its connection and its head for up to 2 s.
const WAITING_MAX: usize = 1_024;

/// Position that a request waits for.
pub(crate) fn after(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get(ROOST_AFTER) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    let wrong = || ApiError::bad_request("Roost-After must be a number: that of Roost-Position");
    number.map(Some).ok_or_else(wrong)
}

/// Requests that wait for positions.
pub(crate) struct Waiting(Semaphore);

impl Waiting {
    pub(crate) fn new() -> Self {
        Self(Semaphore::new(WAITING_MAX))
    }

    /// Waits for `applied`, which is true if the node reaches the position in time.
    pub(crate) async fn wait(
        &self,
        after: u64,
        applied: impl Future<Output = bool>,
    ) -> Result<(), ApiError> {
        let _permit = self.0.try_acquire().map_err(|_| ApiError::overloaded())?;
        match applied.await {
            true => Ok(()),
            false => Err(ApiError::lagging(after)),
        }
    }
}

/// Whether a request with this method may change something.
pub(crate) fn may_change(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD)
}

/// Adds the node's position to the response to a change, if `node` belongs to a cluster.
pub(crate) fn add_position(node: &Node, response: &mut Response) {
    if let Some(position) = node.position() {
        response.headers_mut().insert(ROOST_POSITION, HeaderValue::from(position));
    }
}

/// Layer that adds positions to the responses of routes without [`crate::guard`]. For a request that changes nothing,
/// the layer only compares the method.
#[derive(Clone)]
pub(crate) struct Positions(pub(crate) Node);

/// Service made by [`Positions`].
#[derive(Clone)]
pub(crate) struct Positioned<S> {
    node: Node,
    inner: S,
}

impl<S> Layer<S> for Positions {
    type Service = Positioned<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Positioned { node: self.0.clone(), inner }
    }
}

impl<S> Service<Request> for Positioned<S>
where
    S: Service<Request, Response = Response>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Either<S::Future, BoxFuture<'static, Result<Response, S::Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let may_change = may_change(request.method());
        let response = self.inner.call(request);
        if !may_change {
            return Either::Left(response);
        }
        let node = self.node.clone();
        let positioned = response.map(move |response| {
            response.map(|mut response| {
                add_position(&node, &mut response);
                response
            })
        });
        Either::Right(positioned.boxed())
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn only_so_many_requests_wait_at_a_time() {
        let waiting = Waiting(Semaphore::new(1));
        let mut first = waiting.wait(7, pending()).boxed();
        assert!((&mut first).now_or_never().is_none(), "it waits");
        let second = waiting.wait(7, ready(true)).await.unwrap_err().into_response();
        assert_eq!(second.status(), 503);
        drop(first);
        waiting.wait(7, ready(true)).await.unwrap();
        assert_eq!(waiting.wait(7, ready(false)).await.unwrap_err().into_response().status(), 503);
    }

    #[test]
    fn a_position_is_a_number() {
        for (value, expected) in [
            (None, Ok(None)),
            (Some("0"), Ok(Some(0))),
            (Some("18446744073709551615"), Ok(Some(u64::MAX))),
            (Some("18446744073709551616"), Err(())),
            (Some("-1"), Err(())),
            (Some(""), Err(())),
            (Some("\u{e9}"), Err(())),
        ] {
            let mut headers = HeaderMap::new();
            value.inspect(|value| _ = headers.insert(ROOST_AFTER, value.parse().unwrap()));
            assert_eq!(after(&headers).map_err(drop), expected, "{value:?}");
        }
    }
}
