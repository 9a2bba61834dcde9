//! Packing of many items at once into chunks.

use rows::SetTable;

use crate::error::StoreError;
use crate::layout::{self, WriteRow};
use crate::packed::{self, CHUNK_ITEMS, Change};

/// Maker of chunks of one packed table, for owners that have no rows yet.
pub(crate) struct Packer {
    table: SetTable,
    owner: u64,
    /// Items of `owner` that were not written yet: at most one chunk.
    items: Vec<Change>,
    /// Whether chunks of `owner` were written.
    begun: bool,
}

impl Packer {
    /// Creates a packer for items of `table`.
    pub(crate) fn new(table: SetTable) -> Self {
        Self { table, owner: 0, items: Vec::new(), begun: false }
    }

    /// Adds an item. Owners must be in ascending order, and so must the items of an owner.
    pub(crate) fn add(
        &mut self,
        owner: u64,
        (item, number): (u64, u64),
        write: &mut WriteRow<'_>,
    ) -> Result<(), StoreError> {
        if owner != self.owner {
            self.finish(write)?;
            self.owner = owner;
        } else if self.items.len() == CHUNK_ITEMS {
            self.write_chunk(false, write)?;
        }
        self.items.push((item, Some(number)));
        Ok(())
    }

    /// Writes the last chunk of the owner.
    pub(crate) fn finish(&mut self, write: &mut WriteRow<'_>) -> Result<(), StoreError> {
        if !self.items.is_empty() {
            self.write_chunk(!self.begun, write)?;
        }
        self.begun = false;
        Ok(())
    }

    fn write_chunk(&mut self, alone: bool, write: &mut WriteRow<'_>) -> Result<(), StoreError> {
        let first = self.items.first().map_or(0, |(item, _)| *item);
        let low = if self.begun { first } else { 0 };
        let row = packed::encode(low, alone, &self.items);
        self.items.clear();
        self.begun = true;
        write(&layout::chunk(self.table, self.owner, low), Some(&row))
    }
}
