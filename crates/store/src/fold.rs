//! Folding: writes the changes of an owner of a packed set into the owner's chunks.

use fjall::Slice;
use rows::SetTable;

use crate::error::StoreError;
use crate::keyspace::RowIter;
use crate::layout::{self, PackedRow, WriteRow};
use crate::owners::State;
use crate::packed::{self, CHUNK_ITEMS, Change};
use crate::sets::Set;

const MALFORMED: StoreError = StoreError::Damaged("a row of a packed set is malformed");

/// Writes the chunks that the deltas of a set, and then `changes` (in ascending order), have changed. Removes the
/// deltas. At most two chunks are in memory.
pub(crate) fn fold(
    set: Set<'_>,
    changes: &[Change],
    write: &mut WriteRow<'_>,
) -> Result<(), StoreError> {
    let mut owner = Owner { table: set.table, owner: set.owner, write };
    if set.state == State::NONE {
        return owner.put(&Place { low: 0, is_last: true, existed: false }, changes);
    }
    let mut rows = set.rows();
    let mut row = next(&mut rows)?;
    let mut deltas = Vec::new();
    while let Some((PackedRow::Delta(number), bytes)) = &row {
        if !rows::has_bug("forget-deltas") {
            deltas = packed::overlay(&decode(0, bytes)?, &deltas);
        }
        owner.remove_delta(*number)?;
        row = next(&mut rows)?;
    }
    let changes = packed::overlay(changes, &deltas);
    let mut rest = changes.as_slice();
    // Items below the first chunk get their own chunk.
    let (mut low, mut chunk) = (0, None);
    while !rest.is_empty() {
        let after = match &row {
            Some((PackedRow::Chunk(after), _)) => Some(*after),
            Some((PackedRow::Delta(_), _)) => return Err(MALFORMED),
            None => None,
        };
        let own = after.map_or(rest.len(), |after| rest.partition_point(|(item, _)| *item < after));
        let (own, others) = rest.split_at(own);
        rest = others;
        if !own.is_empty() {
            let place = Place { low, is_last: after.is_none(), existed: chunk.is_some() };
            let items = chunk.map_or(Ok(Vec::new()), |chunk: Slice| decode(low, &chunk))?;
            owner.put(&place, &packed::overlay(own, &items))?;
        }
        let Some((PackedRow::Chunk(found), bytes)) = row else { break };
        (low, chunk) = (found, Some(bytes));
        row = next(&mut rows)?;
    }
    Ok(())
}

/// Position of a chunk.
struct Place {
    /// Lowest item that belongs to the chunk.
    low: u64,
    /// Whether the chunk is the last one.
    is_last: bool,
    /// Whether a row of the chunk exists.
    existed: bool,
}

/// Owner whose rows are written.
struct Owner<'a, 'b> {
    table: SetTable,
    owner: u64,
    write: &'a mut WriteRow<'b>,
}

impl Owner<'_, '_> {
    fn remove_delta(&mut self, number: u8) -> Result<(), StoreError> {
        (self.write)(&layout::delta(self.table, self.owner, number), None)
    }

    /// Writes the present items as one chunk. If there are too many, writes several chunks; if there are none, writes
    /// none.
    fn put(&mut self, place: &Place, items: &[Change]) -> Result<(), StoreError> {
        let present = items.iter().copied().filter(|(_, number)| number.is_some());
        let present: Vec<Change> = present.collect();
        let key = |low| layout::chunk(self.table, self.owner, low);
        if present.is_empty() {
            return if place.existed { (self.write)(&key(place.low), None) } else { Ok(()) };
        }
        // Fill the last chunk before another begins, because most new items are greater than all others.
        let pieces = present.len().div_ceil(CHUNK_ITEMS);
        let size = if place.is_last { CHUNK_ITEMS } else { present.len().div_ceil(pieces) };
        let alone = place.low == 0 && place.is_last && pieces == 1;
        let mut low = Some(place.low);
        for piece in present.chunks(size) {
            let first = piece.first().map_or(place.low, |(item, _)| *item);
            let low = low.take().unwrap_or(first);
            (self.write)(&key(low), Some(&packed::encode(low, alone, piece)))?;
        }
        Ok(())
    }
}

fn decode(low: u64, row: &[u8]) -> Result<Vec<Change>, StoreError> {
    let mut items = Vec::new();
    packed::decode(low, row, &mut items).ok_or(MALFORMED)?;
    Ok(items)
}

fn next(rows: &mut RowIter) -> Result<Option<(PackedRow, Slice)>, StoreError> {
    let Some(row) = rows.next() else { return Ok(None) };
    let (key, bytes) = row.into_inner()?;
    let (_, row) = layout::read_packed(&key).ok_or(MALFORMED)?;
    Ok(Some((row, bytes)))
}
