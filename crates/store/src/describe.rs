//! Formats keys of rows on disk for operators: the table, and the numbers or names in the key.

use rows::{NameTable, PointTable};

use crate::layout::{self, PackedRow};

/// The row of a key.
pub(crate) fn describe(key: &[u8]) -> String {
    let (tag, rest) = key.split_first().unwrap_or((&0, &[]));
    if let Some((space, _, key)) = layout::read_key(key).filter(|_| *tag == layout::KEYS_PREFIX[0])
    {
        return format!("key \"{}\" in space {}", key.escape_ascii(), space.0);
    }
    if let Some(bucket) = layout::read_bucket(key).filter(|_| *tag == layout::BUCKETS_PREFIX[0]) {
        return format!("bucket {}", bucket.0);
    }
    if let Some(table) = PointTable::ALL.into_iter().find(|table| table.tag() == *tag) {
        return format!("{table:?} {}", numbers(rest));
    }
    if let Some(table) = layout::set_table(key) {
        return match layout::read_packed(key).filter(|_| table.is_packed()) {
            Some((owner, PackedRow::Chunk(low))) => format!("{table:?} {owner}, from {low} on"),
            Some((owner, PackedRow::Delta(number))) => format!("{table:?} {owner}, delta {number}"),
            None => format!("{table:?} {}", numbers(rest)),
        };
    }
    if let Some(table) = NameTable::ALL.into_iter().find(|table| table.tag() == *tag) {
        return format!("{table:?} \"{}\"", rest.escape_ascii());
    }
    match key == layout::HEAD {
        true => "the row that describes the store".to_owned(),
        false if layout::is_owners(key) => "a block of states of owners".to_owned(),
        false => format!("\"{}\"", key.escape_ascii()),
    }
}

fn numbers(bytes: &[u8]) -> String {
    let numbers =
        bytes.as_chunks::<8>().0.iter().map(|number| u64::from_be_bytes(*number).to_string());
    numbers.collect::<Vec<_>>().join(", ")
}
