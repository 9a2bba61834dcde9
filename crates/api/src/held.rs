//! A response body that holds a resource until it is sent: reserved memory or a permit.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use node::Reservation;

/// Marks a response whose memory was reserved before the change that it reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AlreadyReserved;

/// A response with memory that was reserved before.
pub(crate) fn reserved(response: Response, held: Reservation) -> Response {
    let mut response = response.map(|body| Body::new(Holding::new(body, held)));
    response.extensions_mut().insert(AlreadyReserved);
    response
}

/// A body and the resource that is dropped with it.
pub(crate) struct Holding<H> {
    body: Body,
    _held: H,
}

impl<H> Holding<H> {
    pub(crate) fn new(body: Body, held: H) -> Self {
        Self { body, _held: held }
    }
}

impl<H: Unpin> hyper::body::Body for Holding<H> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
