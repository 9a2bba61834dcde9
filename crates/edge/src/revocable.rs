//! Bodies of long requests and responses. They end when their permission is revoked, which is a key or its scope, a
//! token, or a session.
//!
//! **Invariant:** the permission is checked before each piece of a long body is passed on, and at least once per
//! [`CHECK`]. So a batch, a stream, a backup or a long upload continues for at most that time after a revocation.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::access::{Access, Grant, Scope};

/// Interval at which the permission of a long body is checked, even while nothing arrives or is sent.
const CHECK: Duration = Duration::from_millis(750);
/// Maximum length of a short body, in bytes. The permission is not checked again while a short body arrives or is sent.
const SHORT_BYTES_MAX: u64 = 64 << 10;

/// Future result. It may need a read.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Reason why a permission has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// The permission was revoked.
    #[error("the permission for this request was revoked")]
    Revoked,
    /// The permission cannot be read, because the disk is damaged.
    #[error("the permission for this request cannot be read")]
    Unreadable,
}

/// Permission of a request, which may be revoked while the request is in progress.
pub trait Permission: Send {
    /// Whether the permission is valid; `None` if a read must decide.
    fn is_valid_now(&mut self) -> Option<bool>;

    /// Reads whether the permission is valid. If the server is too busy for the read, the permission counts as valid.
    fn confirm(&mut self) -> Pending<'static, Result<(), Ended>>;
}

/// Permission by an application key with a scope.
#[derive(Clone, Debug)]
pub struct KeyPermission {
    /// Currently valid keys.
    pub access: Access,
    /// Permissions of the key when the request began.
    pub grant: Grant,
    /// Scope that the request needs.
    pub scope: Scope,
}

impl Permission for KeyPermission {
    fn is_valid_now(&mut self) -> Option<bool> {
        let renewed = self.access.renew(&self.grant).filter(|renewed| renewed.allows(self.scope));
        Some(renewed.map(|renewed| self.grant = renewed).is_some())
    }

    fn confirm(&mut self) -> Pending<'static, Result<(), Ended>> {
        let is_valid = self.is_valid_now() == Some(true);
        Box::pin(std::future::ready(if is_valid { Ok(()) } else { Err(Ended::Revoked) }))
    }
}

/// Reason why the permission of a body has ended; `None` if the error has another cause.
#[must_use]
pub fn why_ended(error: &axum::Error) -> Option<Ended> {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(ended) = error.downcast_ref() {
            return Some(*ended);
        }
        next = error.source();
    }
    None
}

/// Makes the body of a request end when its permission ends.
pub fn revocable_request(
    request: Request,
    permission: impl FnOnce() -> Box<dyn Permission>,
) -> Request {
    match request.body().size_hint().upper().is_none_or(|bytes| bytes > SHORT_BYTES_MAX) {
        true => request.map(|body| Body::new(Revocable::new(body, permission()))),
        false => request,
    }
}

/// Makes the body of a response end when the permission of its client ends.
pub fn revocable_response(
    response: Response,
    permission: impl FnOnce() -> Box<dyn Permission>,
) -> Response {
    // A body of known length is complete in memory, so it was read under a valid permission.
    match response.body().size_hint().exact() {
        None => response.map(|body| Body::new(Revocable::new(body, permission()))),
        Some(_) => response,
    }
}

/// Permission that is checked repeatedly.
pub struct Watched {
    permission: Box<dyn Permission>,
    /// Time of the next periodic check.
    check: Pin<Box<Sleep>>,
    /// Read that checks whether the permission is valid.
    reading: Option<Pending<'static, Result<(), Ended>>>,
}

impl Watched {
    /// Creates the watch of a permission that has just been valid.
    #[must_use]
    pub fn new(permission: Box<dyn Permission>) -> Self {
        let check = Box::pin(tokio::time::sleep(CHECK));
        Self { permission, check, reading: None }
    }

    /// Checks whether the permission is valid.
    fn poll_valid(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Ended>> {
        let permission = &mut self.permission;
        let reading = match &mut self.reading {
            Some(reading) => reading,
            None => match permission.is_valid_now() {
                Some(true) => return Poll::Ready(Ok(())),
                Some(false) => return Poll::Ready(Err(Ended::Revoked)),
                None => self.reading.insert(permission.confirm()),
            },
        };
        let confirmed = ready!(reading.as_mut().poll(cx));
        self.reading = None;
        Poll::Ready(confirmed)
    }

    /// Ready when the permission has ended.
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        let mut is_due = self.reading.is_some() || self.permission.is_valid_now() == Some(false);
        while self.check.as_mut().poll(cx).is_ready() {
            self.check.as_mut().reset(Instant::now() + CHECK);
            is_due = true;
        }
        if !is_due {
            return Poll::Pending;
        }
        ready!(self.poll_valid(cx)).map_or_else(Poll::Ready, |()| Poll::Pending)
    }

    /// Whether the permission is valid.
    pub async fn is_valid(&mut self) -> bool {
        let this = Polled::new(self);
        std::future::poll_fn(|cx| this.0.poll_valid(cx)).await.is_ok()
    }

    /// Completes when the permission has ended. If this future is dropped, call [`Watched::is_valid`] before going on.
    pub async fn ended(&mut self) {
        let this = Polled::new(self);
        std::future::poll_fn(|cx| this.0.poll_ended(cx)).await;
    }
}

/// Permission while a future polls it. The future begins with a new read, because an earlier read may have missed a
/// revocation. It drops the read when it is dropped, because a read that is not polled would keep its turn.
struct Polled<'a>(&'a mut Watched);

impl<'a> Polled<'a> {
    fn new(watched: &'a mut Watched) -> Self {
        watched.reading = None;
        Self(watched)
    }
}

impl Drop for Polled<'_> {
    fn drop(&mut self) {
        self.0.reading = None;
    }
}

/// Body that ends with a permission.
struct Revocable {
    body: Body,
    watched: Watched,
    /// Piece of the body that is passed on once the permission is known to be valid.
    piece: Option<Frame<Bytes>>,
}

impl Revocable {
    fn new(body: Body, permission: Box<dyn Permission>) -> Self {
        Self { body, watched: Watched::new(permission), piece: None }
    }

    fn end(&mut self, ended: Ended) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // Drop the body now, which ends the work for the client before the connection is closed.
        (self.body, self.piece) = (Body::empty(), None);
        Poll::Ready(Some(Err(axum::Error::new(ended))))
    }
}

impl hyper::body::Body for Revocable {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if this.piece.is_none() {
            // Check the permission before any more work is done for the client.
            if let Poll::Ready(ended) = this.watched.poll_ended(cx) {
                return this.end(ended);
            }
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(piece)) => {
                    // Start the read again, because a read that began before this piece arrived may have missed a
                    // revocation.
                    (this.piece, this.watched.reading) = (Some(piece), None);
                }
                other => return Poll::Ready(other),
            }
        }
        match ready!(this.watched.poll_valid(cx)) {
            Ok(()) => Poll::Ready(this.piece.take().map(Ok)),
            Err(ended) => this.end(ended),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.piece.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures_util::{StreamExt as _, stream};
    use http_body_util::BodyExt as _;

    use super::*;

    /// Permission that a read may find revoked.
    struct Shared {
        is_valid: Arc<AtomicBool>,
        /// Whether the check needs no read.
        is_known: bool,
    }

    impl Permission for Shared {
        fn is_valid_now(&mut self) -> Option<bool> {
            self.is_known.then(|| self.is_valid.load(Ordering::Relaxed))
        }

        fn confirm(&mut self) -> Pending<'static, Result<(), Ended>> {
            let is_valid = Arc::clone(&self.is_valid);
            Box::pin(async move {
                tokio::task::yield_now().await;
                if is_valid.load(Ordering::Relaxed) { Ok(()) } else { Err(Ended::Unreadable) }
            })
        }
    }

    fn body(is_known: bool, body: Body) -> (Revocable, Arc<AtomicBool>) {
        let is_valid = Arc::new(AtomicBool::new(true));
        let permission = Shared { is_valid: Arc::clone(&is_valid), is_known };
        (Revocable::new(body, Box::new(permission)), is_valid)
    }

    /// Reason with which a body ends whose permission was revoked.
    fn ended(is_known: bool) -> Option<Ended> {
        Some(if is_known { Ended::Revoked } else { Ended::Unreadable })
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_on_which_nothing_happens_ends_soon_after_its_permission() {
        for is_known in [true, false] {
            let silent = Body::from_stream(stream::pending::<Result<Bytes, axum::Error>>());
            let (mut body, is_valid) = body(is_known, silent);
            let later = Instant::now() + CHECK * 10;
            assert!(tokio::time::timeout_at(later, body.frame()).await.is_err());
            is_valid.store(false, Ordering::Relaxed);
            let error = body.frame().await.unwrap().unwrap_err();
            assert!(why_ended(&error) == ended(is_known) && later.elapsed() <= CHECK);
        }
    }

    #[tokio::test]
    async fn no_piece_is_passed_on_after_the_permission_has_ended() {
        for is_known in [true, false] {
            let pieces = stream::repeat(Bytes::from_static(b"x")).map(Ok::<_, axum::Error>);
            let (mut body, is_valid) = body(is_known, Body::from_stream(pieces.take(9)));
            for _ in 0..3 {
                assert!(body.frame().await.unwrap().is_ok());
            }
            is_valid.store(false, Ordering::Relaxed);
            assert_eq!(why_ended(&body.frame().await.unwrap().unwrap_err()), ended(is_known));
            assert!(body.is_end_stream(), "unfinished work is dropped");
        }
    }

    /// Permission whose reads share one turn.
    struct InTurn(Arc<tokio::sync::Semaphore>);

    impl Permission for InTurn {
        fn is_valid_now(&mut self) -> Option<bool> {
            None
        }

        fn confirm(&mut self) -> Pending<'static, Result<(), Ended>> {
            let turns = Arc::clone(&self.0);
            Box::pin(async move { turns.acquire().await.map(drop).map_err(|_| Ended::Revoked) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_nobody_waits_for_keeps_no_turn() {
        let turns = Arc::new(tokio::sync::Semaphore::new(1));
        let mut watched = Watched::new(Box::new(InTurn(Arc::clone(&turns))));
        let taken = turns.acquire().await.unwrap();
        assert!(tokio::time::timeout(CHECK * 2, watched.ended()).await.is_err());
        let next = turns.acquire();
        drop(taken);
        drop(next.await.unwrap());
        assert!(watched.is_valid().await);
    }

    #[tokio::test]
    async fn a_body_whose_permission_stays_is_whole() {
        for is_known in [true, false] {
            let (body, _) = body(is_known, Body::from("abc"));
            assert_eq!(body.collect().await.unwrap().to_bytes(), "abc");
        }
    }
}
