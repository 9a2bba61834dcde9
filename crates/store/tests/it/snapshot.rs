//! Tests of snapshots of the rows of a store, of stores made from snapshots, and of checks that find damage.

use std::fs;
use std::path::{Path, PathBuf};

use rows::{PointTable, PutRows as _, SetTable, Value};
use store::{Snapshot, Store, StoreOptions, StoreWriter, restore, verify};
use testkit::files::{copy, files};

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 1 << 20, bucket_bytes: 1 << 20 };

type Row = (Vec<u8>, Vec<u8>);

fn open(dir: &Path) -> StoreWriter {
    Store::open(dir, OPTIONS).unwrap().0
}

/// Writes `count` posts, members and ephemeral texts whose bytes depend on `seed`, and makes a checkpoint.
fn write(writer: &mut StoreWriter, seed: u64, count: u64, applied: u64) {
    for number in 0..count {
        let value = Value::from_vec(vec![(seed ^ number) as u8; (number % 300) as usize]);
        writer.put_point(PointTable::Sample, number, Some(value.clone()));
        writer.put_point(PointTable::StoryText, number, (number % 7 != seed % 7).then_some(value));
        writer.put_member(SetTable::AuthorPosts, number % 50, number, Some(seed));
    }
    writer.freeze(applied).unwrap().run().unwrap();
}

fn rows(snapshot: Snapshot) -> (Vec<Row>, Vec<Row>) {
    let (mut ephemeral, mut facts) = (Vec::new(), Vec::new());
    let push = |into: &mut Vec<Row>, key: &[u8], value: &[u8]| {
        into.push((key.to_vec(), value.to_vec()));
        Ok(())
    };
    snapshot
        .read(&mut |key, value| push(&mut ephemeral, key, value), &mut |key, value| {
            push(&mut facts, key, value)
        })
        .unwrap();
    (ephemeral, facts)
}

fn make(dir: &Path, (ephemeral, facts): &(Vec<Row>, Vec<Row>)) {
    let put = |rows: &[Row], write: store::PutRow<'_>| {
        rows.iter().try_for_each(|(key, value)| write(key, value))
    };
    restore(dir, &mut (), |(), write| put(ephemeral, write), |(), write| put(facts, write))
        .unwrap();
}

#[test]
fn a_snapshot_is_of_one_checkpoint_whatever_happens_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(dir.path());
    write(&mut writer, 1, 2_000, 10);
    let before = rows(writer.store().snapshot().unwrap().unwrap());
    let snapshot = writer.store().snapshot().unwrap().unwrap();
    assert_eq!(snapshot.applied(), 10);
    // Change rows first without a checkpoint, then with checkpoints that replace every row.
    writer.put_point(PointTable::Sample, 9_999, Some(Value::from_vec(vec![1])));
    for round in 2..8 {
        write(&mut writer, round, 2_000, 10 * round);
    }
    assert!(rows(snapshot) == before);
    let after = writer.store().snapshot().unwrap().unwrap();
    assert_eq!(after.applied(), 70);
    assert!(rows(after) != before);
}

#[test]
fn a_store_that_is_made_of_a_snapshot_is_equal() {
    let (dir, made) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut writer = open(dir.path());
    write(&mut writer, 1, 3_000, 5);
    write(&mut writer, 2, 1_000, 6);
    let all = rows(writer.store().snapshot().unwrap().unwrap());
    make(made.path(), &all);
    let (copy, applied) = Store::open(made.path(), OPTIONS).unwrap();
    assert_eq!(applied, 6);
    assert!(rows(copy.store().snapshot().unwrap().unwrap()) == all);
    drop(copy);
    let report = verify(made.path()).unwrap();
    assert_eq!((report.applied, &*report.damage), (6, &[][..]));
    assert_eq!(report.rows as usize, all.0.len() + all.1.len());
}

#[test]
fn rows_without_their_description_make_no_store() {
    let made = tempfile::tempdir().unwrap();
    let facts = |(): &mut (), write: store::PutRow<'_>| write(&[0x12; 9], b"x");
    assert!(restore(made.path(), &mut (), |(), _| Ok(()), facts).is_err());
}

#[test]
fn a_flipped_bit_in_any_table_is_found_with_the_name_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(dir.path());
    write(&mut writer, 1, 400, 5);
    drop(writer);
    let tables = |path: &PathBuf| path.to_str().unwrap().contains("tables");
    let mut named = 0;
    for table in files(dir.path()).into_iter().filter(tables) {
        let bytes = fs::metadata(&table).unwrap().len() as usize;
        for at in (0..bytes).step_by(bytes / 30 + 1) {
            let damaged = tempfile::tempdir().unwrap();
            copy(dir.path(), damaged.path());
            let file = damaged.path().join(table.strip_prefix(dir.path()).unwrap());
            let mut content = fs::read(&file).unwrap();
            content[at] ^= 0x10;
            fs::write(&file, content).unwrap();
            match verify(damaged.path()) {
                Ok(report) => {
                    let damage = report.damage.join("\n");
                    assert!(damage.contains(file.to_str().unwrap()), "{file:?} {at}: {damage}");
                    named += 1;
                }
                // The engine does not open a database whose own tables are unreadable.
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
    assert!(named > 40, "{named}");
}

#[test]
fn a_missing_file_is_reported_by_name_and_nothing_is_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(dir.path());
    write(&mut writer, 1, 100, 5);
    drop(writer);
    for missing in files(dir.path()).iter().filter(|path| {
        let path = path.to_str().unwrap();
        path.ends_with("current") || path.contains("tables")
    }) {
        let damaged = tempfile::tempdir().unwrap();
        copy(dir.path(), damaged.path());
        let file = damaged.path().join(missing.strip_prefix(dir.path()).unwrap());
        fs::remove_file(&file).unwrap();
        let checked = verify(damaged.path());
        let opened = Store::open(damaged.path(), OPTIONS);
        assert!(checked.is_err() && opened.is_err(), "{file:?}");
        if file.ends_with("current") {
            let error = opened.err().unwrap().to_string();
            assert!(error.contains(file.to_str().unwrap()), "{error}");
        }
    }
}
