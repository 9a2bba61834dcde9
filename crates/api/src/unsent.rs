//! The memory of what is being sent: of responses, and of the events of live streams.
//!
//! **Invariant:** the responses of one key, or of all clients in open mode, hold at most half of either budget until they are
//! read: who reads slowly keeps out nobody else.

use budget::{MemoryBudget, Reservation};
use bytes::Bytes;
use edge::{NoMemory, RequestMemory, SMALL_BYTES_MAX, Share, Shares, held_bytes};

/// Maximum size of unsent events of all streams, in bytes, unless the part of the memory is less. A stream waits while
/// the limit is reached.
const EVENTS_BYTES_MAX: usize = 64 << 20;
/// Memory for large amounts divided by what unsent events may take of it.
const EVENTS_PART: usize = 4;
/// Each of the budgets divided by what the responses of one client may take of it.
const CLIENT_PART: usize = 2;

/// Tells the clients with keys apart, as [`edge::Grant::client`]. Users who are logged in have less, which is counted elsewhere.
pub(crate) type Client = [u8; 32];

/// A client, and whether it is about large amounts.
type Budget = (Client, bool);

/// The memory of a response, until it is sent.
pub(crate) type HeldResponse = (Option<Share<Budget>>, Reservation);

/// What is being sent.
pub(crate) struct Unsent {
    /// Share of `memory` that events may take.
    pub(crate) events: MemoryBudget,
    memory: RequestMemory,
    responses: Shares<Budget>,
}

impl Unsent {
    /// What is being sent takes its memory from that of requests.
    pub(crate) fn new(memory: &RequestMemory) -> Self {
        let events = MemoryBudget::new(EVENTS_BYTES_MAX.min(memory.large().limit() / EVENTS_PART));
        Self { events, memory: memory.clone(), responses: Shares::default() }
    }

    /// Events as a chunk of the response, if there is enough memory; the chunk holds its memory until the
    /// last byte is sent.
    pub(crate) fn chunk(&self, events: &[u8]) -> Option<Bytes> {
        let of_events = self.events.try_reserve(events.len())?;
        let held = [of_events, self.memory.large().try_reserve(events.len())?];
        Some(held_bytes(Box::<[u8]>::from(events), held))
    }

    /// Reserves the memory of a response of a client. One response may be longer than the part of a client.
    ///
    /// # Errors
    /// [`NoMemory`], also if others of the client hold too much.
    pub(crate) fn response(
        &self,
        client: Option<Client>,
        bytes: usize,
    ) -> Result<HeldResponse, NoMemory> {
        let held = self.memory.reserve(bytes)?;
        let Some(client) = client else { return Ok((None, held)) };
        let most = (self.memory.limit(bytes) / CLIENT_PART).max(bytes);
        let share = self.responses.take((client, bytes > SMALL_BYTES_MAX), bytes, most);
        Ok((Some(share.ok_or(NoMemory::Now)?), held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_holds_its_memory_until_it_is_dropped() {
        let memory = RequestMemory::new(64 << 20);
        let unsent = Unsent::new(&memory);
        let chunk = unsent.chunk(b"four").unwrap();
        let part = chunk.slice(1..2);
        drop(chunk);
        assert_eq!((&part[..], unsent.events.used()), (&b"o"[..], 4));
        assert_eq!(memory.used(), 4, "it is memory of requests");
        drop(part);
        assert_eq!((unsent.events.used(), memory.used()), (0, 0));
        let all = unsent.events.try_reserve(unsent.events.limit()).unwrap();
        assert!(unsent.chunk(b"four").is_none());
        drop(all);
    }

    #[test]
    fn a_client_that_reads_nothing_leaves_half_of_each_budget_to_others() {
        let memory = RequestMemory::new(64 << 20);
        let unsent = Unsent::new(&memory);
        let [one, other] = [[1; 32], [2; 32]];
        for bytes in [SMALL_BYTES_MAX, 1 << 20] {
            let taken: Vec<_> =
                std::iter::from_fn(|| unsent.response(Some(one), bytes).ok()).collect();
            assert_eq!(taken.len(), memory.limit(bytes) / 2 / bytes);
            assert!(unsent.response(Some(other), bytes).is_ok(), "{bytes}");
            assert!(unsent.response(None, bytes).is_ok(), "{bytes}");
            assert!(
                memory.reserve(memory.limit(bytes) / 2).is_ok_and(|held| bytes <= held.bytes())
            );
            drop(taken);
        }
        // The longest is sent to who has no other.
        let longest = memory.limit(usize::MAX);
        assert!(unsent.response(Some(one), longest).is_ok());
        assert_eq!(unsent.response(Some(one), longest + 1).err(), Some(NoMemory::Ever));
        assert_eq!((memory.used(), unsent.responses.clients()), (0, 0));
    }
}
