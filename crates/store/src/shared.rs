//! State that readers, the writer and a checkpoint share: the disk, and the layers above it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use rows::{PointTable, Totals};

use crate::buckets::Buckets;
use crate::disk::Disk;
use crate::hash::KeyHasher;
use crate::overlay::Overlay;
use crate::owners::Owners;
use crate::resident::Resident;
use crate::revisions::Revisions;

/// Read access to the store, for any thread. Clones share one store.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

/// State shared by readers, the writer and a checkpoint.
pub(crate) struct Shared {
    pub(crate) disk: Disk,
    /// Hasher that orders the keys of buckets. Its seed is a secret of the data directory.
    pub(crate) hasher: KeyHasher,
    pub(crate) owners: Owners,
    /// Layers in memory. The writer replaces them (to freeze) only while nothing is frozen, and a checkpoint replaces
    /// them (to publish) only while something is frozen. Thus only one of the two can replace them at a time.
    ///
    /// A reader loads the layers before it reads the disk. Rows that have left the frozen layer are then on disk. Rows
    /// that are written to disk later are also in the loaded layers, which take precedence. The reader thus sees the
    /// state at the time when it began.
    pub(crate) layers: ArcSwap<Layers>,
    pub(crate) totals: RwLock<Totals>,
    pub(crate) buckets: RwLock<Buckets>,
    pub(crate) resident: Resident,
    pub(crate) revisions: Revisions,
}

/// Layers in memory.
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

    /// Returns the keys of all points within `keys` that the layers have changed, in ascending order, including removed
    /// points.
    pub(crate) fn point_keys(&self, table: PointTable, keys: RangeInclusive<u64>) -> Vec<u64> {
        let mut changed = self.active.point_keys(table, &keys);
        changed.extend(self.frozen.iter().flat_map(|layer| layer.point_keys(table, &keys)));
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// Returns the greatest keys, up to `last`, of points that the layers have changed, including removed points;
    /// ascending. Returns only about as many as a read of `limit` points needs, because sorting all would take longer.
    /// Also returns the key from which they are complete.
    pub(crate) fn last_point_keys(
        &self,
        table: PointTable,
        last: u64,
        limit: usize,
    ) -> (Vec<u64>, u64) {
        let (keys, enough) = (0..=last, limit.saturating_mul(2));
        let mut changed = self.active.point_keys(table, &keys);
        changed.extend(self.frozen.iter().flat_map(|layer| layer.point_keys(table, &keys)));
        let mut low = 0;
        if let Some(rest) = changed.len().checked_sub(enough).filter(|rest| *rest > 0) {
            low = *changed.select_nth_unstable(rest).1;
            changed.retain(|key| *key >= low);
        }
        changed.sort_unstable();
        changed.dedup();
        (changed, low)
    }
}

impl Store {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}
