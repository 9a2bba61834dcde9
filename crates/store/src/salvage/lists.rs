//! Rows of sets of different ages. If a newer chunk is lost, older chunks of the same owner may overlap others.

use std::collections::BTreeMap;

use fjall::Slice;
use rows::SetTable;

use crate::error::StoreError;
use crate::layout::{self, PackedRow, WriteRow};
use crate::owners::{Owners, State};
use crate::packed;

/// Blocks of states of owners, by key.
pub(super) type Blocks = BTreeMap<[u8; 10], Vec<u8>>;

/// Writer of rows in the order of their keys, which records the states of the owners.
#[derive(Default)]
pub(super) struct Lists {
    owners: Owners,
    blocks: Blocks,
    /// Owner of the last set row, and the kinds of rows found for this owner.
    last: Option<(SetTable, u64, State)>,
    /// Chunk that was not written yet, and its low end.
    chunk: Option<(Slice, u64, Slice)>,
}

impl Lists {
    /// Adds the next row.
    pub(super) fn put(
        &mut self,
        key: Slice,
        value: Slice,
        write: &mut WriteRow<'_>,
    ) -> Result<(), StoreError> {
        let table = layout::set_table(&key).filter(|table| table.has_dense_owners());
        let Some(table) = table else {
            self.write_chunk(None, write)?;
            return write(&key, Some(&value));
        };
        if !table.is_packed() {
            let owner = layout::owner_of(&key).map(|(_, owner)| owner);
            owner.into_iter().for_each(|owner| self.note(table, owner, State::ROWS));
            return write(&key, Some(&value));
        }
        // Omit a row with an invalid key, because nothing reads it.
        let Some((owner, row)) = layout::read_packed(&key) else { return Ok(()) };
        match row {
            PackedRow::Delta(number) => {
                self.write_chunk(None, write)?;
                self.note(table, owner, State::with_deltas(number));
                write(&key, Some(&value))
            }
            PackedRow::Chunk(low) => {
                let same = self.last.is_some_and(|(of, last, _)| (of, last) == (table, owner));
                self.write_chunk(same.then_some(low), write)?;
                self.note(table, owner, State::ROWS);
                self.chunk = Some((key, low, value));
                Ok(())
            }
        }
    }

    /// Writes the last rows. Returns the blocks of states of owners.
    pub(super) fn finish(mut self, write: &mut WriteRow<'_>) -> Result<Blocks, StoreError> {
        self.write_chunk(None, write)?;
        self.note_last();
        Ok(self.blocks)
    }

    /// Writes the pending chunk. If the next chunk begins at `end`, omits the items that belong to it, because the next
    /// chunk is newer.
    fn write_chunk(
        &mut self,
        end: Option<u64>,
        write: &mut WriteRow<'_>,
    ) -> Result<(), StoreError> {
        let Some((key, low, row)) = self.chunk.take() else { return Ok(()) };
        let Some(end) = end else { return write(&key, Some(&row)) };
        let mut items = Vec::new();
        let is_sound = packed::decode(low, &row, &mut items).is_some();
        items.retain(|(item, _)| is_sound && *item < end);
        if items.is_empty() {
            Ok(())
        } else {
            write(&key, Some(&packed::encode(low, false, &items)))
        }
    }

    fn note(&mut self, table: SetTable, owner: u64, state: State) {
        match &mut self.last {
            Some((of, last, found)) if (*of, *last) == (table, owner) => *found = state.max(*found),
            _ => {
                self.note_last();
                self.last = Some((table, owner, state));
            }
        }
    }

    fn note_last(&mut self) {
        let Some((table, owner, state)) = self.last.take() else { return };
        let changed = self.owners.raise(table, &[(owner, state)]).into_iter();
        self.blocks.extend(changed.map(|(block, bytes)| (layout::owners(table, block), bytes)));
    }
}
