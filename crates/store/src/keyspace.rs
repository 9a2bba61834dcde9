//! Rows in the order of their keys: in a keyspace of fjall, or, in the simulator, in ordered maps in memory.
//!
//! In both, the rows of an ingestion become durable and visible all at once, or not at all.

use std::ops::RangeBounds;

use fjall::{Guard, Slice};

use crate::error::StoreError;
use crate::layout::WriteRow;
#[cfg(feature = "simulation")]
use crate::memory::{MemoryIter, MemoryKeyspace};

/// Rows in the order of their keys.
pub(crate) enum Keyspace {
    Fjall(fjall::Keyspace),
    #[cfg(feature = "simulation")]
    Memory(MemoryKeyspace),
}

/// Rows of a range. They are read one by one, from either end.
pub(crate) enum RowIter {
    Fjall(fjall::Iter),
    #[cfg(feature = "simulation")]
    Memory(MemoryIter),
}

/// Row of a range. Its value is read only when needed.
pub(crate) enum RowGuard {
    Fjall(Guard),
    #[cfg(feature = "simulation")]
    Memory(Slice, Slice),
}

impl Keyspace {
    /// Returns the value of `key`.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Slice>, fjall::Error> {
        match self {
            Self::Fjall(rows) => rows.get(key),
            #[cfg(feature = "simulation")]
            Self::Memory(rows) => Ok(rows.get(key)),
        }
    }

    /// Returns the rows whose keys are in `range`.
    pub(crate) fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> RowIter {
        match self {
            Self::Fjall(rows) => RowIter::Fjall(rows.range(range)),
            #[cfg(feature = "simulation")]
            Self::Memory(rows) => RowIter::Memory(rows.range(range)),
        }
    }

    /// Returns the rows whose keys begin with `prefix`.
    pub(crate) fn prefix(&self, prefix: &[u8]) -> RowIter {
        match self {
            Self::Fjall(rows) => RowIter::Fjall(rows.prefix(prefix)),
            #[cfg(feature = "simulation")]
            Self::Memory(rows) => RowIter::Memory(rows.prefix(prefix)),
        }
    }

    /// Makes the rows that `rows` writes durable and visible, all at once. Keys must be in ascending order.
    pub(crate) fn ingest<T>(
        &self,
        rows: impl FnOnce(&mut WriteRow<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self {
            Self::Fjall(keyspace) => ingest(keyspace, rows),
            #[cfg(feature = "simulation")]
            Self::Memory(keyspace) => keyspace.ingest(rows),
        }
    }

    /// Returns the keyspace of fjall, unless the rows are in memory.
    pub(crate) fn fjall(&self) -> Option<&fjall::Keyspace> {
        match self {
            Self::Fjall(keyspace) => Some(keyspace),
            #[cfg(feature = "simulation")]
            Self::Memory(_) => None,
        }
    }
}

fn ingest<T>(
    keyspace: &fjall::Keyspace,
    rows: impl FnOnce(&mut WriteRow<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut ingestion = keyspace.start_ingestion()?;
    let done = rows(&mut |key, value| {
        let written = match value {
            Some(value) => ingestion.write(key, value),
            None => ingestion.write_tombstone(key),
        };
        Ok(written?)
    })?;
    ingestion.finish()?;
    Ok(done)
}

impl RowGuard {
    /// Returns key and value.
    pub(crate) fn into_inner(self) -> Result<(Slice, Slice), fjall::Error> {
        match self {
            Self::Fjall(row) => row.into_inner(),
            #[cfg(feature = "simulation")]
            Self::Memory(key, value) => Ok((key, value)),
        }
    }

    /// Returns the key.
    pub(crate) fn key(self) -> Result<Slice, fjall::Error> {
        match self {
            Self::Fjall(row) => row.key(),
            #[cfg(feature = "simulation")]
            Self::Memory(key, _) => Ok(key),
        }
    }
}

impl Iterator for RowIter {
    type Item = RowGuard;

    fn next(&mut self) -> Option<RowGuard> {
        match self {
            Self::Fjall(rows) => rows.next().map(RowGuard::Fjall),
            #[cfg(feature = "simulation")]
            Self::Memory(rows) => rows.next().map(|(key, value)| RowGuard::Memory(key, value)),
        }
    }
}

impl DoubleEndedIterator for RowIter {
    fn next_back(&mut self) -> Option<RowGuard> {
        match self {
            Self::Fjall(rows) => rows.next_back().map(RowGuard::Fjall),
            #[cfg(feature = "simulation")]
            Self::Memory(rows) => rows.next_back().map(|(key, value)| RowGuard::Memory(key, value)),
        }
    }
}
