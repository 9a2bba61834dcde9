//! Tests that the end of each table is checked before the engine reads it. For every changed bit, the store is refused
//! with the name of the file, and no memory is allocated according to the contents of the file.

use rows::{PointTable, PutRows as _, Value};
use store::{Store, StoreError, StoreOptions};

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 1 << 20, bucket_bytes: 1 << 20 };

#[test]
fn every_changed_bit_in_the_end_of_a_table_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (mut rows, _) = Store::open(dir.path(), OPTIONS).unwrap();
    (0..9).for_each(|key| rows.put_point(PointTable::Post, key, Some(Value::from_slice(b"post"))));
    rows.freeze(1).unwrap().run().unwrap();
    let files = rows.store().table_files();
    drop(rows);
    let (path, _) = files.last().unwrap();
    let whole = std::fs::read(path).unwrap();
    let begin = whole.windows(4).rposition(|bytes| bytes == b"TOC!").unwrap();
    for at in begin..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            std::fs::write(path, bytes).unwrap();
            match Store::open(dir.path(), OPTIONS).map(drop) {
                Err(StoreError::DamagedFile { path: named, .. }) => assert_eq!(named, *path),
                other => panic!("bit {bit} of byte {at}: {other:?}"),
            }
        }
    }
    std::fs::write(path, whole).unwrap();
    Store::open(dir.path(), OPTIONS).unwrap();
}
