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
use crate::memory::RequestMemory;
use crate::request_id::carry;

/// Maximum number of concurrent reads of streams.
pub(crate) const READS_MAX: usize = 4;
/// Maximum size of unsent events of all streams, in bytes, unless the part of the memory is less. A stream waits while
/// the limit is reached.
const BYTES_MAX: usize = 64 << 20;
/// Memory for large amounts divided by what unsent events may take of it.
const PART: usize = 4;

/// Resources that streams share.
pub(crate) struct StreamReads {
    pub(crate) turns: Arc<Semaphore>,
    /// Share of `memory` that streams may take.
    pub(crate) bytes: MemoryBudget,
    memory: MemoryBudget,
}

/// The permit of one read.
pub(crate) struct Turn(OwnedSemaphorePermit);

impl StreamReads {
    /// Streams that take their memory from that of requests.
    pub(crate) fn new(memory: &RequestMemory) -> Self {
        let memory = memory.large().clone();
        let bytes = MemoryBudget::new(BYTES_MAX.min(memory.limit() / PART));
        Self { turns: Arc::new(Semaphore::new(READS_MAX)), bytes, memory }
    }

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
            _room: [Reservation; 2],
        }
        impl AsRef<[u8]> for Held {
            fn as_ref(&self) -> &[u8] {
                &self.bytes
            }
        }
        let [bytes, memory] =
            [&self.bytes, &self.memory].map(|from| from.try_reserve(events.len()));
        let room = [bytes?, memory?];
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
        let read = carry(move || {
            // Held by the read itself, which continues when the stream ends.
            let _turn = self.0;
            read(&node)
        });
        Ok(edge::blocking(read).await?)
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
        let memory = RequestMemory::new(64 << 20);
        let streams = StreamReads::new(&memory);
        let chunk = streams.chunk(b"four").unwrap();
        let part = chunk.slice(1..2);
        drop(chunk);
        assert_eq!((&part[..], streams.bytes.used()), (&b"o"[..], 4));
        assert_eq!(memory.used(), 4, "it is memory of requests");
        drop(part);
        assert_eq!((streams.bytes.used(), memory.used()), (0, 0));
        let all = streams.bytes.try_reserve(streams.bytes.limit()).unwrap();
        assert!(streams.chunk(b"four").is_none());
        drop(all);
    }
}
