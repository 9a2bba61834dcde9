//! Memory budgets shared by many requests.
//!
//! Every buffer that a client can fill reserves its bytes here before it grows. A reservation that does not fit is
//! refused at once; no caller waits for memory.
//!
//! **Invariant:** the live reservations of a budget add up to at most its limit.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A limit in bytes, shared by all its reservations. A clone shares the limit and the reservations of the original.
#[derive(Clone)]
pub struct MemoryBudget(Arc<Inner>);

struct Inner {
    limit: usize,
    used: AtomicUsize,
}

impl MemoryBudget {
    /// Creates a budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Inner { limit, used: AtomicUsize::new(0) }))
    }

    /// Reserves `bytes`; `None` if the budget has fewer left. 0 bytes always fit.
    #[must_use]
    pub fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        self.take(bytes).then(|| Reservation { budget: self.clone(), bytes })
    }

    /// Creates a reservation of 0 bytes, which can be resized later.
    #[must_use]
    pub fn empty(&self) -> Reservation {
        Reservation { budget: self.clone(), bytes: 0 }
    }

    /// Whether the budget has `bytes` left.
    #[must_use]
    pub fn fits(&self, bytes: usize) -> bool {
        bytes <= self.limit().saturating_sub(self.used())
    }

    /// The limit in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Bytes reserved now.
    #[must_use]
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.0.limit);
        // Relaxed: only the sum matters, because a reservation publishes no memory to other threads.
        bytes == 0 || self.0.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        if bytes > 0 {
            self.0.used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "MemoryBudget({} of {} bytes)", self.used(), self.limit())
    }
}

/// Bytes of a [`MemoryBudget`], released on drop.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    bytes: usize,
}

impl Reservation {
    /// Reserved bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the reservation to `bytes`. Returns false, and changes nothing, if the budget has fewer left; reducing
    /// always succeeds.
    #[must_use]
    pub fn resize(&mut self, bytes: usize) -> bool {
        if bytes > self.bytes {
            if !self.budget.take(bytes - self.bytes) {
                return false;
            }
        } else {
            self.budget.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_never_exceed_the_limit_and_are_freed_when_dropped() {
        let budget = MemoryBudget::new(100);
        let mut first = budget.try_reserve(60).unwrap();
        assert!(budget.try_reserve(41).is_none());
        assert!(budget.try_reserve(usize::MAX).is_none(), "a sum that overflows does not fit");
        let second = budget.try_reserve(40).unwrap();
        assert!(!first.resize(61) && first.bytes() == 60);
        assert!(first.resize(10) && budget.used() == 50);
        drop(second);
        assert!(first.resize(100) && budget.try_reserve(1).is_none());
        assert!(budget.try_reserve(0).is_some());
        drop(first);
        assert_eq!(budget.used(), 0);
    }
}
