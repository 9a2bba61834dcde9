//! Tests that long values of keys do not make reads of other rows expensive. It is the only test of its process,
//! because it counts the reads of the process.

use kv::{BucketId, Bytes, Expiry, KeyOp, KeyOps, Only, Txn, apply};
use rows::{EPOCH_MS, PointTable, PutRows as _, Rows as _, Stamp, Value};
use store::{Store, StoreOptions};

/// Number of long values, each in a separate ingestion with some points.
const VALUES: u64 = 3;
const VALUE_BYTES: usize = 4 << 20;
/// Number of reads of a range of points.
const READS: u64 = 100;

#[test]
fn a_read_of_points_loads_no_value_of_a_key() {
    let data = tempfile::tempdir().unwrap();
    let options = StoreOptions { cache_bytes: 1 << 20, bucket_bytes: 1 << 20 };
    let (mut writer, _) = Store::open(data.path(), options).unwrap();
    let mut random = 7_u64;
    for number in 1..=VALUES {
        // The bytes cannot be compressed.
        let mut next = || {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (random >> 56) as u8
        };
        let value: Vec<u8> = (0..VALUE_BYTES).map(|_| next()).collect();
        let (key, value) = (number.to_string(), Bytes::new(&value));
        let op = KeyOp::Put {
            bucket: BucketId(0),
            key: Bytes::new(key.as_bytes()),
            value,
            expiry: Expiry::Never,
            only: Only::Always,
            old: false,
        };
        let stamp = Stamp::first_of(EPOCH_MS + number);
        let ops: KeyOps = [op].into_iter().collect();
        apply(&mut Txn::new(&mut writer), stamp, &ops, &mut |_, _| (), &mut Vec::new());
        for point in 0..10 {
            let value = Value::from_slice(&[number as u8; 20]);
            writer.put_point(PointTable::Post, number * 10 + point, Some(value));
        }
        writer.freeze(number).unwrap().run().unwrap();
    }
    drop(writer);
    let (writer, _) = Store::open(data.path(), options).unwrap();
    let store = writer.store();
    let points = |below: u64| {
        let mut found = 0;
        store.points_below(PointTable::Post, below, usize::MAX, &mut |_, _| found += 1);
        found
    };
    assert_eq!(points(u64::MAX), VALUES * 10);
    let before = testkit::proc::bytes_read();
    for read in 0..READS {
        points(u64::MAX - read);
    }
    let each = (testkit::proc::bytes_read() - before) / READS;
    assert!(each < VALUE_BYTES as u64 / 10, "{each} bytes for each read");
}
