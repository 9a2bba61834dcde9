//! Checking and counting the rows of packed sets, in the order of their keys.

use rows::SetTable;

use crate::layout::{self, PackedRow};
use crate::packed::{self, CHUNK_ITEMS, Change, DELTA_ITEMS_MAX};

/// Counts the items of each owner.
#[derive(Debug, Default)]
pub(crate) struct PackedCount {
    table: Option<SetTable>,
    owner: u64,
    /// All deltas of the owner as one, which come before the chunks.
    deltas: Vec<Change>,
    /// Items that are less than this belong into earlier chunks.
    end: u64,
}

impl PackedCount {
    /// Checks a row. Returns by how many items it makes the table larger: an item of a chunk that a delta hides is
    /// counted with the delta.
    ///
    /// # Errors
    /// What is wrong with the row.
    pub(crate) fn add(
        &mut self,
        table: SetTable,
        key: &[u8],
        row: &[u8],
    ) -> Result<i64, &'static str> {
        let (owner, kind) =
            layout::read_packed(key).ok_or("its key is that of no chunk or delta")?;
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
