//! Rows of keys that are in memory though they are on disk: what checkpoints have just written, and what
//! was read lately. Beyond a budget those not read lately are dropped. A row that is marked as removed
//! says that the disk has none.
//!
//! **Invariant:** a row here is the one on disk. It is below both overlays: a key that was changed
//! since is found there first, and this row is replaced when the change is on disk.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use kv::{KeyRow, Space};

use crate::hash::KeyHasher;
use crate::key_table::KeyTable;

/// Not every row on disk was offered yet; none was dropped.
const FILLING: u8 = 0;
/// Every row on disk is here, so that what is not here is not there.
const COMPLETE: u8 = 1;
/// Something was dropped.
const PARTIAL: u8 = 2;

/// The rows and their budget.
pub(crate) struct Resident {
    pub(crate) table: KeyTable,
    bytes: AtomicUsize,
    bytes_max: usize,
    /// One of the three below.
    state: AtomicU8,
    /// Checkpoints so far. Who reads the disk to put a row here notes the number before, and puts it
    /// only if it is still the same.
    checkpoints: AtomicU64,
    next_shard: AtomicUsize,
}

impl Resident {
    /// Nothing yet. `complete` tells that nothing is on disk either.
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

    /// Whether what is not here is not on disk.
    pub(crate) fn is_complete(&self) -> bool {
        self.state.load(Ordering::Acquire) == COMPLETE
    }

    /// Everything on disk has been offered: if nothing was dropped, everything is here.
    pub(crate) fn all_offered(&self) {
        // Fails if something was dropped, and then it is right that it does.
        let (done, failed) = (Ordering::AcqRel, Ordering::Acquire);
        self.state.compare_exchange(FILLING, COMPLETE, done, failed).ok();
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether there is room for more without dropping something.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes() < self.bytes_max
    }

    /// To be noted before a row is read from disk.
    pub(crate) fn checkpoints(&self) -> u64 {
        self.checkpoints.load(Ordering::Acquire)
    }

    /// Takes a row that was read from disk, if no checkpoint has changed the disk since `noted`.
    pub(crate) fn offer(&self, hash: u64, row: KeyRow, noted: u64) {
        let still = || self.checkpoints() == noted;
        if let Some(grown) = self.table.put_absent(hash, row, still) {
            self.bytes.fetch_add(grown, Ordering::Relaxed);
            self.shrink();
        }
    }

    /// Takes over the rows that a checkpoint has put on disk, before they leave the overlay.
    pub(crate) fn take_over(&self, rows: impl Iterator<Item = (u64, KeyRow)>) {
        self.checkpoints.fetch_add(1, Ordering::AcqRel);
        for (hash, row) in rows {
            if row.is_removed() {
                self.forget(hash, row.space(), row.key());
            } else {
                let (grown, shrunk) = self.table.put(hash, row);
                self.bytes.fetch_add(grown, Ordering::Relaxed);
                self.bytes.fetch_sub(shrunk, Ordering::Relaxed);
                self.shrink();
            }
        }
    }

    fn forget(&self, hash: u64, space: Space, key: &[u8]) {
        self.bytes.fetch_sub(self.table.remove(hash, space, key), Ordering::Relaxed);
    }

    /// Drops rows until the rest fits the budget.
    fn shrink(&self) {
        let mut empty = 0;
        while self.bytes() > self.bytes_max && empty <= crate::key_table::LAST_SHARD {
            // Before the row goes, so that nobody takes its absence for an answer.
            self.state.store(PARTIAL, Ordering::Release);
            let shard = self.next_shard.fetch_add(1, Ordering::Relaxed);
            match self.table.evict_from(shard) {
                Some(freed) => {
                    self.bytes.fetch_sub(freed, Ordering::Relaxed);
                    empty = 0;
                }
                None => empty += 1,
            }
        }
    }
}
