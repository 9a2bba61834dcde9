//! Archiving of the log: a thread copies appended groups into an archive, and the log is not cut before that.
//!
//! The thread publishes its progress in [`crate::checkpoints::archive_progress`].
//! - **Invariant:** only groups that are durable in the log are archived, so the log is never shorter than its archive.
//! - An archive that cannot be written does not stop the node. The log is kept, up to a limit and while the disk has
//!   enough space ([`crate::checkpoints::archive_progress::ArchiveProgress::cut`]); a later cut leaves a gap, which is
//!   reported.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use commitlog::disk::RealDisk;
use commitlog::{Archive, ArchiveError, ArchiveReader, LogError, LogReader, Position, check_all};

use super::NodeBackupError;
use crate::directory::identity;
use crate::directory::lock::DataLock;
use crate::directory::open_error::OpenError;
use crate::fatal::DiskError;
use crate::options::{ArchiveOptions, NodeOptions};
use crate::shared::Shared;

/// Interval at which the thread checks for work, unless the archive's interval is shorter.
const POLL: Duration = Duration::from_secs(1);
/// Time between two attempts when the archive cannot be written, unless the interval is shorter.
const RETRY: Duration = Duration::from_secs(10);
/// Size of the log in bytes after which it is archived before the interval ends: a segment.
const BYTES: u64 = commitlog::SEGMENT_BYTES;

/// Opens the segment with the group after `after`, and the next one. It does not open all segments, because many may be
/// kept for the archive, and each takes a file descriptor.
fn read_log(log_dir: &Path, after: Position) -> Result<LogReader, LogError> {
    LogReader::open_after(Arc::new(RealDisk), log_dir, after, 2)
}

/// Makes the log durable up to `last`.
fn sync_log(log_dir: &Path, last: Position) -> Result<Result<(), LogError>, LogError> {
    // All segments except the last are durable.
    Ok(read_log(log_dir, last)?.sync())
}

/// Opens the archive of the log in `log_dir`, whose last group is `last`.
fn open(
    dir: &Path,
    id: &str,
    log_dir: &Path,
    last: Position,
    new: bool,
) -> Result<Archive, ArchiveError> {
    let archive = Archive::open(Arc::new(RealDisk), dir, id, new)?;
    let before = Position(archive.last().0.saturating_sub(1));
    archive.check_continued_by(&read_log(log_dir, before)?, last)?;
    Ok(archive)
}

/// Returns the position after which groups are archived: `done`, or if the log was cut after `done`, the position
/// before its first group, with the positions of the gap.
fn begin(done: Position, log: &LogReader) -> (Position, Option<(Position, Position)>) {
    let before = before(log);
    if before > done { (before, Some((Position(done.0 + 1), before))) } else { (done, None) }
}

/// Returns the position before the first group of a log, where a new archive begins.
fn before(log: &LogReader) -> Position {
    Position(log.first().map_or(0, |first| first.0 - 1))
}

/// State of the archiving thread.
pub(crate) struct Archiver {
    shared: Arc<Shared>,
    options: ArchiveOptions,
    id: String,
    /// The archive; `None` while it cannot be used.
    archive: Option<Archive>,
    /// Position at which a new archive begins: that of the log when the node was opened.
    begins: Position,
    /// Whether the archive was opened before. If so, an empty directory in its place is not a new archive.
    opened: bool,
    failing: bool,
    /// Earliest time of the next attempt.
    retry: Instant,
    /// Time since which the archive has been incomplete, and the size of the log then, in bytes.
    lacks: Option<(Instant, u64)>,
}

impl Archiver {
    /// Opens the archive. If its disk is missing or fails, that is reported and retried later.
    ///
    /// # Errors
    /// [`OpenError::Archive`] if it is the archive of another directory.
    pub(crate) fn open(shared: Arc<Shared>, options: ArchiveOptions) -> Result<Self, OpenError> {
        let mut archiver = Self {
            id: shared.identity.clone(),
            shared,
            options,
            archive: None,
            begins: Position(0),
            opened: false,
            failing: false,
            retry: Instant::now(),
            lacks: None,
        };
        let last = Position(archiver.shared.log_last.load(Ordering::Acquire));
        let log_dir = &archiver.shared.log_dir;
        archiver.begins = before(&read_log(log_dir, Position(0))?);
        match open(&archiver.options.dir, &archiver.id, log_dir, last, true) {
            Ok(archive) => {
                let dir = archiver.options.dir.display();
                tracing::info!(%dir, from = archive.last().0 + 1, "archiving the log");
                archiver.keep(archive);
            }
            Err(error @ (ArchiveError::Disk { .. } | ArchiveError::Segment(_))) => {
                archiver.failed(&error);
            }
            Err(error) => return Err(OpenError::Archive(error)),
        }
        Ok(archiver)
    }

    /// Archives until the node is stopped, then archives the rest.
    ///
    /// # Errors
    /// The log cannot be made durable: the process ends.
    pub(crate) fn run(mut self) -> Result<(), DiskError> {
        loop {
            let stopped = self.shared.stopped.load(Ordering::Acquire);
            if self.is_due() || stopped {
                self.turn()?;
            }
            if stopped {
                return Ok(());
            }
            std::thread::park_timeout(POLL.min(self.options.interval));
        }
    }

    fn is_due(&mut self) -> bool {
        let progress = &self.shared.archive;
        let last = self.shared.log_last.load(Ordering::Acquire);
        if last <= progress.up_to().0 {
            self.lacks = None;
            progress.set_lag(Duration::ZERO);
            return false;
        }
        let bytes = self.shared.log_bytes.load(Ordering::Relaxed);
        let now = Instant::now();
        let (since, bytes_then) = *self.lacks.get_or_insert((now, bytes));
        let lag = now - since;
        progress.set_lag(lag);
        let due = lag >= self.options.interval || bytes.saturating_sub(bytes_then) >= BYTES;
        due && now >= self.retry
    }

    fn turn(&mut self) -> Result<(), DiskError> {
        let last = Position(self.shared.log_last.load(Ordering::Acquire));
        match sync_log(&self.shared.log_dir, last) {
            Ok(synced) => synced?,
            Err(error) => {
                self.failed(&ArchiveError::Log(error));
                return Ok(());
            }
        }
        match self.archive_up_to(last) {
            Ok(()) => {
                self.lacks = None;
                if std::mem::take(&mut self.failing) {
                    tracing::info!("the archive can be written again");
                }
            }
            Err(error) => self.failed(&error),
        }
        Ok(())
    }

    fn archive_up_to(&mut self, last: Position) -> Result<(), ArchiveError> {
        let log_dir = &self.shared.log_dir;
        let mut archive = match self.archive.take() {
            Some(archive) => archive,
            None => open(&self.options.dir, &self.id, log_dir, last, !self.opened)?,
        };
        let has = if archive.last() == Position(0) { self.begins } else { archive.last() };
        let (mut done, gap) = begin(has, &read_log(log_dir, has)?);
        if let Some((from, to)) = gap {
            self.shared.archive.count_gap();
            let text = "the log was cut before it was archived: make a backup, earlier ones end at this gap";
            tracing::error!(from = from.0, to = to.0, "{text}");
        }
        while done < last {
            done = archive.add(&read_log(log_dir, done)?, done, last)?;
            self.shared.archive.set(done);
        }
        self.keep(archive);
        Ok(())
    }

    fn keep(&mut self, archive: Archive) {
        self.shared.archive.set(archive.last());
        self.archive = Some(archive);
        self.opened = true;
    }

    fn failed(&mut self, error: &ArchiveError) {
        self.shared.archive.count_failure();
        self.retry = Instant::now() + RETRY.min(self.options.interval);
        if !std::mem::replace(&mut self.failing, true) {
            let error = error as &dyn std::error::Error;
            tracing::error!(error, "cannot archive the log; it is kept, and archiving is retried");
        }
    }
}

/// Content of an archive.
#[derive(Debug)]
pub struct ArchiveReport {
    /// Number of files.
    pub files: usize,
    /// Positions of the first and the last group; `None` if there is no file.
    pub positions: Option<(u64, u64)>,
    /// Times of the first and the last group, in milliseconds since 1970; 0 if there is none.
    pub times_ms: (u64, u64),
    /// Gaps and damage.
    pub damage: Vec<OpenError>,
}

/// Whether a directory is an archive.
#[must_use]
pub fn is_archive(dir: &Path) -> bool {
    ArchiveReader::is_archive(dir)
}

/// Checks all files of an archive. Blocks.
///
/// # Errors
/// [`NodeBackupError`] if it is no archive or its files cannot be listed.
pub fn verify_archive(dir: &Path) -> Result<ArchiveReport, NodeBackupError> {
    let archive = ArchiveReader::open(dir)?;
    let mut times_ms: Option<(u64, u64)> = None;
    let wrong = archive.check(&mut |group| {
        let time_ms = group.time_ms;
        times_ms = Some(times_ms.map_or((time_ms, time_ms), |(first, _)| (first, time_ms)));
        Ok(())
    });
    Ok(ArchiveReport {
        files: archive.files(),
        positions: archive.ends().map(|(first, last)| (first.0, last.0)),
        times_ms: times_ms.unwrap_or_default(),
        damage: wrong.into_iter().map(OpenError::Archive).collect(),
    })
}

/// Adds to the archive `dir` the later groups of the log of the directory `data`, whose server is stopped. The store is
/// not read, so it may be damaged. Returns the archive's last group and the number of added groups. Blocks.
///
/// # Errors
/// [`NodeBackupError`]; among others if the log was cut after the archive's last group.
pub fn archive_stopped(data: &Path, dir: &Path) -> Result<(u64, u64), NodeBackupError> {
    let options = NodeOptions::new(data);
    let lock = DataLock::take_to_read(data)?;
    let id = identity::read(data)?.ok_or(NodeBackupError::NoIdentity)?;
    let last = check_all(&options.log_dir()).map_err(OpenError::from)?.last;
    let log_dir = options.log_dir();
    // If the disk is read-only, the log cannot be synced and no sync is pending.
    if !lock.is_read_only() {
        sync_log(&log_dir, last)??;
    }
    let mut archive = open(dir, &id, &log_dir, last, true)?;
    let log = read_log(&log_dir, archive.last())?;
    let has = if archive.last() == Position(0) { before(&log) } else { archive.last() };
    let (begin, gap) = begin(has, &log);
    if let Some((from, to)) = gap {
        return Err(ArchiveError::Gap { dir: dir.to_owned(), from, to }.into());
    }
    let mut done = begin;
    while done < last {
        done = archive.add(&read_log(&log_dir, done)?, done, last)?;
    }
    Ok((done.0, done.0 - begin.0))
}
