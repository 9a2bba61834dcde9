//! Describes keys of rows for operators: the kind of the row, and the ids and names in the key.

use rows::{SetTable, Table};

use crate::layout::{self, PackedRow};

/// Describes the row of a key.
pub(crate) fn describe(key: &[u8]) -> String {
    let (tag, rest) = key.split_first().unwrap_or((&0, &[]));
    if let Some((space, _, key)) = layout::read_key(key).filter(|_| *tag == layout::KEYS_PREFIX[0])
    {
        return format!("the key \"{}\" in space {}", key.escape_ascii(), space.0);
    }
    if let Some(bucket) = layout::read_bucket(key).filter(|_| *tag == layout::BUCKETS_PREFIX[0]) {
        return format!("bucket {}", bucket.0);
    }
    match Table::of_tag(*tag) {
        Some(Table::Point(table)) => format!("{} {}", table.words().concat(), numbers(rest).0),
        Some(Table::Set(table)) => of_set_row(table, key, rest),
        Some(Table::Name(table)) => {
            table.words().concat().replace('…', &rest.escape_ascii().to_string())
        }
        None if key == layout::HEAD => "the row that describes the store".to_owned(),
        None if layout::is_owners(key) => "the index of packed lists".to_owned(),
        None => format!("\"{}\"", key.escape_ascii()),
    }
}

fn of_set_row(table: SetTable, key: &[u8], rest: &[u8]) -> String {
    let &[what, item] = table.words() else { return format!("{table:?}") };
    match layout::read_packed(key).filter(|_| table.is_packed()) {
        Some((owner, PackedRow::Chunk(0))) => format!("{what} {owner}"),
        Some((owner, PackedRow::Chunk(low))) => format!("{what} {owner}, from {item} {low} on"),
        Some((owner, PackedRow::Delta(_))) => format!("newest {what} {owner}"),
        None => match numbers(rest) {
            (owner, Some(number)) => format!("{what} {owner}: {item} {number}"),
            (owner, None) => format!("{what} {owner}"),
        },
    }
}

/// Returns the first number of a key as text, and the second number if there is one.
fn numbers(bytes: &[u8]) -> (String, Option<u64>) {
    let mut numbers = bytes.as_chunks::<8>().0.iter().map(|number| u64::from_be_bytes(*number));
    let first = numbers.next().map_or_else(String::new, |number| number.to_string());
    (first, numbers.next())
}

#[cfg(test)]
mod tests {
    use rows::{NameTable, PointTable};

    use super::*;

    #[test]
    fn keys_of_rows_are_described_in_words_of_users() {
        let cases = [
            (layout::point(PointTable::Post, 77).to_vec(), "post 77"),
            (layout::point(PointTable::Counts, 5).to_vec(), "counts of user 5"),
            (layout::chunk(SetTable::Followers, 6, 0).to_vec(), "followers of user 6"),
            (
                layout::chunk(SetTable::Following, 6, 9).to_vec(),
                "follows of user 6, from user 9 on",
            ),
            (layout::delta(SetTable::AuthorPosts, 6, 1).to_vec(), "newest posts of user 6"),
            (layout::set(SetTable::Replies, 8, 9).to_vec(), "replies to post 8: post 9"),
            (layout::name(NameTable::Handle, b"ann").to_vec(), "the handle \"ann\""),
            (layout::HEAD.to_vec(), "the row that describes the store"),
        ];
        for (key, text) in cases {
            assert_eq!(describe(&key), text);
        }
    }
}
