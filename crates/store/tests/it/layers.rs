//! Tests of properties that hold while checkpoints start and end: rows visible to concurrent readers, the estimate of
//! memory, and refusals.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use kv::{KeyParts, KeyRow, KeyRows as _, KeyRowsMut as _, Space};
use rows::{NameTable, Order, PointTable, PutRows, Rows, SetTable, Span, Stamp, Value};
use store::{Store, StoreOptions, StoreWriter};

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 4 << 20, bucket_bytes: 4 << 20 };

fn open(dir: &tempfile::TempDir) -> StoreWriter {
    Store::open(dir.path(), OPTIONS).unwrap().0
}

fn number(bytes: &Value) -> u64 {
    u64::from_le_bytes(bytes.as_slice().try_into().unwrap())
}

#[test]
fn readers_see_every_finished_write_while_checkpoints_run() {
    const ROUNDS: u64 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    let written = AtomicU64::new(0);
    let span = Span { low: 0, high: u64::MAX, limit: 3, order: Order::Descending };
    thread::scope(|scope| {
        for _ in 0..2 {
            let (store, written) = (writer.store(), &written);
            scope.spawn(move || {
                loop {
                    let before = written.load(Ordering::Acquire);
                    let point = store.point(PointTable::Counts, 7).as_ref().map_or(0, number);
                    let newest = store.members(SetTable::AuthorPosts, 7, span);
                    let member = store.member(SetTable::AuthorPosts, 7, before);
                    let first = store.first_name(NameTable::Idempotency, &[]);
                    let after = written.load(Ordering::Acquire) + 1;
                    assert!((before..=after).contains(&point), "{before} <= {point} <= {after}");
                    let newest = newest.first().map_or(0, |row| row.0);
                    assert!((before..=after).contains(&newest), "{before} <= {newest} <= {after}");
                    assert_eq!(member.is_some(), before > 0, "item {before}");
                    let first = first.map_or(0, |key| u64::from_be_bytes(key.try_into().unwrap()));
                    assert!(before == 0 || (before..=after).contains(&first), "{before} {first}");
                    if before == ROUNDS {
                        break;
                    }
                }
            });
        }
        let mut running: Option<thread::ScopedJoinHandle<'_, _>> = None;
        for round in 1..=ROUNDS {
            writer.put_point(PointTable::Counts, 7, Some(Value::from_slice(&round.to_le_bytes())));
            writer.put_member(SetTable::AuthorPosts, 7, round, Some(0));
            let name = round.to_be_bytes();
            writer.put_name(NameTable::Idempotency, &name, Some(Value::new()));
            writer.put_name(NameTable::Idempotency, &(round - 1).to_be_bytes(), None);
            written.store(round, Ordering::Release);
            if let Some(checkpoint) = writer.freeze(round) {
                // The previous checkpoint has published its rows, so at most its thread still frees memory.
                if let Some(last) = running.replace(scope.spawn(|| checkpoint.run().unwrap())) {
                    last.join().unwrap();
                }
            }
        }
    });
}

#[test]
fn a_second_freeze_waits_for_the_first_checkpoint_and_failed_ones_keep_rows_readable() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    writer.put_member(SetTable::Following, 1, 2, Some(0));
    let first = writer.freeze(1).unwrap();
    assert!(writer.freeze(2).is_none());
    assert_eq!(first.run().unwrap().put, 3, "the head, a block of owners, the row");
    writer.put_member(SetTable::Following, 1, 3, Some(0));
    drop(writer.freeze(2).unwrap());
    assert!(writer.freeze(3).is_none());
    assert_eq!(writer.members(SetTable::Following, 1, Span::ALL), [(2, 0), (3, 0)]);
}

#[test]
fn points_over_three_layers_are_read_backward_with_changes_and_removals() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    let put = |writer: &mut StoreWriter, keys: &[u64], value: Option<u64>| {
        for key in keys {
            let value = value.map(|value| Value::from_slice(&value.to_le_bytes()));
            writer.put_point(PointTable::Post, *key, value);
        }
    };
    put(&mut writer, &[1, 2, 3, 4, 5, 6], Some(1));
    // The tables before and after this one also have rows.
    writer.put_point(PointTable::Counts, u64::MAX, Some(Value::new()));
    writer.put_point(PointTable::Story, 0, Some(Value::new()));
    writer.freeze(1).unwrap().run().unwrap();
    put(&mut writer, &[2, 3, 8], Some(2));
    put(&mut writer, &[4, 5], None);
    let frozen = writer.freeze(2).unwrap();
    put(&mut writer, &[3, 5, 9, u64::MAX], Some(3));
    put(&mut writer, &[6, 8], None);
    let check = |writer: &StoreWriter| {
        for (below, limit, expected) in [
            (u64::MAX, 100, &[(9, 3), (5, 3), (3, 3), (2, 2), (1, 1)][..]),
            (9, 100, &[(5, 3), (3, 3), (2, 2), (1, 1)]),
            (8, 2, &[(5, 3), (3, 3)]),
            (3, 1, &[(2, 2)]),
            (1, 100, &[]),
            (0, 100, &[]),
            (9, 0, &[]),
        ] {
            let mut found = Vec::new();
            writer.points_below(PointTable::Post, below, limit, &mut |key, row| {
                found.push((key, number(&Value::from_slice(row))));
            });
            assert_eq!(found, expected, "{limit} below {below}");
        }
    };
    check(&writer);
    frozen.run().unwrap();
    check(&writer);
    writer.freeze(3).unwrap().run().unwrap();
    check(&writer);
}

#[test]
fn a_page_of_a_large_set_over_three_layers_is_merged_with_removals() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    let put = |writer: &mut StoreWriter, items: std::ops::Range<u64>, value| {
        for item in items {
            writer.put_member(SetTable::Followers, 9, item * 0x9e37_79b9 % 100_003, value);
        }
    };
    put(&mut writer, 0..60_000, Some(0));
    writer.freeze(1).unwrap().run().unwrap();
    put(&mut writer, 20_000..80_000, None);
    let frozen = writer.freeze(2).unwrap();
    put(&mut writer, 40_000..50_000, Some(5));
    let present = (0..20_000).map(|item| (item, 0)).chain((40_000..50_000).map(|item| (item, 5)));
    let mut expected: Vec<(u64, u64)> =
        present.map(|(item, value)| (item * 0x9e37_79b9 % 100_003, value)).collect();
    expected.sort_unstable();
    assert_eq!(writer.members(SetTable::Followers, 9, Span::ALL), expected);
    let page = Span { low: 0, high: 50_000, limit: 20, order: Order::Descending };
    let below = expected.iter().rev().filter(|row| row.0 <= 50_000).take(20);
    assert_eq!(writer.members(SetTable::Followers, 9, page), below.copied().collect::<Vec<_>>());
    frozen.run().unwrap();
    assert_eq!(writer.members(SetTable::Followers, 9, Span::ALL), expected);
}

#[test]
fn the_writer_reads_what_was_put_below_items_it_removed_from_the_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    let views = |writer: &StoreWriter, owner, limit| {
        let rows = writer.members(SetTable::StoryViews, owner, Span { limit, ..Span::ALL });
        rows.into_iter().map(|row| row.0).collect::<Vec<u64>>()
    };
    for item in 10..20 {
        writer.put_member(SetTable::StoryViews, 1, item, Some(9));
        writer.put_member(SetTable::StoryViews, 2, item, Some(9));
    }
    writer.freeze(1).unwrap().run().unwrap();
    for first in (10..18).step_by(2) {
        assert_eq!(views(&writer, 1, 2), [first, first + 1]);
        writer.put_member(SetTable::StoryViews, 1, first, None);
        writer.put_member(SetTable::StoryViews, 1, first + 1, None);
    }
    assert_eq!(views(&writer, 1, 1), [18]);
    writer.put_member(SetTable::StoryViews, 1, 12, Some(9));
    writer.put_member(SetTable::StoryViews, 2, 3, Some(9));
    assert_eq!(views(&writer, 1, 9), [12, 18, 19]);
    assert_eq!(views(&writer, 2, 2), [3, 10]);
    assert_eq!(views(&writer, 1, 2), [12, 18]);
}

#[test]
fn the_estimate_of_memory_grows_with_rows_and_starts_again_at_a_freeze() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    assert_eq!(writer.overlay_bytes(), 0);
    for item in 0..100_000u64 {
        writer.put_member(SetTable::Followers, 1, item * 7_919 % 100_003, Some(0));
    }
    let set = writer.overlay_bytes();
    assert!((800_000..2_000_000).contains(&set), "8 to 20 bytes per item, not {set} in all");
    for item in 0..100_000u64 {
        writer.put_member(SetTable::Followers, 1, item * 7_919 % 100_003, Some(0));
    }
    assert_eq!(writer.overlay_bytes(), set, "the same rows again take nothing");
    writer.put_point(PointTable::Post, 1, Some(Value::from_slice(&[7; 500])));
    assert!(writer.overlay_bytes() >= set + 500);
    writer.freeze(1).unwrap().run().unwrap();
    assert_eq!(writer.overlay_bytes(), 0);
}

#[test]
fn one_directory_holds_one_open_store() {
    let dir = tempfile::tempdir().unwrap();
    let writer = open(&dir);
    assert!(Store::open(dir.path(), OPTIONS).is_err());
    drop(writer);
    open(&dir);
}

#[test]
fn a_store_whose_making_was_cut_short_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("facts.new/keyspaces")).unwrap();
    std::fs::write(dir.path().join("facts.new/0.jnl"), b"half").unwrap();
    let (mut writer, applied) = Store::open(dir.path(), OPTIONS).unwrap();
    assert_eq!(applied, 0);
    writer.freeze(3).unwrap().run().unwrap();
    drop(writer);
    assert_eq!(Store::open(dir.path(), OPTIONS).unwrap().1, 3);
}

/// Writes 1,000 posts of 100 bytes that do not compress.
fn write_noise(writer: &mut StoreWriter, seed: u64) {
    let mut noise = seed;
    let mut byte = || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (noise >> 56) as u8
    };
    for post in 0..1_000 {
        let bytes = (0..100).map(|_| byte()).collect();
        writer.put_point(PointTable::Post, post, Some(Value::from_vec(bytes)));
    }
}

#[test]
fn disk_bytes_grow_by_what_checkpoints_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    let before = writer.store().disk_bytes();
    write_noise(&mut writer, 1);
    writer.freeze(1).unwrap().run().unwrap();
    let grown = writer.store().disk_bytes() - before;
    assert!((100_000..200_000).contains(&grown), "{grown} bytes for 100,000 of noise");
}

/// Returns the number of bytes of all files below `dir`. The engine deletes replaced files in the background; a file
/// that disappears meanwhile counts as empty.
fn bytes_below(dir: &Path) -> u64 {
    let bytes = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        let Ok(metadata) = entry.metadata() else { return 0 };
        if metadata.is_dir() { bytes_below(&entry.path()) } else { metadata.len() }
    };
    std::fs::read_dir(dir).unwrap().map(bytes).sum()
}

#[test]
fn superseded_rows_leave_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    for round in 1..=30 {
        write_noise(&mut writer, round);
        writer.freeze(round).unwrap().run().unwrap();
    }
    // The engine merges on a separate thread.
    while writer.store().disk_bytes() >= 1_000_000 {
        thread::yield_now();
    }
    drop(writer);
    drop(open(&dir));
    let bytes = bytes_below(dir.path());
    assert!(bytes < 1_200_000, "{bytes} bytes in files for 30 times 100,000 of noise");
}

#[test]
fn a_key_that_does_not_exist_is_looked_for_on_disk_once() {
    let row = |key: &str, version| {
        let (space, key, value) = (Space(0), key.as_bytes(), &b"v"[..]);
        KeyRow::new(KeyParts { space, key, value, expires_ms: None, version: Stamp(version) })
    };
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    writer.put_key(row("there", 1));
    writer.freeze(1).unwrap().run().unwrap();
    drop(writer);

    let mut writer = open(&dir);
    assert!(writer.has_cold_keys());
    let absent = b"absent";
    assert!(writer.load_key(Space(0), absent), "the first time");
    assert!(!writer.load_key(Space(0), absent), "the second time");
    assert_eq!(writer.store().key_in_memory(Space(0), absent), Some(None));
    assert!(writer.load_key(Space(0), b"there") && writer.key(Space(0), b"there").is_some());

    // The cached absence ends when the key exists, and stays ended when the key is on disk.
    writer.put_key(row("absent", 2));
    assert!(writer.key(Space(0), absent).is_some());
    writer.freeze(2).unwrap().run().unwrap();
    assert_eq!(writer.key(Space(0), absent).unwrap().version(), Stamp(2));
    writer.put_key(KeyRow::removed(Space(0), absent, Stamp(3)));
    writer.freeze(3).unwrap().run().unwrap();
    assert_eq!(writer.key(Space(0), absent), None);
}
