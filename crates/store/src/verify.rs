//! Check of a store that is not in use: compares every table file with its checksum, and reads and counts every row.

use std::path::Path;

use kv::Bucket;
use rows::{NameTable, PointTable, SetTable, Table};

use crate::count::PackedCount;
use crate::disk::{Disk, KeyspaceKind};
use crate::error::StoreError;
use crate::head::Head;
use crate::layout;
use crate::owners;
use crate::table_check::compare;

/// Numbers of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Number of users.
    pub users: u64,
    /// Number of posts.
    pub posts: u64,
    /// Number of follows.
    pub follows: u64,
    /// Number of friendships. Each pair of friends counts once.
    pub friendships: u64,
    /// Number of stories.
    pub stories: u64,
    /// Number of keys that expire.
    pub keys_expiring: u64,
}

/// Result of a check.
#[derive(Debug, Default)]
pub struct RowsReport {
    /// Position of the log up to which the rows are applied.
    pub applied: u64,
    /// Number of table files.
    pub files: usize,
    /// Number of rows that were read.
    pub rows: u64,
    /// Number of keys of buckets among the rows.
    pub keys: u64,
    /// Counts.
    pub counted: Counted,
    /// Descriptions of the damage.
    pub damage: Vec<String>,
    packed: PackedCount,
}

/// Reads every row of the store in `dir`. The caller keeps other processes away from `dir`.
///
/// # Errors
/// The store cannot be opened. The report contains damage that is found later.
pub fn verify(dir: &Path) -> Result<RowsReport, StoreError> {
    let disk = Disk::open_existing(dir)?;
    let mut report = RowsReport::default();
    let mut described = false;
    for (part, name) in
        [(KeyspaceKind::Facts, "facts"), (KeyspaceKind::Ephemeral, "texts and views of stories")]
    {
        for (file, checksum) in disk.tables(part) {
            report.files += 1;
            if let Some(what) = compare(&file, checksum) {
                report.damage.push(format!("{}: {what}", file.display()));
            }
        }
        let mut last: Vec<u8> = Vec::new();
        for row in disk.all(part) {
            let (key, value) = match row.into_inner() {
                Ok(row) => row,
                Err(error) => {
                    let rows = report.rows;
                    report.damage.push(format!(
                        "the {name} cannot be read after the row {} ({rows} rows are readable): {error}",
                        hex(&last)
                    ));
                    break;
                }
            };
            report.rows += 1;
            last = key.to_vec();
            if part == KeyspaceKind::Facts && *key == layout::HEAD {
                (report.applied, described) = (Head::read(&value)?.applied, true);
            } else if let Some(what) = report.count(&key, &value) {
                report.damage.push(format!("the row {} is malformed: {what}", hex(&key)));
            }
        }
    }
    if !described && report.damage.is_empty() {
        return Err(StoreError::Damaged("the row that describes it is missing"));
    }
    report.counted.friendships /= 2;
    Ok(report)
}

impl RowsReport {
    /// Counts the items of a row of a packed table. Returns a description of the fault, if the row has one.
    fn count_packed(&mut self, table: SetTable, key: &[u8], row: &[u8]) -> Option<&'static str> {
        let items = match self.packed.add(table, key, row) {
            Ok(items) => items,
            Err(what) => return Some(what),
        };
        let count = match table {
            SetTable::Following => &mut self.counted.follows,
            SetTable::Friends => &mut self.counted.friendships,
            _ => return None,
        };
        *count = count.saturating_add_signed(items);
        None
    }

    /// Counts a row. Returns a description of the fault, if the row has one.
    fn count(&mut self, key: &[u8], value: &[u8]) -> Option<&'static str> {
        let tag = *key.first()?;
        match Table::of_tag(tag) {
            Some(Table::Point(table)) => {
                let counted = &mut self.counted;
                match table {
                    PointTable::User => counted.users += 1,
                    PointTable::Post => counted.posts += 1,
                    PointTable::Story => counted.stories += 1,
                    _ => {}
                }
                let sound = key.len() == size_of::<layout::PointKey>();
                return (!sound).then_some("its key must have 9 bytes");
            }
            Some(Table::Set(table)) if table.is_packed() => {
                return self.count_packed(table, key, value);
            }
            Some(Table::Set(_)) => {
                let sound = key.len() == size_of::<layout::SetKey>() && value.len() <= 8;
                return (!sound).then_some("its key must have 17 bytes, and its value at most 8");
            }
            Some(Table::Name(table)) => {
                self.counted.keys_expiring += u64::from(table == NameTable::KeyExpiry);
                return (key.len() < 2).then_some("it has no name");
            }
            None => {}
        }
        if key.starts_with(&layout::KEYS_PREFIX) {
            self.keys += 1;
            let row = layout::read_key(key);
            let row = row.and_then(|(space, _, key)| layout::decode_key_row(space, key, value));
            return row.is_none().then_some("it is not a valid key of a bucket");
        }
        if key.starts_with(&layout::BUCKETS_PREFIX) {
            let sound = layout::read_bucket(key).is_some() && Bucket::decode(value).is_some();
            return (!sound).then_some("it is not a valid bucket");
        }
        // These rows are about the store itself: the position of ephemeral rows, the fence, and states of owners.
        let sound = (*key == layout::HEAD && value.len() == 8)
            || (*key == layout::FENCE && value.len() == layout::FENCE_BYTES)
            || (tag == 1 && owners::decode(value).is_some());
        (!sound).then_some("there is no such table")
    }
}

/// Formats the first bytes of a key.
fn hex(key: &[u8]) -> String {
    key.iter().take(32).map(|byte| format!("{byte:02x}")).collect()
}
