//! Bodies of long requests and responses, which end when the key of their client is revoked or loses the scope.
//!
//! **Invariant:** what a key permits is compared before each piece of a long body, and at least once per [`CHECK`]. So a
//! batch, a stream, a backup or a long upload goes on for at most that time.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::auth::KeyInUse;
use crate::state::AppState;

/// Interval at which a long body compares what its client may do, also while nothing arrives or is sent.
pub(crate) const CHECK: Duration = Duration::from_millis(750);
/// Longest body that is no long one, in bytes: it has arrived or is in memory at once.
const SHORT_BYTES_MAX: u64 = 64 << 10;

/// The body ended because its key was revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the application key was revoked")]
pub(crate) struct Revoked;

/// Whether this error of a body is [`Revoked`].
pub(crate) fn is_revoked(error: &axum::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.is::<Revoked>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// The request with a body that ends with its key.
pub(crate) fn request(request: Request, key: KeyInUse, state: &Arc<AppState>) -> Request {
    match is_long(request.body()) {
        true => request.map(|body| Body::new(Revocable::new(body, key, state))),
        false => request,
    }
}

/// The response with a body that ends with the key of its client.
pub(crate) fn response(response: Response, key: KeyInUse, state: &Arc<AppState>) -> Response {
    // What has a known length was read at once and is in memory.
    match response.body().size_hint().exact() {
        None => response.map(|body| Body::new(Revocable::new(body, key, state))),
        Some(_) => response,
    }
}

fn is_long(body: &Body) -> bool {
    body.size_hint().upper().is_none_or(|bytes| bytes > SHORT_BYTES_MAX)
}

struct Revocable {
    body: Body,
    key: KeyInUse,
    state: Arc<AppState>,
    check: Pin<Box<Sleep>>,
}

impl Revocable {
    fn new(body: Body, key: KeyInUse, state: &Arc<AppState>) -> Self {
        let check = Box::pin(tokio::time::sleep(CHECK));
        Self { body, key, state: Arc::clone(state), check }
    }

    fn may_go_on(&mut self) -> bool {
        let (grant, scope) = &mut self.key;
        let renewed = self.state.access.renew(grant).filter(|renewed| renewed.allows(*scope));
        renewed.map(|renewed| *grant = renewed).is_some()
    }
}

impl hyper::body::Body for Revocable {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        while self.check.as_mut().poll(cx).is_ready() {
            self.check.as_mut().reset(Instant::now() + CHECK);
        }
        if !self.may_go_on() {
            // What is under way for the client ends now, and not when the connection is closed.
            self.body = Body::empty();
            return Poll::Ready(Some(Err(axum::Error::new(Revoked))));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
