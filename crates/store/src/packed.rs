//! Rows of packed sets. A row has many items of one owner.
//!
//! An owner has two kinds of rows on disk, **chunks** and **deltas**. Chunks are sorted runs of at most [`CHUNK_ITEMS`]
//! items; the key of a chunk ends with the lowest item that may be in it. A delta has the changes of one checkpoint: at
//! most [`DELTA_ITEMS_MAX`] items, some of them removed. Later deltas hide earlier ones, and all deltas hide chunks. A
//! checkpoint writes a delta without reading. If there are too many deltas (14), a delta would be too long, or items
//! were removed, the checkpoint folds all deltas into the chunks.
//!
//! A row is a byte of flags, and the items in ascending order. For each item, it has the difference from the item
//! before; for the first item, the difference from the low end of the chunk. If the row has codes, each item also has a
//! code: 0 if it is removed, otherwise its number plus 1. Without codes, all numbers are 0. Numbers are encoded in
//! groups of seven bits, lowest first.

use rows::SetTable;

use crate::items::Items;
use crate::owners::State;

/// Maximum number of items of a chunk.
pub(crate) const CHUNK_ITEMS: usize = 512;
/// Maximum number of items of a delta.
pub(crate) const DELTA_ITEMS_MAX: usize = 256;

/// Flag: items have codes.
const CODES: u8 = 1;
/// Flag: the owner has no other chunk. It may be missing although the owner has no other chunk.
const ALONE: u8 = 2;

/// Item, and its number; `None` if it was removed.
pub(crate) type Change = (u64, Option<u64>);

/// Encodes a row of items that are at least `low`.
pub(crate) fn encode(low: u64, alone: bool, items: &[Change]) -> Vec<u8> {
    let codes = items.iter().any(|(_, number)| *number != Some(0));
    let mut bytes = Vec::with_capacity(2 + 3 * items.len());
    bytes.push(if codes { CODES } else { 0 } | if alone { ALONE } else { 0 });
    let mut last = low;
    for (item, number) in items {
        write(item - last, &mut bytes);
        last = *item;
        if codes {
            write(number.map_or(0, |number| number + 1), &mut bytes);
        }
    }
    bytes
}

/// Whether the owner of a row certainly has no other chunk.
pub(crate) fn is_alone(row: &[u8]) -> bool {
    row.first().is_some_and(|flags| flags & ALONE != 0)
}

/// Appends the items of a row to `items`. `None` if the row is malformed.
pub(crate) fn decode(low: u64, row: &[u8], items: &mut Vec<Change>) -> Option<()> {
    let (flags, mut rest) = row.split_first()?;
    if flags & !(CODES | ALONE) != 0 {
        return None;
    }
    let (mut last, mut first) = (low, true);
    while !rest.is_empty() {
        let gap = read(&mut rest)?;
        if gap == 0 && !first {
            return None;
        }
        (last, first) = (last.checked_add(gap)?, false);
        let number = if flags & CODES == 0 { Some(0) } else { read(&mut rest)?.checked_sub(1) };
        items.push((last, number));
    }
    Some(())
}

fn write(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (place, byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * place as u32;
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            *bytes = bytes.get(place + 1..)?;
            return Some(number);
        }
    }
    None
}

/// Merges `upper` and `lower`, both in ascending order. For equal items, `upper` decides.
pub(crate) fn overlay(upper: &[Change], lower: &[Change]) -> Vec<Change> {
    let mut both = Vec::with_capacity(upper.len() + lower.len());
    let mut lower = lower.iter().copied().peekable();
    for change in upper {
        while let Some(before) = lower.next_if(|(item, _)| *item < change.0) {
            both.push(before);
        }
        lower.next_if(|(item, _)| *item == change.0);
        both.push(*change);
    }
    both.extend(lower);
    both
}

/// Action of a checkpoint for the changed items of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// There is no row to write or remove.
    Nothing,
    /// Writes one more delta.
    Delta,
    /// Folds all changes into chunks; in a table that is not packed, writes the rows.
    Fold,
}

impl Plan {
    /// Returns the state of the owner after this action. `old` is the state before.
    pub(crate) fn state(self, old: State) -> State {
        match self {
            Self::Nothing => old,
            Self::Delta => old.with_delta().unwrap_or(old),
            Self::Fold => State::ROWS,
        }
    }
}

/// Decides how to write the changed `items` of an owner. `state` is that of the owner on disk.
///
/// Removed items are folded immediately, so deltas contain only added items.
pub(crate) fn plan(table: SetTable, state: State, items: &Items) -> Plan {
    if !table.is_packed() {
        return Plan::Fold;
    }
    let shape = items.shape();
    if state == State::NONE {
        return if shape.present == 0 { Plan::Nothing } else { Plan::Fold };
    }
    let is_delta =
        shape.removed == 0 && shape.present <= DELTA_ITEMS_MAX && state.with_delta().is_some();
    if is_delta { Plan::Delta } else { Plan::Fold }
}
