//! Changed rows in memory: the changes since the last freeze.
//!
//! Only the writer makes changes; meanwhile, any thread may read. Points and sets are in hash maps with 64 locks per
//! table. Readers and the writer thus rarely wait for each other, and at most for the time of one row or one run of a
//! set. Names are in order, with one lock per table.
//!
//! **Invariant:** a frozen overlay never changes.

use std::array;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::mem::size_of;
use std::ops::{Bound, RangeInclusive};
use std::sync::OnceLock;

use hashbrown::HashMap;
use kv::{Bucket, BucketId};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use rows::{NameTable, PointTable, SetTable, Span, Value};

use crate::hash::KeyHasher;
use crate::items::{Items, LayerRow};
use crate::key_table::KeyTable;

const SHARD_BITS: u32 = 6;
/// Number of changes of a batch that are made while all locks are held: about 10 µs.
const CHANGES_PER_LOCK: usize = 64;
/// Factor that spreads ids over all shards (2^64 divided by the golden ratio), even if the ids are dense or have equal
/// low bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Overhead of the allocator for each allocation, in bytes.
const ALLOCATION: usize = 16;

/// Hash maps by number, with 64 locks.
struct Sharded<V> {
    shards: Box<[RwLock<HashMap<u64, V>>]>,
}

impl<V> Default for Sharded<V> {
    fn default() -> Self {
        Self { shards: (0..1 << SHARD_BITS).map(|_| RwLock::default()).collect() }
    }
}

/// Returns the shard of a key.
fn number(key: u64) -> usize {
    (key.wrapping_mul(SPREAD) >> (u64::BITS - SHARD_BITS)) as usize
}

impl<V> Sharded<V> {
    fn shard(&self, key: u64) -> &RwLock<HashMap<u64, V>> {
        let Some(shard) = self.shards.get(number(key)) else { unreachable!("six bits, 64 shards") };
        shard
    }

    /// Changes rows in runs: for each key of a run, first calls `touch` with the row, then, for each key again,
    /// `change`.
    ///
    /// If keys are far apart in memory, each change would wait for memory several times. `touch` does not depend on
    /// other keys, so its waits for all keys of a run overlap. All locks are held during a run.
    fn change_many<K>(
        &self,
        keys: &[K],
        key: impl Fn(&K) -> u64,
        touch: impl Fn(&V) -> u64,
        mut change: impl FnMut(&mut HashMap<u64, V>, &K),
    ) {
        for run in keys.chunks(CHANGES_PER_LOCK) {
            let mut shards = self.write_all();
            let mut touched = 0_u64;
            for key in run.iter().map(&key) {
                let found = shards.get(number(key)).and_then(|shard| shard.get(&key));
                touched = touched.wrapping_add(found.map_or(0, &touch));
            }
            black_box(touched);
            for row in run {
                if let Some(shard) = shards.get_mut(number(key(row))) {
                    change(shard, row);
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.read().is_empty())
    }

    fn write_all(&self) -> Vec<RwLockWriteGuard<'_, HashMap<u64, V>>> {
        self.shards.iter().map(RwLock::write).collect()
    }

    fn read_all(&self) -> Vec<RwLockReadGuard<'_, HashMap<u64, V>>> {
        self.shards.iter().map(RwLock::read).collect()
    }
}

type Points = Sharded<Option<Value>>;
type Sets = Sharded<Items>;
type Names = RwLock<BTreeMap<Box<[u8]>, Option<Value>>>;

/// Changed rows.
pub(crate) struct Overlay {
    points: [Points; PointTable::ALL.len()],
    sets: [Sets; SetTable::ALL.len()],
    names: [Names; NameTable::ALL.len()],
    pub(crate) keys: KeyTable,
    /// Changed buckets, as they were when the overlay was frozen. Empty until then.
    pub(crate) buckets: OnceLock<Vec<(BucketId, Option<Bucket>)>>,
}

impl Overlay {
    /// Creates an empty overlay.
    pub(crate) fn new(hasher: KeyHasher) -> Self {
        Self {
            points: array::from_fn(|_| Points::default()),
            sets: array::from_fn(|_| Sets::default()),
            names: array::from_fn(|_| Names::default()),
            keys: KeyTable::new(hasher),
            buckets: OnceLock::new(),
        }
    }

    fn points(&self, table: PointTable) -> &Points {
        self.points.get(table.index()).unwrap_or_else(|| unreachable!("one of all tables"))
    }

    fn sets(&self, table: SetTable) -> &Sets {
        self.sets.get(table.index()).unwrap_or_else(|| unreachable!("one of all tables"))
    }

    fn names(&self, table: NameTable) -> &Names {
        self.names.get(table.index()).unwrap_or_else(|| unreachable!("one of all tables"))
    }

    /// Whether any row of an ephemeral table changed.
    pub(crate) fn has_ephemeral(&self) -> bool {
        let mut points = PointTable::ALL.into_iter().filter(|table| table.is_ephemeral());
        let mut sets = SetTable::ALL.into_iter().filter(|table| table.is_ephemeral());
        points.any(|table| !self.points(table).is_empty())
            || sets.any(|table| !self.sets(table).is_empty())
    }

    pub(crate) fn point(&self, table: PointTable, key: u64) -> LayerRow<Value> {
        self.points(table).shard(key).read().get(&key).cloned()
    }

    /// Returns the keys of all points within `within`, unordered, including removed points. Keys that are added
    /// meanwhile may be missing.
    pub(crate) fn point_keys(&self, table: PointTable, within: &RangeInclusive<u64>) -> Vec<u64> {
        let mut found = Vec::new();
        // Hold one lock at a time, so that the writer does not wait for the whole table.
        for shard in &self.points(table).shards {
            let shard = shard.read();
            found.extend(shard.keys().filter(|key| within.contains(key)));
        }
        found
    }

    pub(crate) fn member(&self, table: SetTable, owner: u64, item: u64) -> LayerRow<u64> {
        self.sets(table).shard(owner).read().get(&owner)?.find(item)
    }

    /// Whether items of an owner changed.
    pub(crate) fn has_owner(&self, table: SetTable, owner: u64) -> bool {
        self.sets(table).shard(owner).read().contains_key(&owner)
    }

    /// Appends the items within `span` to `found`, in the order of `span`, including removed items.
    pub(crate) fn members(
        &self,
        table: SetTable,
        owner: u64,
        span: Span,
        found: &mut Vec<(u64, Option<u64>)>,
    ) {
        if let Some(items) = self.sets(table).shard(owner).read().get(&owner) {
            items.range(span, found);
        }
    }

    pub(crate) fn name(&self, table: NameTable, key: &[u8]) -> LayerRow<Value> {
        self.names(table).read().get(key).cloned()
    }

    /// Returns at most `limit` keys that begin with `prefix`, from `from` on, and whether each exists or was removed.
    pub(crate) fn names_under(
        &self,
        table: NameTable,
        prefix: &[u8],
        from: &[u8],
        limit: usize,
    ) -> Vec<(Vec<u8>, bool)> {
        let names = self.names(table).read();
        let bounds = (Bound::Included(from), Bound::Unbounded);
        let found = names.range::<[u8], _>(bounds).take(limit);
        let found = found.take_while(|(key, _)| key.starts_with(prefix));
        found.map(|(key, value)| (key.to_vec(), value.is_some())).collect()
    }

    /// Sets or removes a point. Returns the growth of memory in bytes, and the previous row of the overlay.
    pub(crate) fn put_point(
        &self,
        table: PointTable,
        key: u64,
        value: Option<Value>,
    ) -> (usize, LayerRow<Value>) {
        put_point(&mut self.points(table).shard(key).write(), key, value)
    }

    /// Makes a row unknown.
    pub(crate) fn forget_point(&self, table: PointTable, key: u64) {
        self.points(table).shard(key).write().remove(&key);
    }

    /// Sets or removes many points, like [`Overlay::put_point`]. Passes the previous row of each to `before`.
    pub(crate) fn put_points(
        &self,
        table: PointTable,
        rows: &[(u64, Option<Value>)],
        before: &mut dyn FnMut(u64, LayerRow<Value>),
    ) -> usize {
        let mut grown = 0;
        let touch = |row: &Option<Value>| row.as_ref().map_or(0, |row| row.len() as u64);
        self.points(table).change_many(
            rows,
            |(key, _)| *key,
            touch,
            |shard, (key, value)| {
                let (more, old) = put_point(shard, *key, value.clone());
                grown += more;
                before(*key, old);
            },
        );
        grown
    }

    /// Sets or removes a member. Returns the growth of memory in bytes, and the previous row of the overlay.
    pub(crate) fn put_member(
        &self,
        table: SetTable,
        owner: u64,
        item: u64,
        value: Option<u64>,
    ) -> (usize, LayerRow<u64>) {
        put_member(&mut self.sets(table).shard(owner).write(), owner, item, value)
    }

    /// Makes a row unknown.
    pub(crate) fn forget_member(&self, table: SetTable, owner: u64, item: u64) {
        let mut shard = self.sets(table).shard(owner).write();
        if shard.get_mut(&owner).is_some_and(|items| items.forget(item)) {
            shard.remove(&owner);
        }
    }

    /// Sets or removes an item of many owners, like [`Overlay::put_member`]. Passes the previous row of each to
    /// `before`.
    pub(crate) fn put_member_of_many(
        &self,
        table: SetTable,
        owners: &[u64],
        item: u64,
        value: Option<u64>,
        before: &mut dyn FnMut(u64, LayerRow<u64>),
    ) -> usize {
        let mut grown = 0;
        self.sets(table).change_many(
            owners,
            |owner| *owner,
            Items::touch,
            |shard, owner| {
                let (more, old) = put_member(shard, *owner, item, value);
                grown += more;
                before(*owner, old);
            },
        );
        grown
    }

    /// Sets or removes a name. Returns the growth of memory in bytes, and the previous row of the overlay.
    pub(crate) fn put_name(
        &self,
        table: NameTable,
        key: &[u8],
        value: Option<Value>,
    ) -> (usize, LayerRow<Value>) {
        /// The nodes of a B-tree are about 70 % full.
        const ENTRY: usize = (size_of::<Box<[u8]>>() + size_of::<Option<Value>>()) * 10 / 7;
        let heap = heap_bytes(value.as_ref());
        let old = self.names(table).write().insert(key.into(), value);
        let grown = match &old {
            Some(replaced) => heap.saturating_sub(heap_bytes(replaced.as_ref())),
            None => ENTRY + key.len() + ALLOCATION + heap,
        };
        (grown, old)
    }

    /// Makes a row unknown.
    pub(crate) fn forget_name(&self, table: NameTable, key: &[u8]) {
        self.names(table).write().remove(key);
    }

    /// Calls `each` with every point of `table` in order.
    pub(crate) fn sorted_points<E>(
        &self,
        table: PointTable,
        mut each: impl FnMut(u64, Option<&Value>) -> Result<(), E>,
    ) -> Result<(), E> {
        let shards = self.points(table).read_all();
        let rows = shards.iter().flat_map(|shard| shard.iter());
        let mut rows: Vec<_> = rows.map(|(key, value)| (*key, value)).collect();
        rows.sort_unstable_by_key(|row| row.0);
        rows.into_iter().try_for_each(|(key, value)| each(key, value.as_ref()))
    }

    /// Calls `each` with every owner of `table` and their items in order.
    pub(crate) fn sorted_sets<E>(
        &self,
        table: SetTable,
        mut each: impl FnMut(u64, &Items) -> Result<(), E>,
    ) -> Result<(), E> {
        let shards = self.sets(table).read_all();
        let rows = shards.iter().flat_map(|shard| shard.iter());
        let mut rows: Vec<_> = rows.map(|(owner, items)| (*owner, items)).collect();
        rows.sort_unstable_by_key(|row| row.0);
        rows.into_iter().try_for_each(|(owner, items)| each(owner, items))
    }

    /// Calls `each` with every name of `table` in order.
    pub(crate) fn sorted_names<E>(
        &self,
        table: NameTable,
        mut each: impl FnMut(&[u8], Option<&Value>) -> Result<(), E>,
    ) -> Result<(), E> {
        let names = self.names(table).read();
        names.iter().try_for_each(|(key, value)| each(key, value.as_ref()))
    }
}

fn put_point(
    shard: &mut HashMap<u64, Option<Value>>,
    key: u64,
    value: Option<Value>,
) -> (usize, LayerRow<Value>) {
    let heap = heap_bytes(value.as_ref());
    let before = shard.allocation_size();
    let replaced = shard.insert(key, value);
    let freed = replaced.as_ref().map_or(0, |old| heap_bytes(old.as_ref()));
    ((shard.allocation_size() - before + heap).saturating_sub(freed), replaced)
}

fn put_member(
    shard: &mut HashMap<u64, Items>,
    owner: u64,
    item: u64,
    value: Option<u64>,
) -> (usize, LayerRow<u64>) {
    if let Some(items) = shard.get_mut(&owner) {
        return items.put(item, value);
    }
    let before = shard.allocation_size();
    let (grown, old) = shard.entry(owner).or_default().put(item, value);
    (shard.allocation_size() - before + grown, old)
}

fn heap_bytes(value: Option<&Value>) -> usize {
    value.filter(|value| value.spilled()).map_or(0, |value| value.capacity() + ALLOCATION)
}
