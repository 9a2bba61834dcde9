//! Cache of rows of keys that are on disk: rows that checkpoints have just written, and rows that were read recently.
//! If the cache exceeds its budget, rows that were not read recently are dropped. A row marked as removed means that
//! the disk has no such row.
//!
//! **Invariant:** a row here is equal to that on disk. Both overlays are above this layer: a later change of a key is
//! found there first, and replaces the row here when it is on disk.
//! **Invariant:** the row of a key has one place in memory: an overlay until it is on disk, then this cache. If it is
//! in neither, it is read from disk, unless this cache has all rows on disk.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use kv::{KeyRow, Space};

use crate::hash::KeyHasher;
use crate::key_table::{KeyTable, shard_of};

/// Maximum number of shards to search for a row to drop.
const PROBES_MAX: usize = 64;

/// State in which no row was dropped, but some rows on disk may not have been added yet.
const FILLING: u8 = 0;
/// State in which every row on disk is in memory. A row that is not in memory then does not exist.
const COMPLETE: u8 = 1;
/// State in which a row was dropped.
const PARTIAL: u8 = 2;

/// Resident rows and their budget.
pub(crate) struct Resident {
    pub(crate) table: KeyTable,
    bytes: AtomicUsize,
    bytes_max: usize,
    /// [`FILLING`], [`COMPLETE`] or [`PARTIAL`].
    state: AtomicU8,
    /// Number of checkpoints so far. A thread reads this number before it reads a row from disk, and adds the row only
    /// if the number is still the same.
    checkpoints: AtomicU64,
    next_shard: AtomicUsize,
}

impl Resident {
    /// Creates an empty cache. `complete` means that there are also no rows on disk.
    pub(crate) fn new(bytes_max: usize, complete: bool, hasher: KeyHasher) -> Self {
        Self {
            table: KeyTable::new(hasher),
            bytes: AtomicUsize::new(0),
            bytes_max,
            state: AtomicU8::new(if complete { COMPLETE } else { FILLING }),
            checkpoints: AtomicU64::new(0),
            next_shard: AtomicUsize::new(0),
        }
    }

    /// Whether every row on disk is in memory.
    pub(crate) fn is_complete(&self) -> bool {
        self.state.load(Ordering::Acquire) == COMPLETE
    }

    /// Records that every row on disk was added. If none was dropped meanwhile, all rows are in memory.
    pub(crate) fn all_offered(&self) {
        // If a row was dropped meanwhile, this has no effect, because not all rows are in memory.
        let (done, failed) = (Ordering::AcqRel, Ordering::Acquire);
        self.state.compare_exchange(FILLING, COMPLETE, done, failed).ok();
    }

    /// Returns the used memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether further rows fit without dropping others.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes() < self.bytes_max
    }

    /// Returns the number of checkpoints, to be read before a row is read from disk.
    pub(crate) fn checkpoints(&self) -> u64 {
        self.checkpoints.load(Ordering::Acquire)
    }

    /// Adds a row that was read from disk, unless a checkpoint has changed the disk since `noted`.
    pub(crate) fn offer(&self, hash: u64, row: KeyRow, noted: u64) {
        let still = || self.checkpoints() == noted;
        if let Some(grown) = self.table.put_absent(hash, row, still) {
            self.bytes.fetch_add(grown, Ordering::Relaxed);
            self.shrink(hash);
        }
    }

    /// Adds the rows that a checkpoint has written to disk. Called before they leave the overlay.
    pub(crate) fn take_over(&self, rows: impl Iterator<Item = (u64, KeyRow)>) {
        self.checkpoints.fetch_add(1, Ordering::AcqRel);
        for (hash, row) in rows {
            if rows::has_bug("stale-cache") && row.is_removed() {
                continue;
            }
            if row.is_removed() {
                self.forget(hash, row.space(), row.key());
            } else {
                let (grown, old) = self.table.put(hash, row);
                let shrunk = old.as_ref().map_or(0, KeyRow::memory_bytes);
                self.bytes.fetch_add(grown, Ordering::Relaxed);
                self.bytes.fetch_sub(shrunk, Ordering::Relaxed);
                self.shrink(hash);
            }
        }
    }

    fn forget(&self, hash: u64, space: Space, key: &[u8]) {
        self.bytes.fetch_sub(self.table.remove(hash, space, key), Ordering::Relaxed);
    }

    /// Drops rows until the others fit the budget. Called after a row with the hash `added` was added.
    fn shrink(&self, added: u64) {
        let mut empty = 0;
        while self.bytes() > self.bytes_max {
            // Change the state before a row is dropped; otherwise a reader could conclude that the row does not exist.
            self.state.store(PARTIAL, Ordering::Release);
            // If most shards are empty, further search would take longer than reading the added row again.
            let shard = match empty < PROBES_MAX {
                true => self.next_shard.fetch_add(1, Ordering::Relaxed),
                false => shard_of(added),
            };
            match self.table.evict_from(shard) {
                Some(freed) => {
                    self.bytes.fetch_sub(freed, Ordering::Relaxed);
                    empty = 0;
                }
                None if empty == PROBES_MAX => return,
                None => empty += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kv::KeyParts;
    use rows::Stamp;

    use super::*;

    #[test]
    fn a_small_budget_is_kept_and_what_is_removed_leaves_nothing() {
        let hasher = KeyHasher::new([7; 16]);
        for bytes_max in [0, 1_000, 100_000] {
            let resident = Resident::new(bytes_max, false, hasher);
            let mut kept = 0;
            for number in 0..5_000 {
                let (space, key) = (Space(1), format!("key {number}"));
                let (key, value, version) = (key.as_bytes(), &b"v"[..], Stamp(1));
                let row = KeyRow::new(KeyParts { space, key, value, expires_ms: None, version });
                resident.offer(hasher.hash(space, key), row, 0);
                assert!(resident.bytes() <= bytes_max, "{} of {bytes_max}", resident.bytes());
                kept = kept.max(resident.bytes());
            }
            assert!(kept >= bytes_max / 2, "{kept} of {bytes_max}");
            for (hash, row) in resident.table.sorted() {
                resident.forget(hash, row.space(), row.key());
            }
            assert_eq!(resident.bytes(), 0);
        }
    }
}
