//! Resources that streams share: the permits of reads that may access a disk, and the memory of unsent bytes.
//!
//! Streams have separate permits for reads, so that events for thousands of streams do not use the permits of
//! requests. Reads of streams are queued and not refused, since a stream can wait.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use node::{MemoryBudget, Node, Reservation};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;
use crate::request_id::carry;

/// Maximum number of concurrent reads of streams.
pub(crate) const READS_MAX: usize = 4;
/// Maximum size of unsent events of all streams, in bytes. A stream waits while the limit is reached.
const BYTES_MAX: usize = 64 << 20;

/// Resources that streams share.
pub(crate) struct StreamReads {
    pub(crate) turns: Arc<Semaphore>,
    pub(crate) bytes: MemoryBudget,
}

impl Default for StreamReads {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(READS_MAX)), bytes: MemoryBudget::new(BYTES_MAX) }
    }
}

/// The permit of one read.
pub(crate) struct Turn(OwnedSemaphorePermit);

impl StreamReads {
    /// Waits for a permit.
    pub(crate) async fn turn(&self) -> Turn {
        let Ok(turn) = Arc::clone(&self.turns).acquire_owned().await else {
            unreachable!("the semaphore is never closed");
        };
        Turn(turn)
    }

    /// Events as a chunk of the response, if there is enough memory; the chunk holds its memory until the
    /// last byte is given to the connection.
    pub(crate) fn chunk(&self, events: &[u8]) -> Option<Bytes> {
        struct Held {
            bytes: Box<[u8]>,
            _room: Reservation,
        }
        impl AsRef<[u8]> for Held {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
        let room = self.bytes.try_reserve(events.len())?;
        Some(Bytes::from_owner(Held { bytes: events.into(), _room: room }))
    }
}

impl Turn {
    /// Runs `read` where blocking is allowed.
    ///
    /// # Errors
    /// If the read panicked.
    pub(crate) async fn read<T: Send + 'static>(
        self,
        node: &Node,
        read: impl FnOnce(&Node) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let node = node.clone();
        let read = tokio::task::spawn_blocking(carry(move || {
            // Held by the read itself, which continues when the stream ends.
            let _turn = self.0;
            read(&node)
        }));
        read.await.map_err(|error| ApiError::internal(&error))
    }
}

/// A random time within `range`, so that streams that wait at the same time do not retry at the same time.
pub(crate) fn within(range: &Range<Duration>) -> Duration {
    let random = RandomState::new().build_hasher().finish() as u32;
    let width = range.end.saturating_sub(range.start);
    range.start + width.mul_f64(f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lie_within_the_range_and_differ() {
        let range = Duration::from_millis(500)..Duration::from_millis(1_500);
        let times: std::collections::BTreeSet<_> = (0..100).map(|_| within(&range)).collect();
        assert!(times.len() > 90);
        assert!(times.iter().all(|time| *time >= range.start && *time <= range.end));
    }

    #[test]
    fn a_chunk_holds_its_memory_until_it_is_dropped() {
        let streams = StreamReads::default();
        let chunk = streams.chunk(b"four").unwrap();
        let part = chunk.slice(1..2);
        drop(chunk);
        assert_eq!((&part[..], streams.bytes.used()), (&b"o"[..], 4));
        drop(part);
        assert_eq!(streams.bytes.used(), 0);
        let all = streams.bytes.try_reserve(BYTES_MAX).unwrap();
        assert!(streams.chunk(b"four").is_none());
        drop(all);
    }
}
