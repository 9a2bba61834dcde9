//! How rows are named on disk: one tag byte for the table, then big-endian numbers, so that the
//! order of keys is the order in which ranges are asked for.
//!
//! Tags are part of the format: they are never reused and never change their meaning.

use feed::{NameTable, PointTable, SetTable};

/// Among the facts the row that describes the store: format version, applied position, totals. Among
/// the fleeting rows the applied position alone; nothing reads it, but it always stands.
pub(crate) const HEAD: [u8; 1] = [0x00];

/// Blocks of the bitmaps that tell which owners have set rows (see `owners`).
const OWNERS: u8 = 0x01;

/// Key of a point.
pub(crate) type PointKey = [u8; 9];
/// Key of a set row.
pub(crate) type SetKey = [u8; 17];

fn point_tag(table: PointTable) -> u8 {
    match table {
        PointTable::User => 0x10,
        PointTable::Counts => 0x11,
        PointTable::Post => 0x12,
        PointTable::Story => 0x13,
        PointTable::StoryText => 0x14,
        PointTable::Sample => 0x15,
    }
}

fn set_tag(table: SetTable) -> u8 {
    match table {
        SetTable::Following => 0x20,
        SetTable::Followers => 0x21,
        SetTable::AuthorPosts => 0x22,
        SetTable::Mentions => 0x23,
        SetTable::Friends => 0x24,
        SetTable::AuthorStories => 0x25,
        SetTable::Expiring => 0x26,
        SetTable::StoryViews => 0x27,
        SetTable::Seen => 0x28,
        SetTable::Samples => 0x29,
    }
}

fn name_tag(table: NameTable) -> u8 {
    match table {
        NameTable::Handle => 0x30,
        NameTable::Idempotency => 0x31,
        NameTable::SampleSet => 0x32,
        NameTable::SampleLabel => 0x33,
    }
}

/// Key of the point `key`.
pub(crate) fn point(table: PointTable, key: u64) -> PointKey {
    let mut bytes = [point_tag(table); 9];
    bytes[1..].copy_from_slice(&key.to_be_bytes());
    bytes
}

/// Key of `item` of `owner`.
pub(crate) fn set(table: SetTable, owner: u64, item: u64) -> SetKey {
    let mut bytes = [set_tag(table); 17];
    bytes[1..9].copy_from_slice(&owner.to_be_bytes());
    bytes[9..].copy_from_slice(&item.to_be_bytes());
    bytes
}

/// The item at the end of a set row's key.
pub(crate) fn item_of(key: &[u8]) -> Option<u64> {
    (key.len() == 17).then(|| key.last_chunk().map(|item| u64::from_be_bytes(*item))).flatten()
}

/// Key of the name `key`.
pub(crate) fn name(table: NameTable, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + key.len());
    bytes.push(name_tag(table));
    bytes.extend_from_slice(key);
    bytes
}

/// First key behind all names of `table`.
pub(crate) fn names_end(table: NameTable) -> Vec<u8> {
    vec![name_tag(table) + 1]
}

/// How the keys of all blocks of the owner bitmap of `table` begin.
pub(crate) fn owners_prefix(table: SetTable) -> [u8; 2] {
    [OWNERS, set_tag(table)]
}

/// Key of a block of the owner bitmap of `table`.
pub(crate) fn owners(table: SetTable, block: u64) -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes[..2].copy_from_slice(&owners_prefix(table));
    bytes[2..].copy_from_slice(&block.to_be_bytes());
    bytes
}

/// The bytes of a number beside a set row: big endian without leading zeros, so that zero, the
/// usual number, takes none.
pub(crate) fn encode_number(bytes: &[u8; 8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}

/// Reverses [`encode_number`].
pub(crate) fn decode_number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
