//! Keys of rows on disk as an operator reads them: the table, and the numbers or names in the key.

use rows::{NameTable, PointTable, SetTable};

use crate::layout;

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
    if let Some(table) = SetTable::ALL.into_iter().find(|table| table.tag() == *tag) {
        return format!("{table:?} {}", numbers(rest));
    }
    if let Some(table) = NameTable::ALL.into_iter().find(|table| table.tag() == *tag) {
        return format!("{table:?} \"{}\"", rest.escape_ascii());
    }
    match key == layout::HEAD {
        true => "the row that describes the store".to_owned(),
        false if layout::is_owners(key) => "a bitmap of owners".to_owned(),
        false => format!("\"{}\"", key.escape_ascii()),
    }
}

fn numbers(bytes: &[u8]) -> String {
    let numbers =
        bytes.as_chunks::<8>().0.iter().map(|number| u64::from_be_bytes(*number).to_string());
    numbers.collect::<Vec<_>>().join(", ")
}
