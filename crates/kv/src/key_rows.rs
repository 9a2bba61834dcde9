//! Access to keys and buckets, which are not in the tables: rows of keys are in a secret order, and buckets are
//! few and always in memory.

use rows::{Rows, RowsMut, Scan};

use crate::bucket::{Bucket, BucketId, Space};
use crate::row::KeyRow;

/// Cursors of a walk over keys are multiples of this: the other 53 bits fit in a double, as which many clients of Redis
/// keep a cursor. Rows between two multiples belong to the same step; two rows there are rare below 100 million rows.
pub const CURSOR_STEP: u64 = 1 << 11;

/// Limits of one step of a walk over keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkLimit {
    /// Rows; at least 1. Exceeded only by rows that no cursor separates: see [`CURSOR_STEP`].
    pub rows: usize,
    /// Bytes of keys and values; exceeded by one row at most.
    pub bytes: usize,
    /// Rows read, of other spaces too, after which the step ends even if it has found fewer, or none. Where it ends
    /// then depends on what is in memory.
    pub visits: usize,
    /// The last place whose rows belong to the step: one before a multiple of [`CURSOR_STEP`].
    pub up_to: u64,
    /// Whether few of all rows are of the space. Then those on disk are read, which are beside each other, and not those in
    /// memory, which are among the others.
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

    /// At most `rows` rows and about 4 MiB, out of about 16,384 rows read: less than a millisecond.
    #[must_use]
    pub const fn rows(rows: usize) -> Self {
        let rows = if rows == 0 { 1 } else { rows };
        Self { rows, bytes: 4 << 20, visits: 1 << 14, ..Self::NONE }
    }
}

/// Reading keys, in addition to other rows.
pub trait KeyRows: Rows {
    /// The row of a key of a bucket; never the mark of a removed one.
    fn key(&self, space: Space, key: &[u8]) -> Option<KeyRow>;
    /// Whether looking up a key may have to read a disk.
    fn has_cold_keys(&self) -> bool {
        false
    }
    /// Loads the row of a key into memory, so that [`KeyRows::key`] finds it there soon; returns whether it
    /// was read from a disk.
    fn load_key(&self, _space: Space, _key: &[u8]) -> bool {
        false
    }
    /// A hint that the row of a key is looked up soon. Changes nothing.
    fn prefetch_key(&self, _space: Space, _key: &[u8]) {}
    /// Rows of keys of `space` from `cursor` on, in an order chosen by the store, and the cursor to continue
    /// from if there may be more. Returns at most about `limit`. A walk always ends, and returns every row
    /// that exists during the whole walk exactly once. The first cursor is 0, and all are multiples of
    /// [`CURSOR_STEP`]. Without a limit of visits, what is
    /// returned depends on nothing but the rows.
    fn keys(&self, space: Space, cursor: u64, limit: WalkLimit) -> (Vec<KeyRow>, Option<u64>);
    /// A bucket. Reads no row: all buckets are in memory.
    fn bucket(&self, bucket: BucketId) -> Option<Bucket>;
    /// Number of buckets, the numbered ones included.
    fn bucket_count(&self) -> usize;
    /// Number of keys that all buckets count, those that have expired included.
    fn counted_keys(&self) -> u64;
}

/// Reading all keys, while no other code changes rows.
pub trait KeyScan: KeyRows + Scan {
    /// The spaces that have rows, in ascending order.
    fn spaces(&self) -> Vec<Space>;
    /// All buckets, the numbered ones included, in the order of ids.
    fn buckets(&self) -> Vec<(BucketId, Bucket)>;
}

/// Changing keys; only the writer holds one.
pub trait KeyRowsMut: KeyRows + RowsMut {
    /// Puts a row of a key, or the mark that it was removed.
    fn put_key(&mut self, row: KeyRow);
    /// Sets or removes a bucket. Numbered buckets are never removed.
    fn put_bucket(&mut self, id: BucketId, bucket: Option<Bucket>);
    /// From now on all changes of rows, buckets and totals can be taken back, until [`KeyRowsMut::keep`].
    fn save(&mut self);
    /// Keeps the changes since [`KeyRowsMut::save`].
    fn keep(&mut self);
    /// Takes back the changes since [`KeyRowsMut::save`].
    fn undo(&mut self);
}
