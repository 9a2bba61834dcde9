//! Reading request bodies: memory is reserved for bytes that have arrived, not for the announced length, and
//! clients that send too slowly are disconnected.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use node::Reservation;
use tokio::time::{Instant, timeout_at};

use crate::error::ApiError;
use crate::memory::{BODY_BYTES_FREE, RequestMemory};
use crate::revocable::is_revoked;

/// The first [`WINDOW_BYTES`] of a body, or all of it, must arrive within this time.
const FIRST_WINDOW: Duration = Duration::from_secs(10);
/// After that, another [`WINDOW_BYTES`], or the end of the body, must arrive within each such period. The longest
/// value takes at most 5 minutes, and a client that stops sending holds its memory for 5 s.
const WINDOW: Duration = Duration::from_secs(5);
const WINDOW_BYTES: usize = 256 << 10;

/// A whole body, and the memory that it and its copies hold.
pub(crate) struct HeldBody {
    bytes: Vec<u8>,
    held: Reservation,
}

impl HeldBody {
    fn new(memory: &RequestMemory) -> Self {
        Self { bytes: Vec::new(), held: memory.empty() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reserves `bytes` more, for data that is computed from the body.
    ///
    /// # Errors
    /// As [`RequestMemory::reserve`].
    pub(crate) fn hold_more(
        &mut self,
        memory: &RequestMemory,
        bytes: usize,
    ) -> Result<(), ApiError> {
        let bytes = self.held.bytes() + bytes;
        if bytes > BODY_BYTES_FREE { memory.grow(&mut self.held, bytes) } else { Ok(()) }
    }

    /// The reservation alone, for data that was computed from the body.
    pub(crate) fn into_reservation(self) -> Reservation {
        self.held
    }

    fn push(
        &mut self,
        data: &[u8],
        bytes_max: usize,
        memory: &RequestMemory,
    ) -> Result<(), ApiError> {
        let (length, capacity) = (self.bytes.len() + data.len(), self.bytes.capacity());
        if length > bytes_max {
            return Err(ApiError::body_too_large(bytes_max));
        }
        if length > capacity {
            let grown = length.max((2 * capacity).min(bytes_max));
            if grown > BODY_BYTES_FREE {
                // Both buffers exist while one is copied into the other.
                memory.grow(&mut self.held, grown + capacity)?;
            }
            self.bytes.reserve_exact(grown - self.bytes.len());
            let shrunk = self.held.resize(grown.min(self.held.bytes()));
            debug_assert!(shrunk, "holding less always succeeds");
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }
}

/// Reads the whole body, if it has at most `bytes_max` bytes and arrives fast enough.
///
/// # Errors
/// The body is too large, too slow or incomplete, or there is not enough memory for it.
pub(crate) async fn read_body(
    mut body: Body,
    bytes_max: usize,
    memory: &RequestMemory,
) -> Result<HeldBody, ApiError> {
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(ApiError::body_too_large(bytes_max));
    }
    let mut whole = HeldBody::new(memory);
    let (mut deadline, mut window_end) = (Instant::now() + FIRST_WINDOW, WINDOW_BYTES);
    while let Some(data) = next(&mut body, deadline).await? {
        whole.push(&data, bytes_max, memory)?;
        if whole.bytes.len() >= window_end {
            deadline = Instant::now() + WINDOW;
            window_end = whole.bytes.len() + WINDOW_BYTES;
        }
    }
    Ok(whole)
}

async fn next(body: &mut Body, deadline: Instant) -> Result<Option<Bytes>, ApiError> {
    loop {
        match timeout_at(deadline, body.frame()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(frame))) => {
                // Trailers are skipped.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Ok(Some(Err(error))) if is_revoked(&error) => return Err(ApiError::unauthorized()),
            Ok(Some(Err(_))) => {
                return Err(ApiError::bad_request(
                    "the connection failed before the end of the body",
                ));
            }
            Err(_) => return Err(ApiError::body_too_slow()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    const MAX: usize = 16 << 20;

    /// A body that sends `bytes` bytes every `every`, `times` times or without end.
    fn sending(bytes: usize, every: Duration, times: Option<usize>) -> Body {
        let frames = stream::unfold(0, move |sent| async move {
            tokio::time::sleep(every).await;
            let more = times.is_none_or(|times| sent < times);
            more.then(|| (Ok::<_, Infallible>(Bytes::from(vec![1; bytes])), sent + 1))
        });
        Body::from_stream(frames)
    }

    async fn read(body: Body, memory: &RequestMemory) -> Result<usize, (&'static str, Duration)> {
        let start = Instant::now();
        let read = read_body(body, MAX, memory).await;
        read.map(|body| body.bytes().len()).map_err(|error| (error.code, start.elapsed()))
    }

    #[tokio::test(start_paused = true)]
    async fn slow_bodies_are_refused() {
        let memory = RequestMemory::new(256 << 20);
        let second = Duration::from_secs(1);
        let slow = |after| Err(("body_too_slow", after));
        assert_eq!(read(sending(100, second, Some(5)), &memory).await, Ok(500));
        assert_eq!(read(sending(100, second, None), &memory).await, slow(FIRST_WINDOW));
        assert_eq!(read(sending(0, second * 60, None), &memory).await, slow(FIRST_WINDOW));
        // Fast enough until the end.
        assert_eq!(read(sending(WINDOW_BYTES / 4, second, Some(256)), &memory).await, Ok(MAX));
        // Fast at first, then too slow: earlier bytes do not count.
        let burst =
            Body::from_stream(stream::iter([Ok::<_, Infallible>(Bytes::from(vec![1; 9 << 20]))]))
                .into_data_stream();
        let drip = sending(1, second, None).into_data_stream();
        let body = Body::from_stream(stream::StreamExt::chain(burst, drip));
        assert_eq!(read(body, &memory).await, slow(WINDOW));
        assert_eq!(memory.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_reserved_as_bytes_arrive_and_not_for_the_announced_length() {
        let memory = RequestMemory::new(64 << 20);
        let mut body = HeldBody::new(&memory);
        let mut most = 0;
        for _ in 0..16 << 6 {
            body.push(&[7; 16 << 10], MAX, &memory).unwrap();
            assert!(memory.used() >= body.bytes().len() as u64);
            assert!(memory.used() <= 2 * body.bytes().len() as u64);
            most = most.max(memory.used());
        }
        assert_eq!((body.bytes().len(), most), (MAX, MAX as u64));
        assert_eq!(body.push(&[7], MAX, &memory).unwrap_err().code, "body_too_large");
        body.hold_more(&memory, MAX).unwrap();
        assert_eq!(memory.used(), 2 * MAX as u64);
        let held = body.into_reservation();
        assert_eq!(memory.used(), 2 * MAX as u64);
        drop(held);
        assert_eq!(memory.used(), 0);
        // Clients that announce large bodies and send little.
        let mut small: Vec<_> = (0..1_000).map(|_| HeldBody::new(&memory)).collect();
        for body in &mut small {
            body.push(&[7; 100], MAX, &memory).unwrap();
        }
        assert_eq!(memory.used(), 0);
    }

    #[tokio::test]
    async fn a_body_that_exceeds_the_memory_is_refused_and_releases_its_memory() {
        let memory = RequestMemory::new(16 << 20);
        let body = |bytes: usize| Body::from(vec![1; bytes]);
        assert_eq!(read_body(body(MAX), MAX, &memory).await.err().unwrap().code, "beyond_memory");
        let first = read_body(body(10 << 20), MAX, &memory).await.ok().unwrap();
        let refused = read_body(body(3 << 20), MAX, &memory).await.err().unwrap();
        assert_eq!(refused.status, 503);
        drop(first);
        assert!(read_body(body(3 << 20), MAX, &memory).await.is_ok());
        assert_eq!(memory.used(), 0);
    }
}
