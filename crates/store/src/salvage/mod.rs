//! Salvage: creates a store from the readable rows of a damaged one. The damaged store is not changed, and the engine
//! does not open it.
//!
//! Each checkpoint adds tables to the newest level. Without the tables of the newest checkpoints, the other tables are
//! therefore the store of an earlier checkpoint; if the log has all later groups, nothing is lost. If no earlier
//! checkpoint is whole, the new store gets all readable rows. Rows in a damaged block are then lost, unless a rule can
//! derive them from other rows. If an older file has a row that may also have been in the damaged block, the older row
//! is used. Such a store has the position of the newest checkpoint, and no ephemeral rows, because they may have been
//! erased.

mod lists;
mod merge;
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lists::Lists;
pub use merge::Hole;
use merge::{Merge, Merged};

use crate::disk::{Disk, KeyspaceKind};
use crate::error::StoreError;
use crate::head::Head;
use crate::layout::{self, WriteRow};
use crate::manifest::{self, TableFile, Tables};
use crate::table_check::compare;

/// Folder of the keyspace of facts. The engine numbers keyspaces in the order of their creation.
const FACTS: &str = "facts/keyspaces/1";
const EPHEMERAL: &str = "facts/keyspaces/2";

/// Readable parts of a damaged store.
pub struct Salvage {
    facts: Keyspace,
    ephemeral: Keyspace,
    /// Descriptions of the damage.
    pub damage: Vec<String>,
}

struct Keyspace {
    part: KeyspaceKind,
    tables: Tables,
    /// Damaged files, and descriptions of their damage.
    damaged: BTreeMap<PathBuf, String>,
    /// Whether the manifest is known.
    is_known: bool,
}

/// Store that can be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// Position of the log up to which the rows are applied.
    pub applied: u64,
    /// Whether all rows at that position are readable.
    pub is_whole: bool,
    /// Number of the first table of facts to leave out; `u64::MAX` if none are left out.
    facts_below: u64,
    ephemeral_below: u64,
}

/// Data that was unreadable when the store was created.
#[derive(Clone, Debug, Default)]
pub struct Salvaged {
    /// Unreadable parts of the files of facts.
    pub facts: Vec<Hole>,
    /// Unreadable parts of the files of texts and views of stories.
    pub ephemeral: Vec<Hole>,
    /// Files and offsets (in bytes) of blocks in which a flipped bit was corrected.
    pub corrected: Vec<(PathBuf, u64)>,
}

impl Salvage {
    /// Examines all files of the store in `dir`. The caller keeps other processes away from `dir`.
    ///
    /// # Errors
    /// A folder cannot be listed.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let facts = Keyspace::open(KeyspaceKind::Facts, &dir.join(FACTS))?;
        let ephemeral = Keyspace::open(KeyspaceKind::Ephemeral, &dir.join(EPHEMERAL))?;
        let mut damage = [&facts.tables.notes[..], &ephemeral.tables.notes].concat();
        for (keyspace, name) in [(&facts, FACTS), (&ephemeral, EPHEMERAL)] {
            if !keyspace.is_known {
                let path = dir.join(name);
                damage.push(format!(
                    "{}: it is unknown which of its tables are in use",
                    path.display()
                ));
            }
            let files = keyspace.damaged.iter();
            damage.extend(files.map(|(file, what)| format!("{}: {what}", file.display())));
        }
        Ok(Self { facts, ephemeral, damage })
    }

    /// Returns the stores that can be created, best first: whole ones from the newest to the oldest, then one without
    /// the unreadable rows.
    ///
    /// # Errors
    /// A later version wrote the store.
    pub fn bases(&self) -> Result<Vec<Base>, StoreError> {
        let mut bases = Vec::new();
        for facts_below in self.facts.bounds() {
            // An unreadable checkpoint is skipped, except that an error of the newest one is returned.
            let head = self.facts.head(facts_below);
            let head = if facts_below == u64::MAX { head? } else { head.unwrap_or_default() };
            let Some(applied) = head else { continue };
            let is_enough =
                |below: &u64| *below == u64::MAX || self.ephemeral.applied(*below) >= Some(applied);
            let ephemeral_below = self.ephemeral.bounds().into_iter().find(is_enough);
            if let Some(ephemeral_below) = ephemeral_below {
                bases.push(Base { applied, is_whole: true, facts_below, ephemeral_below });
            }
        }
        let all = u64::MAX;
        if bases.first().is_none_or(|base| base.facts_below != all || base.ephemeral_below != all)
            && self.facts.is_known
            && let Some(applied) = self.facts.head(all)?
        {
            bases.push(Base { applied, is_whole: false, facts_below: all, ephemeral_below: all });
        }
        Ok(bases)
    }

    /// Creates a store of one of [`Salvage::bases`] in `dir`, which must have no store.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn write(&self, base: &Base, dir: &Path) -> Result<Salvaged, StoreError> {
        let disk = Disk::create(dir)?;
        let ephemeral = self.ephemeral.copy(base.ephemeral_below, &disk)?;
        let facts = self.facts.copy(base.facts_below, &disk)?;
        if disk.point(KeyspaceKind::Facts, &layout::HEAD).is_none() {
            return Err(StoreError::Damaged("the row that describes it is missing"));
        }
        let corrected = [facts.corrected, ephemeral.corrected].concat();
        Ok(Salvaged { facts: facts.holes, ephemeral: ephemeral.holes, corrected })
    }
}

impl Keyspace {
    fn open(part: KeyspaceKind, path: &Path) -> Result<Self, StoreError> {
        let tables = if path.is_dir() { manifest::salvage(path)? } else { None };
        let is_known = tables.is_some();
        let tables = tables.unwrap_or_default();
        let files = tables.runs.iter().flatten();
        let damaged = files
            .filter_map(|table| Some((table.path.clone(), compare(&table.path, table.checksum)?)));
        let damaged = damaged.collect();
        Ok(Self { part, tables, damaged, is_known })
    }

    fn runs(&self, below: u64) -> impl Iterator<Item = Vec<TableFile>> {
        let is_used = move |table: &&TableFile| below == u64::MAX || table.seqno < below;
        self.tables.runs.iter().map(move |run| run.iter().filter(is_used).cloned().collect())
    }

    /// Returns numbers for which all tables with smaller numbers are whole, greatest first. Without the newest tables,
    /// the others are an earlier checkpoint, unless the newest ones were merged with others.
    fn bounds(&self) -> Vec<u64> {
        if !self.is_known {
            return Vec::new();
        }
        let newest =
            self.tables.runs.iter().flatten().filter(|table| table.level == 0 && table.seqno > 0);
        let mut bounds: Vec<u64> = newest.map(|table| table.seqno).chain([u64::MAX]).collect();
        bounds.sort_unstable_by(|a, b| b.cmp(a));
        bounds.dedup();
        bounds.retain(|below| {
            let mut used = self.runs(*below).flatten().peekable();
            let is_empty = used.peek().is_none() && *below != u64::MAX;
            !is_empty && used.all(|table| !self.damaged.contains_key(&table.path))
        });
        bounds
    }

    /// Returns the position in the head row of the facts.
    fn head(&self, below: u64) -> Result<Option<u64>, StoreError> {
        match self.first(below) {
            Some(row) => Ok(Some(Head::read(&row.value)?.applied)),
            None => Ok(None),
        }
    }

    /// Returns the position in the head row of the ephemeral rows.
    fn applied(&self, below: u64) -> Option<u64> {
        let row = self.first(below)?;
        row.value.first_chunk().map(|applied| u64::from_le_bytes(*applied))
    }

    /// Returns the head row, if this version is certainly the newest.
    fn first(&self, below: u64) -> Option<Merged> {
        let first = Merge::new(self.runs(below)).next()?;
        (*first.key == layout::HEAD && !first.may_be_old).then_some(first)
    }

    /// Writes all rows, and the states of their owners, into an empty keyspace.
    fn copy(&self, below: u64, disk: &Disk) -> Result<Merge, StoreError> {
        let mut merge = Merge::new(self.runs(below));
        let mut blocks = BTreeMap::new();
        disk.ingest(self.part, |write| {
            let mut lists = Lists::default();
            while let Some(row) = merge.next() {
                if layout::is_owners(&row.key)
                    || (row.may_be_old && self.part == KeyspaceKind::Ephemeral)
                {
                    continue;
                }
                lists.put(row.key, row.value, write)?;
            }
            blocks = lists.finish(write)?;
            Ok(())
        })?;
        if !blocks.is_empty() {
            let put = |write: &mut WriteRow<'_>| {
                blocks.iter().try_for_each(|(key, bytes)| write(key, Some(bytes)))
            };
            disk.ingest(self.part, put)?;
        }
        Ok(merge)
    }
}
