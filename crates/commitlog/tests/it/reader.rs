//! Tests of reading a log while its owner writes, creating a log that begins at any position, and checking a log
//! without changing it.

use std::path::Path;
use std::sync::Arc;

use commitlog::disk::RealDisk;
use commitlog::{
    LocalLog, Log as _, LogError, LogOptions, LogReader, Position, begin_after, check,
};

/// Length of eight sectors, so that short histories have many segments.
const SEGMENT_BYTES: u64 = 4096;

fn open(dir: &Path, from: u64) -> LocalLog {
    let options = LogOptions { segment_bytes: SEGMENT_BYTES, ..LogOptions::default() };
    LocalLog::open_with(Arc::new(RealDisk), dir, options, Position(from)).unwrap()
}

/// Returns a payload of one to six sectors.
fn payload(position: u64) -> Vec<u8> {
    vec![position as u8; 1 + (position as usize * 700) % 2_800]
}

fn append(log: &mut LocalLog, count: u64) {
    for _ in 0..count {
        let next = log.last().0 + 1;
        log.write_group(&payload(next), next * 10).unwrap();
    }
}

fn reader(dir: &Path) -> LogReader {
    LogReader::open(Arc::new(RealDisk), dir).unwrap()
}

fn read(reader: &LogReader, after: u64, up_to: u64) -> Result<Vec<u64>, LogError> {
    let mut positions = Vec::new();
    reader.read(Position(after), Position(up_to), &mut |group| {
        assert_eq!(group.payload, payload(group.position.0));
        assert_eq!(group.time_ms, group.position.0 * 10);
        positions.push(group.position.0);
        Ok(())
    })?;
    Ok(positions)
}

#[test]
fn groups_are_read_beside_the_owner_and_after_a_cut() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path(), 0);
    append(&mut log, 40);
    let mut reader = reader(dir.path());
    append(&mut log, 40);
    log.cut(Position(30)).unwrap();
    reader.refresh().unwrap();
    append(&mut log, 7);
    for (after, up_to) in [(0, 80), (17, 80), (79, 80), (30, 31), (80, 80)] {
        let expect: Vec<u64> = (after + 1..=up_to).collect();
        assert_eq!(read(&reader, after, up_to).unwrap(), expect);
    }
    assert!(matches!(read(&reader, 0, 500), Err(LogError::ShorterThanStore { .. })));
}

#[test]
fn only_the_segments_that_are_needed_are_opened() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path(), 0);
    append(&mut log, 60);
    let firsts: Vec<u64> = {
        let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let first = |name: &str| name.strip_suffix(".log")?.parse().ok();
        let mut firsts: Vec<u64> = names.filter_map(|name| first(name.to_str()?)).collect();
        firsts.sort_unstable();
        firsts
    };
    for after in 0..60 {
        let disk = Arc::new(RealDisk);
        let part = LogReader::open_after(disk, dir.path(), Position(after), 1).unwrap();
        let at = firsts.partition_point(|first| *first <= after + 1) - 1;
        assert_eq!(part.first(), Some(Position(firsts[at])));
        let end = firsts.get(at + 1).map_or(60, |next| next - 1);
        assert!(read(&part, after, end).unwrap().into_iter().eq(after + 1..=end));
        assert_eq!(read(&part, after, end + 1).is_err(), after < end + 1, "only one is open");
    }
}

#[test]
fn a_reader_that_came_after_the_cut_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path(), 0);
    append(&mut log, 80);
    log.cut(Position(60)).unwrap();
    let reader = reader(dir.path());
    assert!(matches!(read(&reader, 0, 80), Err(LogError::StartsAfterStore { .. })));
    assert_eq!(read(&reader, 60, 80).unwrap().len(), 20);
}

#[test]
fn a_segment_without_groups_that_is_replaced_is_read_in_its_new_form() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path(), 0);
    let mut reader = reader(dir.path());
    // The group is longer than a segment, so the empty segment is replaced.
    let long = vec![1; 10_000];
    log.write_group(&long, 10).unwrap();
    reader.refresh().unwrap();
    let mut found = Vec::new();
    let each = &mut |group: commitlog::Group<'_>| {
        found = group.payload.to_vec();
        Ok(())
    };
    reader.read(Position(0), Position(1), each).unwrap();
    assert!(found == long);
}

#[test]
fn flipped_bits_are_found_by_reader_and_check() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path(), 0);
    append(&mut log, 6);
    log.sync().unwrap();
    drop(log);
    assert_eq!(check(dir.path(), Position(3)).unwrap().last, Position(6));
    let segments = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<_> = segments.filter(|path| path.extension().unwrap() == "log").collect();
    segments.sort();
    assert!(segments.len() > 1);
    let whole = std::fs::read(&segments[0]).unwrap();
    for at in (0..whole.len()).step_by(97) {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        std::fs::write(&segments[0], &flipped).unwrap();
        let error = check(dir.path(), Position(0)).unwrap_err().to_string();
        assert!(error.contains(".log"), "byte {at}: {error}");
    }
    // The flipped bit is in the payload of the second group.
    let mut flipped = whole.clone();
    let at = whole.windows(20).position(|bytes| bytes == [2; 20]).unwrap();
    flipped[at] ^= 4;
    std::fs::write(&segments[0], &flipped).unwrap();
    assert_eq!(read(&reader(dir.path()), 0, 1).unwrap(), [1]);
    assert!(matches!(read(&reader(dir.path()), 0, 2), Err(LogError::Damaged { .. })));
}

#[test]
fn a_check_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = open(dir.path(), 0);
    append(&mut log, 1);
    drop(log);
    let file = dir.path().join("00000000000000000001.log");
    // Simulate a power loss: the last group lacks its last sector, and a new segment was being prepared.
    let mut bytes = std::fs::read(&file).unwrap();
    let end = bytes.chunks(512).position(|sector| sector == [0; 512]).unwrap() * 512;
    bytes[end - 512..end].fill(0);
    std::fs::write(&file, &bytes).unwrap();
    std::fs::write(dir.path().join("next.tmp"), b"x").unwrap();
    assert_eq!(check(dir.path(), Position(0)).unwrap().last, Position(0));
    assert!(std::fs::read(&file).unwrap() == bytes);
    assert!(dir.path().join("next.tmp").exists());
    assert!(check(dir.path(), Position(1)).is_err());
}

#[test]
fn a_log_can_begin_at_any_position() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("log");
    begin_after(&RealDisk, &dir, Position(1_000), SEGMENT_BYTES).unwrap();
    let mut log = open(&dir, 1_000);
    append(&mut log, 20);
    drop(log);
    assert_eq!(open(&dir, 1_005).last(), Position(1_020));
    assert_eq!(read(&reader(&dir), 1_000, 1_020).unwrap().len(), 20);
    let options = LogOptions::default();
    assert!(LocalLog::open_with(Arc::new(RealDisk), &dir, options, Position(999)).is_err());
}
