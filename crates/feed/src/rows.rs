//! How facts lie in rows: three kinds of table and the keys of buckets, and the traits through which
//! they are reached.
//!
//! Points map a number to bytes, sets map (owner, item) to a small number and are read as ranges of
//! one owner's items, names map bytes to bytes in order. Everything the rules need fits one of them,
//! but for the keys of buckets: their rows are in an order that the store keeps secret, and buckets
//! themselves are few and always in memory.
//!
//! Some tables are **fleeting**: what they hold is to leave every disk soon after it is removed, so
//! a store keeps them apart and may, after a crash, have applied more of the log to them than to the
//! others. **Invariant:** the outcome of a command, the totals and the rows of other tables never
//! depend on fleeting rows.
//!
//! Reads do not fail: a store that cannot read its rows stops the process, because an answer made
//! of half the facts would be wrong, and the log can rebuild them.

use smallvec::SmallVec;

use crate::ids::{BucketId, Space};
use crate::keys::{Bucket, KeyRow};
use crate::records::Totals;

/// The bytes of one row; short ones (counts, ids) need no allocation.
pub type Value = SmallVec<[u8; 24]>;

/// Tables from a number to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PointTable {
    /// User id -> [`crate::User`].
    User,
    /// User id -> [`crate::Counts`].
    Counts,
    /// Post id -> [`crate::Post`].
    Post,
    /// Story id -> [`crate::Story`].
    Story,
    /// Story id -> text. Fleeting.
    StoryText,
    /// Sample id -> [`crate::Sample`].
    Sample,
    /// Space -> bucket id; nothing if no bucket has it, or if it is a numbered bucket's first one.
    BucketOfSpace,
}

/// Tables from (owner, item) to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SetTable {
    /// (follower, followed) -> 0.
    Following,
    /// (followed, follower) -> 0.
    Followers,
    /// (author, post) -> 0, or the user replied to plus 1.
    AuthorPosts,
    /// (mentioned, post) -> 0.
    Mentions,
    /// (person, friend) -> 0, both ways.
    Friends,
    /// (author, story) -> when it expires, in milliseconds since 1970.
    AuthorStories,
    /// (whole second since 1970 in which it expires or was deleted, story) -> author.
    Expiring,
    /// (story, viewer) -> when they first saw it, in milliseconds since 1970. Fleeting.
    StoryViews,
    /// (viewer, story) -> 0. Fleeting.
    Seen,
    /// (set of samples, sample) -> 0.
    Samples,
    /// (0, space that no bucket has) -> the cursor from which on its rows are not removed yet.
    OrphanedSpaces,
    /// (0, space without rows that no bucket has) -> 0.
    FreeSpaces,
}

/// Tables from bytes to bytes, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NameTable {
    /// Handle -> user id.
    Handle,
    /// Day and key digest -> content digest and outcome.
    Idempotency,
    /// Name of a set -> [`crate::SampleSet`].
    SampleSet,
    /// Set of samples, then label -> how many samples have it.
    SampleLabel,
    /// Name of a bucket -> its id.
    Bucket,
    /// When a key expires (milliseconds since 1970, 8 bytes), its space (4 bytes), the key -> nothing.
    KeyExpiry,
}

impl PointTable {
    /// All, in order.
    pub const ALL: [Self; 7] = [
        Self::User,
        Self::Counts,
        Self::Post,
        Self::Story,
        Self::StoryText,
        Self::Sample,
        Self::BucketOfSpace,
    ];

    /// Whether rows of this table may be ahead of the others after a crash.
    #[must_use]
    pub const fn is_fleeting(self) -> bool {
        matches!(self, Self::StoryText)
    }
}

impl SetTable {
    /// All, in order.
    pub const ALL: [Self; 12] = [
        Self::Following,
        Self::Followers,
        Self::AuthorPosts,
        Self::Mentions,
        Self::Friends,
        Self::AuthorStories,
        Self::Expiring,
        Self::StoryViews,
        Self::Seen,
        Self::Samples,
        Self::OrphanedSpaces,
        Self::FreeSpaces,
    ];

    /// Whether rows of this table may be ahead of the others after a crash.
    #[must_use]
    pub const fn is_fleeting(self) -> bool {
        matches!(self, Self::StoryViews | Self::Seen)
    }

    /// Whether owners are people, numbered without gaps, so that a bitmap of them stays small.
    #[must_use]
    pub const fn has_dense_owners(self) -> bool {
        !matches!(
            self,
            Self::Expiring
                | Self::StoryViews
                | Self::Samples
                | Self::OrphanedSpaces
                | Self::FreeSpaces
        )
    }
}

impl NameTable {
    /// All, in order.
    pub const ALL: [Self; 6] = [
        Self::Handle,
        Self::Idempotency,
        Self::SampleSet,
        Self::SampleLabel,
        Self::Bucket,
        Self::KeyExpiry,
    ];
}

/// Which way a range is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Smallest item first.
    Ascending,
    /// Largest item first.
    Descending,
}

/// A range of one owner's items: `low..=high`, at most `limit` of them, from the end that `order`
/// names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Smallest item wanted.
    pub low: u64,
    /// Largest item wanted.
    pub high: u64,
    /// At most so many.
    pub limit: usize,
    /// From which end.
    pub order: Order,
}

impl Span {
    /// All items, ascending.
    pub const ALL: Self =
        Self { low: 0, high: u64::MAX, limit: usize::MAX, order: Order::Ascending };

    /// The largest items, strictly below `before`, largest first.
    #[must_use]
    pub fn below(before: Option<u64>, limit: usize) -> Option<Self> {
        let high = match before {
            None => u64::MAX,
            Some(before) => before.checked_sub(1)?,
        };
        Some(Self { low: 0, high, limit, order: Order::Descending })
    }

    /// The smallest items, strictly above `after`, smallest first.
    #[must_use]
    pub fn above(after: u64, limit: usize) -> Option<Self> {
        let low = after.checked_add(1)?;
        Some(Self { low, high: u64::MAX, limit, order: Order::Ascending })
    }

    /// What follows `last`, the last item read: at most `limit` items in the same order, up to the
    /// same end.
    #[must_use]
    pub fn beyond(self, last: u64, limit: usize) -> Option<Self> {
        let rest = match self.order {
            Order::Descending => Self { high: last.checked_sub(1)?, limit, ..self },
            Order::Ascending => Self { low: last.checked_add(1)?, limit, ..self },
        };
        (rest.low <= rest.high).then_some(rest)
    }

    /// The same, ending before `end`.
    #[must_use]
    pub fn until(self, end: u64) -> Option<Self> {
        let part = match self.order {
            Order::Descending => Self { low: self.low.max(end.checked_add(1)?), ..self },
            Order::Ascending => Self { high: self.high.min(end.checked_sub(1)?), ..self },
        };
        (part.low <= part.high).then_some(part)
    }
}

/// How much one step of a walk over keys returns at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkLimit {
    /// Rows; at least 1. Exceeded only by rows that the store cannot tell apart by their cursor.
    pub rows: usize,
    /// Bytes of keys and values; exceeded by one row at most.
    pub bytes: usize,
    /// Rows looked at, of other spaces too, after which the step ends though it has found less, or nothing.
    pub visits: usize,
}

impl WalkLimit {
    /// No limit.
    pub const NONE: Self = Self { rows: usize::MAX, bytes: usize::MAX, visits: usize::MAX };

    /// So many rows, of 4 MiB together, out of 16,384 or somewhat more: less than a millisecond.
    #[must_use]
    pub const fn rows(rows: usize) -> Self {
        Self { rows: if rows == 0 { 1 } else { rows }, bytes: 4 << 20, visits: 1 << 14 }
    }
}

/// Reading rows.
pub trait Rows {
    /// The row `key` of `table`.
    fn point(&self, table: PointTable, key: u64) -> Option<Value>;
    /// Hands every row of `table` to `each`, in the order of keys. One scan, however many there are: for
    /// the start, while nothing changes.
    fn each_point(&self, table: PointTable, each: &mut dyn FnMut(u64, &[u8]));
    /// The number beside `item` of `owner`, if it is a member.
    fn member(&self, table: SetTable, owner: u64, item: u64) -> Option<u64>;
    /// Items of `owner` with their numbers, in the span's order.
    fn members(&self, table: SetTable, owner: u64, span: Span) -> Vec<(u64, u64)>;
    /// The row `key` of `table`.
    fn name(&self, table: NameTable, key: &[u8]) -> Option<Value>;
    /// The first keys of `table` that are not below `from`, in order: at most `limit`.
    fn first_names(&self, table: NameTable, from: &[u8], limit: usize) -> Vec<Vec<u8>>;
    /// The first key of `table` that is not below `from`.
    fn first_name(&self, table: NameTable, from: &[u8]) -> Option<Vec<u8>> {
        self.first_names(table, from, 1).pop()
    }
    /// How much there is.
    fn totals(&self) -> Totals;
    /// The row of a key of a bucket; never the mark of a removed one.
    fn key(&self, space: Space, key: &[u8]) -> Option<KeyRow>;
    /// Whether looking up a key may have to read a disk.
    fn has_cold_keys(&self) -> bool {
        false
    }
    /// Brings the row of a key into memory, so that [`Rows::key`] finds it there soon; returns whether it
    /// had to be read from a disk.
    fn load_key(&self, _space: Space, _key: &[u8]) -> bool {
        false
    }
    /// A hint that the row of a key is looked up soon. Changes nothing.
    fn prefetch_key(&self, _space: Space, _key: &[u8]) {}
    /// Rows of keys of `space` from `cursor` on, in an order of the store's own, and the cursor to go on
    /// from if there may be more. At most about as much as `limit` says, and never an endless loop: rows
    /// that exist all the while are met exactly once. The first cursor is 0.
    fn keys(&self, space: Space, cursor: u64, limit: WalkLimit) -> (Vec<KeyRow>, Option<u64>);
    /// A bucket. Costs no row: all of them are in memory.
    fn bucket(&self, bucket: BucketId) -> Option<Bucket>;
    /// Number of buckets, the numbered ones included.
    fn bucket_count(&self) -> usize;
}

/// Changing rows; `None` removes. Only the writer holds one.
pub trait RowsMut: Rows {
    /// Sets or removes a point.
    fn put_point(&mut self, table: PointTable, key: u64, value: Option<Value>);
    /// Sets or removes a member.
    fn put_member(&mut self, table: SetTable, owner: u64, item: u64, value: Option<u64>);
    /// Sets or removes a name.
    fn put_name(&mut self, table: NameTable, key: &[u8], value: Option<Value>);
    /// Sets the totals.
    fn put_totals(&mut self, totals: Totals);
    /// Puts a row of a key, or the mark that it was removed.
    fn put_key(&mut self, row: KeyRow);
    /// Sets or removes a bucket. Those with a number stay.
    fn put_bucket(&mut self, id: BucketId, bucket: Option<Bucket>);
}
