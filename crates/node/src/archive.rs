//! Archiving the log: a thread copies what was appended into an archive, and the log is not cut before that.
//!
//! State: how far the archive is, which [`ArchiveProgress`] shares with the writer and with metrics.
//! What always holds:
//! - **Invariant:** only groups that are durable in the log are archived: the log never becomes shorter than its archive.
//! - An archive that cannot be written stops nothing. The log is kept for it, up to a limit and while the disk has room
//!   ([`ArchiveProgress::cut`]); what is cut then is a gap, which is reported.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use commitlog::disk::RealDisk;
use commitlog::{Archive, ArchiveError, ArchiveReader, LogReader, Position, check_all};

use crate::backup::NodeBackupError;
use crate::fatal::DiskError;
use crate::identity;
use crate::lock::DataLock;
use crate::open_error::OpenError;
use crate::options::{ArchiveOptions, NodeOptions};
use crate::shared::Shared;

/// How often the thread looks whether something is due, unless the interval is shorter.
const POLL: Duration = Duration::from_secs(1);
/// Time between two attempts when the archive cannot be written, unless the interval is shorter.
const RETRY: Duration = Duration::from_secs(10);
/// Bytes after which a part of the log is archived before its time: a segment.
const BYTES: u64 = commitlog::SEGMENT_BYTES;

/// How far the archive is.
pub(crate) struct ArchiveProgress {
    /// The last group that is durable in the archive. A log is cut only up to it.
    up_to: AtomicU64,
    /// The log is cut all the same when it has more bytes.
    backlog_max: u64,
    /// For how long the archive has lacked a group, in milliseconds.
    lag_ms: AtomicU64,
    failures: AtomicU64,
    gaps: AtomicU64,
}

impl ArchiveProgress {
    /// Without an archive nothing is kept for it.
    pub(crate) fn new(options: Option<&ArchiveOptions>) -> Self {
        Self {
            up_to: AtomicU64::new(if options.is_some() { 0 } else { u64::MAX }),
            backlog_max: options.map_or(0, |options| options.backlog_max),
            lag_ms: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            gaps: AtomicU64::new(0),
        }
    }

    /// Up to where a log of so many bytes, of which groups up to `wanted` are no longer needed, may be cut. `low` says
    /// whether the disk has little room.
    pub(crate) fn cut(&self, wanted: Position, log_bytes: u64, low: bool) -> Position {
        if log_bytes > self.backlog_max || low {
            return wanted;
        }
        wanted.min(Position(self.up_to.load(Ordering::Acquire)))
    }

    /// For how long the archive has lacked a group.
    pub(crate) fn lag(&self) -> Duration {
        Duration::from_millis(self.lag_ms.load(Ordering::Relaxed))
    }

    /// Number of attempts to write to the archive that failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Number of times that the log was cut before it was archived.
    pub(crate) fn gaps(&self) -> u64 {
        self.gaps.load(Ordering::Relaxed)
    }
}

/// Opens the archive of the log in `log_dir`, whose last group is `last`.
fn open(
    dir: &Path,
    id: &str,
    log: &LogReader,
    last: Position,
    new: bool,
) -> Result<Archive, ArchiveError> {
    let archive = Archive::open(dir, id, new)?;
    archive.check_continued_by(log, last)?;
    Ok(archive)
}

/// Where to begin in a log that was cut: after the archive, or after a gap between the archive and the log.
fn begin(archive: &Archive, log: &LogReader) -> (Position, Option<(Position, Position)>) {
    let done = archive.last();
    match log.first() {
        Some(first) if first.0 > done.0 + 1 => {
            let before = Position(first.0 - 1);
            // A new archive begins where the log does.
            (before, (done.0 > 0).then_some((Position(done.0 + 1), before)))
        }
        _ => (done, None),
    }
}

/// State of the thread that archives.
pub(crate) struct Archiver {
    shared: Arc<Shared>,
    options: ArchiveOptions,
    id: String,
    /// None while it cannot be used.
    archive: Option<Archive>,
    /// Whether it was ever opened: what appears in its place later is no new archive.
    opened: bool,
    failing: bool,
    /// No attempt before.
    retry: Instant,
    /// When the archive began to lack a group, and the bytes of the log then.
    lacks: Option<(Instant, u64)>,
}

impl Archiver {
    /// Opens the archive. If its disk is missing or fails, that is reported and tried again later.
    ///
    /// # Errors
    /// [`OpenError::Archive`] if it is not the archive of this directory.
    pub(crate) fn open(shared: Arc<Shared>, options: ArchiveOptions) -> Result<Self, OpenError> {
        let mut archiver = Self {
            id: shared.identity.clone(),
            shared,
            options,
            archive: None,
            opened: false,
            failing: false,
            retry: Instant::now(),
            lacks: None,
        };
        let last = Position(archiver.shared.log_last.load(Ordering::Acquire));
        let log = LogReader::open(Arc::new(RealDisk), &archiver.shared.log_dir)?;
        match open(&archiver.options.dir, &archiver.id, &log, last, true) {
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

    /// Archives until the node is stopped, and then what is left.
    ///
    /// # Errors
    /// When the log cannot be made durable: the process ends.
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
        if last <= progress.up_to.load(Ordering::Acquire) {
            self.lacks = None;
            progress.lag_ms.store(0, Ordering::Relaxed);
            return false;
        }
        let bytes = self.shared.log_bytes.load(Ordering::Relaxed);
        let now = Instant::now();
        let (since, bytes_then) = *self.lacks.get_or_insert((now, bytes));
        let lag = now - since;
        progress.lag_ms.store(lag.as_millis() as u64, Ordering::Relaxed);
        let due = lag >= self.options.interval || bytes.saturating_sub(bytes_then) >= BYTES;
        due && now >= self.retry
    }

    fn turn(&mut self) -> Result<(), DiskError> {
        let last = Position(self.shared.log_last.load(Ordering::Acquire));
        let log = match LogReader::open(Arc::new(RealDisk), &self.shared.log_dir) {
            Ok(log) => log,
            Err(error) => {
                self.failed(&ArchiveError::Log(error));
                return Ok(());
            }
        };
        log.sync()?;
        match self.archive_up_to(&log, last) {
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

    fn archive_up_to(&mut self, log: &LogReader, last: Position) -> Result<(), ArchiveError> {
        let mut archive = match self.archive.take() {
            Some(archive) => archive,
            None => open(&self.options.dir, &self.id, log, last, !self.opened)?,
        };
        let (mut done, gap) = begin(&archive, log);
        if let Some((from, to)) = gap {
            self.shared.archive.gaps.fetch_add(1, Ordering::Relaxed);
            let text = "the log was cut before it was archived: make a backup, earlier ones end at this gap";
            tracing::error!(from = from.0, to = to.0, "{text}");
        }
        while done < last {
            done = archive.add(log, done, last)?;
            self.shared.archive.up_to.store(done.0, Ordering::Release);
        }
        self.keep(archive);
        Ok(())
    }

    fn keep(&mut self, archive: Archive) {
        self.shared.archive.up_to.store(archive.last().0, Ordering::Release);
        self.archive = Some(archive);
        self.opened = true;
    }

    fn failed(&mut self, error: &ArchiveError) {
        self.shared.archive.failures.fetch_add(1, Ordering::Relaxed);
        self.retry = Instant::now() + RETRY.min(self.options.interval);
        if !std::mem::replace(&mut self.failing, true) {
            let error = error as &dyn std::error::Error;
            tracing::error!(error, "the log cannot be archived; it is kept, and tried again");
        }
    }
}

/// What an archive holds.
#[derive(Debug)]
pub struct ArchiveReport {
    /// Number of files.
    pub files: usize,
    /// Position of the first and the last group; none if there is no file.
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
        let time_ms = group.time_ms.unwrap_or_default();
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

/// Adds to the archive `dir` what the log of the directory `data`, whose server is stopped, has after it. The store is
/// not read, so it may be damaged. Returns the archive's last group and how many were added. Blocks.
///
/// # Errors
/// [`NodeBackupError`]; among others if the log was cut after the archive's last group.
pub fn archive_stopped(data: &Path, dir: &Path) -> Result<(u64, u64), NodeBackupError> {
    let options = NodeOptions::new(data);
    let _lock = DataLock::take_to_read(data)?;
    let id = identity::read(data)?.ok_or(NodeBackupError::NoIdentity)?;
    let last = check_all(&options.log_dir()).map_err(OpenError::from)?.last;
    let log = LogReader::open(Arc::new(RealDisk), &options.log_dir())?;
    log.sync()?;
    let mut archive = open(dir, &id, &log, last, true)?;
    let (begin, gap) = begin(&archive, &log);
    if let Some((from, to)) = gap {
        return Err(ArchiveError::Gap { dir: dir.to_owned(), from, to }.into());
    }
    let mut done = begin;
    while done < last {
        done = archive.add(&log, done, last)?;
    }
    Ok((done.0, done.0 - begin.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_kept_for_the_archive_up_to_a_limit_and_while_there_is_room() {
        let options = ArchiveOptions { backlog_max: 1_000, ..ArchiveOptions::new("x") };
        let progress = ArchiveProgress::new(Some(&options));
        progress.up_to.store(7, Ordering::Release);
        for (wanted, bytes, low, cut) in
            [(5, 1_000, false, 5), (9, 1_000, false, 7), (9, 1_001, false, 9), (9, 10, true, 9)]
        {
            assert_eq!(progress.cut(Position(wanted), bytes, low), Position(cut), "{wanted}");
        }
        assert_eq!(ArchiveProgress::new(None).cut(Position(9), 10, false), Position(9));
    }
}
