//! Tests of the salvage of a damaged log: it must return every undamaged group, and only appended ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use commitlog::disk::RealDisk;
use commitlog::{
    LocalLog, Log as _, LogOptions, LogSurvey, Position, SegmentCheck, Stretch, closed_segments,
    salvage,
};
use proptest::prelude::*;

const GROUPS: u64 = 24;

/// Returns a payload whose length depends on the position. One payload resembles sectors of other groups.
fn payload(position: u64, first_sector: &[u8]) -> Vec<u8> {
    match position {
        7 => first_sector.repeat(3),
        _ => (0..position * 90).map(|at| (at * position) as u8).collect(),
    }
}

/// Appends the groups, each synced. Returns the segments in order.
fn fill(dir: &Path) -> Vec<PathBuf> {
    let options = LogOptions { segment_bytes: 8_192, prepares_on_thread: false };
    let mut log = LocalLog::open_with(Arc::new(RealDisk), dir, options, Position(0)).unwrap();
    let mut sector = vec![0; 512];
    for position in 1..=GROUPS {
        let payload = [payload(position, &sector), vec![1]].concat();
        log.write_group(&payload, 1_000 + position).unwrap();
        log.sync().unwrap();
        if position == 1 {
            let first = dir.join(format!("{:020}.log", 1));
            sector = fs::read(first).unwrap()[512..1_024].to_vec();
        }
    }
    drop(log);
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        names.filter(|path| path.extension().is_some_and(|end| end == "log")).collect();
    files.sort();
    files
}

fn read(dir: &Path) -> (LogSurvey, Vec<(u64, Vec<u8>)>) {
    let mut groups = Vec::new();
    let survey = salvage(dir, &mut |group| {
        assert_eq!(group.time_ms, 1_000 + group.position.0);
        groups.push((group.position.0, group.payload.to_vec()));
        Ok(())
    });
    (survey.unwrap(), groups)
}

#[test]
fn a_whole_log_is_one_stretch_without_damage() {
    let dir = tempfile::tempdir().unwrap();
    assert!(fill(dir.path()).len() > 3);
    let (survey, groups) = read(dir.path());
    let (first, last) = (Position(1), Position(GROUPS));
    let stretch = Stretch { first, last, last_ms: 1_000 + GROUPS };
    assert_eq!(survey, LogSurvey { last: Some(last), stretches: vec![stretch], damage: vec![] });
    assert_eq!(groups.len() as u64, GROUPS);
    for (first, end) in closed_segments(dir.path()).unwrap() {
        let mut check = SegmentCheck::open(dir.path(), (first, end)).unwrap().unwrap();
        let groups = std::iter::from_fn(|| check.step().unwrap()).count() as u64;
        assert_eq!(groups, end.0 - first.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn every_whole_group_is_found_and_the_damage_is_reported(
        file in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        kind in 0..4_u8,
        bit in 0..8_u32,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let files = fill(dir.path());
        let (_, whole) = read(dir.path());
        let path = file.get(&files);
        let mut bytes = fs::read(path).unwrap();
        let place = at.index(bytes.len());
        match kind {
            0 => bytes[place] ^= 1 << bit,
            1 => bytes.truncate(place),
            2 => bytes[place / 512 * 512..][..512].fill(0),
            _ => bytes[place..].fill(0xff),
        }
        fs::write(path, &bytes).unwrap();
        let (survey, groups) = read(dir.path());
        prop_assert!(groups.iter().all(|group| whole.contains(group)));
        prop_assert!(groups.windows(2).all(|pair| pair[0].0 < pair[1].0));
        // A bit or a sector belongs to at most one group.
        if kind == 0 || kind == 2 {
            prop_assert!(groups.len() + 1 >= whole.len(), "{survey:?}");
        }
        let is_last = path == files.last().unwrap();
        let lost = groups.len() < whole.len();
        prop_assert!(!lost || !survey.damage.is_empty() || (is_last && survey.last < Some(Position(GROUPS))));
        let ends = |stretch: &Stretch| stretch.last.0 - stretch.first.0 + 1;
        prop_assert_eq!(survey.stretches.iter().map(ends).sum::<u64>(), groups.len() as u64);
    }
}
