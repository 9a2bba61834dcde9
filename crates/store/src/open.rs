//! Opening a store, which creates its only writer.

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use rows::{SetTable, Totals};

use crate::buckets::Buckets;
use crate::disk::{Disk, KeyspaceKind, name_file};
use crate::error::StoreError;
use crate::hash::random_hasher;
use crate::head::Head;
use crate::layout;
use crate::overlay::Overlay;
use crate::owners::Owners;
use crate::resident::Resident;
use crate::revisions::Revisions;
use crate::shared::{Layers, Shared, Store};
use crate::writer::StoreWriter;

/// Options of a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// Memory for blocks read from disk, in bytes.
    pub cache_bytes: u64,
    /// Memory for keys of buckets, in bytes. Keys that no checkpoint has written yet take other memory.
    pub bucket_bytes: usize,
}

impl Store {
    /// Opens the store in `dir`, and creates it if it does not exist. Returns the only writer, and the position of the
    /// log up to which the rows are applied (0 in a new store). The caller replays the log from there.
    ///
    /// # Errors
    /// The directory or the engine fails, a later version wrote the store, or it is damaged. The caller keeps other
    /// processes away from `dir`; the lock of the engine is an additional protection.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<(StoreWriter, u64), StoreError> {
        let new = Head { applied: 0, hasher: random_hasher()?, totals: Totals::default() };
        let disk = Disk::open(dir, options.cache_bytes, &new.encode());
        disk.and_then(|disk| Self::open_on(disk, options)).map_err(|error| name_file(dir, error))
    }

    /// Opens a store whose rows are in memory. `seed` is the secret of a new store.
    ///
    /// # Errors
    /// The rows are damaged.
    #[cfg(feature = "simulation")]
    pub fn open_in_memory(
        rows: crate::MemoryDisk,
        options: StoreOptions,
        seed: [u8; crate::hash::SEED_BYTES],
    ) -> Result<(StoreWriter, u64), StoreError> {
        let hasher = crate::hash::KeyHasher::new(seed);
        let new = Head { applied: 0, hasher, totals: Totals::default() };
        let disk = Disk::in_memory(rows, &new.encode())?;
        Self::open_on(disk, options)
    }

    fn open_on(disk: Disk, options: StoreOptions) -> Result<(StoreWriter, u64), StoreError> {
        let Head { applied, hasher, totals } = match disk.point(KeyspaceKind::Facts, &layout::HEAD)
        {
            Some(head) => Head::read(&head)?,
            None => return Err(StoreError::Damaged("the row that describes it is missing")),
        };
        let owners = read_owners(&disk)?;
        let active = Arc::new(Overlay::new(hasher));
        let layers = ArcSwap::from_pointee(Layers { active: Arc::clone(&active), frozen: None });
        let buckets = RwLock::new(Buckets::read(&disk)?);
        let no_keys = disk.prefix(KeyspaceKind::Facts, &layout::KEYS_PREFIX).next().is_none();
        let resident = Resident::new(options.bucket_bytes, no_keys, hasher);
        let totals = RwLock::new(totals);
        let revisions = Revisions::default();
        let shared = Shared { disk, hasher, owners, layers, totals, buckets, resident, revisions };
        Ok((StoreWriter::new(Self::new(shared), active, applied), applied))
    }
}

fn read_owners(disk: &Disk) -> Result<Owners, StoreError> {
    let owners = Owners::default();
    for table in SetTable::ALL {
        let prefix = layout::owners_prefix(table.tag());
        for row in disk.prefix(KeyspaceKind::of_set(table), &prefix) {
            let (key, bytes) = row?;
            let block = key.last_chunk().map(|block| u64::from_be_bytes(*block));
            if !block.is_some_and(|block| owners.restore(table, block, &bytes)) {
                return Err(StoreError::Damaged("a block of owners is malformed"));
            }
        }
    }
    Ok(owners)
}
