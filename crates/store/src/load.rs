//! A new store made of rows that come in any order: sorted outside of memory, and ingested. For an import.
//!
//! **Invariant:** two rows of the same key are refused, with the lines of input they were made of. Pairs of users
//! (who follows whom, who are friends) may be repeated.

use std::collections::BTreeMap;
use std::io;
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use kv::{Bucket, BucketId, KeyRow};
use rows::{NameTable, PointTable, PutRows, SetTable, Totals, Value};

use crate::disk::{Disk, Part, WriteRow};
use crate::error::StoreError;
use crate::head::Head;
use crate::layout;
use crate::owners::Owners;
use crate::sort::{Merge, SortedRow, Sorter};
use crate::store::random_hasher;

/// Memory of each of the five sorters, in bytes.
const CHUNK_BYTES: usize = 48 << 20;
/// Sets of users by users, in the order of tags. They have most of all rows, so they are sorted as pairs of numbers.
const OF_USERS: [SetTable; 3] = [SetTable::Following, SetTable::Followers, SetTable::Friends];

/// Receives an owner of one of the sets of users, and the number of its items.
pub type EachSet<'a> = &'a mut dyn FnMut(SetTable, u32, usize);

/// A store that is being made.
pub struct Loader {
    folder: PathBuf,
    disk: Disk,
    head: Head,
    facts: Sorter<SortedRow>,
    ephemeral: Sorter<SortedRow>,
    /// Owner and item, one sorter for each table.
    of_users: [Sorter<u64>; OF_USERS.len()],
    owners: OwnerBlocks,
    line: u64,
    failed: Option<io::Error>,
}

/// The owners of sets, and the blocks of their bitmaps as they will be on disk.
#[derive(Default)]
struct OwnerBlocks {
    owners: Owners,
    blocks: BTreeMap<(SetTable, u64), [u8; 64]>,
}

impl OwnerBlocks {
    fn note(&mut self, table: SetTable, owner: u64) {
        if table.has_dense_owners() {
            let changed = self.owners.note(table, &[owner]).into_iter();
            self.blocks.extend(changed.map(|(block, bytes)| ((table, block), bytes)));
        }
    }
}

impl Loader {
    /// Makes a store in `folder`, which has none. Until it is finished, what is there is no store.
    ///
    /// # Errors
    /// If its files cannot be made.
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

    /// What is put from now on comes from this line of the input.
    pub fn begin_line(&mut self, line: u64) {
        self.line = line;
    }

    /// Whether everything that was put could be kept.
    ///
    /// # Errors
    /// If a file could not be written.
    pub fn check(&mut self) -> Result<(), StoreError> {
        match self.failed.take() {
            None => Ok(()),
            Some(source) => Err(StoreError::Io { path: self.folder.clone(), source }),
        }
    }

    /// Puts a key of a bucket.
    pub fn put_key(&mut self, row: &KeyRow) {
        let hash = self.head.hasher.hash(row.space(), row.key());
        let key = layout::key(row.space(), hash, row.key());
        self.put(Part::Facts, &key, &layout::encode_key_row(row));
    }

    /// Puts a bucket.
    pub fn put_bucket(&mut self, id: BucketId, bucket: Bucket) {
        self.put(Part::Facts, &layout::bucket(id), &bucket.encode());
    }

    /// Writes to disk what was put, and gives the sizes of the sets of users to `each_set`. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Repeated`], or if a file cannot be written.
    pub fn write(&mut self, each_set: EachSet<'_>) -> Result<(), StoreError> {
        self.check()?;
        let Self { folder, disk, facts, ephemeral, of_users, owners, .. } = self;
        let at = |source| StoreError::Io { path: folder.clone(), source };
        disk.ingest(Part::Ephemeral, |write| {
            SortedRows::new(ephemeral.sorted().map_err(at)?).put_below(u8::MAX, write, &at)
        })?;
        disk.ingest(Part::Facts, |write| {
            let mut rows = SortedRows::new(facts.sorted().map_err(at)?);
            for (table, pairs) in OF_USERS.into_iter().zip(of_users) {
                rows.put_below(table.tag(), write, &at)?;
                each_list(pairs.sorted().map_err(at)?, &at, &mut |owner, items| {
                    owners.note(table, owner.into());
                    each_set(table, owner, items.len());
                    put_list(table, owner, items, write)
                })?;
            }
            rows.put_below(u8::MAX, write, &at)
        })
    }

    /// Writes the rest, and what makes it a store. Blocks.
    ///
    /// # Errors
    /// As [`Loader::write`].
    pub fn finish(mut self, totals: Totals) -> Result<(), StoreError> {
        self.begin_line(0);
        self.head.totals = totals;
        let head = self.head.encode();
        self.put(Part::Ephemeral, &layout::HEAD, &self.head.applied.to_le_bytes());
        self.put(Part::Facts, &layout::HEAD, &head);
        for ((table, block), bytes) in std::mem::take(&mut self.owners.blocks) {
            self.put(Part::of_set(table), &layout::owners(table, block), &bytes);
        }
        self.write(&mut |_, _, _| {})
    }

    fn put(&mut self, part: Part, key: &[u8], value: &[u8]) {
        let row = SortedRow { key: key.into(), line: self.line, value: value.into() };
        let pushed = match part {
            Part::Facts => self.facts.push(row),
            Part::Ephemeral => self.ephemeral.push(row),
        };
        self.failed = self.failed.take().or(pushed.err());
    }
}

/// `None` for a value puts nothing: a new store has no row to remove.
impl PutRows for Loader {
    fn put_point(&mut self, table: PointTable, key: u64, value: Option<Value>) {
        if let Some(value) = value {
            self.put(Part::of_point(table), &layout::point(table, key), &value);
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
        self.put(Part::of_set(table), &layout::set(table, owner, item), number);
    }

    fn put_name(&mut self, table: NameTable, key: &[u8], value: Option<Value>) {
        if let Some(value) = value {
            self.put(Part::Facts, &layout::name(table, key), &value);
        }
    }
}

/// Writes the rows of one owner of a set of users: nothing else knows how these sets are kept.
fn put_list(
    table: SetTable,
    owner: u32,
    items: &[u32],
    write: &mut WriteRow<'_>,
) -> Result<(), StoreError> {
    items
        .iter()
        .try_for_each(|item| write(&layout::set(table, owner.into(), u64::from(*item)), Some(&[])))
}

/// Receives an owner and its items.
type EachList<'a> = &'a mut dyn FnMut(u32, &[u32]) -> Result<(), StoreError>;

/// Gives each owner to `each`, with its items in ascending order, each once.
fn each_list(
    pairs: Merge<u64>,
    at: &dyn Fn(io::Error) -> StoreError,
    each: EachList<'_>,
) -> Result<(), StoreError> {
    let (mut current, mut items) = (0, Vec::new());
    for pair in pairs {
        let pair = pair.map_err(at)?;
        let (owner, item) = ((pair >> 32) as u32, pair as u32);
        if owner != current && !items.is_empty() {
            each(current, &items)?;
            items.clear();
        }
        current = owner;
        if items.last() != Some(&item) {
            items.push(item);
        }
    }
    if items.is_empty() { Ok(()) } else { each(current, &items) }
}

/// Rows in the order of keys.
struct SortedRows {
    rows: Peekable<Merge<SortedRow>>,
    last: Option<SortedRow>,
}

impl SortedRows {
    fn new(rows: Merge<SortedRow>) -> Self {
        Self { rows: rows.peekable(), last: None }
    }

    /// Writes the rows whose tables come before `tag`.
    fn put_below(
        &mut self,
        tag: u8,
        write: &mut WriteRow<'_>,
        at: &dyn Fn(io::Error) -> StoreError,
    ) -> Result<(), StoreError> {
        let below = |row: &io::Result<SortedRow>| {
            row.as_ref().map_or(true, |row| row.key.first() < Some(&tag))
        };
        while let Some(row) = self.rows.next_if(below) {
            let row = row.map_err(at)?;
            if let Some(last) = self.last.as_ref().filter(|last| last.key == row.key) {
                return Err(StoreError::Repeated { line: row.line, first: last.line });
            }
            write(&row.key, Some(&row.value))?;
            self.last = Some(row);
        }
        Ok(())
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
        // Rows that depend on the sizes.
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
