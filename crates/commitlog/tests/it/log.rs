//! Tests of the guarantees of the local log, on a disk with all known kinds of failures.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use commitlog::disk::{Disk, RealDisk};
use commitlog::{
    Group, LocalLog, Log, LogError, LogOptions, PAYLOAD_BYTES_MAX, Position, SyncPoint,
};
use proptest::prelude::*;
use testkit::disk::{Crash, FaultyDisk};

const DIR: &str = "/log";
/// Length of eight sectors, so that short histories have many segments.
const SEGMENT_BYTES: u64 = 4096;

/// Payloads that were appended or read, in order.
type Groups = Vec<Vec<u8>>;

fn options(segment_bytes: u64) -> LogOptions {
    LogOptions { segment_bytes, ..LogOptions::default() }
}

fn open_in(
    disk: Arc<dyn Disk>,
    dir: &Path,
    segment_bytes: u64,
    from: u64,
) -> Result<(LocalLog, Groups), LogError> {
    let log = LocalLog::open_with(disk, dir, options(segment_bytes), Position(from))?;
    let groups = read(&log, from)?;
    assert_eq!(log.last().0, from + groups.len() as u64);
    Ok((log, groups))
}

/// Returns the payloads of all groups after `after`.
fn read(log: &LocalLog, after: u64) -> Result<Groups, LogError> {
    let mut groups = Groups::new();
    let mut each = |group: Group<'_>| {
        assert_eq!(group.position.0, after + 1 + groups.len() as u64);
        assert_eq!(group.time_ms, time_of(group.position.0));
        groups.push(group.payload.to_vec());
        Ok(())
    };
    log.read(Position(after), &mut each)?;
    Ok(groups)
}

/// Returns the time that the tests give to the group at a position.
fn time_of(position: u64) -> u64 {
    position << 33 | 7
}

fn append(log: &mut LocalLog, payload: &[u8]) -> Result<Position, LogError> {
    let time_ms = time_of(log.last().0 + 1);
    let placed = log.write_group(payload, time_ms)?;
    assert_eq!(placed.time_ms, time_ms);
    Ok(placed.position)
}

fn open(disk: &FaultyDisk, from: u64) -> Result<(LocalLog, Groups), LogError> {
    open_in(Arc::new(disk.clone()), Path::new(DIR), SEGMENT_BYTES, from)
}

fn segment(first: u64) -> PathBuf {
    Path::new(DIR).join(format!("{first:020}.log"))
}

fn segments(disk: &FaultyDisk) -> Vec<PathBuf> {
    let mut paths = disk.paths();
    paths.retain(|path| path.extension().is_some_and(|end| end == "log"));
    paths
}

/// Step of the writer of a log.
#[derive(Debug, Clone)]
enum Step {
    Append(Vec<u8>),
    Sync,
    TakeSyncPoint,
    SyncAtPoint,
    /// Cuts the log up to this share of the durable groups, in 256ths.
    Cut(u8),
}

/// State of the writer.
#[derive(Default)]
struct Writer {
    /// Every payload that was passed to `append`, even if it failed.
    given: Groups,
    /// Number of payloads that are acknowledged as durable.
    durable: usize,
    /// Last group that is no longer needed.
    from: usize,
    point: Option<SyncPoint>,
}

impl Writer {
    fn run(&mut self, log: &mut LocalLog, steps: &[Step]) -> Result<(), LogError> {
        for step in steps {
            match step {
                Step::Append(payload) => {
                    self.given.push(payload.clone());
                    assert_eq!(append(log, payload)?.0, self.given.len() as u64);
                }
                Step::Sync => {
                    log.sync()?;
                    self.durable = self.given.len();
                }
                Step::TakeSyncPoint => self.point = Some(log.sync_point()),
                Step::SyncAtPoint => {
                    if let Some(point) = self.point.take() {
                        point.sync()?;
                        self.durable = self.durable.max(point.last().0 as usize);
                    }
                }
                Step::Cut(share) => {
                    self.from = self.from.max(self.durable * usize::from(*share) / 256);
                    log.cut(Position(self.from as u64))?;
                }
            }
        }
        Ok(())
    }

    /// Opens the log, and checks that it has every durable group, possibly some of the others, and nothing else.
    fn reopen(&self, disk: &FaultyDisk) -> LocalLog {
        let (log, groups) = open(disk, self.from as u64).expect("a sound log opens");
        let last = self.from + groups.len();
        assert!(last >= self.durable, "{last} groups of {}", self.durable);
        assert!(last <= self.given.len());
        assert!(groups == self.given[self.from..last], "groups changed");
        log
    }
}

/// Payloads of all kinds of lengths, including those that end near the border of a sector, and of contents that
/// resemble other data.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let border = (0..4_usize, 0..3_usize).prop_map(|(more, off)| 472 + more * 508 + off - 1);
    let length = prop_oneof![3 => 1..1500_usize, 3 => border, 1 => 3000..6000_usize];
    (length, any::<u8>(), 0..4).prop_map(|(length, seed, kind)| match kind {
        0 => vec![0; length],
        1 => b"GRUP".iter().copied().cycle().take(length).collect(),
        2 => (0..length).map(|i| u8::from(i + 1 == length)).collect(),
        _ => (0..length).map(|i| (i * 31) as u8 ^ seed).collect(),
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => payload().prop_map(Step::Append),
        2 => Just(Step::Sync),
        1 => Just(Step::TakeSyncPoint),
        1 => Just(Step::SyncAtPoint),
        1 => any::<u8>().prop_map(Step::Cut),
    ]
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec(step(), 1..most)
}

/// Creates a log with these groups, each synced, and without a writer.
fn disk_with(groups: &[Vec<u8>]) -> FaultyDisk {
    let disk = FaultyDisk::default();
    let (mut log, _) = open(&disk, 0).unwrap();
    for group in groups {
        append(&mut log, group).unwrap();
        log.sync().unwrap();
    }
    disk
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_appended_is_read_again_in_order_from_any_position(
        rounds in proptest::collection::vec(steps(12), 1..4),
        share in 0..=256_usize,
    ) {
        let disk = FaultyDisk::default();
        let mut writer = Writer::default();
        for steps in rounds {
            let mut log = writer.reopen(&disk);
            writer.point = None;
            writer.run(&mut log, &steps).unwrap();
            writer.durable = writer.given.len();
        }
        let from = writer.from + (writer.given.len() - writer.from) * share / 256;
        let (log, groups) = open(&disk, from as u64).unwrap();
        prop_assert!(groups == writer.given[from..]);
        let most: usize = writer.given.iter().map(|group| 1024 + group.len() * 2).sum();
        prop_assert!(log.size() <= most as u64 + SEGMENT_BYTES);
    }

    #[test]
    fn a_flipped_bit_is_either_harmless_or_reported(
        groups in proptest::collection::vec(payload(), 1..8),
        spot in any::<prop::sample::Index>(),
    ) {
        let disk = disk_with(&groups);
        let bits: usize = disk.paths().iter().map(|path| disk.contents(path).len() * 8).sum();
        let mut bit = spot.index(bits);
        for path in disk.paths() {
            let here = disk.contents(&path).len() * 8;
            if bit < here {
                check_flipped(&disk, &path, bit, &groups);
                break;
            }
            bit -= here;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_power_loss_at_any_moment_loses_only_a_tail_that_was_not_durable(
        steps in steps(24),
        seed in any::<u64>(),
    ) {
        for moment in 1.. {
            let disk = FaultyDisk::default();
            let mut writer = Writer::default();
            disk.stop_at(moment);
            let done = open(&disk, 0).and_then(|(mut log, _)| writer.run(&mut log, &steps));
            let over = done.is_ok();
            disk.lose_power(seed ^ moment);

            // Another power loss while the log is being recovered.
            disk.stop_at(1 + (seed ^ moment) % 24);
            drop(open(&disk, writer.from as u64));
            disk.lose_power(seed.rotate_left(7) ^ moment);

            // Groups that recovery returns are durable from then on.
            let mut log = writer.reopen(&disk);
            writer.given.truncate(log.last().0 as usize);
            writer.durable = writer.given.len();
            writer.point = None;
            writer.run(&mut log, &[Step::Append(vec![7; 700])]).unwrap();
            drop(log);
            disk.lose_power(seed.rotate_left(17) ^ moment);

            let mut log = writer.reopen(&disk);
            writer.given.truncate(log.last().0 as usize);
            writer.run(&mut log, &steps).unwrap();
            drop(log);
            disk.lose_power(seed.rotate_left(27) ^ moment);
            writer.reopen(&disk);
            if over {
                break;
            }
        }
    }

    #[test]
    fn groups_of_a_killed_process_are_durable_once_they_were_read(
        steps in steps(24),
        seed in any::<u64>(),
    ) {
        for moment in 1.. {
            let disk = FaultyDisk::default();
            let mut writer = Writer::default();
            disk.stop_at(moment);
            let done = open(&disk, 0).and_then(|(mut log, _)| writer.run(&mut log, &steps));
            disk.restart(Crash::Kill);

            let mut log = writer.reopen(&disk);
            writer.given.truncate(log.last().0 as usize);
            writer.durable = writer.given.len();
            writer.point = None;
            writer.run(&mut log, &[Step::Append(vec![7; 700]), Step::Sync]).unwrap();
            drop(log);
            disk.lose_power(seed ^ moment);
            writer.reopen(&disk);
            if done.is_ok() {
                break;
            }
        }
    }

    #[test]
    fn a_full_disk_stops_the_log_and_loses_nothing_that_was_durable(
        steps in steps(24),
        seed in any::<u64>(),
    ) {
        for sectors in 0.. {
            let disk = FaultyDisk::default();
            disk.fill_up_after(sectors * 512);
            if check_stopped(&disk, &steps, seed) {
                break;
            }
        }
    }

    #[test]
    fn a_failed_sync_stops_the_log_and_loses_nothing_that_was_durable(
        steps in steps(24),
        seed in any::<u64>(),
    ) {
        for sync in 1.. {
            let disk = FaultyDisk::default();
            disk.fail_sync(sync);
            if check_stopped(&disk, &steps, seed) {
                break;
            }
        }
    }
}

/// After a failed sync, the page cache has data that the disk lacks, and the next sync reports success. A restarted
/// process must not rely on either.
#[test]
fn what_follows_a_failed_sync_and_a_restart_survives_a_power_loss() {
    for seed in 0..20 {
        let disk = FaultyDisk::default();
        let (mut log, _) = open(&disk, 0).unwrap();
        append(&mut log, b"durable").unwrap();
        log.sync().unwrap();
        append(&mut log, b"not durable").unwrap();
        disk.fail_sync(1);
        assert!(log.sync().is_err());
        drop(log);
        let (mut log, found) = open(&disk, 0).unwrap();
        append(&mut log, b"after the restart").unwrap();
        log.sync().unwrap();
        drop(log);
        disk.lose_power(seed);
        let (_, groups) = open(&disk, 0).unwrap();
        assert_eq!(groups.split_last().unwrap().1, found);
        assert_eq!(groups.last().unwrap(), b"after the restart");
    }
}

/// Runs the steps on a disk with a fault. Returns whether all steps were done before the fault.
fn check_stopped(disk: &FaultyDisk, steps: &[Step], seed: u64) -> bool {
    let mut writer = Writer::default();
    let Ok((mut log, _)) = open(disk, 0) else {
        disk.lose_power(seed);
        writer.reopen(disk);
        return false;
    };
    let stopped = writer.run(&mut log, steps).is_err();
    if stopped {
        // Every operation of the log fails, even if the disk has been repaired.
        disk.restart(Crash::Kill);
        let last = log.last();
        let point = log.sync_point();
        assert!(matches!(log.write_group(b"more", 0), Err(LogError::Poisoned)));
        assert!(matches!(log.sync(), Err(LogError::Poisoned)));
        assert!(matches!(point.sync(), Err(LogError::Poisoned)));
        assert!(matches!(log.cut(last), Err(LogError::Poisoned)));
    }
    drop(log);
    // The next process finds the kernel's state. Then the power fails.
    writer.reopen(&disk.copy());
    disk.lose_power(seed);
    writer.reopen(disk);
    !stopped
}

/// Checks that the log opens with the same groups, or fails with the name of this file.
fn check_flipped(disk: &FaultyDisk, path: &Path, bit: usize, groups: &Groups) {
    let disk = disk.copy();
    disk.edit(path, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
    match open(&disk, 0) {
        Ok((_, found)) => assert!(found == *groups, "bit {bit} of {path:?} changed groups"),
        Err(LogError::Damaged { file, offset, .. }) => {
            assert_eq!(file, path);
            assert!(offset <= bit as u64 / 8, "bit {bit} of {path:?}: {offset}");
        }
        Err(other) => panic!("bit {bit} of {path:?}: {other}"),
    }
}

#[test]
fn no_single_flipped_bit_of_a_small_log_loses_groups() {
    // The set bit alone distinguishes the last sector of the last group from zeros.
    let mut almost_zeros = vec![0; 1100];
    almost_zeros[1099] = 1;
    let groups = vec![vec![0; 1400], vec![5; 400], vec![0; 480], almost_zeros];
    let disk = disk_with(&groups);
    for path in segments(&disk) {
        for bit in 0..disk.contents(&path).len() * 8 {
            check_flipped(&disk, &path, bit, &groups);
        }
    }
}

/// Creates a log of three segments, with the groups 1 and 2, the group 3, and the groups 4 to 6. The last three groups
/// are synced one by one if `synced`, otherwise not.
fn three_segments(synced: bool) -> FaultyDisk {
    let disk = disk_with(&[vec![1; 1000], vec![2; 1400], vec![3; 3400]]);
    let (mut log, _) = open(&disk, 0).unwrap();
    for group in [vec![4; 100], vec![5; 1000], vec![0; 1400]] {
        append(&mut log, &group).unwrap();
        if synced {
            log.sync().unwrap();
        }
    }
    drop(log);
    assert_eq!(segments(&disk), [1, 3, 4].map(segment));
    disk
}

fn zero(disk: &FaultyDisk, first: u64, sectors: std::ops::Range<usize>) {
    disk.edit(&segment(first), |bytes| {
        bytes[sectors.start * 512..sectors.end * 512].fill(0);
    });
}

/// Flips two bits of a byte.
fn flip(disk: &FaultyDisk, first: u64, at: usize) {
    disk.edit(&segment(first), |bytes| bytes[at] ^= 0x18);
}

/// Opens the log after `damage`, and checks the last position or the error message.
fn check(synced: bool, damage: impl FnOnce(&FaultyDisk), expect: Result<u64, &str>) {
    let disk = three_segments(synced);
    damage(&disk);
    let found = open(&disk, 0).map(|(log, _)| log.last().0);
    let found = found.map_err(|error| error.to_string());
    assert_eq!(found, expect.map_err(|text| text.replace("NAME-", "/log/00000000000000000")));
    if let Ok(last) = expect {
        // The remains are erased, so new groups can be written and read in their place.
        let (mut log, _) = open(&disk, 0).unwrap();
        append(&mut log, b"new").unwrap();
        drop(log);
        assert_eq!(open(&disk, 0).unwrap().0.last().0, last + 1);
    }
}

#[test]
fn a_tail_that_was_never_durable_is_cut() {
    // The last segment has its header, group 4 in one sector, and groups 5 and 6 in three sectors each.
    check(false, |_| (), Ok(6));
    check(false, |disk| zero(disk, 4, 5..8), Ok(5));
    check(false, |disk| zero(disk, 4, 6..7), Ok(5));
    check(false, |disk| zero(disk, 4, 5..6), Ok(5));
    check(false, |disk| zero(disk, 4, 3..4), Ok(4));
    check(false, |disk| zero(disk, 4, 2..3), Ok(4));
    check(false, |disk| zero(disk, 4, 1..2), Ok(3));
    check(true, |disk| zero(disk, 4, 6..8), Ok(5));
    check(true, |disk| disk.put(&Path::new(DIR).join("next.tmp"), b"half"), Ok(6));
}

/// Checks that damage to a log that was synced after each group is refused with this message.
fn check_refused(damage: impl FnOnce(&FaultyDisk), expect: &str) {
    check(true, damage, Err(&format!("the log is damaged: NAME-{expect}")));
}

#[test]
fn a_lost_sector_or_segment_that_was_durable_is_refused_with_file_offset_and_position() {
    let lost = "a durable group is missing";
    // Sectors are lost from groups, and later groups state that these were durable.
    check_refused(|disk| zero(disk, 4, 1..2), &format!("004.log at byte 512, group 4: {lost}"));
    check_refused(|disk| zero(disk, 4, 3..4), &format!("004.log at byte 1024, group 5: {lost}"));
    check_refused(|disk| zero(disk, 4, 1..5), &format!("004.log at byte 512, group 4: {lost}"));
    // Sectors are lost from segments that have a successor.
    let after = "unexpected data after the last group";
    check_refused(|disk| zero(disk, 1, 1..2), &format!("001.log at byte 1024, group 1: {after}"));
    check_refused(|disk| zero(disk, 1, 5..6), &format!("001.log at byte 2048, group 2: {after}"));
    check_refused(
        |disk| flip(disk, 1, 7 * 512 + 9),
        "001.log at byte 3584, group 3: unexpected data in place of a group",
    );
    let gap = "groups are missing before this segment";
    check_refused(|disk| zero(disk, 1, 4..7), &format!("003.log at byte 0, group 2: {gap}"));
    check_refused(
        |disk| disk.remove(&segment(3)).unwrap(),
        &format!("004.log at byte 0, group 3: {gap}"),
    );
}

#[test]
fn changed_bytes_and_files_are_refused_with_file_offset_and_position() {
    // Bytes are changed in the magic number, header, payload, mark and padding, of the last group and of others.
    check_refused(
        |disk| flip(disk, 4, 2560),
        "004.log at byte 2560, group 6: unexpected data in place of a group",
    );
    check_refused(
        |disk| flip(disk, 4, 2564),
        "004.log at byte 2560, group 6: a group's header does not match its checksum",
    );
    check_refused(
        |disk| flip(disk, 4, 2600),
        "004.log at byte 2560, group 6: a payload does not match its checksum",
    );
    check_refused(
        |disk| flip(disk, 4, 3072),
        "004.log at byte 2560, group 6: a sector of a group has the wrong mark",
    );
    check_refused(
        |disk| flip(disk, 4, 4095),
        "004.log at byte 2560, group 6: unexpected data between two groups",
    );
    check_refused(
        |disk| flip(disk, 3, 40),
        "003.log at byte 0, group 3: unexpected data after the segment header",
    );
    check_refused(
        |disk| zero(disk, 3, 0..1),
        "003.log at byte 0, group 3: this is not a segment of a roost log",
    );
    // A lost sector in the last group is no excuse for a changed sector.
    check_refused(
        |disk| {
            zero(disk, 4, 6..7);
            flip(disk, 4, 3584);
        },
        "004.log at byte 2560, group 6: a sector of a group has the wrong mark",
    );
    // A valid group is at the place of another group.
    check_refused(
        |disk| disk.edit(&segment(4), |bytes| bytes.copy_within(1024..2560, 2560)),
        "004.log at byte 2560, group 6: another group is in its place",
    );
    check_refused(
        |disk| {
            let other = disk.contents(&segment(3));
            disk.put(&segment(4), &other);
        },
        "004.log at byte 0, group 4: the file has the name of another segment",
    );
    // A power loss never makes a file shorter.
    let length = "the file is not as long as its header says";
    check_refused(
        |disk| disk.edit(&segment(4), |bytes| bytes.truncate(2560)),
        &format!("004.log at byte 0, group 4: {length}"),
    );
    check_refused(
        |disk| disk.edit(&segment(1), |bytes| bytes.truncate(3584)),
        &format!("001.log at byte 0, group 1: {length}"),
    );
    check_refused(
        |disk| disk.edit(&segment(4), |bytes| bytes.push(0)),
        &format!("004.log at byte 0, group 4: {length}"),
    );
    check_refused(
        |disk| disk.edit(&segment(4), Vec::clear),
        "004.log at byte 0, group 4: the file has no header",
    );
}

#[test]
fn a_newer_format_is_refused_with_both_numbers() {
    let newer = |disk: &FaultyDisk| {
        disk.edit(&segment(4), |bytes| {
            bytes[4] = 2;
            let crc = crc32c::crc32c(&bytes[..24]);
            bytes[24..28].copy_from_slice(&crc.to_le_bytes());
            // The rest of a newer header is not checked.
            bytes[100] = 1;
        });
    };
    check(true, newer, Err("NAME-004.log has log format 2, but this program reads format 1"));
}

#[test]
fn a_cut_removes_the_segments_that_are_covered_and_no_other() {
    let kept_after_cut =
        [[1, 3, 4], [1, 3, 4], [3, 4, 0], [4, 0, 0], [4, 0, 0], [4, 0, 0], [4, 0, 0]];
    for (up_to, kept) in kept_after_cut.iter().enumerate() {
        let up_to = up_to as u64;
        let kept: Vec<u64> = kept.iter().copied().filter(|first| *first > 0).collect();
        let disk = three_segments(true);
        let (mut log, _) = open(&disk, 0).unwrap();
        let size = log.size();
        let freed = log.cut(Position(up_to)).unwrap();
        assert_eq!(freed, (3 - kept.len() as u64) * SEGMENT_BYTES);
        assert_eq!(log.size(), size - freed);
        assert_eq!(segments(&disk), kept.iter().map(|first| segment(*first)).collect::<Vec<_>>());
        assert_eq!(append(&mut log, b"on").unwrap(), Position(7));
        drop(log);

        for from in 0..=7 {
            let opened = open(&disk, from).map(|(_, groups)| groups.len() as u64);
            match opened {
                Ok(groups) => assert!(groups == 7 - from && from + 1 >= kept[0]),
                Err(LogError::StartsAfterStore { first, from }) => {
                    assert!(first.0 == kept[0] && from.0 + 1 < first.0);
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_renewed_log_can_be_cut_up_to_its_last_group_and_goes_on_after_it() {
    let disk = three_segments(true);
    let (mut log, _) = open(&disk, 0).unwrap();
    while !log.renew().unwrap() {
        std::thread::yield_now();
    }
    assert!(log.is_renewed() && log.renew().unwrap(), "renewing again changes nothing");
    log.cut(Position(6)).unwrap();
    assert_eq!(segments(&disk), [segment(7)]);
    drop(log);
    assert!(matches!(open(&disk, 5), Err(LogError::StartsAfterStore { .. })), "group 6 is gone");
    let (mut log, groups) = open(&disk, 6).unwrap();
    assert!(groups.is_empty() && log.is_renewed());
    assert_eq!(append(&mut log, b"on").unwrap(), Position(7));
    log.sync().unwrap();
    drop(log);
    assert_eq!(open(&disk, 6).unwrap().1.len(), 1);
}

#[test]
fn a_log_that_ends_before_what_was_applied_is_refused() {
    for (disk, last) in [(three_segments(true), 6), (FaultyDisk::default(), 0)] {
        let text = open(&disk, 9).map(|_| ()).unwrap_err().to_string();
        let expect = if last == 0 {
            // A missing log must not be replaced by an empty one.
            assert!(segments(&disk).is_empty());
            "the log ends at group 0, but group 9 has been applied already"
        } else {
            "the log ends at group 6, but group 9 has been applied already"
        };
        assert_eq!(text, expect);
    }
}

#[test]
fn a_payload_of_no_or_too_many_bytes_is_refused_and_changes_nothing() {
    let disk = FaultyDisk::default();
    let (mut log, _) = open(&disk, 0).unwrap();
    for bytes in [0, PAYLOAD_BYTES_MAX + 1] {
        let refused = log.write_group(&vec![1; bytes], 0);
        assert!(matches!(refused, Err(LogError::Length { bytes: found }) if found == bytes));
    }
    assert_eq!(append(&mut log, b"on").unwrap(), Position(1));
}

#[test]
fn reading_stops_at_the_first_group_that_is_not_taken() {
    let disk = three_segments(true);
    let (log, _) = open(&disk, 0).unwrap();
    let mut seen = 0;
    let done = log.read(Position(2), &mut |group| {
        seen = group.position.0;
        if seen == 4 { Err("no".into()) } else { Ok(()) }
    });
    assert!(matches!(done, Err(LogError::Read { position: Position(4), .. })));
    assert_eq!(seen, 4);
}

#[test]
fn on_the_real_disk_groups_of_all_lengths_are_read_again() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("data").join("log");
    let groups: Groups = (1..60).map(|i| vec![i as u8; i * i * 7]).collect();
    // A group longer than a segment gets a file of its own length.
    let lengths: Groups = vec![vec![1; 64 << 10], vec![2; 1], vec![3; 200 << 10]];
    let mut all = Vec::new();
    for some in [&groups, &lengths] {
        let (mut log, found) = open_in(Arc::new(RealDisk), &dir, 64 << 10, 0).unwrap();
        assert!(found == all);
        for group in some {
            append(&mut log, group).unwrap();
            all.push(group.clone());
        }
        let point = log.sync_point();
        std::thread::spawn(move || point.sync()).join().unwrap().unwrap();
    }
    let (mut log, found) = open_in(Arc::new(RealDisk), &dir, 64 << 10, 0).unwrap();
    assert!(found == all);
    assert!(log.cut(log.last()).unwrap() > 0);
    drop(log);
    let names = fs::read_dir(&dir).unwrap();
    assert_eq!(names.count(), 1);
    open_in(Arc::new(RealDisk), &dir, 64 << 10, all.len() as u64).unwrap();
}

/// Returns the groups of the stored fixture: one sector, two sectors, and one sector that is completely full.
fn fixture_groups() -> Groups {
    vec![b"the first group".to_vec(), (0..600).map(|i| (i % 251) as u8).collect(), vec![0; 472]]
}

fn fixture() -> PathBuf {
    let file = "tests/fixtures/log-v1/00000000000000000001.log";
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

#[test]
fn a_log_of_format_1_is_read_and_written_the_same() {
    let disk = FaultyDisk::default();
    disk.put(&segment(1), &fs::read(fixture()).unwrap());
    assert_eq!(open(&disk, 0).unwrap().1, fixture_groups());
    let written = disk_with(&fixture_groups());
    assert!(written.contents(&segment(1)) == disk.contents(&segment(1)));
}

/// Writes the fixture. After the first release, a new format gets a new folder, and the old ones stay: `cargo test -p
/// commitlog --test it -- --ignored write_the_fixture`
#[test]
#[ignore = "writes into the source tree"]
fn write_the_fixture() {
    let disk = disk_with(&fixture_groups());
    fs::create_dir_all(fixture().parent().unwrap()).unwrap();
    fs::write(fixture(), disk.contents(&segment(1))).unwrap();
}
