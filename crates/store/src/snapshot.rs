//! Reads of all rows on disk at one checkpoint while the store changes, and creation of a store from such rows.

use std::path::Path;

use rows::Totals;

use crate::disk::{Disk, KeyspaceKind};
use crate::error::StoreError;
use crate::head::Head;
use crate::keyspace::RowIter;
use crate::layout;
use crate::shared::Store;

/// Callback that receives a row: key and value.
pub type EachRow<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<(), StoreError>;
/// Callback that writes a row: key and value. Keys must be in ascending order.
pub type PutRow<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<(), StoreError>;
/// Key and value of a row.
type Row = (fjall::Slice, fjall::Slice);

/// Rows of one checkpoint. Their files stay until the rows were read; an erasure waits for this.
pub struct Snapshot {
    applied: u64,
    totals: Totals,
    ephemeral: Peeked,
    facts: Peeked,
}

/// Rows of a keyspace, of which the first one was already read. It is the head row, if that exists.
struct Peeked {
    first: Option<Row>,
    rest: RowIter,
}

impl Peeked {
    fn new(mut rest: RowIter) -> Result<Self, StoreError> {
        let first = rest.next().map(|row| Ok::<_, StoreError>(row.into_inner()?));
        Ok(Self { first: first.transpose()?, rest })
    }

    fn head(&self) -> Option<&[u8]> {
        self.first.as_ref().filter(|(key, _)| **key == layout::HEAD).map(|(_, head)| &**head)
    }

    fn each(self, receive: EachRow<'_>) -> Result<(), StoreError> {
        if let Some((key, value)) = &self.first {
            receive(key, value)?;
        }
        for row in self.rest {
            let (key, value) = row.into_inner()?;
            receive(&key, &value)?;
        }
        Ok(())
    }
}

impl Snapshot {
    /// Returns the rows of `disk`; `None` while a checkpoint has written ephemeral rows but not the others.
    pub(crate) fn of(disk: &Disk) -> Result<Option<Self>, StoreError> {
        // An iterator reads the rows that existed when it was created. A checkpoint writes ephemeral rows first, so the
        // rows that are read second belong to the same checkpoint or a later one.
        let facts = Peeked::new(disk.all(KeyspaceKind::Facts))?;
        let ephemeral = Peeked::new(disk.all(KeyspaceKind::Ephemeral))?;
        let head =
            facts.head().ok_or(StoreError::Damaged("the row that describes it is missing"))?;
        let Head { applied, totals, .. } = Head::read(head)?;
        let newest = match ephemeral.head().map(TryInto::try_into) {
            None => 0,
            Some(Ok(newest)) => u64::from_le_bytes(newest),
            Some(Err(_)) => {
                return Err(StoreError::Damaged("the row of ephemeral rows is malformed"));
            }
        };
        Ok((newest <= applied).then_some(Self { applied, totals, ephemeral, facts }))
    }

    /// Returns the position of the log up to which the rows are applied.
    #[must_use]
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Returns the totals of the rows.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Passes the rows of ephemeral tables to the first callback, then all others to the second, each in the order of
    /// keys.
    ///
    /// # Errors
    /// Errors of the callbacks, or a row cannot be read.
    pub fn read(self, ephemeral: EachRow<'_>, facts: EachRow<'_>) -> Result<(), StoreError> {
        self.ephemeral.each(ephemeral)?;
        self.facts.each(facts)
    }
}

impl Store {
    /// Returns the rows of the last checkpoint. Returns `None` during the last step of a checkpoint, and, after a crash
    /// in that step, until the next checkpoint; try again later. May block.
    ///
    /// # Errors
    /// The rows that describe the store cannot be read.
    pub fn snapshot(&self) -> Result<Option<Snapshot>, StoreError> {
        Snapshot::of(&self.shared().disk)
    }
}

/// Creates a store in `dir`, which must have none, from the rows that the two functions write: first those of ephemeral
/// tables, then all others. After an error or a crash, `dir` does not contain a store.
///
/// # Errors
/// Errors of the functions, or the rows cannot be written.
pub fn restore<S>(
    dir: &Path,
    source: &mut S,
    ephemeral: impl FnOnce(&mut S, PutRow<'_>) -> Result<(), StoreError>,
    facts: impl FnOnce(&mut S, PutRow<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let disk = Disk::create(dir)?;
    disk.ingest(KeyspaceKind::Ephemeral, |write| {
        ephemeral(source, &mut |key, value| write(key, Some(value)))
    })?;
    disk.ingest(KeyspaceKind::Facts, |write| {
        facts(source, &mut |key, value| write(key, Some(value)))
    })?;
    match disk.point(KeyspaceKind::Facts, &layout::HEAD) {
        Some(_) => Ok(()),
        None => Err(StoreError::Damaged("the row that describes it is missing")),
    }
}
