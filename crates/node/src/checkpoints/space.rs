//! Free space on the disk of the data directory. When it is low, only changes that remove data are accepted: reads
//! still work, deletions and expiry free space, and acknowledged changes can still be written to the store. If other
//! files use up the rest, no changes are accepted and nothing is written.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Nothing is written while the free space is less than the reserve divided by this.
const LEAST_DIVISOR: u64 = 8;
/// A warning is logged when the free space falls below the reserve multiplied by this.
const LOW_FACTOR: u64 = 2;
/// A full disk counts as full until the limit and the reserve divided by this are free. This prevents frequent changes.
const MARGIN_DIVISOR: u64 = 8;

/// State of the disk.
pub(crate) struct Space {
    directory: PathBuf,
    /// Bytes that are kept free.
    reserve: u64,
    free: AtomicU64,
    full: AtomicBool,
    low: AtomicBool,
}

impl Space {
    /// Creates the state of the disk of `directory`. It counts as free until the first [check](Self::check).
    pub(crate) fn new(directory: &Path, reserve: u64) -> Self {
        Self {
            directory: directory.to_owned(),
            reserve,
            free: AtomicU64::new(u64::MAX),
            full: AtomicBool::new(false),
            low: AtomicBool::new(false),
        }
    }

    /// Measures the free space.
    pub(crate) fn check(&self) {
        match rustix::fs::statvfs(&self.directory) {
            Ok(disk) => self.note(disk.f_bavail.saturating_mul(disk.f_frsize)),
            Err(error) => tracing::debug!(%error, "cannot read the free space of the disk"),
        }
    }

    /// Records the number of free bytes.
    pub(crate) fn note(&self, free: u64) {
        self.free.store(free, Ordering::Relaxed);
        let (reserve, free_mib) = (self.reserve, free >> 20);
        if crosses(&self.full, free, reserve, reserve / MARGIN_DIVISOR) {
            let reserve_mib = reserve >> 20;
            tracing::error!(free_mib, reserve_mib, "the disk is full: only deletions are accepted");
        }
        let low = reserve.saturating_mul(LOW_FACTOR);
        if crosses(&self.low, free, low, reserve / MARGIN_DIVISOR) && !self.is_full() {
            tracing::warn!(free_mib, "the disk is almost full");
        }
    }

    /// Whether only changes that remove data are accepted.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Whether so little is free that a warning was logged.
    pub(crate) fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    /// Whether nothing may be written.
    pub(crate) fn is_used_up(&self) -> bool {
        self.free_bytes() < self.reserve / LEAST_DIVISOR
    }

    /// Returns the number of free bytes at the last check.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.free.load(Ordering::Relaxed)
    }
}

/// Sets `below` if `free` is less than `limit`, and clears it if `free` exceeds the limit by `margin`. Returns whether
/// it was newly set.
fn crosses(below: &AtomicBool, free: u64, limit: u64, margin: u64) -> bool {
    if free < limit {
        return !below.swap(true, Ordering::Relaxed);
    }
    if free >= limit.saturating_add(margin) && below.swap(false, Ordering::Relaxed) {
        tracing::info!(free_mib = free >> 20, "the disk has enough free space again");
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_full_below_the_reserve_until_there_is_a_margin() {
        let space = Space::new(Path::new("/"), 800);
        assert!(!space.is_full());
        for (free, full) in
            [(2_000, false), (800, false), (799, true), (899, true), (900, false), (99, true)]
        {
            space.note(free);
            assert_eq!((space.is_full(), space.free_bytes()), (full, free), "{free}");
            assert_eq!(space.is_used_up(), free < 100, "{free}");
        }
        space.check();
        assert!(!space.is_full(), "800 bytes are free");
        let never = Space::new(Path::new("/"), 0);
        never.note(0);
        assert!(!never.is_full() && !never.is_used_up());
    }
}
