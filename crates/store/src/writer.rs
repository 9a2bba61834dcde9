//! Writer: changes rows in the active overlay, reads its own changes, and freezes the overlay.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use kv::{Bucket, BucketId, KeyRow, KeyRows, KeyRowsMut, Space, WalkLimit};
use rows::{
    NameTable, Order, PointTable, PutRows, Rows, RowsMut, SetTable, Span, Subject, Totals, Value,
};

use crate::checkpoint::Checkpoint;
use crate::counts::CountsCache;
use crate::overlay::Overlay;
use crate::shared::{Layers, Store};
use crate::undo::{Before, Undo};

/// The only way to change rows. Readers see a change when the call returns.
pub struct StoreWriter {
    store: Store,
    active: Arc<Overlay>,
    overlay_bytes: usize,
    applied: u64,
    /// For each table, a name below which no name exists. It makes removing names one by one from the beginning cheap:
    /// otherwise each search would scan all removed names.
    name_floors: [RefCell<Vec<u8>>; NameTable::ALL.len()],
    /// For each set table, the lower bound of the items of one owner, which was last read from the beginning.
    set_floors: RefCell<[Floor; SetTable::ALL.len()]>,
    /// Buckets that changed since the last freeze.
    changed_buckets: BTreeSet<BucketId>,
    counts: CountsCache,
    /// Upper bound of the keys of users and of posts so far. Ids ascend, so a row with a greater key is new, and
    /// nothing was made of it.
    greatest: [u64; 2],
    undo: Undo,
}

/// Lower bound: `owner` has no item below `low`.
#[derive(Clone, Copy, Default)]
struct Floor {
    owner: u64,
    low: u64,
}

impl StoreWriter {
    pub(crate) fn new(store: Store, active: Arc<Overlay>, applied: u64) -> Self {
        let greatest = [PointTable::User, PointTable::Post].map(|table| {
            let mut greatest = 0;
            store.points_below(table, u64::MAX, 1, &mut |key, _| greatest = key);
            greatest
        });
        Self {
            store,
            active,
            overlay_bytes: 0,
            applied,
            name_floors: std::array::from_fn(|_| RefCell::default()),
            set_floors: RefCell::new([Floor::default(); SetTable::ALL.len()]),
            changed_buckets: BTreeSet::new(),
            counts: CountsCache::default(),
            greatest,
            undo: Undo::default(),
        }
    }

    /// Returns the store for readers.
    #[must_use]
    pub fn store(&self) -> Store {
        self.store.clone()
    }

    /// Returns the approximate memory of the changes since the last freeze, in bytes.
    #[must_use]
    pub fn overlay_bytes(&self) -> usize {
        self.overlay_bytes
    }

    /// Freezes the changes so far, which are those of the log up to position `applied`, and continues with an empty
    /// overlay. Returns a checkpoint that writes the changes to disk; `None` while an earlier one is unfinished. Takes
    /// a few microseconds.
    ///
    /// # Panics
    /// If `applied` is less than that of an earlier checkpoint, because the log only grows.
    pub fn freeze(&mut self, applied: u64) -> Option<Checkpoint> {
        assert!(applied >= self.applied, "the log only grows");
        let shared = self.store.shared();
        if shared.layers.load().frozen.is_some() {
            return None;
        }
        let changed = std::mem::take(&mut self.changed_buckets).into_iter();
        let buckets = shared.buckets.read();
        let set = self.active.buckets.set(changed.map(|id| (id, buckets.find(id))).collect());
        assert!(set.is_ok(), "an overlay is frozen once");
        drop(buckets);
        let active = Arc::new(Overlay::new(shared.hasher));
        let frozen = std::mem::replace(&mut self.active, Arc::clone(&active));
        shared.layers.store(Arc::new(Layers { active, frozen: Some(Arc::clone(&frozen)) }));
        self.applied = applied;
        self.overlay_bytes = 0;
        Some(Checkpoint { shared: Arc::clone(shared), frozen, applied, totals: self.totals() })
    }

    /// Counts a change of rows that readers already see.
    fn changed(&self, subject: Option<Subject>) {
        if let Some(subject) = subject {
            self.store.shared().revisions.raise(subject);
        }
    }

    /// Counts a change of a point like [`StoreWriter::changed`], unless it is a new user or post.
    fn changed_point(&mut self, table: PointTable, key: u64) {
        let [users, posts] = &mut self.greatest;
        let greatest = match table {
            PointTable::User => Some(users),
            PointTable::Post => Some(posts),
            _ => None,
        };
        match greatest.filter(|greatest| key > **greatest) {
            Some(greatest) => *greatest = key,
            None => self.changed(Subject::of_point(table, key)),
        }
    }

    fn set_floor(&self, table: SetTable) -> Floor {
        let floor = self.set_floors.borrow().get(table.index()).copied();
        let Some(floor) = floor else { unreachable!("every set table has a floor") };
        floor
    }

    fn put_set_floor(&self, table: SetTable, floor: Floor) {
        if let Some(old) = self.set_floors.borrow_mut().get_mut(table.index()) {
            *old = floor;
        }
    }

    fn floor(&self, table: NameTable) -> &RefCell<Vec<u8>> {
        let Some(floor) = self.name_floors.get(table.index()) else {
            unreachable!("every name table has a floor")
        };
        floor
    }
}

impl Rows for StoreWriter {
    fn point(&self, table: PointTable, key: u64) -> Option<Value> {
        self.counts.point(&self.store, table, key)
    }

    fn each_point(&self, table: PointTable, each: &mut dyn FnMut(u64, &[u8])) {
        self.store.each_point(table, each);
    }

    fn points_below(
        &self,
        table: PointTable,
        below: u64,
        limit: usize,
        each: &mut dyn FnMut(u64, &[u8]),
    ) {
        self.store.points_below(table, below, limit, each);
    }

    fn member(&self, table: SetTable, owner: u64, item: u64) -> Option<u64> {
        self.store.member(table, owner, item)
    }

    fn members(&self, table: SetTable, owner: u64, span: Span) -> Vec<(u64, u64)> {
        let floor = self.set_floor(table);
        let low = if floor.owner == owner { floor.low } else { 0 };
        if span.order == Order::Descending || span.low > low {
            return self.store.members(table, owner, span);
        }
        let found = self.store.members(table, owner, Span { low, ..span });
        if let Some((first, _)) = found.first() {
            self.put_set_floor(table, Floor { owner, low: *first });
        }
        found
    }

    fn name(&self, table: NameTable, key: &[u8]) -> Option<Value> {
        self.store.name(table, key)
    }

    fn names_under(
        &self,
        table: NameTable,
        prefix: &[u8],
        from: &[u8],
        limit: usize,
    ) -> Vec<Vec<u8>> {
        let mut floor = self.floor(table).borrow_mut();
        if !prefix.is_empty() || from > floor.as_slice() {
            return self.store.names_under(table, prefix, from, limit);
        }
        let found = self.store.first_names(table, &floor, limit);
        if let Some(first) = found.first() {
            floor.clone_from(first);
        }
        found
    }

    fn totals(&self) -> Totals {
        self.store.totals()
    }
}

impl KeyRows for StoreWriter {
    fn key(&self, space: Space, key: &[u8]) -> Option<KeyRow> {
        self.store.key(space, key)
    }

    fn has_cold_keys(&self) -> bool {
        self.store.has_cold_keys()
    }

    fn load_key(&self, space: Space, key: &[u8]) -> bool {
        self.store.load_key(space, key)
    }

    fn prefetch_key(&self, space: Space, key: &[u8]) {
        self.store.prefetch_key(space, key);
    }

    fn keys(&self, space: Space, cursor: u64, limit: WalkLimit) -> (Vec<KeyRow>, Option<u64>) {
        self.store.keys(space, cursor, limit)
    }

    fn bucket(&self, bucket: BucketId) -> Option<Bucket> {
        self.store.bucket(bucket)
    }

    fn bucket_count(&self) -> usize {
        self.store.bucket_count()
    }

    fn counted_keys(&self) -> u64 {
        self.store.counted_keys()
    }
}

impl PutRows for StoreWriter {
    fn put_point(&mut self, table: PointTable, key: u64, value: Option<Value>) {
        self.counts.put(table, key, value.as_ref());
        let (grown, old) = self.active.put_point(table, key, value);
        self.overlay_bytes += grown;
        self.undo.note(|| Before::Point(table, key, old));
        self.changed_point(table, key);
    }

    fn put_member(&mut self, table: SetTable, owner: u64, item: u64, value: Option<u64>) {
        let floor = self.set_floor(table);
        if value.is_some() && owner == floor.owner && item < floor.low {
            self.put_set_floor(table, Floor { owner, low: item });
        }
        let (grown, old) = self.active.put_member(table, owner, item, value);
        self.overlay_bytes += grown;
        self.undo.note(|| Before::Member(table, owner, item, old));
        self.changed(Subject::of_member(table, owner));
    }

    fn put_points(&mut self, table: PointTable, rows: Vec<(u64, Option<Value>)>) {
        for (key, value) in &rows {
            self.counts.put(table, *key, value.as_ref());
        }
        let undo = &mut self.undo;
        self.overlay_bytes += self.active.put_points(table, &rows, &mut |key, old| {
            undo.note(|| Before::Point(table, key, old));
        });
        for (key, _) in &rows {
            self.changed_point(table, *key);
        }
    }

    fn put_member_of_many(
        &mut self,
        table: SetTable,
        owners: &[u64],
        item: u64,
        value: Option<u64>,
    ) {
        let floor = self.set_floor(table);
        if value.is_some() && item < floor.low && owners.contains(&floor.owner) {
            self.put_set_floor(table, Floor { low: item, ..floor });
        }
        let undo = &mut self.undo;
        let mut note = |owner, old| undo.note(|| Before::Member(table, owner, item, old));
        self.overlay_bytes += self.active.put_member_of_many(table, owners, item, value, &mut note);
        for owner in owners {
            self.changed(Subject::of_member(table, *owner));
        }
    }

    fn put_name(&mut self, table: NameTable, key: &[u8], value: Option<Value>) {
        let floor = self.floor(table);
        if value.is_some() && key < floor.borrow().as_slice() {
            floor.replace(key.to_vec());
        }
        let (grown, old) = self.active.put_name(table, key, value);
        self.overlay_bytes += grown;
        self.undo.note(|| Before::Name(table, key.into(), old));
        self.changed(Subject::of_name(table, key));
    }
}

impl RowsMut for StoreWriter {
    fn put_totals(&mut self, totals: Totals) {
        let old = std::mem::replace(&mut *self.store.shared().totals.write(), totals);
        if self.undo.is_on {
            self.undo.totals.get_or_insert(old);
        }
    }
}

impl KeyRowsMut for StoreWriter {
    fn put_key(&mut self, row: KeyRow) {
        let hash = self.store.shared().hasher.hash(row.space(), row.key());
        let put = self.undo.is_on.then(|| row.clone());
        let (grown, old) = self.active.keys.put(hash, row);
        let shrunk = old.as_ref().map_or(0, KeyRow::memory_bytes);
        self.overlay_bytes = (self.overlay_bytes + grown).saturating_sub(shrunk);
        if let Some(put) = put {
            self.undo.note(|| Before::Key(put, old));
        }
    }

    fn put_bucket(&mut self, id: BucketId, bucket: Option<Bucket>) {
        let old = self.store.shared().buckets.write().put(id, bucket);
        self.changed_buckets.insert(id);
        self.undo.note(|| Before::Bucket(id, old));
    }

    fn save(&mut self) {
        self.undo.begin();
    }

    fn keep(&mut self) {
        self.undo.end();
    }

    fn undo(&mut self) {
        self.undo.is_on = false;
        for before in std::mem::take(&mut self.undo.before).into_iter().rev() {
            self.put_back(before);
        }
        if let Some(totals) = self.undo.totals.take() {
            self.put_totals(totals);
        }
        // Reset the floors, because restored rows may be below them.
        self.name_floors.iter_mut().for_each(|floor| floor.get_mut().clear());
        *self.set_floors.get_mut() = [Floor::default(); SetTable::ALL.len()];
        self.counts = CountsCache::default();
        self.undo.end();
        // Raise revisions last, because until now a reader may have seen a changed row of any subject.
        self.store.shared().revisions.raise_all();
    }
}

impl StoreWriter {
    /// Restores a row of the overlay. The memory that the overlay has gained stays counted until the next freeze.
    fn put_back(&mut self, before: Before) {
        match before {
            Before::Point(table, key, Some(old)) => self.put_point(table, key, old),
            Before::Point(table, key, None) => {
                self.active.forget_point(table, key);
                self.changed(Subject::of_point(table, key));
            }
            Before::Member(table, owner, item, Some(old)) => {
                self.put_member(table, owner, item, old);
            }
            Before::Member(table, owner, item, None) => {
                self.active.forget_member(table, owner, item);
                self.changed(Subject::of_member(table, owner));
            }
            Before::Name(table, key, Some(old)) => self.put_name(table, &key, old),
            Before::Name(table, key, None) => {
                self.active.forget_name(table, &key);
                self.changed(Subject::of_name(table, &key));
            }
            Before::Key(_, Some(old)) => self.put_key(old),
            Before::Key(put, None) => {
                let hash = self.store.shared().hasher.hash(put.space(), put.key());
                self.active.keys.remove(hash, put.space(), put.key());
            }
            Before::Bucket(id, old) => self.put_bucket(id, old),
        }
    }
}
