//! Keys of rows on disk: a tag byte for the table, then big-endian numbers, so that the order of keys is the order in
//! which ranges are read.
//!
//! Tags are part of the format: they are never reused and never change their meaning. Tags of tables are in
//! [`rows::Table`]. This file has the others: rows about the store itself have smaller tags, and buckets and their keys
//! have greater tags.

use kv::{BucketId, KeyParts, KeyRow, Space};
use rows::{NameTable, PointTable, SetTable, Stamp, Table};

use crate::error::StoreError;

/// Callback that passes a row, or the removal of a row, to an ingestion.
pub(crate) type WriteRow<'a> = dyn FnMut(&[u8], Option<&[u8]>) -> Result<(), StoreError> + 'a;

/// Key of the head row. Among the facts, the head row describes the store: format version, applied position, totals.
/// Among the ephemeral rows, it always exists and has only the applied position.
pub(crate) const HEAD: [u8; 1] = [0x00];

/// Tag of blocks of the states of owners of sets (see `owners`).
const OWNERS: u8 = 0x01;
/// Smallest tag of the rows of tables, buckets and keys.
#[cfg(feature = "simulation")]
pub(crate) const TABLES_MIN: u8 = 0x02;

/// Tag of buckets by id.
const BUCKETS: u8 = 0xfc;
/// Key of the fence, a row between the rows of tables and those of keys of buckets. The value of the fence fills the
/// rest of a block of the engine. Without it, the last rows of tables would be in a block with the first key of a
/// bucket and its value of up to 16 MiB, and every read of a range that ends there would load the value. Each ingestion
/// with keys writes the fence, so that it is in the same file. Nothing reads it, and a file without it is valid.
pub(crate) const FENCE: [u8; 1] = [0xfd];
/// Size of the fence's value in bytes: the minimum size of a block of the engine. The value is compressed.
pub(crate) const FENCE_BYTES: usize = 4 << 10;

/// Tag of rows of keys of buckets: space, hash, key.
const KEYS: u8 = 0xfe;
/// Length of the prefix of the key of such a row, in bytes.
const KEY_PREFIX_BYTES: usize = 1 + 4 + 8;

/// Key of a point.
pub(crate) type PointKey = [u8; 9];
/// Key of a delta.
pub(crate) type DeltaKey = [u8; 10];
/// Key of a chunk.
pub(crate) type ChunkKey = [u8; 18];
/// Key of a set row.
pub(crate) type SetKey = [u8; 17];

/// Returns the key of the point `key`.
pub(crate) fn point(table: PointTable, key: u64) -> PointKey {
    let mut bytes = [table.tag(); 9];
    bytes[1..].copy_from_slice(&key.to_be_bytes());
    bytes
}

/// Byte after the owner in the keys of chunks. It is greater than the number of any delta.
const CHUNK: u8 = 0xff;

/// Returns the key of a delta of `owner` in a packed table. Deltas have numbers from 1.
pub(crate) fn delta(table: SetTable, owner: u64, number: u8) -> DeltaKey {
    let mut bytes = [table.tag(); 10];
    bytes[1..9].copy_from_slice(&owner.to_be_bytes());
    bytes[9] = number;
    bytes
}

/// Returns the key of the chunk of `owner` for items from `low` on, in a packed table.
pub(crate) fn chunk(table: SetTable, owner: u64, low: u64) -> ChunkKey {
    let mut bytes = [table.tag(); 18];
    bytes[..10].copy_from_slice(&delta(table, owner, CHUNK));
    bytes[10..].copy_from_slice(&low.to_be_bytes());
    bytes
}

/// Kind of row of a packed table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackedRow {
    /// Delta with its number.
    Delta(u8),
    /// Chunk with the lowest item that may be in it.
    Chunk(u64),
}

/// Returns the owner and the kind of a row of a packed table.
pub(crate) fn read_packed(key: &[u8]) -> Option<(u64, PackedRow)> {
    let (_, rest) = key.split_first()?;
    let (owner, rest) = rest.split_first_chunk()?;
    let row = match rest {
        [CHUNK, low @ ..] => PackedRow::Chunk(u64::from_be_bytes(low.try_into().ok()?)),
        [number] => PackedRow::Delta(*number),
        _ => return None,
    };
    Some((u64::from_be_bytes(*owner), row))
}

/// Returns the key of `item` of `owner`, in a table that is not packed.
pub(crate) fn set(table: SetTable, owner: u64, item: u64) -> SetKey {
    let mut bytes = [table.tag(); 17];
    bytes[1..9].copy_from_slice(&owner.to_be_bytes());
    bytes[9..].copy_from_slice(&item.to_be_bytes());
    bytes
}

/// Returns the item at the end of a set row's key.
pub(crate) fn item_of(key: &[u8]) -> Option<u64> {
    (key.len() == 17).then(|| key.last_chunk().map(|item| u64::from_be_bytes(*item))).flatten()
}

/// Returns the key of the name `key`.
pub(crate) fn name(table: NameTable, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + key.len());
    bytes.push(table.tag());
    bytes.extend_from_slice(key);
    bytes
}

/// Prefix of the keys of all buckets.
pub(crate) const BUCKETS_PREFIX: [u8; 1] = [BUCKETS];

/// Returns the key of a bucket.
pub(crate) fn bucket(id: BucketId) -> [u8; 9] {
    let mut bytes = [BUCKETS; 9];
    bytes[1..].copy_from_slice(&id.0.to_be_bytes());
    bytes
}

/// Reverses [`bucket`].
pub(crate) fn read_bucket(key: &[u8]) -> Option<BucketId> {
    let (_, id) = key.split_first()?;
    Some(BucketId(u64::from_be_bytes(id.try_into().ok()?)))
}

/// Returns the key of the row of a key of a bucket.
pub(crate) fn key(space: Space, hash: u64, key: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(KEY_PREFIX_BYTES + key.len());
    bytes.push(KEYS);
    bytes.extend_from_slice(&space.0.to_be_bytes());
    bytes.extend_from_slice(&hash.to_be_bytes());
    bytes.extend_from_slice(key);
    bytes
}

/// Reverses [`key`].
pub(crate) fn read_key(bytes: &[u8]) -> Option<(Space, u64, &[u8])> {
    let (_, rest) = bytes.split_first()?;
    let (space, rest) = rest.split_first_chunk()?;
    let (hash, key) = rest.split_first_chunk()?;
    (!key.is_empty()).then_some((Space(u32::from_be_bytes(*space)), u64::from_be_bytes(*hash), key))
}

/// Returns the first key after all keys of `space`.
pub(crate) fn space_end(space: Space) -> Vec<u8> {
    match space.0.checked_add(1) {
        Some(next) => key(Space(next), 0, &[]),
        None => vec![KEYS + 1],
    }
}

/// Prefix of the rows of all keys of buckets.
pub(crate) const KEYS_PREFIX: [u8; 1] = [KEYS];

/// Encodes the value of a row of a key: its version, whether and when it expires, and the value of the key.
pub(crate) fn encode_key_row(row: &KeyRow) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(17 + row.value().len());
    bytes.extend_from_slice(&row.version().0.to_le_bytes());
    bytes.push(u8::from(row.expires_ms().is_some()));
    bytes.extend(row.expires_ms().into_iter().flat_map(u64::to_le_bytes));
    bytes.extend_from_slice(row.value());
    bytes
}

/// Reverses [`encode_key_row`].
pub(crate) fn decode_key_row(space: Space, key: &[u8], bytes: &[u8]) -> Option<KeyRow> {
    let (version, rest) = bytes.split_first_chunk()?;
    let version = Stamp(u64::from_le_bytes(*version));
    let (expires_ms, value) = match rest.split_first()? {
        (0, value) => (None, value),
        (1, rest) => {
            let (expires, value) = rest.split_first_chunk()?;
            (Some(u64::from_le_bytes(*expires)), value)
        }
        _ => return None,
    };
    Some(KeyRow::new(KeyParts { space, key, value, expires_ms, version }))
}

/// Returns the bounds of the keys of names of `table` that begin with `prefix`: the first key, which continues with
/// `from`, and a key greater than all of them.
pub(crate) fn names_under(table: NameTable, prefix: &[u8], from: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut end = name(table, prefix);
    let mut low = end.clone();
    low.extend_from_slice(from);
    // The loop ends before the tag, because no tag is 255.
    while end.pop_if(|last| *last == u8::MAX).is_some() {}
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    (low, end)
}

/// Returns the prefix of the keys of all blocks of the states of owners in the table with this tag.
pub(crate) fn owners_prefix(tag: u8) -> [u8; 2] {
    [OWNERS, tag]
}

/// Whether this is the key of a block of states of owners.
pub(crate) fn is_owners(key: &[u8]) -> bool {
    key.first() == Some(&OWNERS)
}

/// Returns the set table of a row, if it belongs to one.
pub(crate) fn set_table(key: &[u8]) -> Option<SetTable> {
    match Table::of_tag(*key.first()?)? {
        Table::Set(table) => Some(table),
        Table::Point(_) | Table::Name(_) => None,
    }
}

/// Returns the table and the owner of a set row, in a table that is not packed.
pub(crate) fn owner_of(key: &[u8]) -> Option<(SetTable, u64)> {
    let table = set_table(key)?;
    let (owner, item) = key.get(1..)?.split_first_chunk()?;
    (item.len() == 8).then_some((table, u64::from_be_bytes(*owner)))
}

/// Returns the key of a block of the states of owners in `table`.
pub(crate) fn owners(table: SetTable, block: u64) -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes[..2].copy_from_slice(&owners_prefix(table.tag()));
    bytes[2..].copy_from_slice(&block.to_be_bytes());
    bytes
}

/// Returns the encoded number of a set row: big endian without leading zeros. Zero, the most frequent number, thus has
/// no bytes.
pub(crate) fn encode_number(bytes: &[u8; 8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}

/// Reverses [`encode_number`].
pub(crate) fn decode_number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
