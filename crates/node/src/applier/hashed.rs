//! Rows for the rules, with a hash of their changes, so that nodes with a shared log can compare what a group changed.
//!
//! The hash covers tables, keys and new contents of all changed rows, in the order of the changes. It costs a pass over
//! the written bytes and reads nothing. Rows of ephemeral tables are left out: after a restart they may include more
//! groups of the log than the other rows do.
//!
//! A panic of the store is not a panic of the rules, because the store's rows may then be wrong.
//!
//! **Invariant:** nothing is hashed before [`HashedRows::begin`]: a log of one node has no extra cost.

use kv::{Bucket, BucketId, KeyParts, KeyRow, KeyRows, KeyRowsMut, Space, WalkLimit};
use rows::{
    NameTable, PointTable, PutRows, Rows, RowsMut, SetTable, Span, Stamp, Table, Totals, Value,
    outside_rules, rules_run, within_rules,
};
use smallvec::SmallVec;
use xxhash_rust::xxh3::Xxh3;

use super::spent::Spent;

/// Mark of a row of a key, in place of the tag of a table.
const KEY: u8 = 0xff;
/// Mark of a bucket, in place of the tag of a table.
const BUCKET: u8 = 0xfe;
/// Mark of a panic of the rules, in place of the tag of a table.
const FAILURE: u8 = 0xfd;

const _: () = {
    assert!(Table::of_tag(KEY).is_none(), "no table has a mark as its tag");
    assert!(Table::of_tag(BUCKET).is_none(), "no table has a mark as its tag");
    assert!(Table::of_tag(FAILURE).is_none(), "no table has a mark as its tag");
};

/// Rows, and the hash of their changes after [`HashedRows::begin`].
pub(super) struct HashedRows<R> {
    /// The rows, for changes that are not hashed.
    pub(super) inner: R,
    hash: Box<Xxh3>,
    /// Whether changes are hashed.
    is_hashing: bool,
    pub(super) spent: Spent,
}

impl<R> HashedRows<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, hash: Box::default(), is_hashing: false, spent: Spent::default() }
    }

    /// Begins to hash changes.
    pub(super) fn begin(&mut self) {
        self.hash.reset();
        self.is_hashing = true;
    }

    /// Returns the hash of the changes since [`HashedRows::begin`].
    pub(super) fn end(&mut self) -> u64 {
        self.is_hashing = false;
        self.hash.digest()
    }

    /// Adds to the hash that the rules panicked at a command with this stamp.
    pub(super) fn note_failure(&mut self, stamp: Stamp) {
        self.note(FAILURE, &stamp.0.to_le_bytes(), None);
    }

    fn read<T>(&self, read: impl FnOnce(&R) -> T) -> T {
        outside_rules(|| read(&self.inner))
    }

    /// Reads rows and passes them to `each`. A panic of `each` counts as a panic of the rules.
    fn read_each(
        &self,
        each: &mut dyn FnMut(u64, &[u8]),
        read: impl FnOnce(&R, &mut dyn FnMut(u64, &[u8])),
    ) {
        let of_rules = rules_run();
        self.read(|rows| {
            read(rows, &mut |key, row| {
                self.spent.look_up(1);
                within_rules(of_rules, || each(key, row));
            });
        });
    }

    fn write(&mut self, write: impl FnOnce(&mut R)) {
        outside_rules(|| write(&mut self.inner));
    }

    /// Hashes a change of the row `key` of a table.
    fn note(&mut self, table: u8, key: &[u8], content: Option<&[u8]>) {
        if !self.is_hashing {
            return;
        }
        // Lengths make the encoding unambiguous. A removed row has a length that no row has.
        let lengths = [key.len() as u64, content.map_or(u64::MAX, |content| content.len() as u64)];
        let content = content.unwrap_or_default();
        // Most rows are short: one call hashes the whole row.
        let mut head = SmallVec::<[u8; 128]>::new();
        head.push(table);
        head.extend_from_slice(lengths.map(u64::to_le_bytes).as_flattened());
        for bytes in [key, content] {
            if head.len() + bytes.len() > head.inline_size() {
                self.hash.update(&head);
                head.clear();
                self.hash.update(bytes);
            } else {
                head.extend_from_slice(bytes);
            }
        }
        self.hash.update(&head);
    }

    fn note_point(&mut self, table: PointTable, key: u64, value: Option<&Value>) {
        if !table.is_ephemeral() {
            self.note(table.tag(), &key.to_le_bytes(), value.map(|value| &**value));
        }
    }

    fn note_member(&mut self, table: SetTable, owners: &[u64], item: u64, value: Option<u64>) {
        if !self.is_hashing || table.is_ephemeral() {
            return;
        }
        let value = value.map(u64::to_le_bytes);
        for owner in owners {
            let (owner, item) = (owner.to_le_bytes(), item.to_le_bytes());
            self.note(table.tag(), [owner, item].as_flattened(), value.as_ref().map(|v| &v[..]));
        }
    }

    fn note_key(&mut self, row: &KeyRow) {
        if !self.is_hashing {
            return;
        }
        let KeyParts { space, key, value, expires_ms, version: Stamp(version) } = row.parts();
        self.note(KEY, key, (!row.is_removed()).then_some(value));
        let rest = [u64::from(space.0), expires_ms.unwrap_or(u64::MAX), version];
        self.note(KEY, rest.map(u64::to_le_bytes).as_flattened(), None);
    }
}

impl<R: Rows> Rows for HashedRows<R> {
    fn point(&self, table: PointTable, key: u64) -> Option<Value> {
        self.spent.look_up(1);
        self.read(|rows| rows.point(table, key))
    }

    fn each_point(&self, table: PointTable, each: &mut dyn FnMut(u64, &[u8])) {
        self.read_each(each, |rows, each| rows.each_point(table, each));
    }

    fn points_below(
        &self,
        table: PointTable,
        below: u64,
        limit: usize,
        each: &mut dyn FnMut(u64, &[u8]),
    ) {
        self.read_each(each, |rows, each| rows.points_below(table, below, limit, each));
    }

    fn member(&self, table: SetTable, owner: u64, item: u64) -> Option<u64> {
        self.spent.look_up(1);
        self.read(|rows| rows.member(table, owner, item))
    }

    fn members(&self, table: SetTable, owner: u64, span: Span) -> Vec<(u64, u64)> {
        let found = self.read(|rows| rows.members(table, owner, span));
        self.spent.look_up(found.len());
        found
    }

    fn name(&self, table: NameTable, key: &[u8]) -> Option<Value> {
        self.spent.look_up(1);
        self.read(|rows| rows.name(table, key))
    }

    fn names_under(
        &self,
        table: NameTable,
        prefix: &[u8],
        from: &[u8],
        limit: usize,
    ) -> Vec<Vec<u8>> {
        let found = self.read(|rows| rows.names_under(table, prefix, from, limit));
        self.spent.look_up(found.len());
        found
    }

    fn totals(&self) -> Totals {
        self.read(R::totals)
    }
}

impl<R: KeyRows> KeyRows for HashedRows<R> {
    fn key(&self, space: Space, key: &[u8]) -> Option<KeyRow> {
        self.spent.look_up(1);
        self.read(|rows| rows.key(space, key))
    }

    fn has_cold_keys(&self) -> bool {
        self.read(R::has_cold_keys)
    }

    fn load_key(&self, space: Space, key: &[u8]) -> bool {
        self.read(|rows| rows.load_key(space, key))
    }

    fn prefetch_key(&self, space: Space, key: &[u8]) {
        self.read(|rows| rows.prefetch_key(space, key));
    }

    fn keys(&self, space: Space, cursor: u64, limit: WalkLimit) -> (Vec<KeyRow>, Option<u64>) {
        let found = self.read(|rows| rows.keys(space, cursor, limit));
        self.spent.look_up(found.0.len());
        found
    }

    fn bucket(&self, bucket: BucketId) -> Option<Bucket> {
        self.read(|rows| rows.bucket(bucket))
    }

    fn bucket_count(&self) -> usize {
        self.read(R::bucket_count)
    }

    fn counted_keys(&self) -> u64 {
        self.read(R::counted_keys)
    }
}

impl<R: PutRows> PutRows for HashedRows<R> {
    fn put_point(&mut self, table: PointTable, key: u64, value: Option<Value>) {
        self.spent.change(1);
        self.note_point(table, key, value.as_ref());
        self.write(|rows| rows.put_point(table, key, value));
    }

    fn put_member(&mut self, table: SetTable, owner: u64, item: u64, value: Option<u64>) {
        self.spent.change(1);
        self.note_member(table, &[owner], item, value);
        self.write(|rows| rows.put_member(table, owner, item, value));
    }

    fn put_points(&mut self, table: PointTable, rows: Vec<(u64, Option<Value>)>) {
        self.spent.change(rows.len());
        if self.is_hashing {
            rows.iter().for_each(|(key, value)| self.note_point(table, *key, value.as_ref()));
        }
        self.write(|inner| inner.put_points(table, rows));
    }

    fn put_member_of_many(
        &mut self,
        table: SetTable,
        owners: &[u64],
        item: u64,
        value: Option<u64>,
    ) {
        self.spent.change(owners.len());
        self.note_member(table, owners, item, value);
        self.write(|rows| rows.put_member_of_many(table, owners, item, value));
    }

    fn put_name(&mut self, table: NameTable, key: &[u8], value: Option<Value>) {
        self.spent.change(1);
        self.note(table.tag(), key, value.as_deref());
        self.write(|rows| rows.put_name(table, key, value));
    }
}

impl<R: RowsMut> RowsMut for HashedRows<R> {
    fn put_totals(&mut self, totals: Totals) {
        // Totals are hashed once, after the group.
        self.write(|rows| rows.put_totals(totals));
    }
}

impl<R: KeyRowsMut> KeyRowsMut for HashedRows<R> {
    fn put_key(&mut self, row: KeyRow) {
        self.spent.change(1);
        self.note_key(&row);
        self.write(|rows| rows.put_key(row));
    }

    fn put_bucket(&mut self, id: BucketId, bucket: Option<Bucket>) {
        self.spent.change(1);
        let content = bucket.filter(|_| self.is_hashing).map(Bucket::encode);
        self.note(BUCKET, &id.0.to_le_bytes(), content.as_deref());
        self.write(|rows| rows.put_bucket(id, bucket));
    }

    fn save(&mut self) {
        self.write(R::save);
    }

    fn keep(&mut self) {
        self.write(R::keep);
    }

    fn undo(&mut self) {
        self.write(R::undo);
    }
}

#[cfg(test)]
mod tests {
    use testkit::MemoryRows;

    use super::*;

    fn hash(change: impl FnOnce(&mut HashedRows<MemoryRows>)) -> u64 {
        let mut rows = HashedRows::new(MemoryRows::default());
        rows.begin();
        change(&mut rows);
        rows.end()
    }

    fn key(key: &[u8], value: &[u8], expires_ms: Option<u64>, version: u64) -> KeyRow {
        let (space, version) = (Space(0), Stamp(version));
        KeyRow::new(KeyParts { space, key, value, expires_ms, version })
    }

    #[test]
    fn every_part_of_every_row_shows() {
        let value = |bytes: &[u8]| Some(Value::from_slice(bytes));
        let (point, set, name) = (PointTable::Post, SetTable::Following, NameTable::Handle);
        let bucket = |keys| Some(Bucket { keys, ..Bucket::empty(Space(7)) });
        let hashes = [
            hash(|_| ()),
            hash(|rows| rows.put_point(point, 1, value(b"a"))),
            hash(|rows| rows.put_point(point, 1, value(b"b"))),
            hash(|rows| rows.put_point(point, 2, value(b"a"))),
            hash(|rows| rows.put_point(PointTable::User, 1, value(b"a"))),
            hash(|rows| rows.put_point(point, 1, None)),
            hash(|rows| rows.put_point(point, 1, value(b""))),
            hash(|rows| rows.put_member(set, 1, 2, Some(3))),
            hash(|rows| rows.put_member(set, 1, 2, Some(4))),
            hash(|rows| rows.put_member(set, 1, 2, None)),
            hash(|rows| rows.put_member(set, 2, 1, Some(3))),
            hash(|rows| rows.put_name(name, b"ab", value(b"c"))),
            hash(|rows| rows.put_name(name, b"a", value(b"bc"))),
            hash(|rows| rows.put_name(name, b"a", None)),
            hash(|rows| rows.put_key(key(b"a", b"b", None, 1))),
            hash(|rows| rows.put_key(key(b"a", b"c", None, 1))),
            hash(|rows| rows.put_key(key(b"a", b"b", Some(5), 1))),
            hash(|rows| rows.put_key(key(b"a", b"b", None, 2))),
            hash(|rows| rows.put_key(KeyRow::removed(Space(0), b"a", Stamp(1)))),
            hash(|rows| rows.put_bucket(BucketId(99), bucket(1))),
            hash(|rows| rows.put_bucket(BucketId(99), bucket(2))),
            hash(|rows| rows.put_bucket(BucketId(98), bucket(1))),
        ];
        let mut different = hashes.to_vec();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), hashes.len());
    }

    /// A store may put many rows at once or one after the other.
    #[test]
    fn many_rows_at_once_are_as_each_by_itself() {
        let (points, set) = (PointTable::Post, SetTable::Mentions);
        let value = Some(Value::from_slice(b"a"));
        let rows = vec![(1, value.clone()), (2, None)];
        let at_once = hash(|of| of.put_points(points, rows));
        let each = hash(|rows| {
            rows.put_point(points, 1, value);
            rows.put_point(points, 2, None);
        });
        assert_eq!(at_once, each);
        let at_once = hash(|rows| rows.put_member_of_many(set, &[4, 5], 6, Some(7)));
        let each = hash(|rows| [4, 5].iter().for_each(|of| rows.put_member(set, *of, 6, Some(7))));
        assert_eq!(at_once, each);
    }

    #[test]
    fn ephemeral_rows_do_not_show() {
        let text = hash(|rows| {
            rows.put_point(PointTable::StoryText, 1, Some(Value::from_slice(b"a")));
            rows.put_points(PointTable::StoryText, vec![(2, None)]);
            rows.put_member(SetTable::Seen, 1, 2, Some(0));
            rows.put_member_of_many(SetTable::StoryViews, &[1, 2], 2, Some(0));
        });
        assert_eq!(text, hash(|_| ()));
    }
}
