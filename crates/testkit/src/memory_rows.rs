//! The simplest possible rows: ordered maps in memory. Tests compare every other store with them.

use std::collections::BTreeMap;

use kv::limits::NUMBERED_BUCKETS;
use kv::{Bucket, BucketId, CURSOR_STEP, KeyRow, KeyRows, KeyRowsMut, KeyScan, Space, WalkLimit};
use rows::{
    MemberRow, NameTable, Order, PointTable, PutRows, Rows, RowsMut, Scan, SetTable, Span, Totals,
    Value,
};

/// Rows in ordered maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryRows {
    points: BTreeMap<(PointTable, u64), Value>,
    sets: BTreeMap<(SetTable, u64, u64), u64>,
    names: BTreeMap<(NameTable, Vec<u8>), Value>,
    totals: Totals,
    keys: BTreeMap<(Space, u64, Vec<u8>), KeyRow>,
    buckets: BTreeMap<BucketId, Bucket>,
    /// Whether changes are recorded, so that they can be undone.
    saves: bool,
    before: Vec<Before>,
}

/// Recorded state before a change.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Before {
    Point((PointTable, u64), Option<Value>),
    Member((SetTable, u64, u64), Option<u64>),
    Name((NameTable, Vec<u8>), Option<Value>),
    Totals(Totals),
    Key((Space, u64, Vec<u8>), Option<KeyRow>),
    Bucket(BucketId, Option<Bucket>),
}

impl MemoryRows {
    /// These rows with the ephemeral rows of `ahead`, which is a possible state after a crash.
    #[must_use]
    pub fn with_fleeting_of(&self, ahead: &Self) -> Self {
        let mut mixed = self.clone();
        mixed.points.retain(|(table, _), _| !table.is_ephemeral());
        mixed.sets.retain(|(table, _, _), _| !table.is_ephemeral());
        let points = ahead.points.iter().filter(|((table, _), _)| table.is_ephemeral());
        mixed.points.extend(points.map(|(key, value)| (*key, value.clone())));
        let sets = ahead.sets.iter().filter(|((table, _, _), _)| table.is_ephemeral());
        mixed.sets.extend(sets.map(|(key, value)| (*key, *value)));
        mixed
    }
}

impl Rows for MemoryRows {
    fn point(&self, table: PointTable, key: u64) -> Option<Value> {
        self.points.get(&(table, key)).cloned()
    }

    fn each_point(&self, table: PointTable, each: &mut dyn FnMut(u64, &[u8])) {
        let rows = self.points.range((table, 0)..=(table, u64::MAX));
        rows.for_each(|((_, key), value)| each(*key, value));
    }

    fn points_below(
        &self,
        table: PointTable,
        below: u64,
        limit: usize,
        each: &mut dyn FnMut(u64, &[u8]),
    ) {
        let rows = self.points.range((table, 0)..(table, below)).rev();
        rows.take(limit).for_each(|((_, key), value)| each(*key, value));
    }

    fn member(&self, table: SetTable, owner: u64, item: u64) -> Option<u64> {
        self.sets.get(&(table, owner, item)).copied()
    }

    fn members(&self, table: SetTable, owner: u64, span: Span) -> Vec<(u64, u64)> {
        if span.low > span.high {
            return Vec::new();
        }
        let range = self.sets.range((table, owner, span.low)..=(table, owner, span.high));
        let items = range.map(|((_, _, item), value)| (*item, *value));
        match span.order {
            Order::Ascending => items.take(span.limit).collect(),
            Order::Descending => items.rev().take(span.limit).collect(),
        }
    }

    fn name(&self, table: NameTable, key: &[u8]) -> Option<Value> {
        self.names.get(&(table, key.to_vec())).cloned()
    }

    fn names_under(
        &self,
        table: NameTable,
        prefix: &[u8],
        from: &[u8],
        limit: usize,
    ) -> Vec<Vec<u8>> {
        let names = self.names.range((table, [prefix, from].concat())..).map(|(found, _)| found);
        let names = names.take_while(|found| found.0 == table);
        let under = names.map_while(|found| found.1.strip_prefix(prefix));
        under.take(limit).map(<[u8]>::to_vec).collect()
    }

    fn totals(&self) -> Totals {
        self.totals
    }
}

impl Scan for MemoryRows {
    fn points_from(
        &self,
        table: PointTable,
        from: u64,
        limit: usize,
    ) -> (Vec<(u64, Value)>, Option<u64>) {
        let mut rows = self.points.range((table, from)..=(table, u64::MAX));
        let found =
            rows.by_ref().take(limit).map(|((_, key), value)| (*key, value.clone())).collect();
        (found, rows.next().map(|((_, key), _)| *key))
    }

    fn members_from(
        &self,
        table: SetTable,
        (owner, item): (u64, u64),
        limit: usize,
    ) -> (Vec<MemberRow>, Option<(u64, u64)>) {
        let mut rows = self.sets.range((table, owner, item)..=(table, u64::MAX, u64::MAX));
        let row = |((_, owner, item), number): (&(_, u64, u64), &u64)| (*owner, *item, *number);
        let found = rows.by_ref().take(limit).map(row).collect();
        (found, rows.next().map(|((_, owner, item), _)| (*owner, *item)))
    }
}

impl KeyScan for MemoryRows {
    fn spaces(&self) -> Vec<Space> {
        let mut spaces: Vec<Space> = self.keys.keys().map(|(space, ..)| *space).collect();
        spaces.dedup();
        spaces
    }

    fn buckets(&self) -> Vec<(BucketId, Bucket)> {
        let numbered = (0..NUMBERED_BUCKETS).map(|id| BucketId(id.into()));
        let ids: std::collections::BTreeSet<_> =
            numbered.chain(self.buckets.keys().copied()).collect();
        ids.into_iter().filter_map(|id| Some((id, self.bucket(id)?))).collect()
    }
}

impl KeyRows for MemoryRows {
    fn key(&self, space: Space, key: &[u8]) -> Option<KeyRow> {
        self.keys.get(&place(space, key)).cloned()
    }

    fn keys(&self, space: Space, cursor: u64, limit: WalkLimit) -> (Vec<KeyRow>, Option<u64>) {
        let mut rows = self.keys.range((space, cursor, Vec::new())..);
        let mut found: Vec<KeyRow> = Vec::new();
        let (mut bytes, mut last) = (0, None);
        while let Some(((_, place, _), row)) = rows.next().filter(|((of, ..), _)| *of == space) {
            if *place > limit.up_to {
                break;
            }
            let full = found.len() >= limit.rows || bytes >= limit.bytes;
            if full && last != Some(*place / CURSOR_STEP) {
                return (found, Some(*place / CURSOR_STEP * CURSOR_STEP));
            }
            last = Some(*place / CURSOR_STEP);
            bytes += row.data_bytes() as usize;
            found.push(row.clone());
        }
        (found, limit.up_to.checked_add(1))
    }

    fn bucket(&self, bucket: BucketId) -> Option<Bucket> {
        let number = u32::try_from(bucket.0).ok().filter(|id| *id < NUMBERED_BUCKETS);
        let unused = number.map(|number| Bucket::empty(Space(number)));
        self.buckets.get(&bucket).copied().or(unused)
    }

    fn bucket_count(&self) -> usize {
        let numbered = NUMBERED_BUCKETS as usize;
        let named = |id: &&BucketId| id.0 >= u64::from(NUMBERED_BUCKETS);
        numbered + self.buckets.keys().filter(named).count()
    }

    fn counted_keys(&self) -> u64 {
        self.buckets.values().map(|bucket| bucket.keys).sum()
    }
}

impl PutRows for MemoryRows {
    fn put_point(&mut self, table: PointTable, key: u64, value: Option<Value>) {
        let old = put(&mut self.points, (table, key), value);
        self.note(Before::Point((table, key), old));
    }

    fn put_member(&mut self, table: SetTable, owner: u64, item: u64, value: Option<u64>) {
        let old = put(&mut self.sets, (table, owner, item), value);
        self.note(Before::Member((table, owner, item), old));
    }

    fn put_name(&mut self, table: NameTable, key: &[u8], value: Option<Value>) {
        let old = put(&mut self.names, (table, key.to_vec()), value);
        self.note(Before::Name((table, key.to_vec()), old));
    }
}

impl RowsMut for MemoryRows {
    fn put_totals(&mut self, totals: Totals) {
        self.note(Before::Totals(self.totals));
        self.totals = totals;
    }
}

impl KeyRowsMut for MemoryRows {
    fn put_key(&mut self, row: KeyRow) {
        let place = place(row.space(), row.key());
        let old = put(&mut self.keys, place.clone(), (!row.is_removed()).then_some(row));
        self.note(Before::Key(place, old));
    }

    fn put_bucket(&mut self, id: BucketId, bucket: Option<Bucket>) {
        let old = put(&mut self.buckets, id, bucket);
        self.note(Before::Bucket(id, old));
    }

    fn save(&mut self) {
        self.saves = true;
    }

    fn keep(&mut self) {
        self.saves = false;
        self.before.clear();
    }

    fn undo(&mut self) {
        self.saves = false;
        for before in std::mem::take(&mut self.before).into_iter().rev() {
            match before {
                Before::Point(key, old) => drop(put(&mut self.points, key, old)),
                Before::Member(key, old) => _ = put(&mut self.sets, key, old),
                Before::Name(key, old) => drop(put(&mut self.names, key, old)),
                Before::Totals(old) => self.totals = old,
                Before::Key(key, old) => drop(put(&mut self.keys, key, old)),
                Before::Bucket(id, old) => _ = put(&mut self.buckets, id, old),
            }
        }
    }
}

impl MemoryRows {
    fn note(&mut self, before: Before) {
        if self.saves {
            self.before.push(before);
        }
    }
}

fn place(space: Space, key: &[u8]) -> (Space, u64, Vec<u8>) {
    use std::hash::{DefaultHasher, Hasher as _};
    // Walk keys in the order of their hashes, so that no test depends on alphabetical order.
    let mut hasher = DefaultHasher::new();
    hasher.write(key);
    (space, hasher.finish() >> 1, key.to_vec())
}

fn put<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, value: Option<V>) -> Option<V> {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    }
}
