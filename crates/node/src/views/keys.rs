//! Keys of buckets for readers.
//!
//! A key is read from memory (the overlays and the cached rows of the store) without waiting for the writer. A key that
//! is not in memory may be on disk.
//!
//! **Invariant:** a transaction on keys is applied without interleaved changes. A holder of the [`SnapshotLock`] sees
//! all of a group's changes to keys or none.

use std::time::Duration;

use kv::{Bucket, BucketId, KeyRow, KeyRows as _, Lengths, Space, WalkLimit};
use parking_lot::{RwLock, RwLockReadGuard};
use store::Store;

/// A bucket counts as small if all buckets together have more than this many times its keys.
const SMALL_RATIO: u64 = 64;

/// Guard that keeps the writer from changing keys. Hold it only briefly.
pub struct SnapshotLock<'a>(
    #[expect(dead_code, reason = "held, never read")] RwLockReadGuard<'a, ()>,
);

impl<'a> SnapshotLock<'a> {
    /// Takes `lock` once the writer has released it.
    pub(crate) fn hold(lock: &'a RwLock<()>) -> Self {
        Self(lock.read())
    }

    /// Takes `lock`; `None` if the writer holds it for longer than `patience`.
    pub(crate) fn try_hold(lock: &'a RwLock<()>, patience: Duration) -> Option<Self> {
        lock.try_read_for(patience).map(Self)
    }
}

/// Keys at one time.
#[derive(Clone, Copy)]
pub struct Keys<'a> {
    store: &'a Store,
    now_ms: u64,
}

/// Result of looking up a key in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The key exists.
    Row(KeyRow),
    /// The key does not exist.
    Absent,
    /// The key is not in memory; it may be on disk.
    Unknown,
}

impl<'a> Keys<'a> {
    pub(crate) fn at(store: &'a Store, now_ms: u64) -> Self {
        Self { store, now_ms }
    }

    /// Returns the time that decides which keys have expired, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Returns a bucket if it exists. Never waits for a disk.
    #[must_use]
    pub fn bucket(&self, bucket: BucketId) -> Option<Bucket> {
        self.store.bucket(bucket)
    }

    /// Looks up a key in memory. Never waits for a disk. In a bucket that does not exist, all keys are absent.
    #[must_use]
    pub fn try_row(&self, bucket: BucketId, key: &[u8]) -> Found {
        let Some(bucket) = self.store.bucket(bucket) else { return Found::Absent };
        match self.store.key_in_memory(bucket.space, key) {
            Some(Some(row)) if row.is_live(self.now_ms) => Found::Row(row),
            Some(_) => Found::Absent,
            None => Found::Unknown,
        }
    }

    /// Prefetches the row of a key, which will be read soon, into the processor's cache.
    pub fn prefetch(&self, bucket: BucketId, key: &[u8]) {
        if let Some(bucket) = self.store.bucket(bucket) {
            self.store.prefetch_key(bucket.space, key);
        }
    }

    /// Returns the row of a key. May read the disk.
    #[must_use]
    pub fn row(&self, bucket: BucketId, key: &[u8]) -> Option<KeyRow> {
        let row = self.read(bucket, |space| self.store.key(space, key)).flatten();
        row.filter(|row| row.is_live(self.now_ms))
    }

    /// Reads the rows of a bucket; `None` if it does not exist.
    fn read<T>(&self, bucket: BucketId, read: impl Fn(Space) -> T) -> Option<T> {
        loop {
            let space = self.store.bucket(bucket)?.space;
            let rows = read(space);
            // If the bucket was emptied during the read, the space that was read may now belong to another bucket.
            if self.store.bucket(bucket)?.space == space {
                return Some(rows);
            }
        }
    }

    /// Returns live keys from `cursor` on, in the store's order, and the cursor of the next call if there may be more
    /// keys. Returns at most `at_most` keys: fewer if they exceed 4 MiB, and none if the next `at_most` rows have
    /// expired. A walk to the end returns every key that existed during the whole walk. The first cursor is 0. May read
    /// the disk.
    #[must_use]
    pub fn walk(
        &self,
        bucket: BucketId,
        cursor: u64,
        at_most: usize,
    ) -> (Vec<KeyRow>, Option<u64>) {
        let keys = self.store.bucket(bucket).map_or(0, |bucket| bucket.keys);
        let is_small = keys.saturating_mul(SMALL_RATIO) < self.store.counted_keys();
        let limit = WalkLimit { is_small, ..WalkLimit::rows(at_most) };
        let found = self.read(bucket, |space| self.store.keys(space, cursor, limit));
        let (mut rows, next) = found.unwrap_or_default();
        rows.retain(|row| row.is_live(self.now_ms));
        (rows, next)
    }
}

/// Lengths of the keys in memory; a key that is only on disk counts as absent.
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
}
