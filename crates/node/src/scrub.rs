//! Scrub: slowly reads all table files, all completed segments of the log and all files of pictures, and compares them
//! with their checksums, to detect damage before the data is needed.
//!
//! The scrub reads 256 KiB at a time (a group of the log, or a file of a picture, as a whole) and pauses after each
//! read to keep to its rate. A pass starts once per week. The scrub takes no lock that requests take.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use commitlog::{Position, SegmentCheck, closed_segments};
use feed::Facts;
use feed::media::FileHash;
use store::{Store, TableCheck, TableStep, unless_unreadable};

use crate::cluster::exchange::Exchange;
use crate::metrics::Metrics;
use crate::pictures::check::FoundFile;
use crate::pictures::files::{DIRECTORIES, MediaFiles};

/// Time from the start of a pass to the start of the next.
const INTERVAL: Duration = Duration::from_secs(7 * 86_400);

/// State of the scrub.
pub(crate) struct Scrub {
    store: Store,
    log_dir: PathBuf,
    pictures: Arc<MediaFiles>,
    /// Exchange through which a node of a cluster fetches files of pictures.
    pub(crate) exchange: Option<Arc<Exchange>>,
    metrics: Metrics,
    /// Maximum rate in bytes per second.
    rate: u64,
    /// Remaining targets of the pass.
    rest: Vec<Target>,
    current: Option<Current>,
    /// Start of the next pass; `None` during a pass.
    next: Option<Duration>,
    began: Duration,
    /// Damaged files that the last complete pass or this pass has found.
    damaged: BTreeSet<PathBuf>,
    /// Damaged files that this pass has found.
    damaged_now: BTreeSet<PathBuf>,
}

enum Target {
    Table(PathBuf, u128),
    Segment(Position, Position),
    /// Directory of files of pictures.
    Pictures(u16),
}

enum Current {
    Table(Box<TableCheck>),
    Segment(SegmentCheck),
    /// Remaining files of a directory, each with whether a picture needs it.
    Pictures(BTreeMap<FileHash, bool>),
}

impl Scrub {
    pub(crate) fn new(
        (store, log_dir, pictures): (Store, PathBuf, Arc<MediaFiles>),
        metrics: Metrics,
        rate: u64,
    ) -> Self {
        Self {
            store,
            log_dir,
            pictures,
            exchange: None,
            metrics,
            rate,
            rest: Vec::new(),
            current: None,
            next: Some(Duration::ZERO),
            began: Duration::ZERO,
            damaged: BTreeSet::new(),
            damaged_now: BTreeSet::new(),
        }
    }

    /// Reads a piece at the time `now`; returns how long to wait for the next.
    pub(crate) fn step(&mut self, now: Duration) -> Duration {
        if let Some(next) = self.next {
            if now < next {
                return next - now;
            }
            self.begin(now);
        }
        if self.current.is_none() && !self.open_next() {
            return self.end(now);
        }
        let bytes = self.read(now);
        self.metrics.scrub_read.inc_by(bytes as u64);
        Duration::from_secs_f64(bytes as f64 / self.rate as f64)
    }

    fn begin(&mut self, now: Duration) {
        (self.next, self.began) = (None, now);
        self.damaged_now.clear();
        let tables = self.store.table_files().into_iter();
        self.rest = tables.map(|(path, checksum)| Target::Table(path, checksum)).collect();
        self.rest.extend((0..DIRECTORIES).map(Target::Pictures));
        // A node of a cluster has no log directory.
        let segments =
            if self.log_dir.is_dir() { closed_segments(&self.log_dir) } else { Ok(Vec::new()) };
        match segments {
            Ok(segments) => {
                self.rest
                    .extend(segments.into_iter().map(|(first, end)| Target::Segment(first, end)));
            }
            Err(error) => tracing::warn!(%error, "the scrub cannot list the log"),
        }
    }

    fn end(&mut self, now: Duration) -> Duration {
        self.metrics.scrub_passes.inc();
        // Files that were merged or cut since the last pass are no longer counted.
        self.damaged = std::mem::take(&mut self.damaged_now);
        self.metrics.scrub_damaged.set(self.damaged.len() as i64);
        let next = (self.began + INTERVAL).max(now);
        self.next = Some(next);
        next - now
    }

    /// Opens the next file that still exists; returns false if there is none.
    fn open_next(&mut self) -> bool {
        while let Some(target) = self.rest.pop() {
            let opened = match target {
                Target::Table(path, checksum) => match TableCheck::open(&path, checksum) {
                    Ok(check) => Ok(check.map(|check| Current::Table(Box::new(check)))),
                    Err(error) => Err((path, error.to_string())),
                },
                Target::Pictures(directory) => {
                    let listed = || self.pictures.listed(Facts::new(&self.store), directory);
                    // Unreadable rows are reported as damage of their table file.
                    let listed = unless_unreadable(listed).unwrap_or_else(|| Ok(BTreeMap::new()));
                    let path = self.pictures.dir.clone();
                    listed
                        .map(|files| Some(Current::Pictures(files)))
                        .map_err(|error| (path, error.to_string()))
                }
                Target::Segment(first, end) => {
                    let check = SegmentCheck::open(&self.log_dir, (first, end));
                    let path = self.log_dir.join(format!("{:020}.log", first.0));
                    check
                        .map(|check| check.map(Current::Segment))
                        .map_err(|error| (path, error.to_string()))
                }
            };
            match opened {
                Ok(Some(current)) => {
                    self.current = Some(current);
                    return true;
                }
                Ok(None) => {}
                Err((path, what)) => self.found(path, &what),
            }
        }
        false
    }

    /// Reads a piece of the current file; returns its size in bytes.
    fn read(&mut self, now: Duration) -> usize {
        let found = match &mut self.current {
            None => return 0,
            Some(Current::Table(check)) => match check.step() {
                TableStep::Read(bytes) => return bytes,
                TableStep::Whole => None,
                TableStep::Damaged(what) => Some((check.path().to_owned(), what)),
            },
            Some(Current::Pictures(files)) => {
                if let Some((hash, is_needed)) = files.pop_first() {
                    return self.read_picture(&hash, is_needed, now);
                }
                None
            }
            Some(Current::Segment(check)) => match check.step() {
                Ok(Some(bytes)) => return bytes,
                Ok(None) => None,
                Err(error) => Some((check.path().to_owned(), error.to_string())),
            },
        };
        self.current = None;
        if let Some((path, what)) = found {
            self.found(path, &what);
        }
        0
    }

    /// Reads a file of a picture; returns its size in bytes.
    fn read_picture(&mut self, hash: &FileHash, is_needed: bool, now: Duration) -> usize {
        let what = match self.pictures.read(hash) {
            FoundFile::Whole(bytes) => return bytes.len(),
            FoundFile::Missing => "the file of a picture is missing",
            FoundFile::Damaged => "the file of a picture is not the one that was stored",
        };
        // The last picture that needed the file may have been removed meanwhile.
        let needs = || Facts::new(&self.store).needs_file(hash);
        if is_needed && unless_unreadable(needs).unwrap_or_default() {
            // The file is fetched from other nodes, and also reported, because the disk is damaged.
            self.exchange.as_ref().inspect(|exchange| exchange.add(&[*hash], now));
            self.found(self.pictures.path(hash), what);
        }
        0
    }

    fn found(&mut self, path: PathBuf, what: &str) {
        let is_new = self.damaged.insert(path.clone());
        // The metric is set before the line is logged, because a reader of the log may query the metric at once.
        self.metrics.scrub_damaged.set(self.damaged.len() as i64);
        if is_new {
            tracing::error!(
                file = %path.display(),
                "damage on the disk: {what}; make a backup (roost backup), stop the server, and run roost verify"
            );
        }
        self.damaged_now.insert(path);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rows::{PointTable, PutRows as _, Value};
    use store::{StoreOptions, StoreWriter};

    use super::*;

    fn of(rows: &StoreWriter, data: &Path, log: &Path) -> (Store, PathBuf, Arc<MediaFiles>) {
        (rows.store(), log.to_owned(), Arc::new(MediaFiles::new(data)))
    }

    /// Runs a pass without waiting; returns the sum of its pauses.
    fn pass(scrub: &mut Scrub, now: &mut Duration) -> Duration {
        let (began, passes) = (*now, scrub.metrics.scrub_passes.get());
        while scrub.metrics.scrub_passes.get() == passes {
            let pause = scrub.step(*now);
            *now += pause;
        }
        // The last pause lasts until the next pass begins.
        assert_eq!(*now, began + INTERVAL);
        scrub.began - began
    }

    #[test]
    fn damage_is_found_in_the_pass_after_it_at_the_rate_that_was_set() {
        let data = tempfile::tempdir().unwrap();
        let options = StoreOptions { cache_bytes: 1 << 20, bucket_bytes: 1 << 20 };
        let (mut rows, _) = Store::open(data.path(), options).unwrap();
        let value = |number: u64| {
            let bytes = (0..1_000).map(|at| (number * 7_919 + at * at * 31 + (at >> 3)) as u8);
            Value::from_iter(bytes)
        };
        (0..1_000).for_each(|number| rows.put_point(PointTable::Post, number, Some(value(number))));
        rows.freeze(1).unwrap().run().unwrap();
        let log = tempfile::tempdir().unwrap();
        let metrics = Metrics::default();
        let rate = 64 << 10;
        let mut scrub = Scrub::new(of(&rows, data.path(), log.path()), metrics.clone(), rate);
        let mut now = Duration::ZERO;
        pass(&mut scrub, &mut now);
        let files = rows.store().table_files();
        let bytes: u64 = files.iter().map(|(path, _)| path.metadata().unwrap().len()).sum();
        assert_eq!(metrics.scrub_read.get(), bytes);
        assert_eq!(metrics.scrub_damaged.get(), 0);
        // The pauses add up to the time that the rate allows, however long the reads took.
        let mut slow = Scrub::new(of(&rows, data.path(), log.path()), Metrics::default(), rate);
        let (mut waited, mut read) = (Duration::ZERO, 0);
        while read < bytes {
            waited += slow.step(waited);
            read = slow.metrics.scrub_read.get();
        }
        let expected = Duration::from_secs_f64(bytes as f64 / rate as f64);
        assert!(waited.abs_diff(expected) < Duration::from_millis(1), "{waited:?} {expected:?}");
        let (path, _) =
            files.iter().max_by_key(|(path, _)| path.metadata().unwrap().len()).unwrap();
        let mut content = std::fs::read(path).unwrap();
        let middle = content.len() / 2;
        content[middle] ^= 4;
        std::fs::write(path, content).unwrap();
        pass(&mut scrub, &mut now);
        assert_eq!(metrics.scrub_damaged.get(), 1);
        assert_eq!(scrub.damaged.iter().collect::<Vec<_>>(), [path]);
    }

    #[test]
    fn files_of_pictures_that_are_damaged_or_missing_are_found_if_a_picture_needs_them() {
        let (data, log) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let options = StoreOptions { cache_bytes: 1 << 20, bucket_bytes: 1 << 20 };
        let (mut rows, _) = Store::open(data.path(), options).unwrap();
        let pictures = Arc::new(MediaFiles::new(data.path()));
        let mut pinned = pictures.promise((0, 1_000), 100).unwrap();
        let hashes = [b"one", b"two", b"six"].map(|bytes| pinned.store(bytes).unwrap());
        // No picture needs the last file.
        for hash in &hashes[..2] {
            let name = [&hash.0[..], &[7; 8]].concat();
            rows.put_name(rows::NameTable::MediaFile, &name, Some(Value::from_slice(&[])));
        }
        let metrics = Metrics::default();
        let of = (rows.store(), log.path().to_owned(), Arc::clone(&pictures));
        let mut scrub = Scrub::new(of, metrics.clone(), 1 << 20);
        let mut now = Duration::ZERO;
        pass(&mut scrub, &mut now);
        assert_eq!((metrics.scrub_damaged.get(), metrics.scrub_read.get() >= 9), (0, true));
        std::fs::write(pictures.path(&hashes[0]), b"onf").unwrap();
        std::fs::remove_file(pictures.path(&hashes[1])).unwrap();
        std::fs::write(pictures.path(&hashes[2]), b"damaged too").unwrap();
        pass(&mut scrub, &mut now);
        let expected = BTreeSet::from([0, 1].map(|at: usize| pictures.path(&hashes[at])));
        assert_eq!(scrub.damaged, expected);
    }

    #[test]
    fn damage_of_a_segment_is_found() {
        use commitlog::disk::RealDisk;
        use commitlog::{LocalLog, LogOptions};
        let (data, log) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let options = StoreOptions { cache_bytes: 1 << 20, bucket_bytes: 1 << 20 };
        let (rows, _) = Store::open(data.path(), options).unwrap();
        let small = LogOptions { segment_bytes: 4_096, prepares_on_thread: false };
        let disk = Arc::new(RealDisk);
        let mut segments = LocalLog::open_with(disk, log.path(), small, Position(0)).unwrap();
        for number in 0..30 {
            segments.write_group(&[number; 700], 7).unwrap();
        }
        let metrics = Metrics::default();
        let mut scrub = Scrub::new(of(&rows, data.path(), log.path()), metrics.clone(), 1 << 20);
        let mut now = Duration::ZERO;
        pass(&mut scrub, &mut now);
        assert_eq!(metrics.scrub_damaged.get(), 0);
        let (first, _) = closed_segments(log.path()).unwrap()[1];
        let path = log.path().join(format!("{:020}.log", first.0));
        let mut content = std::fs::read(&path).unwrap();
        content[700] ^= 1;
        std::fs::write(&path, content).unwrap();
        pass(&mut scrub, &mut now);
        assert_eq!(scrub.damaged.iter().collect::<Vec<_>>(), [&path]);
    }
}
