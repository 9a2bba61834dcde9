//! Keys as readers see them.
//!
//! A key is read from memory without waiting for anybody: the overlays and the resident rows of the
//! store. One that is in neither may be on the disk.

use std::time::Duration;

use kv::{Bucket, BucketId, KeyRow, KeyRows as _, Lengths, WalkLimit};
use parking_lot::{RwLock, RwLockReadGuard};
use store::Store;

/// Keeps the writer from changing keys while it lives. To be held for a moment.
pub struct SnapshotLock<'a>(#[expect(dead_code, reason = "held, not looked at")] RwLockReadGuard<'a, ()>);

impl<'a> SnapshotLock<'a> {
    /// Waits until the writer does not hold `lock`.
    pub(crate) fn hold(lock: &'a RwLock<()>) -> Self {
        Self(lock.read())
    }

    /// The same, if the writer lets it within so long.
    pub(crate) fn try_hold(lock: &'a RwLock<()>, patience: Duration) -> Option<Self> {
        lock.try_read_for(patience).map(Self)
    }
}

/// Keys as they are at one time.
#[derive(Clone, Copy)]
pub struct Keys<'a> {
    store: &'a Store,
    now_ms: u64,
}

/// What memory knows of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is there.
    Row(KeyRow),
    /// It is not there.
    Absent,
    /// Nothing: it may be on the disk.
    Unknown,
}

impl<'a> Keys<'a> {
    pub(crate) fn at(store: &'a Store, now_ms: u64) -> Self {
        Self { store, now_ms }
    }

    /// The time at which expired keys are told from others, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// A bucket that stands. Never waits for a disk.
    #[must_use]
    pub fn bucket(&self, bucket: BucketId) -> Option<Bucket> {
        self.store.bucket(bucket)
    }

    /// A key, if memory knows of it. Never waits for a disk. In a bucket that is gone, all keys are
    /// absent.
    #[must_use]
    pub fn try_row(&self, bucket: BucketId, key: &[u8]) -> Found {
        let Some(bucket) = self.store.bucket(bucket) else { return Found::Absent };
        match self.store.key_in_memory(bucket.space, key) {
            Some(Some(row)) if row.is_live(self.now_ms) => Found::Row(row),
            Some(_) => Found::Absent,
            None => Found::Unknown,
        }
    }

    /// A hint that a key is read soon: its row may be on the way into the processor's cache until then.
    pub fn prefetch(&self, bucket: BucketId, key: &[u8]) {
        if let Some(bucket) = self.store.bucket(bucket) {
            self.store.prefetch_key(bucket.space, key);
        }
    }

    /// A key. May read the disk.
    #[must_use]
    pub fn row(&self, bucket: BucketId, key: &[u8]) -> Option<KeyRow> {
        loop {
            let space = self.store.bucket(bucket)?.space;
            let row = self.store.key(space, key);
            // Emptied while the disk was read, the space may be another bucket's by now.
            if self.store.bucket(bucket)?.space == space {
                return row.filter(|row| row.is_live(self.now_ms));
            }
        }
    }

    /// Live keys from `cursor` on, in the store's own order: at most so many, fewer if they hold more than
    /// 4 MiB, and none if nothing among so many rows is live; and the cursor to go on from, if more may
    /// follow. Whoever goes on until none follows meets every key that existed all the while. The first
    /// cursor is 0. May read the disk.
    #[must_use]
    pub fn walk(
        &self,
        bucket: BucketId,
        cursor: u64,
        at_most: usize,
    ) -> (Vec<KeyRow>, Option<u64>) {
        let Some(bucket) = self.store.bucket(bucket) else { return (Vec::new(), None) };
        let (mut rows, next) = self.store.keys(bucket.space, cursor, WalkLimit::rows(at_most));
        rows.retain(|row| row.is_live(self.now_ms));
        (rows, next)
    }
}

/// As memory has them; what only the disk knows counts as absent.
impl Lengths for Keys<'_> {
    fn value_bytes(&self, bucket: BucketId, key: &[u8]) -> usize {
        if key.is_empty() {
            return 0;
        }
        match self.try_row(bucket, key) {
            Found::Row(row) => row.value().len(),
            Found::Absent | Found::Unknown => 0,
        }
    }

    fn bucket_count(&self) -> usize {
        self.store.bucket_count()
    }
}
