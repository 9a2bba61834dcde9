//! Checks and counts the rows of packed sets, in the order of their keys.

use rows::SetTable;

use crate::layout::{self, PackedRow};
use crate::packed::{self, CHUNK_ITEMS, Change, DELTA_ITEMS_MAX};

/// Counter of the items of each owner.
#[derive(Debug, Default)]
pub(crate) struct PackedCount {
    table: Option<SetTable>,
    owner: u64,
    /// Merged deltas of the owner. They precede its chunks.
    deltas: Vec<Change>,
    /// Upper bound of the items in earlier chunks (exclusive).
    end: u64,
}

impl PackedCount {
    /// Checks a row. Returns the number of items that it adds to the table. If a delta hides an item of a chunk, the
    /// item is counted with the delta.
    ///
    /// # Errors
    /// A description of the fault in the row.
    pub(crate) fn add(
        &mut self,
        table: SetTable,
        key: &[u8],
        row: &[u8],
    ) -> Result<i64, &'static str> {
        let (owner, kind) =
            layout::read_packed(key).ok_or("its key is neither that of a chunk nor of a delta")?;
        if (self.table, self.owner) != (Some(table), owner) {
            *self = Self { table: Some(table), owner, ..Self::default() };
        }
        let mut items = Vec::new();
        match kind {
            PackedRow::Delta(_) => {
                packed::decode(0, row, &mut items).ok_or("its items are malformed")?;
                let before = present(&self.deltas);
                self.deltas = packed::overlay(&items, &self.deltas);
                let sound = items.len() <= DELTA_ITEMS_MAX;
                sound.then(|| present(&self.deltas) - before).ok_or("it has too many items")
            }
            PackedRow::Chunk(low) => {
                packed::decode(low, row, &mut items).ok_or("its items are malformed")?;
                if low < self.end || items.len() > CHUNK_ITEMS {
                    return Err("it overlaps another chunk, or has too many items");
                }
                self.end = items.last().map_or(low, |(item, _)| item.saturating_add(1));
                let hidden =
                    |item| self.deltas.binary_search_by_key(item, |(item, _)| *item).is_ok();
                Ok(items.iter().filter(|(item, _)| !hidden(item)).count() as i64)
            }
        }
    }
}

fn present(items: &[Change]) -> i64 {
    items.iter().filter(|(_, number)| number.is_some()).count() as i64
}
