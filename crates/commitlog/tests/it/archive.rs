//! Tests of archives: copying the groups of a log while its owner writes, reading them back, and finding damage.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use commitlog::disk::{Disk, DiskFile, RealDisk};
use commitlog::{
    Archive, ArchiveError, ArchiveReader, LocalLog, Log as _, LogError, LogOptions, LogReader,
    Position,
};

/// Length of eight sectors, so that short histories have many segments.
const SEGMENT_BYTES: u64 = 4096;
const ID: &str = "log-of-this-test";

fn open(dir: &Path) -> LocalLog {
    let options = LogOptions { segment_bytes: SEGMENT_BYTES, ..LogOptions::default() };
    LocalLog::open_with(Arc::new(RealDisk), dir, options, Position(0)).unwrap()
}

fn payload(position: u64) -> Vec<u8> {
    vec![position as u8; 1 + (position as usize * 700) % 2_800]
}

fn append(log: &mut LocalLog, count: u64) {
    for _ in 0..count {
        let next = log.last().0 + 1;
        log.write_group(&payload(next), next * 10).unwrap();
    }
}

/// Archives all groups that the archive lacks.
fn archive(archive: &mut Archive, log_dir: &Path, last: Position) {
    let log = LogReader::open(Arc::new(RealDisk), log_dir).unwrap();
    log.sync().unwrap();
    while archive.last() < last {
        archive.add(&log, archive.last(), last).unwrap();
    }
}

/// Returns the positions of the groups after `after`, and the result of reading them.
fn read(dir: &Path, after: u64) -> (Vec<u64>, Result<(), ArchiveError>) {
    let mut positions = Vec::new();
    let read = ArchiveReader::open(dir).unwrap().read(Position(after), &mut |group| {
        assert_eq!(group.payload, payload(group.position.0));
        assert_eq!(group.time_ms, group.position.0 * 10);
        positions.push(group.position.0);
        Ok(())
    });
    (positions, read)
}

fn check(dir: &Path) -> Vec<ArchiveError> {
    ArchiveReader::open(dir).unwrap().check(&mut |_| Ok(()))
}

/// Returns the files of an archive by their first group.
fn files(dir: &Path) -> BTreeMap<u64, PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let first = |path: &Path| path.file_name()?.to_str()?.get(..20)?.parse().ok();
    entries.filter_map(|path| Some((first(&path)?, path))).collect()
}

/// Creates a log of 60 groups in `dir/log`, and an archive of all of them, in several files, in `dir/archive`.
fn archived(dir: &Path) -> PathBuf {
    let (log_dir, to) = (dir.join("log"), dir.join("archive"));
    let mut log = open(&log_dir);
    let mut archive_of_it = Archive::open(Arc::new(RealDisk), &to, ID, true).unwrap();
    for _ in 0..6 {
        append(&mut log, 10);
        archive(&mut archive_of_it, &log_dir, log.last());
    }
    to
}

#[test]
fn an_archive_has_every_group_whatever_the_log_has_cut_since() {
    let dir = tempfile::tempdir().unwrap();
    let (log_dir, to) = (dir.path().join("log"), dir.path().join("archive"));
    let mut log = open(&log_dir);
    let mut writer = Archive::open(Arc::new(RealDisk), &to, ID, true).unwrap();
    assert_eq!(ArchiveReader::open(&to).unwrap().ends(), None);
    for count in [1, 30, 3, 40] {
        append(&mut log, count);
        archive(&mut writer, &log_dir, log.last());
        log.cut(writer.last()).unwrap();
    }
    drop(writer);
    // Another process continues.
    append(&mut log, 5);
    let mut writer = Archive::open(Arc::new(RealDisk), &to, ID, true).unwrap();
    assert_eq!(writer.last(), Position(74));
    archive(&mut writer, &log_dir, log.last());
    for after in [0, 1, 17, 78, 79, 100] {
        let (positions, ended) = read(&to, after);
        assert!(positions.into_iter().eq(after + 1..=79), "after {after}");
        ended.unwrap();
    }
    let reader = ArchiveReader::open(&to).unwrap();
    assert_eq!(reader.ends(), Some((Position(1), Position(79))));
    assert_eq!((reader.id(), check(&to).len()), (ID, 0));
}

#[test]
fn an_archive_belongs_to_one_log_and_has_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Archive::open(Arc::new(RealDisk), dir.path(), ID, true).unwrap();
    assert!(matches!(
        Archive::open(Arc::new(RealDisk), dir.path(), ID, true),
        Err(ArchiveError::InUse(_))
    ));
    drop(writer);
    assert!(matches!(
        Archive::open(Arc::new(RealDisk), dir.path(), "other", true),
        Err(ArchiveError::Foreign(_))
    ));
    drop(Archive::open(Arc::new(RealDisk), dir.path(), ID, true).unwrap());
    for mark in ["roost archive 2 x\n", "roost archive 1 x", "x", "\u{fffd}"] {
        fs::write(dir.path().join("roost-archive"), mark).unwrap();
        let refused = Archive::open(Arc::new(RealDisk), dir.path(), "x", true);
        assert!(matches!(refused, Err(ArchiveError::NotAnArchive(_))), "{mark:?}");
        let refused = ArchiveReader::open(dir.path());
        assert!(matches!(refused, Err(ArchiveError::NotAnArchive(_))), "{mark:?}");
    }
    // A folder with other files must not become an archive.
    fs::remove_file(dir.path().join("roost-archive")).unwrap();
    fs::write(dir.path().join("photo"), "").unwrap();
    assert!(matches!(
        Archive::open(Arc::new(RealDisk), dir.path(), ID, true),
        Err(ArchiveError::NotAnArchive(_))
    ));
    assert!(!ArchiveReader::is_archive(dir.path()));
}

#[test]
fn a_missing_file_is_a_gap_with_its_positions() {
    let dir = tempfile::tempdir().unwrap();
    let to = archived(dir.path());
    let files = files(&to);
    assert!(files.len() > 8, "{files:?}");
    let firsts: Vec<u64> = files.keys().copied().collect();
    for missing in 1..firsts.len() - 1 {
        let (from, to_group) = (firsts[missing], firsts[missing + 1] - 1);
        let aside = dir.path().join("aside");
        fs::rename(&files[&from], &aside).unwrap();
        let (positions, ended) = read(&to, 0);
        assert!(positions.into_iter().eq(1..from), "what is before the gap is read");
        let is_gap = |error: &ArchiveError| matches!(error, ArchiveError::Gap { from: f, to: t, .. } if (f.0, t.0) == (from, to_group));
        assert!(is_gap(&ended.unwrap_err()));
        assert!(is_gap(&check(&to)[0]));
        // A reader that has the groups before the gap does not need the missing file.
        read(&to, to_group).1.unwrap();
        fs::rename(&aside, &files[&from]).unwrap();
    }
    // Old files may be removed.
    fs::remove_file(&files[&firsts[0]]).unwrap();
    assert!(check(&to).is_empty());
}

#[test]
fn a_flipped_bit_in_any_byte_and_any_truncation_is_found_with_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let to = archived(dir.path());
    // One file of the archive, and the mark.
    let kept = files(&to).into_iter().nth(2).unwrap();
    let other = files(&to).into_values().nth(3).unwrap();
    let other = fs::read(other).unwrap();
    for (first, file) in files(&to) {
        if first != kept.0 {
            fs::remove_file(file).unwrap();
        }
    }
    let (before, path) = (kept.0 - 1, kept.1);
    let whole = fs::read(&path).unwrap();
    let damaged = |bytes: &[u8], what: &str| {
        fs::write(&path, bytes).unwrap();
        let found = check(&to);
        assert_eq!(found.len(), 1, "{what}: {found:?}");
        let ArchiveError::Segment(LogError::Damaged { file, .. } | LogError::Version { file, .. }) =
            &found[0]
        else {
            panic!("{what}: {found:?}")
        };
        assert_eq!(file, &path, "{what}");
        assert!(read(&to, before).1.is_err(), "{what}");
    };
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        damaged(&flipped, &format!("byte {at}"));
    }
    for length in [0, 1, 511, 512, 513, 1_024, whole.len() - 512, whole.len() - 1] {
        damaged(&whole[..length], &format!("{length} bytes"));
    }
    damaged(&[&whole[..], &[0; 512]].concat(), "a sector more");
    damaged(&other, "another segment");
    // The name has one group less than the file.
    let last: u64 = path.file_stem().unwrap().to_str().unwrap()[21..].parse().unwrap();
    assert!(last > kept.0);
    fs::write(&path, &whole).unwrap();
    fs::rename(&path, to.join(format!("{:020}-{:020}.log", kept.0, last - 1))).unwrap();
    assert!(read(&to, before).1.is_err());
}

#[test]
fn what_was_carried_away_may_be_copied_again_and_overlap() {
    let dir = tempfile::tempdir().unwrap();
    let (log_dir, to) = (dir.path().join("log"), dir.path().join("archive"));
    let mut log = open(&log_dir);
    append(&mut log, 1);
    let mut writer = Archive::open(Arc::new(RealDisk), &to, ID, true).unwrap();
    archive(&mut writer, &log_dir, log.last());
    drop(writer);
    let kept = files(&to)[&1].clone();
    let aside = dir.path().join(kept.file_name().unwrap());
    fs::rename(&kept, &aside).unwrap();
    append(&mut log, 20);
    let mut writer = Archive::open(Arc::new(RealDisk), &to, ID, true).unwrap();
    assert_eq!(writer.last(), Position(0));
    archive(&mut writer, &log_dir, log.last());
    fs::rename(&aside, &kept).unwrap();
    let (positions, ended) = read(&to, 0);
    ended.unwrap();
    assert!(positions.into_iter().eq(1..=21), "each once");
    assert!(check(&to).is_empty());
}

#[test]
fn what_the_log_no_longer_has_is_not_archived() {
    let dir = tempfile::tempdir().unwrap();
    let (log_dir, to) = (dir.path().join("log"), dir.path().join("archive"));
    let mut log = open(&log_dir);
    append(&mut log, 40);
    log.cut(Position(30)).unwrap();
    let reader = LogReader::open(Arc::new(RealDisk), &log_dir).unwrap();
    let mut writer = Archive::open(Arc::new(RealDisk), &to, ID, true).unwrap();
    let refused = writer.add(&reader, Position(0), Position(40)).unwrap_err();
    assert!(matches!(refused, ArchiveError::Log(LogError::StartsAfterStore { .. })), "{refused:?}");
    assert!(files(&to).is_empty());
    let first = reader.first().unwrap();
    writer.add(&reader, Position(first.0 - 1), Position(40)).unwrap();
}

#[test]
fn a_log_that_does_not_continue_the_archive_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let to = archived(dir.path());
    let log_dir = dir.path().join("log");
    let writer = Archive::open(Arc::new(RealDisk), &to, ID, false).unwrap();
    let check = |log_dir: &Path, last: u64| {
        let log = LogReader::open(Arc::new(RealDisk), log_dir).unwrap();
        writer.check_continued_by(&log, Position(last))
    };
    check(&log_dir, 60).unwrap();
    // The logs have fewer groups, have other groups, and begin after the archive's last group.
    let [shorter, other, cut] = ["shorter", "other", "cut"].map(|name| dir.path().join(name));
    append(&mut open(&shorter), 50);
    assert!(matches!(check(&shorter, 50), Err(ArchiveError::Diverged(_))));
    let mut log = open(&other);
    append(&mut log, 59);
    log.write_group(b"another", 600).unwrap();
    assert!(matches!(check(&other, 60), Err(ArchiveError::Diverged(_))));
    let mut log = open(&cut);
    append(&mut log, 100);
    log.cut(Position(90)).unwrap();
    check(&cut, 100).unwrap();
}

#[test]
fn nothing_is_written_where_the_archive_is_no_longer() {
    let dir = tempfile::tempdir().unwrap();
    let (log_dir, to) = (dir.path().join("log"), dir.path().join("archive"));
    assert!(matches!(
        Archive::open(Arc::new(RealDisk), &to, ID, false),
        Err(ArchiveError::Disk { .. })
    ));
    let below = to.join("archive");
    assert!(matches!(
        Archive::open(Arc::new(RealDisk), &below, ID, true),
        Err(ArchiveError::Disk { .. })
    ));
    let mut log = open(&log_dir);
    append(&mut log, 5);
    let mut writer = Archive::open(Arc::new(RealDisk), &to, ID, true).unwrap();
    // As after an unmount, the path leads to an empty directory.
    fs::rename(&to, dir.path().join("away")).unwrap();
    fs::create_dir(&to).unwrap();
    let reader = LogReader::open(Arc::new(RealDisk), &log_dir).unwrap();
    let refused = writer.add(&reader, Position(0), Position(5)).unwrap_err();
    assert!(matches!(refused, ArchiveError::Disk { .. }), "{refused:?}");
    assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
    drop(writer);
    assert!(matches!(
        Archive::open(Arc::new(RealDisk), &to, ID, false),
        Err(ArchiveError::Disk { .. })
    ));
}

/// Disk that fails when the number of operations is used up. A failing write writes its first half.
#[derive(Clone)]
struct Failing(Arc<AtomicU64>);

impl Failing {
    fn after(operations: u64) -> Self {
        Self(Arc::new(AtomicU64::new(operations + 1)))
    }

    fn has_failed(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }

    fn operation(&self) -> io::Result<()> {
        let left = self.0.load(Ordering::SeqCst);
        self.0.store(left.saturating_sub(1), Ordering::SeqCst);
        if left == 1 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn file(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(FailingFile(self.clone(), file))
    }
}

impl Disk for Failing {
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        self.operation()?;
        RealDisk.make_dir(dir)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.operation()?;
        RealDisk.list(dir)
    }
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.operation()?;
        Ok(self.file(RealDisk.open(path)?))
    }
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.operation()?;
        Ok(self.file(RealDisk.create(path)?))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.operation()?;
        RealDisk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.operation()?;
        RealDisk.remove(path)
    }
    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.operation()?;
        RealDisk.sync_dir(dir)
    }
}

struct FailingFile(Failing, Arc<dyn DiskFile>);

impl DiskFile for FailingFile {
    fn bytes(&self) -> io::Result<u64> {
        self.1.bytes()
    }
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.1.read_at(into, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if let Err(error) = self.0.operation() {
            self.1.write_at(&bytes[..bytes.len() / 2], offset)?;
            return Err(error);
        }
        self.1.write_at(bytes, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.0.operation()?;
        self.1.sync_data()
    }
}

#[test]
fn whatever_fails_under_an_archive_its_files_are_whole_and_nothing_is_missing_later() {
    let folder = tempfile::tempdir().unwrap();
    let log_dir = folder.path().join("log");
    let mut log = open(&log_dir);
    append(&mut log, 12);
    let mut failures = 0;
    for operations in 0.. {
        let to = folder.path().join(format!("archive{operations}"));
        drop(Archive::open(Arc::new(RealDisk), &to, ID, true).unwrap());
        let disk = Failing::after(operations);
        let reader = LogReader::open(Arc::new(RealDisk), &log_dir).unwrap();
        let add = |archive: &mut Archive| {
            while archive.last() < log.last() {
                archive.add(&reader, archive.last(), log.last())?;
            }
            Ok(())
        };
        let added =
            Archive::open(Arc::new(disk.clone()), &to, ID, false).and_then(|mut to| add(&mut to));
        match added {
            Err(ArchiveError::Disk { .. }) => failures += 1,
            added => added.unwrap(),
        }
        // A file gets its name only when it is complete.
        assert!(check(&to).is_empty(), "{operations}: {:?}", check(&to));
        let (before, _) = read(&to, 0);
        assert_eq!(before, (1..=before.len() as u64).collect::<Vec<_>>(), "{operations}");
        // Open the archive again and continue, as the node does.
        let mut again = Archive::open(Arc::new(RealDisk), &to, ID, false).unwrap();
        assert_eq!(again.last().0, before.len() as u64, "{operations}");
        add(&mut again).unwrap();
        let (after, ended) = read(&to, 0);
        ended.unwrap();
        assert_eq!(after, (1..=12).collect::<Vec<_>>(), "{operations}");
        if !disk.has_failed() {
            break;
        }
    }
    assert!(failures > 20, "{failures}");
}
