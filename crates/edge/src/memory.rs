//! Memory of HTTP requests: arriving bodies, drawings, batches, and unsent responses.
//!
//! Small amounts, large amounts and long heads have separate budgets. So a few clients with large requests or responses
//! do not block ordinary requests of other clients.
//!
//! **Invariant:** all requests together use at most the three budgets, plus [`CONNECTION_BYTES`] per connection. A
//! request that does not fit is refused with 503, before memory is allocated for it.

use budget::{MemoryBudget, Reservation};

use crate::held::ANSWER_BYTES_FREE;

/// Maximum size of a small amount, in bytes. All bodies are small, except values, drawings and batches.
pub const SMALL_BYTES_MAX: usize = 64 << 10;
/// The budget for small amounts is the total memory divided by this.
const SMALL_PART: usize = 4;
/// The budget for long heads is the total memory divided by this. It is taken from the budget for small amounts.
const HEADS_PART: usize = 16;
/// Maximum size of a body that needs no reservation, in bytes. Most bodies are shorter.
const BODY_BYTES_FREE: usize = 4 << 10;
/// Maximum memory of a connection without reservations, in bytes: two buffers of 8 KiB for the heads of request and
/// response, a body and a response that need no reservation, and the task of the connection.
pub const CONNECTION_BYTES: usize =
    (8 << 10) + (8 << 10) + BODY_BYTES_FREE + ANSWER_BYTES_FREE + (12 << 10);

/// Budgets of requests. A clone shares the budgets of the original.
#[derive(Clone, Debug)]
pub struct RequestMemory {
    small: MemoryBudget,
    large: MemoryBudget,
    /// Budget for heads. A client that has not yet presented a key can use only this budget.
    heads: MemoryBudget,
}

/// Reason why there is no memory for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoMemory {
    /// Other requests hold too much memory.
    Now,
    /// The request needs more than all requests together may use.
    Ever,
}

/// Source of memory for bodies.
pub trait BodyMemory: Sync {
    /// Makes an empty reservation.
    fn empty(&self) -> Reservation;

    /// Makes `held` cover a buffer of `bytes` bytes, and the older buffer of `copied` bytes that is being copied to it.
    fn hold(&self, held: &mut Reservation, bytes: usize, copied: usize) -> Result<(), NoMemory>;
}

impl BodyMemory for RequestMemory {
    fn empty(&self) -> Reservation {
        self.small.empty()
    }

    fn hold(&self, held: &mut Reservation, bytes: usize, copied: usize) -> Result<(), NoMemory> {
        if bytes > BODY_BYTES_FREE { self.grow(held, bytes + copied) } else { Ok(()) }
    }
}

impl RequestMemory {
    /// Creates budgets of `bytes` bytes in total.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let (small, heads) = (bytes / SMALL_PART, bytes / HEADS_PART);
        Self {
            small: MemoryBudget::new(small - heads),
            large: MemoryBudget::new(bytes - small),
            heads: MemoryBudget::new(heads),
        }
    }

    /// Reserves `bytes` bytes.
    ///
    /// # Errors
    /// [`NoMemory`]
    pub fn reserve(&self, bytes: usize) -> Result<Reservation, NoMemory> {
        let budget = self.budget(bytes);
        budget.try_reserve(bytes).ok_or_else(|| refusal(bytes, budget))
    }

    /// Enlarges `held`, a reservation of one of these budgets.
    ///
    /// # Errors
    /// [`NoMemory`]; `held` is then unchanged.
    pub fn grow(&self, held: &mut Reservation, bytes: usize) -> Result<(), NoMemory> {
        let becomes_large = held.bytes() <= SMALL_BYTES_MAX && bytes > SMALL_BYTES_MAX;
        if becomes_large {
            *held = self.reserve(bytes)?;
        } else if !held.resize(bytes) {
            return Err(refusal(bytes, self.budget(bytes)));
        }
        Ok(())
    }

    fn budget(&self, bytes: usize) -> &MemoryBudget {
        if bytes <= SMALL_BYTES_MAX { &self.small } else { &self.large }
    }

    /// Size of the budget for amounts of `bytes` bytes.
    #[must_use]
    pub fn limit(&self, bytes: usize) -> usize {
        self.budget(bytes).limit()
    }

    /// Budget for large amounts.
    #[must_use]
    pub fn large(&self) -> &MemoryBudget {
        &self.large
    }

    /// Budget for heads.
    #[must_use]
    pub fn heads(&self) -> &MemoryBudget {
        &self.heads
    }

    /// Number of reserved bytes.
    #[must_use]
    pub fn used(&self) -> u64 {
        (self.small.used() + self.large.used() + self.heads.used()) as u64
    }
}

fn refusal(bytes: usize, budget: &MemoryBudget) -> NoMemory {
    if bytes > budget.limit() { NoMemory::Ever } else { NoMemory::Now }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = SMALL_BYTES_MAX + 1;

    #[test]
    fn large_reservations_leave_memory_for_small_ones() {
        let memory = RequestMemory::new(16 * LARGE);
        let most = memory.reserve(12 * LARGE).unwrap();
        assert_eq!(memory.reserve(LARGE).unwrap_err(), NoMemory::Now);
        let small = memory.reserve(SMALL_BYTES_MAX).unwrap();
        assert_eq!(memory.used(), (12 * LARGE + SMALL_BYTES_MAX) as u64);
        // The amount exceeds the whole budget.
        assert_eq!(memory.reserve(13 * LARGE).unwrap_err(), NoMemory::Ever);
        drop((most, small));
        assert_eq!(memory.used(), 0);
    }

    #[test]
    fn a_reservation_that_grows_large_moves_to_the_other_budget() {
        let memory = RequestMemory::new(8 * LARGE);
        let mut held = memory.empty();
        memory.grow(&mut held, SMALL_BYTES_MAX).unwrap();
        memory.grow(&mut held, 6 * LARGE).unwrap();
        assert_eq!((memory.small.used(), memory.large.used()), (0, 6 * LARGE));
        assert_eq!(memory.grow(&mut held, 7 * LARGE).unwrap_err(), NoMemory::Ever);
        assert_eq!(held.bytes(), 6 * LARGE, "a failed growth leaves the reservation unchanged");
        let mut other = memory.reserve(SMALL_BYTES_MAX).unwrap();
        assert_eq!(memory.grow(&mut other, LARGE).unwrap_err(), NoMemory::Now);
        drop(held);
        memory.grow(&mut other, LARGE).unwrap();
        assert_eq!((memory.small.used(), memory.large.used()), (0, LARGE));
    }
}
