//! Reads of rows, from the layers in memory and from the disk.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use kv::{Bucket, BucketId, KeyRow, KeyRows, Space, WalkLimit};
use rows::{NameTable, PointTable, Rows, SetTable, Span, Subject, Totals, Value};

use crate::disk::KeyspaceKind;
use crate::error::StoreError;
use crate::layout;
use crate::merge::{self, OverlayItems, OverlayNames};
use crate::overlay::Overlay;
use crate::owners::State;
use crate::revisions::{Revision, RevisionsCopy};
use crate::shared::Store;

impl Store {
    /// Returns the size on disk in bytes.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        self.shared().disk.bytes()
    }

    /// Returns the current table files and their checksums.
    #[must_use]
    pub fn table_files(&self) -> Vec<(PathBuf, u128)> {
        [KeyspaceKind::Facts, KeyspaceKind::Ephemeral]
            .map(|part| self.shared().disk.tables(part))
            .concat()
    }

    /// Erases the ephemeral rows (texts and views of stories) that are removed on disk since the last checkpoint from
    /// every file of the store, by rewriting the others. Blocks; run it on a background thread. Reads, writes and
    /// checkpoints continue meanwhile. The files with the removed rows stay until earlier reads have ended, which may
    /// take long for a backup: until then, `wait` is called repeatedly, and must pause between checks.
    ///
    /// # Errors
    /// The engine fails. Rows that were not removed are unchanged.
    pub fn erase(&self, wait: impl FnMut()) -> Result<(), StoreError> {
        self.shared().disk.erase(wait)
    }

    /// Whether an ephemeral row was ever written, even if it was removed. Reads the disk.
    #[must_use]
    pub fn had_ephemeral(&self) -> bool {
        let in_memory = |layer: &Overlay| layer.has_ephemeral().then_some(());
        self.shared().layers.load().find(in_memory).is_some()
            || self.shared().disk.point(KeyspaceKind::Ephemeral, &layout::HEAD).is_some()
    }

    /// Returns the row `key` of `table` if it has changed since the last checkpoint. Never reads the disk: if the
    /// result is `None`, the row may exist there.
    #[must_use]
    pub fn point_in_memory(&self, table: PointTable, key: u64) -> Option<Value> {
        self.shared().layers.load().find(|layer| layer.point(table, key)).flatten()
    }

    /// Whether `item` may be a member of `owner`. If false, it certainly is not. If true, it certainly is, provided
    /// that `item` is the only possible item and members of the table are never removed. Never reads the disk.
    #[must_use]
    pub fn may_have_member(&self, table: SetTable, owner: u64, item: u64) -> bool {
        let layers = self.shared().layers.load();
        match layers.find(|layer| layer.member(table, owner, item)) {
            Some(changed) => changed.is_some(),
            None => self.shared().owners.contains(table, owner),
        }
    }

    /// Whether items of `owner` changed since the last checkpoint. Never reads the disk.
    #[must_use]
    pub fn has_members_in_memory(&self, table: SetTable, owner: u64) -> bool {
        let layers = self.shared().layers.load();
        layers.find(|layer| layer.has_owner(table, owner).then_some(())).is_some()
    }

    /// Whether `owner` may have members. If false, it certainly has none. Never reads the disk.
    #[must_use]
    pub fn may_have_members(&self, table: SetTable, owner: u64) -> bool {
        // Check memory before the disk, because rows are on disk before they leave memory.
        self.has_members_in_memory(table, owner) || self.shared().owners.contains(table, owner)
    }

    /// Returns the revision of `subject`, which changes with each change of its rows. Read the revision before the
    /// rows: if the revision is still current later, so are the rows. Never reads the disk.
    #[must_use]
    pub fn revision(&self, subject: Subject) -> Revision {
        self.shared().revisions.get(subject)
    }

    /// Whether nothing has changed since a revision was read. Never reads the disk.
    #[must_use]
    pub fn is_current(&self, revision: Revision) -> bool {
        self.shared().revisions.is_current(revision)
    }

    /// Returns the number of times that the writer has undone changes. If it increases between two calls, rows that
    /// were read in between may contain undone changes.
    #[must_use]
    pub fn undone(&self) -> u64 {
        self.shared().revisions.undone()
    }

    /// Copies all current revisions.
    #[must_use]
    pub fn revisions(&self) -> RevisionsCopy {
        self.shared().revisions.copy()
    }

    /// Calls `each` with all rows of `table` in a range of keys: first those on disk, then those in memory, which are
    /// newer or removed.
    pub(crate) fn points_between(
        &self,
        table: PointTable,
        keys: RangeInclusive<u64>,
        each: &mut dyn FnMut(u64, Option<Value>),
    ) {
        let layers = self.shared().layers.load();
        for (key, row) in self.shared().disk.points(table, keys.clone()) {
            each(key, Some(Value::from_slice(&row)));
        }
        for key in keys {
            if let Some(row) = layers.find(|layer| layer.point(table, key)) {
                each(key, row);
            }
        }
    }
}

impl Rows for Store {
    fn point(&self, table: PointTable, key: u64) -> Option<Value> {
        let layers = self.shared().layers.load();
        if let Some(row) = layers.find(|layer| layer.point(table, key)) {
            return row;
        }
        let row =
            self.shared().disk.point(KeyspaceKind::of_point(table), &layout::point(table, key));
        row.map(|row| Value::from_slice(&row))
    }

    fn each_point(&self, table: PointTable, each: &mut dyn FnMut(u64, &[u8])) {
        let layers = self.shared().layers.load();
        let changed = layers.point_keys(table, 0..=u64::MAX);
        let mut disk = self.shared().disk.points(table, 0..=u64::MAX);
        let look = |key| layers.find(|layer| layer.point(table, key)).flatten();
        merge::each_point(changed, &mut disk, look, each);
    }

    fn points_below(
        &self,
        table: PointTable,
        below: u64,
        limit: usize,
        each: &mut dyn FnMut(u64, &[u8]),
    ) {
        let (mut end, mut left) = (below, limit);
        while left > 0
            && let Some(last) = end.checked_sub(1)
        {
            let layers = self.shared().layers.load();
            let (changed, low) = layers.last_point_keys(table, last, left);
            let mut disk = self.shared().disk.points(table, low..=last).rev();
            let look = |key| layers.find(|layer| layer.point(table, key)).flatten();
            let mut found = 0;
            merge::points_down(changed, &mut disk, look, left, &mut |key, row| {
                found += 1;
                each(key, row);
            });
            (end, left) = (low, left.saturating_sub(found));
        }
    }

    fn member(&self, table: SetTable, owner: u64, item: u64) -> Option<u64> {
        let layers = self.shared().layers.load();
        if let Some(row) = layers.find(|layer| layer.member(table, owner, item)) {
            return row;
        }
        match self.shared().owners.state(table, owner) {
            State::NONE => None,
            state => self.shared().disk.set(table, owner, state).member(item),
        }
    }

    fn members(&self, table: SetTable, owner: u64, span: Span) -> Vec<(u64, u64)> {
        if span.low > span.high || span.limit == 0 {
            return Vec::new();
        }
        let layers = self.shared().layers.load();
        let mut active = OverlayItems::new(&layers.active, table, owner, span);
        let frozen = layers.frozen.as_deref();
        let mut frozen = frozen.map(|layer| OverlayItems::new(layer, table, owner, span));
        let mut frozen = frozen.iter_mut().flatten();
        let state = self.shared().owners.state(table, owner);
        let on_disk = || self.shared().disk.set(table, owner, state).items(span);
        let mut disk = (state != State::NONE).then(on_disk);
        let mut disk = disk.iter_mut().flatten();
        merge::members(&mut [&mut active, &mut frozen, &mut disk], span)
    }

    fn name(&self, table: NameTable, key: &[u8]) -> Option<Value> {
        let layers = self.shared().layers.load();
        if let Some(row) = layers.find(|layer| layer.name(table, key)) {
            return row;
        }
        let row = self.shared().disk.point(KeyspaceKind::Facts, &layout::name(table, key));
        row.map(|row| Value::from_slice(&row))
    }

    fn names_under(
        &self,
        table: NameTable,
        prefix: &[u8],
        from: &[u8],
        limit: usize,
    ) -> Vec<Vec<u8>> {
        let layers = self.shared().layers.load();
        let mut active = OverlayNames::new(&layers.active, table, prefix, from);
        let frozen = layers.frozen.as_deref();
        let mut frozen = frozen.map(|layer| OverlayNames::new(layer, table, prefix, from));
        let mut frozen = frozen.iter_mut().flatten();
        let (low, end) = layout::names_under(table, prefix, from);
        let mut disk = self.shared().disk.names(&low, &end);
        let mut found = merge::names(&mut [&mut active, &mut frozen, &mut disk], limit);
        found.iter_mut().for_each(|name| drop(name.drain(..prefix.len())));
        found
    }

    fn totals(&self) -> Totals {
        *self.shared().totals.read()
    }
}

impl KeyRows for Store {
    fn key(&self, space: Space, key: &[u8]) -> Option<KeyRow> {
        self.find_key(space, key)
    }

    fn has_cold_keys(&self) -> bool {
        Store::has_cold_keys(self)
    }

    fn load_key(&self, space: Space, key: &[u8]) -> bool {
        Store::load_key(self, space, key)
    }

    fn prefetch_key(&self, space: Space, key: &[u8]) {
        Store::prefetch_key(self, space, key);
    }

    fn keys(&self, space: Space, cursor: u64, limit: WalkLimit) -> (Vec<KeyRow>, Option<u64>) {
        self.walk_keys(space, cursor, limit)
    }

    fn bucket(&self, bucket: BucketId) -> Option<Bucket> {
        self.shared().buckets.read().find(bucket)
    }

    fn bucket_count(&self) -> usize {
        self.shared().buckets.read().count()
    }

    fn counted_keys(&self) -> u64 {
        self.shared().buckets.read().keys()
    }
}
