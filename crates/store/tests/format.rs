//! Stores of every format version so far open; those of later versions are refused.
//!
//! `fixtures/store-v1` was written by `make_the_fixture_of_version_1`; it is never written again
//! once version 1 is released.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use feed::{NameTable, Order, PointTable, Rows, RowsMut, SetTable, Span, Stamp, Totals, Value};
use store::{FORMAT_VERSION, Store, StoreError, StoreOptions};

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 4 << 20 };
const APPLIED: u64 = 4_711;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store-v1")
}

fn totals() -> Totals {
    let last_stamp = Some(Stamp(99 << 22));
    Totals { users: 40, posts: 30, follows: 39, last_stamp, idempotency_day: 19_900 }
}

fn write(rows: &mut impl RowsMut) {
    for user in 0..40u64 {
        let name = format!("user_{user}");
        rows.put_point(PointTable::User, user, Some(Value::from_slice(name.as_bytes())));
        rows.put_point(PointTable::Counts, user, Some(Value::from_slice(&[user as u8; 12])));
        rows.put_name(NameTable::Handle, name.as_bytes(), Some(Value::from_slice(&[user as u8])));
        rows.put_member(SetTable::Following, 0, user, Some(0));
        rows.put_member(SetTable::Followers, user, 0, Some(0));
        rows.put_member(SetTable::AuthorPosts, user % 3, user << 22, Some(user * 1_000));
        rows.put_member(SetTable::Mentions, user / 10, user << 22, Some(0));
    }
    rows.put_totals(totals());
}

/// The second checkpoint removes some rows of the first.
fn remove(rows: &mut impl RowsMut) {
    rows.put_member(SetTable::Following, 0, 0, None);
    rows.put_name(NameTable::Handle, b"user_0", None);
    rows.put_name(NameTable::Idempotency, b"day and key", Some(Value::from_slice(b"outcome")));
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
#[ignore = "writes the checked-in fixture"]
fn make_the_fixture_of_version_1() {
    assert_eq!(FORMAT_VERSION, 1, "a later version has a fixture of its own");
    fs::remove_dir_all(fixture()).ok();
    fs::create_dir_all(fixture()).unwrap();
    let (mut writer, _) = Store::open(&fixture(), OPTIONS).unwrap();
    write(&mut writer);
    writer.freeze(1).unwrap().run().unwrap();
    remove(&mut writer);
    writer.freeze(APPLIED).unwrap().run().unwrap();
    drop(writer);
    // The engine sizes its (empty) journal down when it opens it again.
    Store::open(&fixture(), OPTIONS).unwrap();
}

#[test]
fn a_store_of_version_1_opens_with_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    copy(&fixture(), dir.path());
    let (mut writer, applied) = Store::open(dir.path(), OPTIONS).unwrap();
    let mut expected = feed::memory::MemoryRows::default();
    write(&mut expected);
    remove(&mut expected);
    assert_eq!((applied, writer.totals()), (APPLIED, totals()));
    for owner in 0..41 {
        for table in PointTable::ALL {
            assert_eq!(writer.point(table, owner), expected.point(table, owner));
        }
        for (table, order) in
            SetTable::ALL.into_iter().zip([Order::Ascending, Order::Descending].repeat(2))
        {
            let span = Span { order, ..Span::ALL };
            assert_eq!(writer.members(table, owner, span), expected.members(table, owner, span));
        }
        let handle = format!("user_{owner}");
        let [found, wanted] = [&writer as &dyn Rows, &expected]
            .map(|rows| rows.name(NameTable::Handle, handle.as_bytes()));
        assert_eq!(found, wanted);
    }
    assert_eq!(
        writer.first_name(NameTable::Idempotency, &[]).as_deref(),
        Some(&b"day and key"[..])
    );
    assert!(writer.freeze(APPLIED + 1).unwrap().run().is_ok());
}

/// Overwrites the row that describes the store, as another version of this program would.
fn describe(dir: &Path, head: &[u8]) {
    drop(Store::open(dir, OPTIONS).unwrap());
    let database = fjall::Database::builder(dir.join("facts")).worker_threads(1).open().unwrap();
    let keyspace = database.keyspace("facts", fjall::KeyspaceCreateOptions::default).unwrap();
    let mut ingestion = keyspace.start_ingestion().unwrap();
    ingestion.write([0u8], head).unwrap();
    ingestion.finish().unwrap();
}

#[test]
fn a_store_of_a_later_version_is_refused_and_both_versions_are_named() {
    let dir = tempfile::tempdir().unwrap();
    describe(dir.path(), &[7, 0, 0, 0, 1, 2, 3]);
    let error = Store::open(dir.path(), OPTIONS).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::NewerFormat { found: 7, known: 1 }));
    let text = error.to_string();
    assert!(text.contains("version 7") && text.contains("up to 1"), "{text}");
}

#[test]
fn a_store_with_a_malformed_description_is_refused() {
    for head in [&[][..], &[1, 0, 0, 0, 9]] {
        let dir = tempfile::tempdir().unwrap();
        describe(dir.path(), head);
        let error = Store::open(dir.path(), OPTIONS).map(|_| ()).unwrap_err();
        assert!(matches!(error, StoreError::Damaged(_)), "{error}");
    }
}
