//! Facts about buckets and their keys.
//!
//! **Invariant:** a bucket counts the rows of its space, and each expiring row has an entry in the table of expiries,
//! under the time of expiry, the space and the key.

use rows::{NameTable, PointTable, SetTable, Span, Stamp, Totals, decode};

use crate::bucket::{Bucket, BucketId, BucketName, Space};
use crate::key_rows::{KeyRows, KeyRowsMut, WalkLimit};
use crate::limits::NUMBERED_BUCKETS;
use crate::row::KeyRow;
use crate::write;

/// Owner and item under which the number of rows in spaces without a bucket is stored.
const ORPHANED_KEYS: (u64, u64) = (1, 0);

/// Typed reads of buckets and keys, on any thread.
pub struct Facts<'a, R: KeyRows + ?Sized = dyn KeyRows + 'a> {
    rows: &'a R,
}

impl<R: KeyRows + ?Sized> Clone for Facts<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: KeyRows + ?Sized> Copy for Facts<'_, R> {}

/// Expiry of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyExpiry {
    /// Time of expiry, in milliseconds since 1970.
    pub(crate) expires_ms: u64,
    pub(crate) space: Space,
    pub(crate) key: Vec<u8>,
}

impl KeyExpiry {
    /// Reverses [`write::expiry_name`].
    pub(crate) fn read(name: &[u8]) -> Option<Self> {
        let (expires_ms, rest) = name.split_first_chunk()?;
        let (space, key) = rest.split_first_chunk()?;
        let (expires_ms, space) = (u64::from_be_bytes(*expires_ms), u32::from_be_bytes(*space));
        Some(Self { expires_ms, space: Space(space), key: key.to_vec() })
    }
}

impl<'a, R: KeyRows + ?Sized> Facts<'a, R> {
    /// Creates typed reads of `rows`.
    pub fn new(rows: &'a R) -> Self {
        Self { rows }
    }

    /// Counts of all stored data, and the last stamp.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.rows.totals()
    }

    /// Row of a key, which may have expired.
    #[must_use]
    pub fn key(&self, space: Space, key: &[u8]) -> Option<KeyRow> {
        self.rows.key(space, key)
    }

    /// Whether looking up a key may need a disk.
    #[must_use]
    pub fn has_cold_keys(&self) -> bool {
        self.rows.has_cold_keys()
    }

    /// Loads the row of a key into memory; see [`KeyRows::load_key`].
    #[must_use]
    pub fn load_key(&self, bucket: BucketId, key: &[u8]) -> bool {
        self.bucket(bucket).is_some_and(|bucket| self.rows.load_key(bucket.space, key))
    }

    /// Hints that a key will be looked up soon; see [`KeyRows::prefetch_key`].
    pub fn prefetch_key(&self, bucket: BucketId, key: &[u8]) {
        if let Some(bucket) = self.bucket(bucket) {
            self.rows.prefetch_key(bucket.space, key);
        }
    }

    /// Rows of keys from a cursor on; see [`KeyRows::keys`].
    #[must_use]
    pub fn rows_of_keys(
        &self,
        space: Space,
        cursor: u64,
        limit: WalkLimit,
    ) -> (Vec<KeyRow>, Option<u64>) {
        self.rows.keys(space, cursor, limit)
    }

    /// A bucket.
    #[must_use]
    pub fn bucket(&self, bucket: BucketId) -> Option<Bucket> {
        self.rows.bucket(bucket)
    }

    /// Number of buckets, including the numbered ones.
    #[must_use]
    pub fn bucket_count(&self) -> usize {
        self.rows.bucket_count()
    }

    /// Bucket with this name.
    #[must_use]
    pub fn bucket_named(&self, name: &BucketName) -> Option<BucketId> {
        let made = || self.rows.name(NameTable::Bucket, name.as_str().as_bytes());
        name.numbered().or_else(|| made().map(|row| decode(&row)))
    }

    /// First named bucket whose name is not less than `from`.
    #[must_use]
    pub fn first_bucket_from(&self, from: &[u8]) -> Option<(BucketName, BucketId)> {
        let key = self.rows.first_name(NameTable::Bucket, from)?;
        let id = self.rows.name(NameTable::Bucket, &key).map(|row| decode(&row))?;
        let name = std::str::from_utf8(&key).ok().and_then(BucketName::parse);
        name.map(|name| (name, id))
    }

    /// Bucket whose keys are in this space.
    #[must_use]
    pub(crate) fn bucket_of(&self, space: Space) -> Option<BucketId> {
        let row = self.rows.point(PointTable::BucketOfSpace, space.0.into());
        let first = (space.0 < NUMBERED_BUCKETS).then_some(BucketId(space.0.into()));
        let id = row.map(|row| decode(&row)).or(first)?;
        self.bucket(id).filter(|bucket| bucket.space == space).map(|_| id)
    }

    /// Whether [`KeyOp::Sweep`](crate::KeyOp::Sweep) would remove rows at `now_ms`, in milliseconds since 1970.
    #[must_use]
    pub fn has_dead_keys(&self, now_ms: u64) -> bool {
        self.next_key_expiry_ms().is_some_and(|expires_ms| expires_ms <= now_ms)
            || self.first_orphaned_space().is_some()
    }

    /// Earliest expiry of a key, in milliseconds since 1970. It is in the past if that key is not yet removed.
    #[must_use]
    pub fn next_key_expiry_ms(&self) -> Option<u64> {
        self.first_key_expiries(1).first().map(|next| next.expires_ms)
    }

    /// Earliest expiries of keys.
    pub(crate) fn first_key_expiries(&self, limit: usize) -> Vec<KeyExpiry> {
        if self.totals().keys_expiring == 0 {
            return Vec::new();
        }
        let names = self.rows.first_names(NameTable::KeyExpiry, &[], limit);
        names.iter().filter_map(|name| KeyExpiry::read(name)).collect()
    }

    /// First space without a bucket that still has rows, and the cursor of its first remaining row.
    pub(crate) fn first_orphaned_space(&self) -> Option<(Space, u64)> {
        let first = Span { limit: 1, ..Span::ALL };
        let rows = self.rows.members(SetTable::OrphanedSpaces, 0, first);
        rows.first().map(|(space, cursor)| (Space(*space as u32), *cursor))
    }

    /// Number of stored rows of keys. Rows of spaces without a bucket count too, except in spaces that a repair
    /// orphaned.
    pub(crate) fn stored_keys(&self) -> u64 {
        self.rows.counted_keys().saturating_add(self.orphaned_keys())
    }

    fn orphaned_keys(&self) -> u64 {
        let (owner, item) = ORPHANED_KEYS;
        self.rows.member(SetTable::OrphanedSpaces, owner, item).unwrap_or(0)
    }

    /// First empty space that was used before.
    pub(crate) fn first_free_space(&self) -> Option<Space> {
        let first = Span { limit: 1, ..Span::ALL };
        let rows = self.rows.members(SetTable::FreeSpaces, 0, first);
        rows.first().map(|(space, _)| Space(*space as u32))
    }
}

/// Write access to the rows: the reads of [`Facts`], and changes.
pub struct Txn<'a> {
    rows: &'a mut dyn KeyRowsMut,
    work: usize,
}

impl<'a> Txn<'a> {
    /// Creates write access to `rows`.
    pub fn new(rows: &'a mut dyn KeyRowsMut) -> Self {
        Self { rows, work: 0 }
    }

    /// Work done so far, in the unit of [`Cost::work`](rows::Cost::work): bytes of written keys and values, and the
    /// walks of sweeps.
    #[must_use]
    pub fn work(&self) -> usize {
        self.work
    }

    /// Adds work other than changes of rows.
    pub(crate) fn add_work(&mut self, work: usize) {
        self.work += work;
    }

    /// Current facts, including earlier changes of this transaction.
    #[must_use]
    pub fn facts(&self) -> Facts<'_, dyn KeyRowsMut + 'a> {
        Facts::new(&*self.rows)
    }

    /// Marks `count` stamps from `first` on as used.
    pub(crate) fn advance(&mut self, first: Stamp, count: usize) {
        rows::advance(self.rows, first, count);
    }

    /// Changes the totals.
    pub(crate) fn total(&mut self, change: impl FnOnce(&mut Totals)) {
        let mut totals = self.rows.totals();
        change(&mut totals);
        self.rows.put_totals(totals);
    }

    /// Replaces the row `old` of `bucket` by another.
    pub(crate) fn put_key(
        &mut self,
        id: BucketId,
        bucket: Bucket,
        old: Option<&KeyRow>,
        row: KeyRow,
    ) {
        let counted = counted(bucket, old, Some(&row));
        if counted != bucket {
            self.rows.put_bucket(id, Some(counted));
        }
        let old_expiry = old.and_then(KeyRow::expires_ms);
        if old_expiry != row.expires_ms() {
            self.expect(&row, old_expiry, false);
            self.expect(&row, row.expires_ms(), true);
        }
        self.work += row.data_bytes() as usize;
        self.rows.put_key(row);
    }

    /// Removes a row of `bucket`.
    pub(crate) fn remove_key(&mut self, id: BucketId, bucket: Bucket, row: &KeyRow, stamp: Stamp) {
        let counted = counted(bucket, Some(row), None);
        self.rows.put_bucket(id, Some(counted));
        self.remove_orphaned_key(row, stamp);
    }

    /// Adds `more` to the number of rows in spaces without a bucket.
    pub(crate) fn count_orphaned_keys(&mut self, more: i64) {
        let (owner, item) = ORPHANED_KEYS;
        let keys = self.facts().orphaned_keys().saturating_add_signed(more);
        self.rows.put_member(SetTable::OrphanedSpaces, owner, item, (keys > 0).then_some(keys));
    }

    /// Removes a row and its expiry; the caller updates the counts.
    pub(crate) fn remove_orphaned_key(&mut self, row: &KeyRow, stamp: Stamp) {
        self.expect(row, row.expires_ms(), false);
        self.rows.put_key(KeyRow::removed(row.space(), row.key(), stamp));
    }

    /// Stores or removes the expiry of a key.
    fn expect(&mut self, row: &KeyRow, expires_ms: Option<u64>, expires: bool) {
        if let Some(expires_ms) = expires_ms {
            self.put_key_expiry(expires_ms, row.space(), row.key(), expires);
        }
    }

    pub(crate) fn put_key_expiry(
        &mut self,
        expires_ms: u64,
        space: Space,
        key: &[u8],
        expires: bool,
    ) {
        write::key_expiry(self.rows, expires_ms, (space, key), expires);
        self.total(|totals| match expires {
            true => totals.keys_expiring += 1,
            false => totals.keys_expiring -= 1,
        });
    }

    /// Sets or removes a bucket, and updates the owner of its space.
    pub(crate) fn put_bucket(&mut self, id: BucketId, bucket: Option<Bucket>) {
        if let Some(bucket) = bucket {
            write::bucket_of_space(self.rows, bucket.space, Some(id));
        }
        self.rows.put_bucket(id, bucket);
    }

    /// Sets or removes the name of a bucket.
    pub(crate) fn put_bucket_name(&mut self, name: &BucketName, id: Option<BucketId>) {
        write::bucket_name(self.rows, name, id);
    }

    /// Takes the space from a bucket. Sweeps then remove the rows of the space, and it becomes free.
    pub(crate) fn orphan_space(&mut self, bucket: Bucket) {
        write::bucket_of_space(self.rows, bucket.space, None);
        if bucket.keys > 0 {
            self.put_orphaned_space(bucket.space, Some(0));
            self.count_orphaned_keys(bucket.keys.cast_signed());
        } else {
            self.put_free_space(bucket.space, true);
        }
    }

    /// Stores the cursor of the first remaining row of an orphaned space; `None` if there are none.
    pub(crate) fn put_orphaned_space(&mut self, space: Space, cursor: Option<u64>) {
        // A row of a set cannot hold `u64::MAX`. If the cursor is less by one, a walk may read one row a second time.
        let cursor = cursor.map(|cursor| cursor.min(u64::MAX - 1));
        self.rows.put_member(SetTable::OrphanedSpaces, 0, space.0.into(), cursor);
    }

    /// Marks an empty space as free or as used.
    pub(crate) fn put_free_space(&mut self, space: Space, free: bool) {
        self.rows.put_member(SetTable::FreeSpaces, 0, space.0.into(), free.then_some(0));
    }
}

/// Counts of a bucket after replacing the row `old` by `new`; either may be `None`.
pub(crate) fn counted(bucket: Bucket, old: Option<&KeyRow>, new: Option<&KeyRow>) -> Bucket {
    let counts = |row: Option<&KeyRow>| {
        let expiry = row.and_then(KeyRow::expires_ms);
        let (is_there, expires) = (u64::from(row.is_some()), u64::from(expiry.is_some()));
        (is_there, row.map_or(0, KeyRow::data_bytes), expires, expiry.map_or(0, u128::from))
    };
    let (old, new) = (counts(old), counts(new));
    Bucket {
        space: bucket.space,
        keys: bucket.keys + new.0 - old.0,
        bytes: bucket.bytes + new.1 - old.1,
        expiring: bucket.expiring + new.2 - old.2,
        expiries_ms: bucket.expiries_ms + new.3 - old.3,
    }
}
