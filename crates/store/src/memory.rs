//! Rows of the store in memory, for the simulator of the node (crate `dst`). They outlive the simulated process. As
//! with fjall, an ingestion is durable as a whole or not at all.

use std::collections::BTreeMap;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;
use std::sync::Arc;

use fjall::Slice;
use parking_lot::RwLock;

use crate::error::StoreError;
use crate::layout::WriteRow;

/// Callback before and after an ingestion becomes durable. It can return a simulated error of the disk.
pub type Gate = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

type Map = BTreeMap<Vec<u8>, Slice>;

/// Rows of one store. Clones share the rows.
#[derive(Clone)]
pub struct MemoryDisk {
    pub(crate) facts: MemoryKeyspace,
    pub(crate) ephemeral: MemoryKeyspace,
}

/// Rows of one keyspace.
#[derive(Clone)]
pub(crate) struct MemoryKeyspace {
    pub(crate) rows: Arc<RwLock<Map>>,
    gate: Gate,
}

/// Rows of a range. Each step searches for the next row, so later changes are visible.
pub(crate) struct MemoryIter {
    rows: Arc<RwLock<Map>>,
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
}

impl MemoryDisk {
    /// Creates a disk without rows.
    #[must_use]
    pub fn new(gate: &Gate) -> Self {
        let keyspace = || MemoryKeyspace { rows: Arc::default(), gate: Arc::clone(gate) };
        Self { facts: keyspace(), ephemeral: keyspace() }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.facts.rows.read().len() + self.ephemeral.rows.read().len()
    }

    /// Whether the disk was never opened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl MemoryKeyspace {
    pub(crate) fn get(&self, key: &[u8]) -> Option<Slice> {
        self.rows.read().get(key).cloned()
    }

    pub(crate) fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> MemoryIter {
        let bound = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        let (low, high) = (bound(range.start_bound()), bound(range.end_bound()));
        MemoryIter { rows: Arc::clone(&self.rows), low, high }
    }

    pub(crate) fn prefix(&self, prefix: &[u8]) -> MemoryIter {
        let mut end = prefix.to_vec();
        while end.last() == Some(&u8::MAX) {
            end.pop();
        }
        let high = match end.last_mut() {
            Some(last) => {
                *last += 1;
                Bound::Excluded(end)
            }
            None => Bound::Unbounded,
        };
        MemoryIter { rows: Arc::clone(&self.rows), low: Bound::Included(prefix.to_vec()), high }
    }

    pub(crate) fn ingest<T>(
        &self,
        rows: impl FnOnce(&mut WriteRow<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut batch: Vec<(Vec<u8>, Option<Slice>)> = Vec::new();
        let done = rows(&mut |key, value| {
            assert!(batch.last().is_none_or(|(last, _)| last.as_slice() < key), "in order of keys");
            batch.push((key.to_vec(), value.map(Slice::from)));
            Ok(())
        })?;
        let at = |source| StoreError::Io { path: PathBuf::from("memory"), source };
        (self.gate)().map_err(at)?;
        let mut rows = self.rows.write();
        for (key, value) in batch {
            match value {
                Some(value) => rows.insert(key, value),
                None => rows.remove(&key),
            };
        }
        drop(rows);
        (self.gate)().map_err(at)?;
        Ok(done)
    }
}

impl MemoryIter {
    /// Whether the range is empty. The map would panic if a range ended before its start.
    fn is_empty(&self) -> bool {
        match (&self.low, &self.high) {
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Excluded(high))
            | (Bound::Excluded(low), Bound::Included(high)) => low >= high,
            _ => false,
        }
    }

    fn step(&mut self, back: bool) -> Option<(Slice, Slice)> {
        if self.is_empty() {
            return None;
        }
        let rows = self.rows.read();
        let mut range = rows.range((self.low.clone(), self.high.clone()));
        let (key, value) = if back { range.next_back() } else { range.next() }?;
        let found = (Slice::from(key.as_slice()), value.clone());
        let end = Bound::Excluded(key.clone());
        *(if back { &mut self.high } else { &mut self.low }) = end;
        Some(found)
    }
}

impl Iterator for MemoryIter {
    type Item = (Slice, Slice);

    fn next(&mut self) -> Option<(Slice, Slice)> {
        self.step(false)
    }
}

impl DoubleEndedIterator for MemoryIter {
    fn next_back(&mut self) -> Option<(Slice, Slice)> {
        self.step(true)
    }
}
