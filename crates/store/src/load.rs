//! Loader: creates a store for an import. It takes rows in any order, sorts them in files and ingests them.
//!
//! **Invariant:** if two rows have the same key, the error has the numbers of their lines. Only pairs of users (follows
//! and friendships) may be repeated.

use std::collections::BTreeMap;
use std::io;
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use kv::{Bucket, BucketId, KeyRow};
use rows::{NameTable, PointTable, PutRows, SetTable, Totals, Value};

use crate::disk::{Disk, KeyspaceKind};
use crate::error::StoreError;
use crate::hash::random_hasher;
use crate::head::Head;
use crate::layout::{self, WriteRow};
use crate::owners::{Owners, State};
use crate::pack::Packer;
use crate::sort::{Merge, SortedRow, Sorter};

/// Memory of each of the five sorters, in bytes.
const CHUNK_BYTES: usize = 48 << 20;
/// Sets of users by user. Most items of an import are in these sets, so they are sorted as pairs of numbers.
const OF_USERS: [SetTable; 3] = [SetTable::Following, SetTable::Followers, SetTable::Friends];

/// Callback for each owner of one of these sets, with the number of its items.
pub type EachSet<'a> = &'a mut dyn FnMut(SetTable, u32, usize);

/// Store under construction.
pub struct Loader {
    folder: PathBuf,
    disk: Disk,
    head: Head,
    facts: Sorter<SortedRow>,
    ephemeral: Sorter<SortedRow>,
    /// Owner and item, in one sorter for each table.
    of_users: [Sorter<u64>; OF_USERS.len()],
    owners: OwnerBlocks,
    line: u64,
    failed: Option<io::Error>,
}

/// Owners of sets, and the blocks of their states for the disk.
#[derive(Default)]
struct OwnerBlocks {
    owners: Owners,
    blocks: BTreeMap<(SetTable, u64), Vec<u8>>,
}

impl OwnerBlocks {
    fn note(&mut self, table: SetTable, owner: u64) {
        if table.has_dense_owners() {
            let changed = self.owners.raise(table, &[(owner, State::ROWS)]).into_iter();
            self.blocks.extend(changed.map(|(block, bytes)| ((table, block), bytes)));
        }
    }
}

impl Loader {
    /// Creates the files of a store in `folder`, which must have none. They become a store with [`Loader::finish`].
    ///
    /// # Errors
    /// The files cannot be created.
    pub fn create(folder: &Path) -> Result<Self, StoreError> {
        let disk = Disk::create(folder)?;
        let head = Head { applied: 0, hasher: random_hasher()?, totals: Totals::default() };
        Ok(Self {
            disk,
            head,
            facts: Sorter::new(folder, CHUNK_BYTES),
            ephemeral: Sorter::new(folder, CHUNK_BYTES),
            of_users: OF_USERS.map(|_| Sorter::new(folder, CHUNK_BYTES)),
            owners: OwnerBlocks::default(),
            line: 0,
            failed: None,
            folder: folder.to_owned(),
        })
    }

    /// Whether [`Loader::write`] counts the items of a set.
    #[must_use]
    pub fn counts_items(table: SetTable) -> bool {
        OF_USERS.contains(&table)
    }

    /// Sets the line of the input from which the following rows come.
    pub fn begin_line(&mut self, line: u64) {
        self.line = line;
    }

    /// Checks whether all rows added so far could be stored.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn check(&mut self) -> Result<(), StoreError> {
        match self.failed.take() {
            None => Ok(()),
            Some(source) => Err(StoreError::Io { path: self.folder.clone(), source }),
        }
    }

    /// Adds a key of a bucket.
    pub fn put_key(&mut self, row: &KeyRow) {
        let hash = self.head.hasher.hash(row.space(), row.key());
        let key = layout::key(row.space(), hash, row.key());
        self.put(KeyspaceKind::Facts, &key, &layout::encode_key_row(row));
    }

    /// Adds a bucket.
    pub fn put_bucket(&mut self, id: BucketId, bucket: Bucket) {
        self.put(KeyspaceKind::Facts, &layout::bucket(id), &bucket.encode());
    }

    /// Writes the added rows to disk, and passes the size of each set of users to `each_set`. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Repeated`], or a file cannot be written.
    pub fn write(&mut self, each_set: EachSet<'_>) -> Result<(), StoreError> {
        self.check()?;
        let Self { folder, disk, facts, ephemeral, of_users, owners, .. } = self;
        let at = |source| StoreError::Io { path: folder.clone(), source };
        disk.ingest(KeyspaceKind::Ephemeral, |write| {
            SortedRows::new(ephemeral, &at)?.put_below(u8::MAX, write)
        })?;
        disk.ingest(KeyspaceKind::Facts, |write| {
            let mut rows = SortedRows::new(facts, &at)?;
            for table in SetTable::ALL.into_iter().filter(|table| table.is_packed()) {
                rows.put_below(table.tag(), write)?;
                let of_users = OF_USERS.iter().zip(&mut *of_users).find(|(of, _)| **of == table);
                let Some((_, pairs)) = of_users else {
                    rows.pack(table, write)?;
                    continue;
                };
                let mut each = |owner: u32, items| {
                    owners.note(table, owner.into());
                    each_set(table, owner, items);
                };
                pack_users(table, pairs.sorted().map_err(at)?, &at, &mut each, write)?;
            }
            rows.put_below(u8::MAX, write)
        })
    }

    /// Writes the remaining rows, and completes the store. Blocks.
    ///
    /// # Errors
    /// Those of [`Loader::write`].
    pub fn finish(mut self, totals: Totals) -> Result<(), StoreError> {
        self.begin_line(0);
        self.head.totals = totals;
        let head = self.head.encode();
        self.put(KeyspaceKind::Ephemeral, &layout::HEAD, &self.head.applied.to_le_bytes());
        self.put(KeyspaceKind::Facts, &layout::HEAD, &head);
        self.put(KeyspaceKind::Facts, &layout::FENCE, &[0; layout::FENCE_BYTES]);
        for ((table, block), bytes) in std::mem::take(&mut self.owners.blocks) {
            self.put(KeyspaceKind::of_set(table), &layout::owners(table, block), &bytes);
        }
        self.write(&mut |_, _, _| {})
    }

    fn put(&mut self, part: KeyspaceKind, key: &[u8], value: &[u8]) {
        let row = SortedRow { key: key.into(), line: self.line, value: value.into() };
        let pushed = match part {
            KeyspaceKind::Facts => self.facts.push(row),
            KeyspaceKind::Ephemeral => self.ephemeral.push(row),
        };
        self.failed = self.failed.take().or(pushed.err());
    }
}

/// Ignores `None` values, because a new store has no row to remove.
impl PutRows for Loader {
    fn put_point(&mut self, table: PointTable, key: u64, value: Option<Value>) {
        if let Some(value) = value {
            self.put(KeyspaceKind::of_point(table), &layout::point(table, key), &value);
        }
    }

    fn put_member(&mut self, table: SetTable, owner: u64, item: u64, value: Option<u64>) {
        let Some(number) = value else { return };
        let sorter = OF_USERS.iter().zip(&mut self.of_users).find(|(of, _)| **of == table);
        let pair = (u32::try_from(owner), u32::try_from(item));
        if let (Some((_, sorter)), (Ok(owner), Ok(item)), 0) = (sorter, pair, number) {
            let pushed = sorter.push(u64::from(owner) << 32 | u64::from(item));
            self.failed = self.failed.take().or(pushed.err());
            return;
        }
        self.owners.note(table, owner);
        let number = number.to_be_bytes();
        let number = layout::encode_number(&number);
        self.put(KeyspaceKind::of_set(table), &layout::set(table, owner, item), number);
    }

    fn put_name(&mut self, table: NameTable, key: &[u8], value: Option<Value>) {
        if let Some(value) = value {
            self.put(KeyspaceKind::Facts, &layout::name(table, key), &value);
        }
    }
}

/// Packs a set of users.
fn pack_users(
    table: SetTable,
    pairs: Merge<u64>,
    at: &dyn Fn(io::Error) -> StoreError,
    each_set: &mut dyn FnMut(u32, usize),
    write: &mut WriteRow<'_>,
) -> Result<(), StoreError> {
    let mut packer = Packer::new(table);
    let (mut last, mut items) = (None, 0);
    for pair in pairs {
        let pair = pair.map_err(at)?;
        let [owner, item] = [pair >> 32, pair & u64::from(u32::MAX)];
        match last {
            Some(last) if last == pair => continue,
            Some(last) if last >> 32 != owner => {
                each_set((last >> 32) as u32, items);
                items = 0;
            }
            _ => {}
        }
        packer.add(owner, (item, 0), write)?;
        (last, items) = (Some(pair), items + 1);
    }
    if let Some(last) = last {
        each_set((last >> 32) as u32, items);
    }
    packer.finish(write)
}

/// Rows in the order of keys.
struct SortedRows<'a> {
    rows: Peekable<Merge<SortedRow>>,
    last: Option<SortedRow>,
    at: &'a dyn Fn(io::Error) -> StoreError,
}

impl<'a> SortedRows<'a> {
    fn new(
        sorter: &mut Sorter<SortedRow>,
        at: &'a dyn Fn(io::Error) -> StoreError,
    ) -> Result<Self, StoreError> {
        Ok(Self { rows: sorter.sorted().map_err(at)?.peekable(), last: None, at })
    }

    /// Returns the next row, if the tag of its table is less than `tag`.
    fn next_below(&mut self, tag: u8) -> Result<Option<&SortedRow>, StoreError> {
        let below = |row: &io::Result<SortedRow>| {
            row.as_ref().map_or(true, |row| row.key.first() < Some(&tag))
        };
        let Some(row) = self.rows.next_if(below) else { return Ok(None) };
        let row = row.map_err(self.at)?;
        if let Some(last) = self.last.as_ref().filter(|last| last.key == row.key) {
            return Err(StoreError::Repeated { line: row.line, first: last.line });
        }
        Ok(Some(self.last.insert(row)))
    }

    /// Writes the rows whose tables have tags less than `tag`.
    fn put_below(&mut self, tag: u8, write: &mut WriteRow<'_>) -> Result<(), StoreError> {
        while let Some(row) = self.next_below(tag)? {
            write(&row.key, Some(&row.value))?;
        }
        Ok(())
    }

    /// Packs the items of `table`, which are the next rows.
    fn pack(&mut self, table: SetTable, write: &mut WriteRow<'_>) -> Result<(), StoreError> {
        let mut packer = Packer::new(table);
        while let Some(row) = self.next_below(table.tag() + 1)? {
            let owner = row.key.get(1..).and_then(|rest| rest.first_chunk());
            let (Some(owner), Some(item)) = (owner, layout::item_of(&row.key)) else {
                unreachable!("the key of an item has 17 bytes")
            };
            let number = layout::decode_number(&row.value);
            packer.add(u64::from_be_bytes(*owner), (item, number), write)?;
        }
        packer.finish(write)
    }
}

#[cfg(test)]
mod tests {
    use rows::{Rows as _, Span};

    use super::*;
    use crate::{Store, StoreOptions};

    const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 1 << 20, bucket_bytes: 1 << 20 };

    #[test]
    fn what_was_put_in_any_order_is_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let mut loader = Loader::create(folder.path()).unwrap();
        let value = |text: &[u8]| Some(Value::from_slice(text));
        loader.put_name(NameTable::Handle, b"b", value(b"1"));
        loader.put_point(PointTable::User, 7, value(b"seven"));
        loader.put_point(PointTable::StoryText, 3, value(b"text"));
        loader.put_member(SetTable::Seen, 9, 3, Some(0));
        loader.put_member(SetTable::AuthorPosts, 600, 5, Some(258));
        for (owner, item) in [(2, 1), (1, 9), (2, 0), (1, 9)] {
            loader.put_member(SetTable::Following, owner, item, Some(0));
        }
        let mut sizes = Vec::new();
        loader.write(&mut |table, owner, items| sizes.push((table, owner, items))).unwrap();
        assert_eq!(sizes, [(SetTable::Following, 1, 1), (SetTable::Following, 2, 2)]);
        // The caller computes these rows from the sizes.
        loader.put_point(PointTable::Counts, 1, value(b"counts"));
        loader.finish(Totals { users: 8, ..Totals::default() }).unwrap();
        let (writer, applied) = Store::open(folder.path(), OPTIONS).unwrap();
        assert_eq!((applied, writer.totals().users), (0, 8));
        assert_eq!(writer.members(SetTable::Following, 2, Span::ALL), [(0, 0), (1, 0)]);
        assert_eq!(writer.members(SetTable::Seen, 9, Span::ALL), [(3, 0)]);
        assert_eq!(writer.member(SetTable::AuthorPosts, 600, 5), Some(258));
        assert_eq!(writer.point(PointTable::StoryText, 3), value(b"text"));
        assert_eq!(writer.point(PointTable::Counts, 1), value(b"counts"));
        assert_eq!(writer.name(NameTable::Handle, b"b"), value(b"1"));
        drop(writer);
        let report = crate::verify(folder.path()).unwrap();
        assert_eq!(report.counted.follows, 3);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no file is left");
    }

    #[test]
    fn a_row_that_is_repeated_is_refused_with_both_lines() {
        let folder = tempfile::tempdir().unwrap();
        let mut loader = Loader::create(folder.path()).unwrap();
        for (line, post) in [(4, 1), (5, 2), (6, 1)] {
            loader.begin_line(line);
            loader.put_point(PointTable::Post, post, Some(Value::new()));
        }
        let error = loader.write(&mut |_, _, _| {}).unwrap_err();
        assert!(matches!(error, StoreError::Repeated { line: 6, first: 4 }), "{error}");
        assert!(Store::open(folder.path(), OPTIONS).is_err());
    }
}
