//! Change feed: what applied commands changed, in the order of the log, for the other systems of a product.
//!
//! It is a second log, next to that of the commands. For each group of the log it has a group with the same position
//! and time: the [`Record`]s of the group's effects. A record has a kind and ids. Readers take the content from the
//! facts at the time of reading, so what is erased or hidden there is not in the feed either.
//!
//! The writer appends the records after a group is applied and before it is visible. It never waits for a sync of them,
//! except once per segment. A checkpoint syncs them first, so after a crash the replay yields the records that are
//! lost, and those that are not lost are recognized by their positions.
//!
//! - **Invariant:** between the oldest kept group and the last applied one no group is missing. If the files do not
//!   continue the store, because the feed was off or they are damaged, they are begun again; readers then notice that
//!   their position is gone.
//! - **Invariant:** an error of the files ends the feed until the next start, and nothing else: it can be begun again.
//! - **Invariant:** records depend only on effects, so they are the same on all nodes of a cluster.
//! - **Invariant:** files take at most [`NodeOptions::changes_max`] bytes, a segment and the longest group; less while
//!   the disk has little free space.

mod record;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use commitlog::disk::{Disk, RealDisk};
use commitlog::{
    LocalLog, Log as _, LogError, LogOptions, LogReader, Position, SyncPoint, begin_after,
};
use feed::Effect;

use crate::options::NodeOptions;
pub use record::{Kind, Of, Record};

/// Length of a segment in bytes. Short, because a read begins at the start of a segment, and the writer syncs each.
const SEGMENT_BYTES: u64 = 1 << 20;
/// Smallest useful size of the files in bytes: a consumer has time to read before the oldest segment is removed.
pub const BYTES_MIN: u64 = 8 * SEGMENT_BYTES;
/// Maximum number of segments without records that are read at a time.
const SEGMENTS_MAX: usize = 8;

/// Position in the feed: everything up to a group, or up to a record of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Position of the group in the log.
    pub group: u64,
    /// Index of the last record in this group; `None` for the whole group.
    pub index: Option<u32>,
}

/// Records after a place.
#[derive(Debug, PartialEq, Eq)]
pub struct Records {
    /// The records, oldest first, each with its place and the time of its group in milliseconds since 1970.
    pub items: Vec<(Place, u64, Record)>,
    /// Place after which to read next.
    pub next: Place,
}

/// Where to continue if the records after a place are not kept or cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub enum Gap {
    /// The place is after the end.
    Foreign,
    /// The records up to this place were removed.
    Removed(Place),
    /// The records up to this place are kept, but one of them cannot be read, perhaps only for now.
    Damaged(Place),
}

/// Reason why records cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// The node has no change feed.
    #[error("the server has no change feed")]
    Off,
    /// The records after the place are not kept, or the place is after the end.
    #[error("the changes after this position are not kept")]
    Gone,
    /// The feed ended with an error of its files.
    #[error("the change feed has failed")]
    Failed,
    /// The files cannot be read.
    #[error("the change feed cannot be read")]
    Unreadable(#[source] LogError),
}

impl From<LogError> for Unavailable {
    fn from(error: LogError) -> Self {
        match error {
            // Damaged, or removed meanwhile.
            LogError::Damaged { .. }
            | LogError::StartsAfterStore { .. }
            | LogError::ShorterThanStore { .. }
            | LogError::Read { .. } => {
                tracing::error!(%error, "changes of the change feed are lost");
                Self::Gone
            }
            error => Self::Unreadable(error),
        }
    }
}

impl Place {
    /// Returns the place after a whole group.
    #[must_use]
    pub fn after(group: u64) -> Self {
        Self { group, index: None }
    }

    /// Returns the last group that is completely before the place.
    pub(crate) fn before(self) -> Position {
        Position(self.group.saturating_sub(u64::from(self.index.is_some())))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "{}-{index}", self.group),
            None => write!(f, "{}", self.group),
        }
    }
}

/// State of the feed that the writer shares with readers.
pub(crate) struct Kept {
    dir: PathBuf,
    /// Last group that may have records. The writer sets it before the group is visible.
    last: AtomicU64,
    bytes: AtomicU64,
    has_failed: AtomicBool,
}

impl Kept {
    /// Whether a visible group after `after` may have records, or reading them is an error.
    pub(crate) fn has_after(&self, after: Position) -> bool {
        self.has_failed() || self.last.load(Ordering::Acquire) > after.0
    }

    /// Whether the feed has ended with an error.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Returns the size of the files in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn fail(&self, error: &LogError) {
        if !self.has_failed.swap(true, Ordering::AcqRel) {
            let error: &dyn std::error::Error = error;
            tracing::error!(
                error,
                "the change feed has failed: no changes are kept until the next start"
            );
        }
    }

    /// Returns where to continue if the records after a place are [`Unavailable::Gone`], of groups up to `up_to`.
    /// Blocks.
    ///
    /// # Errors
    /// [`Unavailable`]
    pub(crate) fn gap(&self, after: Option<Place>, up_to: Position) -> Result<Gap, Unavailable> {
        if self.has_failed() {
            return Err(Unavailable::Failed);
        }
        gap(&self.dir, after, up_to)
    }

    /// Reads at most `limit` records after a place, or after the beginning, from groups up to `up_to`, which are
    /// visible. Blocks.
    ///
    /// # Errors
    /// [`Unavailable`]
    pub(crate) fn read(
        &self,
        after: Option<Place>,
        up_to: Position,
        limit: usize,
    ) -> Result<Records, Unavailable> {
        if self.has_failed() {
            return Err(Unavailable::Failed);
        }
        if after.is_some_and(|after| !self.has_after(after.before())) {
            return Ok(Records { items: Vec::new(), next: Place::after(up_to.0) });
        }
        match read(&self.dir, after, up_to, limit) {
            // The oldest segment may have been removed while it was opened.
            Err(Unavailable::Gone) if after.is_none() => read(&self.dir, after, up_to, limit),
            read => read,
        }
    }
}

/// The writer's side of the feed.
pub(crate) struct ChangeLog {
    /// `None` after an error.
    log: Option<LocalLog>,
    bytes_max: u64,
    kept: Arc<Kept>,
}

/// Sync of the records so far, for another thread.
pub(crate) struct RecordSync(Option<SyncPoint>, Arc<Kept>);

impl RecordSync {
    /// Waits until the records survive a power loss, unless the feed has failed.
    pub(crate) fn run(&self) {
        if let Some(Err(error)) = self.0.as_ref().map(SyncPoint::sync) {
            self.1.fail(&error);
        }
    }
}

impl ChangeLog {
    /// Opens the feed of a store that has the groups up to `applied`, of a log that ends at `last`. `None` if the
    /// options have no feed.
    pub(crate) fn open(options: &NodeOptions, ends: (Position, Position)) -> Option<Self> {
        let dir = options.changes_dir()?;
        let opened = open(&dir, ends);
        let last = opened.as_ref().map_or(0, |log| log.last().0);
        let (last, bytes, has_failed) =
            (AtomicU64::new(last), AtomicU64::new(0), AtomicBool::new(false));
        let kept = Arc::new(Kept { dir, last, bytes, has_failed });
        let log = opened.map_err(|error| kept.fail(&error)).ok();
        Some(Self { log, bytes_max: options.changes_max, kept })
    }

    /// Returns the state that readers need.
    pub(crate) fn kept(&self) -> Arc<Kept> {
        Arc::clone(&self.kept)
    }

    /// Appends the records of a group, unless the feed has them already.
    pub(crate) fn record(&mut self, position: Position, time_ms: u64, effects: &[Effect]) {
        let kept = Arc::clone(&self.kept);
        self.attempt(|log| {
            if position <= log.last() {
                return Ok(());
            }
            if position.0 != log.last().0 + 1 {
                return Err(LogError::ShorterThanStore { last: log.last(), from: position });
            }
            let records: Vec<Record> = effects.iter().filter_map(Record::of).collect();
            let payload = postcard::to_allocvec(&records);
            let payload =
                payload.map_err(|source| LogError::Read { position, source: source.into() })?;
            log.write_group(&payload, time_ms)?;
            if !records.is_empty() {
                kept.last.store(position.0, Ordering::Release);
            }
            Ok(())
        });
    }

    /// Removes the oldest segment if the files are larger than the limit, or than the smallest one while the disk has
    /// little free space. Returns whether it did.
    pub(crate) fn shrink(&mut self, is_low: bool) -> bool {
        let bytes_max = if is_low { self.bytes_max.min(BYTES_MIN) } else { self.bytes_max };
        let kept = Arc::clone(&self.kept);
        let freed = self.attempt(|log| {
            let freed = log.shrink(bytes_max)?;
            kept.bytes.store(log.size(), Ordering::Relaxed);
            Ok(freed)
        });
        freed.is_some_and(|freed| freed > 0)
    }

    /// Returns a sync of all records so far.
    pub(crate) fn sync_point(&self) -> RecordSync {
        RecordSync(self.log.as_ref().map(LocalLog::sync_point), self.kept())
    }

    /// Changes the files, unless the feed has failed. An error ends the feed.
    fn attempt<T>(
        &mut self,
        change: impl FnOnce(&mut LocalLog) -> Result<T, LogError>,
    ) -> Option<T> {
        let log = self.log.as_mut().filter(|_| !self.kept.has_failed());
        let done = log.map(change)?.map_err(|error| self.kept.fail(&error)).ok();
        if done.is_none() {
            self.log = None;
        }
        done
    }
}

/// Opens the files in `dir`, or begins again if they do not continue the store.
fn open(dir: &Path, (applied, last): (Position, Position)) -> Result<LocalLog, LogError> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    match open_kept(&disk, dir) {
        Ok(Some(log)) if (applied..=last).contains(&log.last()) => return Ok(log),
        Ok(None) => {}
        Ok(Some(log)) => tracing::warn!(
            kept = log.last().0,
            applied = applied.0,
            "the change feed begins again: it does not continue what was applied"
        ),
        Err(
            error @ (LogError::Damaged { .. }
            | LogError::StartsAfterStore { .. }
            | LogError::ShorterThanStore { .. }),
        ) => {
            tracing::error!(%error, "the change feed begins again: its files are damaged");
        }
        Err(error) => return Err(error),
    }
    clear(&*disk, dir)?;
    begin_after(&*disk, dir, applied, SEGMENT_BYTES)?;
    LocalLog::open_with(disk, dir, LOG_OPTIONS, applied)
}

/// Removes all segments, oldest first, so that what an interruption leaves still does not continue the store. Keeps the
/// directory, which may be a link or another disk.
fn clear(disk: &dyn Disk, dir: &Path) -> Result<(), LogError> {
    if !dir.exists() {
        return Ok(());
    }
    let failed = |doing, file: &Path| {
        let file = file.to_owned();
        move |source| LogError::Disk { doing, file, source }
    };
    let mut names = disk.list(dir).map_err(failed("list", dir))?;
    names.retain(|name| name.ends_with(".log") || name.ends_with(".tmp"));
    names.sort_unstable();
    for path in names.iter().map(|name| dir.join(name)) {
        disk.remove(&path).map_err(failed("remove", &path))?;
    }
    disk.sync_dir(dir).map_err(failed("sync", dir))
}

const LOG_OPTIONS: LogOptions =
    LogOptions { segment_bytes: SEGMENT_BYTES, prepares_on_thread: true };

/// Opens existing files; `None` if there are none.
fn open_kept(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Option<LocalLog>, LogError> {
    if !dir.exists() {
        return Ok(None);
    }
    let reader = LogReader::open_after(Arc::clone(disk), dir, Position(0), 1)?;
    let Some(first) = reader.first() else { return Ok(None) };
    let before = Position(first.0.saturating_sub(1));
    LocalLog::open_with(Arc::clone(disk), dir, LOG_OPTIONS, before).map(Some)
}

/// Returns where to continue if the records after a place are [`Unavailable::Gone`]. Blocks.
///
/// # Errors
/// [`Unavailable`]
fn gap(dir: &Path, after: Option<Place>, up_to: Position) -> Result<Gap, Unavailable> {
    let open = |after| LogReader::open_after(Arc::new(RealDisk), dir, after, 2);
    let done = after.map_or(Position(0), Place::before);
    if done > up_to {
        return Ok(Gap::Foreign);
    }
    let mut reader = open(done)?;
    let Some(first) = reader.first() else { return Ok(Gap::Removed(Place::after(up_to.0))) };
    let before = Position(first.0.saturating_sub(1));
    if before > done {
        if after.is_some() {
            return Ok(Gap::Removed(Place::after(before.0)));
        }
        reader = open(before)?;
    }
    Ok(Gap::Damaged(Place::after(reader.end_of_segment(done.max(before)).min(up_to).0)))
}

/// Reads at most `limit` records after a place, or after the beginning, from groups up to `up_to`. Reads a bounded part
/// of the files, so `next` may be before `up_to` even if there are no records. Blocks.
///
/// # Errors
/// [`Unavailable`]
fn read(
    dir: &Path,
    after: Option<Place>,
    up_to: Position,
    limit: usize,
) -> Result<Records, Unavailable> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let open = |after| LogReader::open_after(Arc::clone(&disk), dir, after, 2);
    let after = match after {
        Some(after) => after,
        None => Place::after(open(Position(0))?.first().map_or(0, |first| first.0 - 1)),
    };
    let (mut items, mut next) = (Vec::new(), after);
    for _ in 0..SEGMENTS_MAX {
        let done = next.before();
        if done >= up_to || !items.is_empty() {
            break;
        }
        let reader = open(done)?;
        if reader.first().is_none_or(|first| first.0 > done.0 + 1) {
            return Err(Unavailable::Gone);
        }
        let end = reader.end_of_segment(done).min(up_to);
        let read = reader.read(done, end, &mut |group| {
            let position = group.position.0;
            let skipped = after.index.filter(|_| position == after.group);
            let records: Vec<Record> = postcard::from_bytes(group.payload)?;
            for (index, record) in (0..).zip(records) {
                if skipped.is_some_and(|skipped| index <= skipped) {
                    continue;
                }
                if items.len() == limit {
                    return Err("the page is full".into());
                }
                items.push((Place { group: position, index: Some(index) }, group.time_ms, record));
            }
            Ok(())
        });
        next = match (read, items.last()) {
            (Ok(()), _) => Place::after(end.0),
            // The page is full, or the next group cannot be read: then the next read has this error.
            (Err(_), Some((place, ..))) => *place,
            (Err(error), _) => return Err(error.into()),
        };
    }
    Ok(Records { items, next })
}
