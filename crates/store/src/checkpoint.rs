//! Checkpoint: writes a frozen overlay to disk.

use std::convert::Infallible;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kv::{Bucket, KeyRow};
use rows::{SetTable, Table, Totals, Value};

use crate::disk::{Disk, KeyspaceKind};
use crate::error::StoreError;
use crate::fold::fold;
use crate::head::Head;
use crate::layout::{self, WriteRow};
use crate::overlay::Overlay;
use crate::owners::{Owners, State};
use crate::packed::{self, Plan};
use crate::shared::{Layers, Shared};

/// Frozen changes up to a position of the log. Their rows are read from memory until [`Checkpoint::run`] has written
/// them to disk.
///
/// If a checkpoint is dropped without a run, its rows stay readable, but no further checkpoint can be made. The process
/// must then stop.
#[must_use = "rows reach the disk only when the checkpoint runs"]
pub struct Checkpoint {
    pub(crate) shared: Arc<Shared>,
    pub(crate) frozen: Arc<Overlay>,
    pub(crate) applied: u64,
    pub(crate) totals: Totals,
}

/// Results of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointStats {
    /// Position of the log up to which the rows on disk are applied.
    pub applied: u64,
    /// Number of rows written.
    pub put: u64,
    /// Number of rows removed.
    pub removed: u64,
}

impl Checkpoint {
    /// Writes the rows to disk. Afterwards, all of them are durable, and readers no longer use the frozen overlay.
    /// Blocks on the disk; run it on a background thread.
    ///
    /// # Errors
    /// The engine fails. The rows stay readable from memory, and the store is unchanged, but no further checkpoint can
    /// be made. The process must stop and replay the log.
    pub fn run(self) -> Result<CheckpointStats, StoreError> {
        let Self { shared, frozen, applied, totals } = self;
        let keys_of_buckets = frozen.keys.sorted();
        let ingest = |part, head: &[u8]| {
            let sets = Sets::of(part, &shared.owners, &frozen);
            let done = shared.disk.ingest(part, |write| {
                let mut rows = Ingest { part, write, put: 0, removed: 0 };
                rows.put(&layout::HEAD, Some(head))?;
                rows.owners(&shared, &sets)?;
                rows.tables(&shared.disk, &frozen, &sets)?;
                if part == KeyspaceKind::Facts {
                    rows.buckets(&frozen)?;
                    rows.keys(&keys_of_buckets)?;
                }
                Ok((rows.put, rows.removed))
            })?;
            sets.settle(&shared.owners);
            Ok::<_, StoreError>(done)
        };
        // A crash after this step leaves ephemeral rows that are newer than the facts, which the rules allow. In the
        // opposite order, a crash would lose rows.
        let ephemeral = if frozen.has_ephemeral() {
            ingest(KeyspaceKind::Ephemeral, &applied.to_le_bytes())?
        } else {
            (0, 0)
        };
        let head = Head { applied, hasher: shared.hasher, totals };
        let facts = ingest(KeyspaceKind::Facts, &head.encode())?;
        let (put, removed) = (ephemeral.0 + facts.0, ephemeral.1 + facts.1);
        let stats = CheckpointStats { applied, put, removed };
        shared.resident.take_over(keys_of_buckets.into_iter());
        let active = Arc::clone(&shared.layers.load().active);
        shared.layers.store(Arc::new(Layers { active, frozen: None }));
        release(frozen);
        Ok(stats)
    }
}

/// Frees an overlay on this thread, because that takes long. If a reader holds the overlay for long, the reader frees
/// it.
fn release(overlay: Arc<Overlay>) {
    for _ in 0..1_000 {
        if Arc::strong_count(&overlay) == 1 {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    drop(overlay);
}

/// States of the changed owners, before and after the checkpoint, for each table with states.
struct Sets(Vec<(SetTable, Vec<Owner>)>);

/// Changed owner.
struct Owner {
    id: u64,
    old: State,
    new: State,
}

impl Sets {
    fn of(part: KeyspaceKind, owners: &Owners, overlay: &Overlay) -> Self {
        let tables = SetTable::ALL.into_iter().filter(|table| KeyspaceKind::of_set(*table) == part);
        let changes = tables.filter(|table| table.has_dense_owners()).map(|table| {
            let mut changed = Vec::new();
            let all = overlay.sorted_sets(table, |id, items| -> Result<(), Infallible> {
                let old = owners.state(table, id);
                changed.push(Owner { id, old, new: packed::plan(table, old, items).state(old) });
                Ok(())
            });
            let Ok(()) = all;
            (table, changed)
        });
        Self(changes.collect())
    }

    fn of_table(&self, table: SetTable) -> &[Owner] {
        self.0.iter().find(|(of, _)| *of == table).map_or(&[], |(_, changed)| changed)
    }

    /// Lowers states. Called after the rows are visible.
    fn settle(&self, owners: &Owners) {
        for (table, changed) in &self.0 {
            let lowered = changed.iter().filter(|owner| owner.new < owner.old);
            let lowered: Vec<_> = lowered.map(|owner| (owner.id, owner.new)).collect();
            owners.settle(*table, &lowered);
        }
    }
}

/// Ingestion that counts its rows.
struct Ingest<'a, 'b> {
    part: KeyspaceKind,
    write: &'a mut WriteRow<'b>,
    put: u64,
    removed: u64,
}

impl Ingest<'_, '_> {
    fn put(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        match value {
            Some(_) => self.put += 1,
            None => self.removed += 1,
        }
        (self.write)(key, value)
    }

    /// Records the states of owners: in memory immediately, on disk together with the rows.
    fn owners(&mut self, shared: &Shared, sets: &Sets) -> Result<(), StoreError> {
        for (table, changed) in &sets.0 {
            let mut states: Vec<_> = changed.iter().map(|owner| (owner.id, owner.new)).collect();
            if rows::has_bug("forget-owner") {
                states.pop();
            }
            for (block, bytes) in shared.owners.raise(*table, &states) {
                self.put(&layout::owners(*table, block), Some(&bytes))?;
            }
        }
        Ok(())
    }

    /// Writes the changes of all tables.
    fn tables(&mut self, disk: &Disk, overlay: &Overlay, sets: &Sets) -> Result<(), StoreError> {
        let part = self.part;
        for table in Table::all() {
            match table {
                Table::Point(table) if KeyspaceKind::of_point(table) == part => {
                    overlay.sorted_points(table, |key, value| {
                        self.put(&layout::point(table, key), value.map(Value::as_slice))
                    })?;
                }
                Table::Set(table) if table.is_packed() && KeyspaceKind::of_set(table) == part => {
                    self.packed(table, disk, overlay, sets.of_table(table))?;
                }
                Table::Set(table) if KeyspaceKind::of_set(table) == part => {
                    self.set(table, overlay)?;
                }
                Table::Name(table) if part == KeyspaceKind::Facts => {
                    overlay.sorted_names(table, |key, value| {
                        self.put(&layout::name(table, key), value.map(Value::as_slice))
                    })?;
                }
                Table::Point(_) | Table::Set(_) | Table::Name(_) => {}
            }
        }
        Ok(())
    }

    /// Writes the changes of a packed set.
    fn packed(
        &mut self,
        table: SetTable,
        disk: &Disk,
        overlay: &Overlay,
        changed: &[Owner],
    ) -> Result<(), StoreError> {
        let mut changed = changed.iter();
        overlay.sorted_sets(table, |owner, items| {
            let old = changed.next().map_or(State::NONE, |changed| changed.old);
            match packed::plan(table, old, items) {
                Plan::Nothing => Ok(()),
                Plan::Delta => {
                    let row = packed::encode(0, false, &items.iter().collect::<Vec<_>>());
                    self.put(&layout::delta(table, owner, old.deltas() + 1), Some(&row))
                }
                Plan::Fold => {
                    let set = disk.set(table, owner, old);
                    fold(set, &items.iter().collect::<Vec<_>>(), &mut |key, row| self.put(key, row))
                }
            }
        })
    }

    /// Writes the changes of a set that is not packed.
    fn set(&mut self, table: SetTable, overlay: &Overlay) -> Result<(), StoreError> {
        overlay.sorted_sets(table, |owner, items| {
            items.iter().try_for_each(|(item, number)| {
                let number = number.map(u64::to_be_bytes);
                let bytes = number.as_ref().map(layout::encode_number);
                self.put(&layout::set(table, owner, item), bytes)
            })
        })
    }

    fn buckets(&mut self, overlay: &Overlay) -> Result<(), StoreError> {
        overlay.buckets.get().into_iter().flatten().try_for_each(|(id, bucket)| {
            let row = bucket.map(Bucket::encode);
            self.put(&layout::bucket(*id), row.as_deref())
        })
    }

    fn keys(&mut self, rows: &[(u64, KeyRow)]) -> Result<(), StoreError> {
        if rows.iter().any(|(_, row)| !row.is_removed()) {
            (self.write)(&layout::FENCE, Some(&[0; layout::FENCE_BYTES]))?;
        }
        rows.iter().try_for_each(|(hash, row)| {
            if rows::has_bug("lose-removal") && row.is_removed() {
                return Ok(());
            }
            let value = (!row.is_removed()).then(|| layout::encode_key_row(row));
            self.put(&layout::key(row.space(), *hash, row.key()), value.as_deref())
        })
    }
}
