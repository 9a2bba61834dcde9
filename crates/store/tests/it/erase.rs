//! Tests that removed rows of ephemeral tables can be erased from every file of the store.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rows::{PointTable, PutRows, Rows, SetTable, Span, Value};
use store::{Store, StoreOptions, StoreWriter};

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 4 << 20, bucket_bytes: 4 << 20 };
const STORIES: u64 = 500;

fn open(dir: &tempfile::TempDir) -> StoreWriter {
    Store::open(dir.path(), OPTIONS).unwrap().0
}

fn checkpoint(writer: &mut StoreWriter, applied: u64) {
    writer.freeze(applied).unwrap().run().unwrap();
}

/// Returns 40 bytes without a pattern, different for each story, so that compression does not change them.
fn text(story: u64) -> Vec<u8> {
    let mut noise = story.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut byte = || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (noise >> 56) as u8
    };
    (0..40).map(|_| byte()).collect()
}

/// Returns the time of a view, whose bytes have no pattern either.
fn seen_ms(story: u64) -> u64 {
    story.wrapping_add(1).wrapping_mul(0x6c62_272e_07bb_0143) >> 2 | 1 << 62
}

fn put(writer: &mut StoreWriter, stories: Range<u64>, exists: bool) {
    for story in stories {
        let row = exists.then(|| Value::from_vec(text(story)));
        writer.put_point(PointTable::StoryText, story << 22, row);
        writer.put_member(SetTable::StoryViews, story << 22, 7, exists.then(|| seen_ms(story)));
        writer.put_member(SetTable::Seen, 7, story << 22, exists.then_some(0));
    }
}

/// Returns for how many of `stories` a file below `dir` contains the text, and the view. Searches for the middle of a
/// value, because compression may merge its first and last bytes with other bytes.
fn found(dir: &Path, stories: Range<u64>) -> (usize, usize) {
    let contents = contents(dir);
    let holds =
        |bytes: &[u8]| contents.iter().any(|file| memchr::memmem::find(file, bytes).is_some());
    let texts = stories.clone().filter(|story| holds(&text(*story)[4..36])).count();
    let views = stories.filter(|story| holds(&seen_ms(*story).to_be_bytes()[1..7])).count();
    (texts, views)
}

/// Returns the contents of every file below `dir` at one moment. The engine deletes replaced files in the background.
/// If a file disappears meanwhile, its data may be in a file that was created too late to be listed; then everything is
/// read again.
fn contents(dir: &Path) -> Vec<Vec<u8>> {
    loop {
        let mut contents = Vec::new();
        match read_all(dir, &mut contents) {
            Ok(()) => return contents,
            Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
        }
    }
}

fn read_all(dir: &Path, contents: &mut Vec<Vec<u8>>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            read_all(&entry.path(), contents)?;
        } else {
            contents.push(std::fs::read(entry.path())?);
        }
    }
    Ok(())
}

fn assert_exist(rows: &impl Rows, stories: Range<u64>) {
    for story in stories {
        let row = rows.point(PointTable::StoryText, story << 22);
        assert_eq!(row.unwrap().as_slice(), text(story));
        let views = rows.members(SetTable::StoryViews, story << 22, Span::ALL);
        assert_eq!(views, [(7, seen_ms(story))]);
        assert!(rows.member(SetTable::Seen, 7, story << 22).is_some());
    }
}

#[test]
fn removed_texts_and_views_are_in_no_file_once_they_are_erased() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    let (gone, left) = (0..STORIES / 2, STORIES / 2..STORIES);
    put(&mut writer, 0..STORIES, true);
    checkpoint(&mut writer, 1);
    let all = STORIES as usize / 2;
    let before = found(dir.path(), gone.clone());
    assert!(
        before.0 == all && before.1 > all * 9 / 10,
        "the search finds what is there: {before:?}"
    );
    put(&mut writer, gone.clone(), false);
    checkpoint(&mut writer, 2);
    assert_eq!(found(dir.path(), gone.clone()), before, "a removal alone only hides");
    writer.store().erase(thread::yield_now).unwrap();
    assert_eq!(found(dir.path(), gone.clone()), (0, 0));
    assert_eq!(found(dir.path(), left.clone()).0, all);
    assert_exist(&writer, left.clone());
    drop(writer);
    let writer = open(&dir);
    assert_exist(&writer, left);
    assert_eq!(found(dir.path(), gone), (0, 0));
}

#[test]
fn erasing_all_rows_or_none_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    writer.store().erase(thread::yield_now).unwrap();
    for round in 0..3 {
        let stories = round * 10..round * 10 + 10;
        put(&mut writer, stories.clone(), true);
        checkpoint(&mut writer, 2 * round + 1);
        put(&mut writer, stories.clone(), false);
        checkpoint(&mut writer, 2 * round + 2);
        for _ in 0..2 {
            writer.store().erase(thread::yield_now).unwrap();
            assert_eq!(found(dir.path(), stories.clone()), (0, 0));
        }
    }
}

#[test]
fn rows_that_the_engine_has_merged_meanwhile_are_erased_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    for round in 0..12 {
        put(&mut writer, round * 20..round * 20 + 20, true);
        checkpoint(&mut writer, 2 * round + 1);
        put(&mut writer, round * 20..round * 20 + 15, false);
        checkpoint(&mut writer, 2 * round + 2);
    }
    writer.store().erase(thread::yield_now).unwrap();
    for round in 0..12 {
        assert_eq!(found(dir.path(), round * 20..round * 20 + 15), (0, 0));
        assert_exist(&writer, round * 20 + 15..round * 20 + 20);
    }
}

#[test]
fn reads_and_checkpoints_go_on_while_rows_are_erased() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    put(&mut writer, 0..STORIES, true);
    checkpoint(&mut writer, 1);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let store = writer.store();
        let done = &done;
        scope.spawn(move || {
            while !done.load(Ordering::Acquire) {
                assert_exist(&store, STORIES - 20..STORIES);
            }
        });
        for round in 0..20 {
            let stories = round * 20..round * 20 + 20;
            put(&mut writer, stories.clone(), false);
            checkpoint(&mut writer, 2 * round + 2);
            let store = writer.store();
            let erasing = scope.spawn(move || store.erase(thread::yield_now));
            put(&mut writer, 1_000 + round..1_001 + round, true);
            checkpoint(&mut writer, 2 * round + 3);
            erasing.join().unwrap().unwrap();
            assert_eq!(found(dir.path(), stories), (0, 0));
        }
        done.store(true, Ordering::Release);
    });
    assert_exist(&writer, 1_000..1_020);
}

#[test]
fn an_erasure_beside_a_long_read_rewrites_the_rows_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    put(&mut writer, 0..20, true);
    checkpoint(&mut writer, 1);
    put(&mut writer, 0..10, false);
    checkpoint(&mut writer, 2);
    let mut long_read = writer.store().snapshot().unwrap();
    assert!(long_read.is_some());
    let tables = || {
        let files = writer.store().table_files().into_iter();
        files.map(|(path, _)| path).collect::<Vec<_>>()
    };
    let mut rewritten = Vec::new();
    let store = writer.store();
    let wait = || {
        rewritten.push(tables());
        if rewritten.len() == 3 {
            long_read = None;
        }
    };
    store.erase(wait).unwrap();
    assert_eq!(rewritten.len(), 3, "the read is waited for");
    assert!(rewritten.iter().all(|tables| *tables == rewritten[0]), "{rewritten:?}");
    assert_eq!(found(dir.path(), 0..10), (0, 0));
    assert_exist(&writer, 10..20);
}
