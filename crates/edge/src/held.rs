//! Bytes and responses that hold a resource until they are sent: reserved memory, a permit, or a client's count.
//!
//! The HTTP library takes the bytes of a response, and drops its body long before a slow client has read them.
//! **Invariant:** the bytes themselves hold the resource, not the body.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// Maximum size of a response that needs no reservation, in bytes. Such a response is part of the memory of its
/// connection.
pub const ANSWER_BYTES_FREE: usize = 16 << 10;

/// Makes bytes that hold a resource until all of them are dropped.
pub fn held_bytes<H: Send + 'static>(bytes: impl AsRef<[u8]> + Send + 'static, held: H) -> Bytes {
    struct Held<B, H> {
        bytes: B,
        _held: H,
    }
    impl<B: AsRef<[u8]>, H> AsRef<[u8]> for Held<B, H> {
        fn as_ref(&self) -> &[u8] {
            self.bytes.as_ref()
        }
    }
    Bytes::from_owner(Held { bytes, _held: held })
}

/// Makes a response that holds a resource until all its bytes are sent.
pub fn held_until_sent<H: Send + Sync + 'static>(response: Response, held: H) -> Response {
    let held = Arc::new(held);
    let hold = move |frame: Frame<Bytes>| {
        let held = Arc::clone(&held);
        frame.map_data(|bytes| held_bytes(bytes, held))
    };
    response.map(|body| Body::new(MapFrames { body, map: hold }))
}

/// Body whose frames pass through a function. The function must not change the length of the body. It is dropped with
/// the body.
pub(crate) struct MapFrames<F> {
    pub(crate) body: Body,
    pub(crate) map: F,
}

impl<F: FnMut(Frame<Bytes>) -> Frame<Bytes> + Unpin> hyper::body::Body for MapFrames<F> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        Pin::new(&mut this.body).poll_frame(cx).map_ok(&mut this.map)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use budget::MemoryBudget;
    use http_body_util::BodyExt as _;

    use super::*;

    #[test]
    fn bytes_hold_until_the_last_of_them_is_dropped() {
        let budget = MemoryBudget::new(3);
        let mut bytes = held_bytes(vec![7; 3], budget.try_reserve(3).unwrap());
        let last = bytes.split_off(2);
        drop(bytes);
        assert!(last[..] == [7] && budget.used() == 3);
        drop(last);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn a_response_holds_while_bytes_of_it_are_not_sent_though_its_body_is_dropped() {
        let budget = MemoryBudget::new(3);
        let response = Response::new(Body::from("abc"));
        let mut body = held_until_sent(response, budget.try_reserve(3).unwrap()).into_body();
        let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
        drop(body);
        assert!(bytes == "abc" && budget.used() == 3);
        drop(bytes);
        assert_eq!(budget.used(), 0);
    }
}
