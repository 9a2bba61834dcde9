//! Id of every request. It is in the header `X-Request-Id`, in errors, and in every log line that the request causes,
//! even in reads on other threads.
//!
//! State: the id of the request whose handler runs on this thread. [`carry`] passes it to work on other threads.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderName, HeaderValue};

/// Header with the id of a request.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

thread_local! {
    static CURRENT: Cell<Option<RequestId>> = const { Cell::new(None) };
}

/// Runs `run` as a part of the request `id`.
pub fn within<T>(id: RequestId, run: impl FnOnce() -> T) -> T {
    /// Previous id of the thread. It is restored on drop, and therefore also after a panic.
    struct Outer(Option<RequestId>);

    impl Drop for Outer {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }

    let _outer = Outer(CURRENT.replace(Some(id)));
    run()
}

/// Polls `future` as a part of the request `id`.
pub async fn all_within<F: Future>(id: RequestId, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| within(id, || future.as_mut().poll(cx))).await
}

/// Wraps work for another thread, so that the work's log lines have the id of the request on this thread.
pub fn carry<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let id = CURRENT.get();
    move || {
        let span = id.map(|id| tracing::error_span!("request", request_id = id.as_str()));
        let _entered = span.as_ref().map(tracing::Span::enter);
        work()
    }
}

/// Wraps the stream of a response as a part of its request, because the stream is polled after the handler has ended.
pub fn carry_stream<S: Stream>(stream: S) -> impl Stream<Item = S::Item> {
    let id = CURRENT.get();
    let mut stream = Box::pin(stream);
    stream::poll_fn(move |cx| match id {
        Some(id) => within(id, || stream.poll_next_unpin(cx)),
        None => stream.poll_next_unpin(cx),
    })
}

/// Id of a request: 16 hexadecimal digits, unique within a process and unlikely to occur in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId([u8; 16]);

impl RequestId {
    /// Id of the request on this thread, or a new id.
    #[must_use]
    pub fn current() -> Self {
        CURRENT.get().unwrap_or_else(Self::next)
    }

    /// New id.
    #[must_use]
    pub fn next() -> Self {
        static NEXT: LazyLock<AtomicU64> =
            LazyLock::new(|| AtomicU64::new(getrandom::u64().unwrap_or_default()));
        // Relaxed: only uniqueness matters, not the order.
        let mut number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut digits = [0; 16];
        for digit in digits.iter_mut().rev() {
            let value = (number & 15) as u8;
            *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
            number >>= 4;
        }
        Self(digits)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The id as the value of the header.
    #[must_use]
    pub fn to_header(self) -> HeaderValue {
        let value = HeaderValue::from_maybe_shared(Bytes::copy_from_slice(&self.0));
        let Ok(value) = value else { unreachable!("hexadecimal digits are a header value") };
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_are_hexadecimal() {
        let (one, other) = (RequestId::next(), RequestId::next());
        assert_ne!(one, other);
        let number = |id: RequestId| u64::from_str_radix(id.as_str(), 16).unwrap();
        assert!(number(other).wrapping_sub(number(one)) < 1_000, "ids count up");
        assert_eq!(one.to_header().to_str().unwrap(), one.as_str());
    }
}
