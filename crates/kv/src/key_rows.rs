//! Access to keys and buckets. Neither is stored in tables: rows of keys are in a secret order, and buckets are few and
//! always in memory.

use rows::{Rows, RowsMut, Scan};

use crate::bucket::{Bucket, BucketId, Space};
use crate::row::KeyRow;

/// Divisor of all cursors of a walk over keys. A cursor divided by it has at most 53 bits, so it fits in a double, the
/// type in which many Redis clients store a cursor. One step of a walk returns all rows between two adjacent multiples
/// of the divisor. With fewer than 100 million rows, there is rarely more than one such row.
pub const CURSOR_STEP: u64 = 1 << 11;

/// Limits of one step of a walk over keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkLimit {
    /// Maximum number of rows, at least 1. A step exceeds it only if no cursor separates the rows: see [`CURSOR_STEP`].
    pub rows: usize,
    /// Maximum size of keys and values, in bytes. A step exceeds it by at most one row.
    pub bytes: usize,
    /// Maximum number of rows that the step reads in all spaces, including rows that it does not return. If this limit
    /// ends the step, the place where it ends depends on which rows are in memory.
    pub visits: usize,
    /// Last position that belongs to the step, in the order of the walk: one less than a multiple of [`CURSOR_STEP`].
    pub up_to: u64,
    /// Whether the space has only a small part of all rows. If so, the walk reads the rows on disk, where the rows of a
    /// space are adjacent, instead of the rows in memory, where they are scattered.
    pub is_small: bool,
}

impl WalkLimit {
    /// No limit.
    pub const NONE: Self = Self {
        rows: usize::MAX,
        bytes: usize::MAX,
        visits: usize::MAX,
        up_to: u64::MAX,
        is_small: false,
    };

    /// Limits a step to `rows` rows, about 4 MiB, and about 16,384 rows read. Such a step takes less than a
    /// millisecond.
    #[must_use]
    pub const fn rows(rows: usize) -> Self {
        let rows = if rows == 0 { 1 } else { rows };
        Self { rows, bytes: 4 << 20, visits: 1 << 14, ..Self::NONE }
    }
}

/// Reads of keys, in addition to other rows.
pub trait KeyRows: Rows {
    /// Returns the row of a key of a bucket; never the mark of a removed key.
    fn key(&self, space: Space, key: &[u8]) -> Option<KeyRow>;
    /// Whether looking up a key may read from a disk.
    fn has_cold_keys(&self) -> bool {
        false
    }
    /// Loads the row of a key into memory, so that [`KeyRows::key`] soon finds it there. Returns whether the row was
    /// read from a disk.
    fn load_key(&self, _space: Space, _key: &[u8]) -> bool {
        false
    }
    /// Hints that the row of a key will be looked up soon. Changes nothing.
    fn prefetch_key(&self, _space: Space, _key: &[u8]) {}
    /// Returns rows of keys of `space` from `cursor` on, at most about `limit`, and the cursor to continue from, if
    /// there may be more. The store chooses the order. A walk always ends, and returns every row that exists during the
    /// whole walk exactly once. The first cursor is 0, and all are multiples of [`CURSOR_STEP`]. Without a limit of
    /// visits, the result depends only on the rows.
    fn keys(&self, space: Space, cursor: u64, limit: WalkLimit) -> (Vec<KeyRow>, Option<u64>);
    /// Returns a bucket. Reads no row: all buckets are in memory.
    fn bucket(&self, bucket: BucketId) -> Option<Bucket>;
    /// Number of buckets, including the numbered ones.
    fn bucket_count(&self) -> usize;
    /// Number of keys in all buckets, including expired ones.
    fn counted_keys(&self) -> u64;
}

/// Reads of all keys, while no other code changes rows.
pub trait KeyScan: KeyRows + Scan {
    /// Spaces with rows, in ascending order.
    fn spaces(&self) -> Vec<Space>;
    /// All buckets, including the numbered ones, by id.
    fn buckets(&self) -> Vec<(BucketId, Bucket)>;
}

/// Changes of keys; only the writer has this access.
pub trait KeyRowsMut: KeyRows + RowsMut {
    /// Writes the row of a key, or the mark that it was removed.
    fn put_key(&mut self, row: KeyRow);
    /// Sets or removes a bucket. Numbered buckets are never removed.
    fn put_bucket(&mut self, id: BucketId, bucket: Option<Bucket>);
    /// Starts to record all changes of rows, buckets and totals for [`KeyRowsMut::undo`], until [`KeyRowsMut::keep`].
    fn save(&mut self);
    /// Keeps the changes since [`KeyRowsMut::save`].
    fn keep(&mut self);
    /// Reverts the changes since [`KeyRowsMut::save`].
    fn undo(&mut self);
}
