//! The memory of the unsent bytes of live streams.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::ops::Range;
use std::time::Duration;

use budget::MemoryBudget;
use bytes::Bytes;
use edge::{RequestMemory, held_bytes};

/// Maximum size of unsent events of all streams, in bytes, unless the part of the memory is less. A stream waits while
/// the limit is reached.
const BYTES_MAX: usize = 64 << 20;
/// Memory for large amounts divided by what unsent events may take of it.
const PART: usize = 4;

/// The budget of unsent events.
pub(crate) struct UnsentEvents {
    /// Share of `memory` that streams may take.
    pub(crate) bytes: MemoryBudget,
    memory: MemoryBudget,
}

impl UnsentEvents {
    /// Streams take their memory from that of requests.
    pub(crate) fn new(memory: &RequestMemory) -> Self {
        let memory = memory.large().clone();
        let bytes = MemoryBudget::new(BYTES_MAX.min(memory.limit() / PART));
        Self { bytes, memory }
    }

    /// Events as a chunk of the response, if there is enough memory; the chunk holds its memory until the
    /// last byte is sent.
    pub(crate) fn chunk(&self, events: &[u8]) -> Option<Bytes> {
        let [bytes, memory] =
            [&self.bytes, &self.memory].map(|from| from.try_reserve(events.len()));
        Some(held_bytes(Box::<[u8]>::from(events), [bytes?, memory?]))
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
        let streams = UnsentEvents::new(&memory);
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
