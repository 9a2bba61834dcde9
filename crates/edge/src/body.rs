//! Reading of request bodies. Memory is reserved for bytes that have arrived, not for the announced length, and clients
//! that send too slowly are refused.

use std::time::Duration;

use axum::body::Body;
use budget::Reservation;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use tokio::time::{Instant, timeout_at};

use crate::memory::{BodyMemory, NoMemory};
use crate::revocable::{Ended, why_ended};

/// Time within which the first window of a body must arrive; a shorter body must arrive completely.
const FIRST_WINDOW: Duration = Duration::from_secs(10);
/// Time within which each further window, or the end of the body, must arrive. A client that stops sending therefore
/// holds its memory for at most this time.
const WINDOW: Duration = Duration::from_secs(5);

/// Limits of a body.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimits {
    /// Maximum length, in bytes.
    pub bytes_max: usize,
    /// Size of a window, in bytes. A window is the part of a body that must arrive within one time limit.
    pub window_bytes: usize,
}

impl BodyLimits {
    /// Creates limits with windows of 256 KiB, for bodies that programs send. A body of 16 MiB takes at most 5.5
    /// minutes.
    #[must_use]
    pub const fn new(bytes_max: usize) -> Self {
        Self { bytes_max, window_bytes: 256 << 10 }
    }
}

/// Reason why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The body is longer than this limit, in bytes.
    TooLarge(usize),
    /// The body did not arrive in time.
    TooSlow,
    /// The connection failed before the end of the body.
    Incomplete,
    /// The permission of the request ended while the body arrived.
    Ended(Ended),
    /// The sender has too many concurrent bodies.
    TooMany,
    /// There is no memory for the body.
    NoMemory(NoMemory),
}

impl From<NoMemory> for BodyError {
    fn from(error: NoMemory) -> Self {
        Self::NoMemory(error)
    }
}

/// Consumer of a body's bytes as they arrive.
pub trait BodySink {
    /// Reason why the sink refuses further bytes.
    type Error: From<BodyError>;

    /// Takes more bytes, which are within the limits.
    fn take(&mut self, data: &[u8]) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Passes a body to `sink` piece by piece. Fails if the body is too long or arrives too slowly.
///
/// # Errors
/// [`BodyError`], or an error of the sink.
pub async fn read_into<S: BodySink>(
    mut body: Body,
    limits: BodyLimits,
    sink: &mut S,
) -> Result<(), S::Error> {
    let BodyLimits { bytes_max, window_bytes } = limits;
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(BodyError::TooLarge(bytes_max).into());
    }
    let (mut deadline, mut window_end) = (Instant::now() + FIRST_WINDOW, window_bytes);
    let mut length: usize = 0;
    while let Some(data) = next(&mut body, deadline).await? {
        length = length.saturating_add(data.len());
        if length > bytes_max {
            return Err(BodyError::TooLarge(bytes_max).into());
        }
        sink.take(&data).await?;
        if length >= window_end {
            (deadline, window_end) = (Instant::now() + WINDOW, length + window_bytes);
        }
    }
    Ok(())
}

async fn next(body: &mut Body, deadline: Instant) -> Result<Option<Bytes>, BodyError> {
    loop {
        match timeout_at(deadline, body.frame()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(frame))) => {
                // Ignore trailers.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Ok(Some(Err(error))) => {
                return Err(why_ended(&error).map_or(BodyError::Incomplete, BodyError::Ended));
            }
            Err(_) => return Err(BodyError::TooSlow),
        }
    }
}

/// A complete body, with the memory reserved for it and for data computed from it.
#[derive(Debug)]
pub struct HeldBody {
    bytes: Vec<u8>,
    held: Reservation,
}

impl HeldBody {
    /// Reads a body.
    ///
    /// # Errors
    /// [`BodyError`]
    pub async fn read(
        body: Body,
        limits: BodyLimits,
        memory: &impl BodyMemory,
    ) -> Result<Self, BodyError> {
        let whole = Self { bytes: Vec::new(), held: memory.empty() };
        let mut arriving = Arriving { whole, bytes_max: limits.bytes_max, memory };
        read_into(body, limits, &mut arriving).await?;
        Ok(arriving.whole)
    }

    /// Bytes of the body.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reserves `bytes` more bytes, for data computed from the body.
    ///
    /// # Errors
    /// [`NoMemory`]
    pub fn hold_more(&mut self, memory: &impl BodyMemory, bytes: usize) -> Result<(), NoMemory> {
        let bytes = self.held.bytes() + bytes;
        memory.hold(&mut self.held, bytes, 0)
    }

    /// Splits the value into the bytes and their reservation.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u8>, Reservation) {
        (self.bytes, self.held)
    }
}

/// Body that is being read.
struct Arriving<'m, M> {
    whole: HeldBody,
    bytes_max: usize,
    memory: &'m M,
}

impl<M: BodyMemory> Arriving<'_, M> {
    fn push(&mut self, data: &[u8]) -> Result<(), NoMemory> {
        let HeldBody { bytes, held } = &mut self.whole;
        let (length, capacity) = (bytes.len() + data.len(), bytes.capacity());
        if length > capacity {
            let grown = length.max((2 * capacity).min(self.bytes_max));
            // Both buffers exist while the old one is copied to the new one.
            self.memory.hold(held, grown, capacity)?;
            bytes.reserve_exact(grown - bytes.len());
            self.memory.hold(held, grown, 0)?;
        }
        bytes.extend_from_slice(data);
        Ok(())
    }
}

impl<M: BodyMemory> BodySink for Arriving<'_, M> {
    type Error = BodyError;

    fn take(&mut self, data: &[u8]) -> impl Future<Output = Result<(), BodyError>> + Send {
        std::future::ready(self.push(data).map_err(BodyError::from))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;
    use crate::memory::RequestMemory;

    const MAX: usize = 16 << 20;

    /// Makes a body that sends `bytes` bytes after each `every`, as often as `times` says; without `times`, it does not
    /// end.
    fn sending(bytes: usize, every: Duration, times: Option<usize>) -> Body {
        let frames = stream::unfold(0, move |sent| async move {
            tokio::time::sleep(every).await;
            let more = times.is_none_or(|times| sent < times);
            more.then(|| (Ok::<_, Infallible>(Bytes::from(vec![1; bytes])), sent + 1))
        });
        Body::from_stream(frames)
    }

    const LIMITS: BodyLimits = BodyLimits::new(MAX);
    const WINDOW_BYTES: usize = LIMITS.window_bytes;

    async fn read(body: Body, memory: &RequestMemory) -> Result<usize, (BodyError, Duration)> {
        let start = Instant::now();
        let read = HeldBody::read(body, LIMITS, memory).await;
        read.map(|body| body.bytes().len()).map_err(|error| (error, start.elapsed()))
    }

    #[tokio::test(start_paused = true)]
    async fn slow_bodies_are_refused() {
        let memory = RequestMemory::new(256 << 20);
        let second = Duration::from_secs(1);
        let slow = |after| Err((BodyError::TooSlow, after));
        assert_eq!(read(sending(100, second, Some(5)), &memory).await, Ok(500));
        assert_eq!(read(sending(100, second, None), &memory).await, slow(FIRST_WINDOW));
        assert_eq!(read(sending(0, second * 60, None), &memory).await, slow(FIRST_WINDOW));
        // This body arrives just fast enough.
        assert_eq!(read(sending(WINDOW_BYTES / 4, second, Some(256)), &memory).await, Ok(MAX));
        // A body that becomes too slow is refused, even if its first bytes arrived fast.
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
        let arriving = |bytes_max| {
            let whole = HeldBody { bytes: Vec::new(), held: memory.empty() };
            Arriving { whole, bytes_max, memory: &memory }
        };
        let (mut body, mut most) = (arriving(MAX), 0);
        for _ in 0..16 << 6 {
            body.push(&[7; 16 << 10]).unwrap();
            let length = body.whole.bytes.len() as u64;
            assert!(memory.used() >= length && memory.used() <= 2 * length);
            most = most.max(memory.used());
        }
        let mut body = body.whole;
        assert_eq!((body.bytes().len(), most), (MAX, MAX as u64));
        body.hold_more(&memory, MAX).unwrap();
        assert_eq!(memory.used(), 2 * MAX as u64);
        let (_, held) = body.into_parts();
        assert_eq!(memory.used(), 2 * MAX as u64);
        drop(held);
        assert_eq!(memory.used(), 0);
        // These clients announce large bodies and send little.
        let mut small: Vec<_> = (0..1_000).map(|_| arriving(MAX)).collect();
        for body in &mut small {
            body.push(&[7; 100]).unwrap();
        }
        assert_eq!(memory.used(), 0);
    }

    #[tokio::test]
    async fn a_body_that_exceeds_the_memory_is_refused_and_releases_its_memory() {
        let memory = RequestMemory::new(16 << 20);
        let read =
            async |bytes: usize| HeldBody::read(Body::from(vec![1; bytes]), LIMITS, &memory).await;
        let no_memory = |why| Some(BodyError::NoMemory(why));
        assert_eq!(read(MAX).await.err(), no_memory(NoMemory::Ever));
        assert_eq!(read(MAX + 1).await.err(), Some(BodyError::TooLarge(MAX)));
        let first = read(10 << 20).await.unwrap();
        assert_eq!(read(3 << 20).await.err(), no_memory(NoMemory::Now));
        drop(first);
        assert!(read(3 << 20).await.is_ok());
        assert_eq!(memory.used(), 0);
    }
}
