//! Rows on disk: two keyspaces of one fjall database, changed only by ingestions. One has the rows of ephemeral tables,
//! so that these can be rewritten cheaply without removed rows; the other has all other rows.
//!
//! This file relies on guarantees of fjall, which `tests/crash.rs` tests. `finish` of an ingestion syncs its tables and
//! the manifest that names them. The manifest is replaced by renaming, so after a crash either all rows of an ingestion
//! exist or none. A later ingestion hides the same keys of earlier ones, and so do its removals. Each keyspace has its
//! own manifest, so an ingestion into one does not affect the other.
//!
//! Every read takes the newest version of a row. Older snapshots are not read.
//!
//! Nothing is written to fjall's journal, so it stays empty, and opening replays nothing.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use fjall::compaction::Leveled;
use fjall::config::{BloomConstructionPolicy, PinningPolicy};
use fjall::config::{CompressionPolicy, FilterPolicy, FilterPolicyEntry, PartitioningPolicy};
use fjall::{AbstractTree as _, CompressionType, Database, KeyspaceCreateOptions, PersistMode};
use parking_lot::Mutex;
use rows::{PointTable, SetTable};

use crate::error::{StoreError, fatal, unreadable};
use crate::keyspace::{Keyspace, RowIter};
use crate::layout::{self, WriteRow};
use crate::manifest;
#[cfg(feature = "simulation")]
use crate::memory::MemoryDisk;
use crate::owners::State;
use crate::sets::Set;

/// Folder of the database in the store's directory.
const FACTS: &str = "facts";
/// Lock file of the engine.
const LOCK: &str = "lock";
/// Folder of a new database. It is renamed when it is complete.
const FACTS_NEW: &str = "facts.new";
const KEYSPACE: &str = "facts";
// The name on disk is older than the term "ephemeral".
const KEYSPACE_EPHEMERAL: &str = "fleeting";
/// Target size of the tables that an erasure writes, in bytes. It is that of fjall's merges.
const TABLE_BYTES: u64 = 64_000_000;
const FILTER_BITS_PER_KEY: f32 = 10.0;
/// Size of the block cache, in bytes, while a store is created from rows or checked. It is small, because each block is
/// used once.
const CREATE_CACHE_BYTES: u64 = 8 << 20;
/// Folder of the tables of a keyspace.
const TABLES: &str = "tables";
/// Maximum number of files that the engine keeps open. It is much less than the number of descriptors reserved for log
/// and store.
const CACHED_FILES_MAX: usize = 128;
/// Number of tables of ingestions that are merged into the next level. A smaller number makes reads cheaper, and each
/// checkpoint of a bulk load more expensive.
const L0_TABLES: u8 = 4;

/// Kind of keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyspaceKind {
    /// Rows that are not ephemeral.
    Facts,
    /// Rows of ephemeral tables.
    Ephemeral,
}

impl KeyspaceKind {
    /// Returns the keyspace of the rows of `table`.
    pub(crate) fn of_point(table: PointTable) -> Self {
        if table.is_ephemeral() { Self::Ephemeral } else { Self::Facts }
    }

    /// Returns the keyspace of the rows of `table` and of the states of its owners.
    pub(crate) fn of_set(table: SetTable) -> Self {
        if table.is_ephemeral() { Self::Ephemeral } else { Self::Facts }
    }
}

/// Keyspaces of the store.
pub(crate) struct Disk {
    /// Database; `None` in the simulator, whose rows are all in memory.
    database: Option<Database>,
    facts: Keyspace,
    ephemeral: Keyspace,
    /// Lock for ingestions of ephemeral rows. Until an ingestion ends, its files do not belong to the keyspace.
    ingesting: Mutex<()>,
}

/// Returns an error for the first table file of the store in `dir` that does not match its checksum. Reads every file.
/// Used for errors of the engine that name no file.
#[must_use]
pub fn damaged_table(dir: &Path) -> Option<StoreError> {
    manifest::damaged_table(&dir.join(FACTS))
}

/// Adds the damaged file to an error of the engine, for the store in `dir`.
pub(crate) fn name_file(dir: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Engine(_) => damaged_table(dir).unwrap_or(error),
        error => error,
    }
}

impl Disk {
    /// Opens the keyspaces in `dir`; if they do not exist, creates them with `head` as the only row. Adds the ephemeral
    /// keyspace to a store of an old format.
    ///
    /// A new database gets its name when it is complete, so a crash before leaves no store. The caller keeps other
    /// processes away from `dir`.
    pub(crate) fn open(dir: &Path, cache_bytes: u64, head: &[u8]) -> Result<Self, StoreError> {
        let facts = dir.join(FACTS);
        if !facts.exists() {
            let new = dir.join(FACTS_NEW);
            if new.exists() {
                fs::remove_dir_all(&new).map_err(at(&new))?;
            }
            fs::create_dir_all(&new).map_err(at(&new))?;
            let disk = Self::open_at(&new, cache_bytes)?;
            disk.ingest(KeyspaceKind::Facts, |write| write(&layout::HEAD, Some(head)))?;
            drop(disk);
            fs::rename(&new, &facts).map_err(at(&facts))?;
            File::open(dir).and_then(|dir| dir.sync_all()).map_err(at(dir))?;
        }
        Self::open_checked(&facts, cache_bytes)
    }

    /// Opens a database whose creation was completed.
    fn open_checked(path: &Path, cache_bytes: u64) -> Result<Self, StoreError> {
        manifest::check(path)?;
        // The engine refuses a database without its lock file, which is empty.
        let lock = path.join(LOCK);
        if !lock.exists() {
            File::create(&lock).map_err(at(&lock))?;
        }
        Self::open_at(path, cache_bytes)
    }

    /// Creates empty keyspaces in `dir`, which must have none. They become a store when rows are ingested.
    pub(crate) fn create(dir: &Path) -> Result<Self, StoreError> {
        let facts = dir.join(FACTS);
        fs::create_dir_all(&facts).map_err(at(&facts))?;
        Self::open_at(&facts, CREATE_CACHE_BYTES)
    }

    /// Opens the existing keyspaces in `dir`, to check them.
    pub(crate) fn open_existing(dir: &Path) -> Result<Self, StoreError> {
        let facts = dir.join(FACTS);
        if !facts.is_dir() {
            return Err(StoreError::Missing(facts));
        }
        Self::open_checked(&facts, CREATE_CACHE_BYTES).map_err(|error| name_file(dir, error))
    }

    fn open_at(path: &Path, cache_bytes: u64) -> Result<Self, StoreError> {
        // If the clock were before 1970, the engine would panic.
        if SystemTime::now() < UNIX_EPOCH {
            return Err(StoreError::Clock);
        }
        // Use one worker thread: with more, one of them spins while another compacts.
        let database = Database::builder(path)
            .cache_size(cache_bytes)
            .max_cached_files(Some(CACHED_FILES_MAX))
            .worker_threads(1)
            .open()?;
        let facts = Keyspace::Fjall(database.keyspace(KEYSPACE, options)?);
        let ephemeral = Keyspace::Fjall(database.keyspace(KEYSPACE_EPHEMERAL, options)?);
        // fjall creates a folder for each keyspace, but does not sync the parent folder.
        let folders = path.join("keyspaces");
        File::open(&folders).and_then(|dir| dir.sync_all()).map_err(at(&folders))?;
        Ok(Self { database: Some(database), facts, ephemeral, ingesting: Mutex::new(()) })
    }

    /// Uses rows in memory; writes `head` if there are none.
    #[cfg(feature = "simulation")]
    pub(crate) fn in_memory(memory: MemoryDisk, head: &[u8]) -> Result<Self, StoreError> {
        let is_new = memory.is_empty();
        let MemoryDisk { facts, ephemeral } = memory;
        let (facts, ephemeral) = (Keyspace::Memory(facts), Keyspace::Memory(ephemeral));
        let disk = Self { database: None, facts, ephemeral, ingesting: Mutex::new(()) };
        if is_new {
            disk.ingest(KeyspaceKind::Facts, |write| write(&layout::HEAD, Some(head)))?;
        }
        Ok(disk)
    }

    fn keyspace(&self, part: KeyspaceKind) -> &Keyspace {
        match part {
            KeyspaceKind::Facts => &self.facts,
            KeyspaceKind::Ephemeral => &self.ephemeral,
        }
    }

    /// Returns the value of `key`.
    pub(crate) fn point(&self, part: KeyspaceKind, key: &[u8]) -> Option<fjall::Slice> {
        self.keyspace(part).get(key).unwrap_or_else(|error| unreadable("reading a row", &error))
    }

    /// Returns the points of `table` within `keys`, in order. The iterator reads them one by one from either end.
    pub(crate) fn points(
        &self,
        table: PointTable,
        keys: RangeInclusive<u64>,
    ) -> impl DoubleEndedIterator<Item = (u64, fjall::Slice)> {
        let names = layout::point(table, *keys.start())..=layout::point(table, *keys.end());
        self.keyspace(KeyspaceKind::of_point(table)).range(names).map(|row| {
            let (key, value) =
                row.into_inner().unwrap_or_else(|error| unreadable("reading points", &error));
            match key.last_chunk() {
                Some(number) if key.len() == 9 => (u64::from_be_bytes(*number), value),
                _ => unreadable(
                    "reading points",
                    &StoreError::Damaged("the key of a point must have 9 bytes"),
                ),
            }
        })
    }

    /// Returns the items of `owner`. `state` says which kinds of rows the owner has on disk.
    pub(crate) fn set(&self, table: SetTable, owner: u64, state: State) -> Set<'_> {
        Set { keyspace: self.keyspace(KeyspaceKind::of_set(table)), table, owner, state }
    }

    /// Returns the first key of the facts in `from..end`.
    pub(crate) fn first_key(&self, from: &[u8], end: &[u8]) -> Option<fjall::Slice> {
        let row = self.facts.range(from..end).next()?;
        Some(row.key().unwrap_or_else(|error| unreadable("reading names", &error)))
    }

    /// Returns the keys of the facts in `from..end`, without their tag. The iterator reads them one by one.
    pub(crate) fn names(&self, from: &[u8], end: &[u8]) -> impl Iterator<Item = (Vec<u8>, bool)> {
        self.facts.range(from..end).map(|row| {
            let key = row.key().unwrap_or_else(|error| unreadable("reading names", &error));
            (key.get(1..).unwrap_or_default().to_vec(), true)
        })
    }

    /// Returns the rows of the facts in `from..end`.
    pub(crate) fn rows(
        &self,
        from: &[u8],
        end: &[u8],
    ) -> impl Iterator<Item = (fjall::Slice, fjall::Slice)> {
        let rows = self.facts.range(from..end);
        rows.map(|row| row.into_inner().unwrap_or_else(|error| unreadable("reading rows", &error)))
    }

    /// Returns all rows whose keys begin with `prefix`.
    pub(crate) fn prefix(
        &self,
        part: KeyspaceKind,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<(fjall::Slice, fjall::Slice), StoreError>> {
        self.keyspace(part).prefix(prefix).map(|row| Ok(row.into_inner()?))
    }

    /// Returns the rows in a range of keys. The iterator reads them one by one.
    pub(crate) fn range(
        &self,
        part: KeyspaceKind,
        keys: RangeInclusive<impl AsRef<[u8]>>,
    ) -> impl Iterator<Item = Result<(fjall::Slice, fjall::Slice), StoreError>> {
        self.keyspace(part).range(keys).map(|row| Ok(row.into_inner()?))
    }

    /// Returns all current rows of a keyspace. Their files stay until the iterator is dropped.
    pub(crate) fn all(&self, part: KeyspaceKind) -> RowIter {
        self.keyspace(part).prefix(&[])
    }

    /// Returns the table files of a keyspace, each with the checksum that the engine has recorded.
    pub(crate) fn tables(&self, part: KeyspaceKind) -> Vec<(PathBuf, u128)> {
        let Some(keyspace) = self.keyspace(part).fjall() else { return Vec::new() };
        let version = keyspace.tree.current_version();
        let tables = version.iter_tables();
        tables.map(|table| (table.path.to_path_buf(), table.checksum().into_u128())).collect()
    }

    /// Makes the rows that `rows` writes durable and visible, all at once. Keys must be in ascending order. A key
    /// without a value removes its row.
    pub(crate) fn ingest<T>(
        &self,
        part: KeyspaceKind,
        rows: impl FnOnce(&mut WriteRow<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let _whole = (part == KeyspaceKind::Ephemeral).then(|| self.ingesting.lock());
        let done = self.keyspace(part).ingest(rows)?;
        if let Some(database) = &self.database {
            // If the compaction thread has died, ingestions still succeed. This call returns the error of the thread,
            // and writes nothing.
            database.persist(PersistMode::Buffer)?;
        }
        Ok(done)
    }

    /// Rewrites the ephemeral rows without the removed ones. When this returns, no file contains removed rows.
    ///
    /// fjall's own merges keep versions that open snapshots might need, and the old tables with them, until a later
    /// merge. This crate reads no snapshots, so this merge keeps only the newest version. The file of a table is
    /// deleted when the last earlier read ends; until then, this function calls `wait` repeatedly.
    pub(crate) fn erase(&self, mut wait: impl FnMut()) -> Result<(), StoreError> {
        let Some(ephemeral) = self.ephemeral.fjall() else {
            // Rows in memory need no erasure, because a removed row leaves no data.
            return Ok(());
        };
        let tables = ephemeral.path().join(TABLES);
        let before = {
            let _whole = self.ingesting.lock();
            files(&tables)?
        };
        ephemeral.tree.major_compact(TABLE_BYTES, u64::MAX).map_err(fjall::Error::from)?;
        while !before.is_disjoint(&files(&tables)?) {
            wait();
        }
        File::open(&tables).and_then(|dir| dir.sync_all()).map_err(at(&tables))
    }

    /// Returns the size on disk in bytes, without tables that are about to be deleted.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = self.database.as_ref().map_or(Ok(0), Database::disk_space);
        bytes.unwrap_or_else(|error| fatal("measuring the store", &error))
    }
}

/// Returns options that divide filters and indexes into blocks of 4 KiB. fjall does not pin the filters of ingested
/// tables. A whole filter has several megabytes and does not fit a shard of the block cache (four shards per core), so
/// every read would load it again.
fn options() -> KeyspaceCreateOptions {
    let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(FILTER_BITS_PER_KEY));
    let compaction = Leveled::default().with_l0_threshold(L0_TABLES);
    KeyspaceCreateOptions::default()
        .filter_policy(FilterPolicy::all(filter))
        .filter_block_partitioning_policy(PartitioningPolicy::all(true))
        .index_block_partitioning_policy(PartitioningPolicy::all(true))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .index_block_pinning_policy(PinningPolicy::all(true))
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
        .compaction_strategy(Arc::new(compaction))
}

/// Returns the names of the files in `dir`.
fn files(dir: &Path) -> Result<BTreeSet<OsString>, StoreError> {
    let entries = fs::read_dir(dir).map_err(at(dir))?;
    entries.map(|entry| Ok(entry.map_err(at(dir))?.file_name())).collect()
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> StoreError {
    move |source| StoreError::Io { path: path.to_owned(), source }
}
