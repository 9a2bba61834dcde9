//! Memory of HTTP requests: bodies as they arrive, drawings, batches, and responses until they are sent.
//!
//! Small amounts, large amounts and long heads have separate budgets, so that a few clients with large requests
//! or responses do not block the ordinary requests of other clients.
//!
//! **Invariant:** all requests together use no more than the three budgets, in addition to [`CONNECTION_BYTES`] for
//! each connection. A request that does not fit is refused with 503 before memory is allocated.

use bytes::Bytes;
use node::{MemoryBudget, Reservation};

use crate::error::ApiError;

/// Maximum size of a small amount, in bytes: any body except values, drawings and batches.
const SMALL_BYTES_MAX: usize = 64 << 10;
/// Total memory divided by the budget for small amounts.
const SMALL_PART: usize = 4;
/// Total memory divided by the budget for long heads, which is taken from the budget for small amounts.
const HEADS_PART: usize = 16;
/// A body of up to this many bytes reserves nothing: ordinary requests are shorter.
pub(crate) const BODY_BYTES_FREE: usize = 4 << 10;
/// Most bytes of a post as JSON, which are mostly the descriptions of its pictures.
pub(crate) const POST_BYTES_MAX: usize = SMALL_BYTES_MAX;
/// A response of up to this many bytes reserves nothing. The response to every change is shorter, so a change
/// that was made never gets 503; only that to the edit of a post may be longer, and is reserved before the change.
pub(crate) const ANSWER_BYTES_FREE: usize = 16 << 10;
/// Maximum memory of a connection without its reservations: a buffer of 8 KiB for the request's head and one of
/// 8 KiB for the response's head, a body and a response that reserve nothing, and its task.
pub const CONNECTION_BYTES: usize =
    (8 << 10) + (8 << 10) + BODY_BYTES_FREE + ANSWER_BYTES_FREE + (12 << 10);

/// The budgets. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct RequestMemory {
    small: MemoryBudget,
    large: MemoryBudget,
    /// For heads: clients without a key yet cannot use the other budgets.
    pub(crate) heads: MemoryBudget,
}

impl RequestMemory {
    pub(crate) fn new(bytes: usize) -> Self {
        let (small, heads) = (bytes / SMALL_PART, bytes / HEADS_PART);
        Self {
            small: MemoryBudget::new(small - heads),
            large: MemoryBudget::new(bytes - small),
            heads: MemoryBudget::new(heads),
        }
    }

    /// Reserves this many bytes.
    ///
    /// # Errors
    /// Overloaded if other requests hold too much; too large if it exceeds the whole budget.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<Reservation, ApiError> {
        let budget = if bytes <= SMALL_BYTES_MAX { &self.small } else { &self.large };
        budget.try_reserve(bytes).ok_or_else(|| refusal(bytes, budget))
    }

    /// Grows `held`, a reservation of these budgets.
    ///
    /// # Errors
    /// As [`RequestMemory::reserve`]; `held` is then unchanged.
    pub(crate) fn grow(&self, held: &mut Reservation, bytes: usize) -> Result<(), ApiError> {
        let becomes_large = held.bytes() <= SMALL_BYTES_MAX && bytes > SMALL_BYTES_MAX;
        if becomes_large {
            *held = self.reserve(bytes)?;
        } else if !held.resize(bytes) {
            let budget = if bytes <= SMALL_BYTES_MAX { &self.small } else { &self.large };
            return Err(refusal(bytes, budget));
        }
        Ok(())
    }

    /// The budget for large amounts.
    pub(crate) fn large(&self) -> &MemoryBudget {
        &self.large
    }

    /// An empty reservation.
    pub(crate) fn empty(&self) -> Reservation {
        self.small.empty()
    }

    /// Bytes that are reserved now.
    pub(crate) fn used(&self) -> u64 {
        (self.small.used() + self.large.used() + self.heads.used()) as u64
    }
}

/// Bytes that keep their reservation until the last of them is sent.
pub(crate) fn held_until_sent(bytes: Vec<u8>, held: Reservation) -> Bytes {
    struct Held {
        bytes: Vec<u8>,
        _held: Reservation,
    }
    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }
    Bytes::from_owner(Held { bytes, _held: held })
}

fn refusal(bytes: usize, budget: &MemoryBudget) -> ApiError {
    if bytes > budget.limit() { ApiError::beyond_memory() } else { ApiError::overloaded() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = SMALL_BYTES_MAX + 1;

    #[test]
    fn large_reservations_leave_memory_for_small_ones() {
        let memory = RequestMemory::new(16 * LARGE);
        let most = memory.reserve(12 * LARGE).unwrap();
        assert_eq!(memory.reserve(LARGE).unwrap_err().code, "overloaded");
        let small = memory.reserve(SMALL_BYTES_MAX).unwrap();
        assert_eq!(memory.used(), (12 * LARGE + SMALL_BYTES_MAX) as u64);
        // It is larger than the whole budget.
        assert_eq!(memory.reserve(13 * LARGE).unwrap_err().code, "beyond_memory");
        drop((most, small));
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn bytes_keep_their_reservation_until_they_are_dropped() {
        let memory = RequestMemory::new(8 * LARGE);
        let mut bytes = held_until_sent(vec![7; 3], memory.reserve(LARGE).unwrap());
        let last = bytes.split_off(2);
        drop(bytes);
        assert!(last[..] == [7] && memory.used() == LARGE as u64);
        drop(last);
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn a_reservation_that_grows_large_moves_to_the_other_budget() {
        let memory = RequestMemory::new(8 * LARGE);
        let mut held = memory.empty();
        memory.grow(&mut held, SMALL_BYTES_MAX).unwrap();
        memory.grow(&mut held, 6 * LARGE).unwrap();
        assert_eq!((memory.small.used(), memory.large.used()), (0, 6 * LARGE));
        assert_eq!(memory.grow(&mut held, 7 * LARGE).unwrap_err().code, "beyond_memory");
        assert_eq!(held.bytes(), 6 * LARGE, "a failed growth leaves the reservation unchanged");
        let mut other = memory.reserve(SMALL_BYTES_MAX).unwrap();
        assert_eq!(memory.grow(&mut other, LARGE).unwrap_err().code, "overloaded");
        drop(held);
        memory.grow(&mut other, LARGE).unwrap();
        assert_eq!((memory.small.used(), memory.large.used()), (0, LARGE));
    }
}
