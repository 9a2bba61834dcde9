//! Memory of unsent data: responses, and events of live streams.
//!
//! **Invariant:** the unsent responses of one key, or of all clients in open mode, hold at most half of either budget.
//! So a client that reads slowly does not keep out others.

use budget::{MemoryBudget, Reservation};
use bytes::Bytes;
use edge::{NoMemory, RequestMemory, SMALL_BYTES_MAX, Share, Shares, held_bytes};

/// Maximum size of unsent events of all streams, in bytes, unless [`EVENTS_PART`] gives less. A stream waits while the
/// limit is reached.
const EVENTS_BYTES_MAX: usize = 64 << 20;
/// Unsent events may take this fraction of the memory for large amounts: 1 divided by this number.
const EVENTS_PART: usize = 4;
/// The responses of one client may take this fraction of either budget: 1 divided by this number.
const CLIENT_PART: usize = 2;

/// Identity of a client with a key, from [`edge::Grant::client`]. Users are counted elsewhere, with lower limits.
pub(crate) type Client = [u8; 32];

/// A client, and whether the budget is that for large amounts.
type Budget = (Client, bool);

/// Memory of a response until it is sent.
pub(crate) type HeldResponse = (Option<Share<Budget>>, Reservation);

/// Budgets of unsent data.
pub(crate) struct Unsent {
    /// Part of `memory` that events may take.
    pub(crate) events: MemoryBudget,
    memory: RequestMemory,
    responses: Shares<Budget>,
}

impl Unsent {
    /// Takes the memory of unsent data from that of requests.
    pub(crate) fn new(memory: &RequestMemory) -> Self {
        let events = MemoryBudget::new(EVENTS_BYTES_MAX.min(memory.large().limit() / EVENTS_PART));
        Self { events, memory: memory.clone(), responses: Shares::default() }
    }

    /// Makes a chunk of the response from events, if memory suffices. The chunk holds the memory until its last byte is
    /// sent.
    pub(crate) fn chunk(&self, events: &[u8]) -> Option<Bytes> {
        let of_events = self.events.try_reserve(events.len())?;
        let held = [of_events, self.memory.large().try_reserve(events.len())?];
        Some(held_bytes(Box::<[u8]>::from(events), held))
    }

    /// Reserves the memory of a client's response. A single response may exceed the client's part.
    ///
    /// # Errors
    /// [`NoMemory`], also if other responses of the client hold too much.
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
        // A client without other responses may get the longest response.
        let longest = memory.limit(usize::MAX);
        assert!(unsent.response(Some(one), longest).is_ok());
        assert_eq!(unsent.response(Some(one), longest + 1).err(), Some(NoMemory::Ever));
        assert_eq!((memory.used(), unsent.responses.clients()), (0, 0));
    }
}
