//! The store for readers: layers of rows, and opening them.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use kv::{Bucket, BucketId, KeyRow, KeyRows, Space, WalkLimit};
use parking_lot::RwLock;
use rows::{NameTable, PointTable, Rows, SetTable, Span, Totals, Value};

use crate::buckets::Buckets;
use crate::disk::{Disk, Part, name_file};
use crate::error::StoreError;
use crate::hash::{KeyHasher, SEED_BYTES};
use crate::head::Head;
use crate::layout;
use crate::merge::{self, OverlayItems, OverlayNames};
use crate::migrate;
use crate::overlay::Overlay;
use crate::owners::{Owners, State};
use crate::resident::Resident;
use crate::writer::StoreWriter;

/// Options of a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// Bytes of memory for blocks read from disk.
    pub cache_bytes: u64,
    /// Bytes of memory for keys of buckets, without those not yet written by a checkpoint.
    pub bucket_bytes: usize,
}

/// Read access for any thread; clones share one store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

/// State shared by readers, the writer and a checkpoint.
pub(crate) struct Shared {
    pub(crate) disk: Disk,
    /// Orders the keys of buckets. Its seed is a secret of the data directory.
    pub(crate) hasher: KeyHasher,
    pub(crate) owners: Owners,
    /// Replaced by the writer while nothing is frozen (it freezes), and by the checkpoint while
    /// something is (it publishes): never by both.
    ///
    /// A reader loads the layers before it reads the disk, so what leaves the frozen layer is on
    /// disk by then. A reader that holds older layers finds the same rows twice, equal or with the
    /// layer it holds on top: it reads the state from when it began.
    pub(crate) layers: ArcSwap<Layers>,
    pub(crate) totals: RwLock<Totals>,
    pub(crate) buckets: RwLock<Buckets>,
    pub(crate) resident: Resident,
}

/// The layers in memory.
pub(crate) struct Layers {
    pub(crate) active: Arc<Overlay>,
    pub(crate) frozen: Option<Arc<Overlay>>,
}

impl Layers {
    pub(crate) fn find<T>(&self, look: impl Fn(&Overlay) -> Option<T>) -> Option<T> {
        if rows::has_bug("wrong-layer") {
            return self.frozen.as_deref().and_then(&look).or_else(|| look(&self.active));
        }
        look(&self.active).or_else(|| self.frozen.as_deref().and_then(look))
    }

    /// The keys of all points within `keys` that the layers have changed, removed ones included, ascending.
    fn point_keys(&self, table: PointTable, keys: RangeInclusive<u64>) -> Vec<u64> {
        let mut changed = self.active.point_keys(table, &keys);
        changed.extend(self.frozen.iter().flat_map(|layer| layer.point_keys(table, &keys)));
        changed.sort_unstable();
        changed.dedup();
        changed
    }
}

impl Store {
    /// Opens the store in `dir`, making it if there is none. Returns the only writer and the log
    /// position up to which the rows are applied (0 in a new store): the caller replays the log
    /// from there.
    ///
    /// # Errors
    /// If the directory or the engine fails, if a later version wrote the store, or if it is
    /// damaged. The caller keeps other processes away from `dir`; the engine's own lock is a second
    /// guard.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<(StoreWriter, u64), StoreError> {
        let new = Head { applied: 0, hasher: random_hasher()?, totals: Totals::default() };
        let disk = Disk::open(dir, options.cache_bytes, &new.encode());
        disk.and_then(|disk| Self::open_on(disk, options, new))
            .map_err(|error| name_file(dir, error))
    }

    /// As [`Store::open`], on rows in memory. `seed` is the secret of a new store.
    ///
    /// # Errors
    /// If they are damaged.
    #[cfg(feature = "simulation")]
    pub fn open_in_memory(
        rows: crate::MemoryDisk,
        options: StoreOptions,
        seed: [u8; SEED_BYTES],
    ) -> Result<(StoreWriter, u64), StoreError> {
        let hasher = KeyHasher::new(seed);
        let new = Head { applied: 0, hasher, totals: Totals::default() };
        let disk = Disk::in_memory(rows, &new.encode())?;
        Self::open_on(disk, options, new)
    }

    fn open_on(
        disk: Disk,
        options: StoreOptions,
        new: Head,
    ) -> Result<(StoreWriter, u64), StoreError> {
        let Head { applied, hasher, totals } = match disk.point(Part::Facts, &layout::HEAD) {
            Some(head) => migrate::read_head(&disk, &head, new.hasher)?,
            None => return Err(StoreError::Damaged("the row that describes it is missing")),
        };
        let owners = read_owners(&disk)?;
        let active = Arc::new(Overlay::new(hasher));
        let layers = ArcSwap::from_pointee(Layers { active: Arc::clone(&active), frozen: None });
        let buckets = RwLock::new(Buckets::read(&disk)?);
        let no_keys = disk.prefix(Part::Facts, &layout::KEYS_PREFIX).next().is_none();
        let resident = Resident::new(options.bucket_bytes, no_keys, hasher);
        let totals = RwLock::new(totals);
        let shared = Shared { disk, hasher, owners, layers, totals, buckets, resident };
        let store = Self { shared: Arc::new(shared) };
        Ok((StoreWriter::new(store, active, applied), applied))
    }

    /// Bytes on disk.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        self.shared.disk.bytes()
    }

    /// The files of rows as they are now, with the checksum of each.
    #[must_use]
    pub fn table_files(&self) -> Vec<(PathBuf, u128)> {
        [Part::Facts, Part::Ephemeral].map(|part| self.shared.disk.tables(part)).concat()
    }

    /// Erases from every file of the store the ephemeral rows (texts and views of stories) whose removal
    /// the last checkpoint has put on disk. Rewrites the rows that still exist, blocking the caller: for a
    /// background thread. Reads, writes and checkpoints continue meanwhile.
    ///
    /// # Errors
    /// If the engine fails, or if a read that began before does not end within ten seconds: then
    /// the files are deleted when it ends. Rows that were not removed are unchanged.
    pub fn erase(&self) -> Result<(), StoreError> {
        self.shared.disk.erase()
    }

    /// The row `key` of `table` if it is in memory, that is, was changed since the last checkpoint.
    /// Never reads the disk; on `None` the row may still exist there.
    #[must_use]
    pub fn point_in_memory(&self, table: PointTable, key: u64) -> Option<Value> {
        self.shared.layers.load().find(|layer| layer.point(table, key)).flatten()
    }

    /// Whether `item` of `owner` may be a member; false is certain. So is true, if this is the only item and
    /// members of the table are never removed. Never reads the disk.
    #[must_use]
    pub fn may_have_member(&self, table: SetTable, owner: u64, item: u64) -> bool {
        let layers = self.shared.layers.load();
        match layers.find(|layer| layer.member(table, owner, item)) {
            Some(changed) => changed.is_some(),
            None => self.shared.owners.contains(table, owner),
        }
    }

    /// Calls `each` with all rows of `table` in a range of keys, first those on disk, then those in memory, which
    /// are newer or removed.
    pub(crate) fn points_between(
        &self,
        table: PointTable,
        keys: RangeInclusive<u64>,
        each: &mut dyn FnMut(u64, Option<Value>),
    ) {
        let layers = self.shared.layers.load();
        for (key, row) in self.shared.disk.points(table, keys.clone()) {
            each(key, Some(Value::from_slice(&row)));
        }
        for key in keys {
            if let Some(known) = layers.find(|layer| layer.point(table, key)) {
                each(key, known);
            }
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Rows for Store {
    fn point(&self, table: PointTable, key: u64) -> Option<Value> {
        let layers = self.shared.layers.load();
        if let Some(known) = layers.find(|layer| layer.point(table, key)) {
            return known;
        }
        let row = self.shared.disk.point(Part::of_point(table), &layout::point(table, key));
        row.map(|row| Value::from_slice(&row))
    }

    fn each_point(&self, table: PointTable, each: &mut dyn FnMut(u64, &[u8])) {
        let layers = self.shared.layers.load();
        let changed = layers.point_keys(table, 0..=u64::MAX);
        let mut disk = self.shared.disk.points(table, 0..=u64::MAX);
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
        let Some(last) = below.checked_sub(1) else { return };
        let layers = self.shared.layers.load();
        let changed = layers.point_keys(table, 0..=last);
        let mut disk = self.shared.disk.points(table, 0..=last).rev();
        let look = |key| layers.find(|layer| layer.point(table, key)).flatten();
        merge::points_down(changed, &mut disk, look, limit, each);
    }

    fn member(&self, table: SetTable, owner: u64, item: u64) -> Option<u64> {
        let layers = self.shared.layers.load();
        if let Some(known) = layers.find(|layer| layer.member(table, owner, item)) {
            return known;
        }
        match self.shared.owners.state(table, owner) {
            State::NONE => None,
            state => self.shared.disk.set(table, owner, state).member(item),
        }
    }

    fn members(&self, table: SetTable, owner: u64, span: Span) -> Vec<(u64, u64)> {
        if span.low > span.high || span.limit == 0 {
            return Vec::new();
        }
        let layers = self.shared.layers.load();
        let mut active = OverlayItems::new(&layers.active, table, owner, span);
        let frozen = layers.frozen.as_deref();
        let mut frozen = frozen.map(|layer| OverlayItems::new(layer, table, owner, span));
        let mut frozen = frozen.iter_mut().flatten();
        let state = self.shared.owners.state(table, owner);
        let on_disk = || self.shared.disk.set(table, owner, state).items(span);
        let mut disk = (state != State::NONE).then(on_disk);
        let mut disk = disk.iter_mut().flatten();
        merge::members(&mut [&mut active, &mut frozen, &mut disk], span)
    }

    fn name(&self, table: NameTable, key: &[u8]) -> Option<Value> {
        let layers = self.shared.layers.load();
        if let Some(known) = layers.find(|layer| layer.name(table, key)) {
            return known;
        }
        let row = self.shared.disk.point(Part::Facts, &layout::name(table, key));
        row.map(|row| Value::from_slice(&row))
    }

    fn first_names(&self, table: NameTable, from: &[u8], limit: usize) -> Vec<Vec<u8>> {
        let layers = self.shared.layers.load();
        let mut active = OverlayNames::new(&layers.active, table, from);
        let frozen = layers.frozen.as_deref();
        let mut frozen = frozen.map(|layer| OverlayNames::new(layer, table, from));
        let mut frozen = frozen.iter_mut().flatten();
        let (low, end) = (layout::name(table, from), layout::names_end(table));
        let mut disk = self.shared.disk.names(&low, &end);
        merge::first_names(&mut [&mut active, &mut frozen, &mut disk], limit)
    }

    fn totals(&self) -> Totals {
        *self.shared.totals.read()
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
        self.shared.buckets.read().find(bucket)
    }

    fn bucket_count(&self) -> usize {
        self.shared.buckets.read().count()
    }
}

/// A random secret.
pub(crate) fn random_hasher() -> Result<KeyHasher, StoreError> {
    let mut seed = [0; SEED_BYTES];
    getrandom::fill(&mut seed).map_err(|_| StoreError::NoRandomness)?;
    Ok(KeyHasher::new(seed))
}

fn read_owners(disk: &Disk) -> Result<Owners, StoreError> {
    let owners = Owners::default();
    for table in SetTable::ALL {
        let prefix = layout::owners_prefix(table.tag());
        for row in disk.prefix(Part::of_set(table), &prefix) {
            let (key, bytes) = row?;
            let block = key.last_chunk().map(|block| u64::from_be_bytes(*block));
            if !block.is_some_and(|block| owners.restore(table, block, &bytes)) {
                return Err(StoreError::Damaged("a block of owners is malformed"));
            }
        }
    }
    Ok(owners)
}
