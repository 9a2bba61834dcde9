//! Change feed: what applied commands changed, in the order of the log, for the other systems of a product.
//!
//! It is a second log, next to that of the commands. For each group of the log whose effects have [`Record`]s it has an
//! entry with the position of the group, its time and the records. A record has a kind and ids. Readers take the content
//! from the facts at the time of reading, so what is erased or hidden there is not in the feed either.
//!
//! The writer appends an entry after a group is applied and before it is visible. It never waits for a sync of them,
//! except once per segment. A checkpoint first notes the last applied group, unless it has an entry, and syncs. So after
//! a crash the replay yields the records that are lost, and those that are not lost are recognized by their positions.
//!
//! - **Invariant:** between the oldest kept entry and the last applied group no record is missing. If the files do not
//!   continue the store, because the feed was off or they are damaged, they are begun again; readers then notice that
//!   their position is gone.
//! - **Invariant:** an error of the files ends the feed until the next start, and nothing else: it can be begun again.
//! - **Invariant:** records depend only on effects, so they are the same on all nodes of a cluster.
//! - **Invariant:** files take at most [`NodeOptions::changes_max`] bytes, a segment and the longest group; less while
//!   the disk has little free space.

mod record;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use commitlog::disk::{Disk, RealDisk};
use commitlog::{
    LocalLog, Log as _, LogError, LogOptions, LogReader, Position, SyncPoint, begin_after,
};
use feed::Effect;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::options::NodeOptions;
pub use record::{Kind, Of, Record};

/// Length of a segment in bytes. Short, because a read begins at the start of a segment, and the writer syncs each.
const SEGMENT_BYTES: u64 = 1 << 20;
/// Smallest useful size of the files in bytes: a consumer has time to read before the oldest segment is removed.
pub const BYTES_MIN: u64 = 8 * SEGMENT_BYTES;
/// Maximum number of segments without records that are read at a time.
const SEGMENTS_MAX: usize = 8;

/// Number of segments that are open at a time while a start reads the beginnings of all.
const SEGMENTS_OPEN_MAX: usize = if cfg!(test) { 4 } else { 64 };

/// Entry of the files.
#[derive(Deserialize, Serialize)]
enum Entry {
    /// The first one: the feed has the records of all groups after this position of the log.
    Begin(u64),
    /// Records of the group at this position. Groups before it without an entry have none.
    Group(u64, Vec<Record>),
}

/// Segment of the files.
#[derive(Clone, Copy)]
struct Segment {
    /// Number of its first entry.
    first: u64,
    /// Position of the log from which on this segment and later ones have all records.
    from: u64,
}

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
    /// Number of entries so far.
    entries: AtomicU64,
    /// Kept segments, oldest first; each but the last one has an entry.
    segments: Mutex<VecDeque<Segment>>,
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
        let done = after.map_or(Position(0), Place::before);
        if done > up_to {
            return Ok(Gap::Foreign);
        }
        let Some((oldest, found, end)) = self.segment_after(done) else {
            return Ok(Gap::Removed(Place::after(up_to.0)));
        };
        Ok(match (after, found) {
            (Some(_), None) => Gap::Removed(Place::after(oldest.from - 1)),
            _ => Gap::Damaged(Place::after(end.min(up_to).0)),
        })
    }

    /// Hides the oldest segment from readers before it is removed, unless it is the last one. Returns whether it did.
    fn forget_oldest(&self) -> bool {
        let mut segments = self.segments.lock();
        segments.len() > 1 && segments.pop_front().is_some()
    }

    /// Returns the oldest segment, the one that has the group after `done`, if it is kept, and the last group before the
    /// segment after it, or after the oldest one.
    fn segment_after(&self, done: Position) -> Option<(Segment, Option<Segment>, Position)> {
        let segments = self.segments.lock();
        let before = segments.partition_point(|segment| segment.from <= done.0.saturating_add(1));
        let found = before.checked_sub(1).and_then(|at| segments.get(at)).copied();
        let end = segments.get(before.max(1)).map_or(u64::MAX, |next| next.from - 1);
        Some((*segments.front()?, found, Position(end)))
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
        match self.read_files(after, up_to, limit) {
            // The oldest segment may have been removed while it was opened.
            Err(Unavailable::Gone) if after.is_none() => self.read_files(after, up_to, limit),
            read => read,
        }
    }

    /// Reads a bounded part of the files, so `next` may be before `up_to` even if there are no records.
    fn read_files(
        &self,
        after: Option<Place>,
        up_to: Position,
        limit: usize,
    ) -> Result<Records, Unavailable> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let oldest = self.segment_after(Position(0)).ok_or(Unavailable::Gone)?.0;
        let after = after.unwrap_or(Place::after(oldest.from - 1));
        let (mut items, mut next) = (Vec::new(), after);
        for _ in 0..SEGMENTS_MAX {
            let done = next.before();
            if done >= up_to || !items.is_empty() {
                break;
            }
            let found = self.segment_after(done).and_then(|(_, found, end)| Some((found?, end)));
            let (segment, end) = found.ok_or(Unavailable::Gone)?;
            let before = Position(segment.first - 1);
            let reader = LogReader::open_after(Arc::clone(&disk), &self.dir, before, 2)?;
            if reader.first() != Some(Position(segment.first)) {
                return Err(Unavailable::Gone);
            }
            let entries = Position(self.entries.load(Ordering::Acquire));
            let read =
                reader.read(before, reader.end_of_segment(before).min(entries), &mut |group| {
                    let Entry::Group(position, records) = postcard::from_bytes(group.payload)?
                    else {
                        return Ok(());
                    };
                    if position <= done.0 || position > up_to.0 {
                        return Ok(());
                    }
                    let skipped = after.index.filter(|_| position == after.group);
                    for (index, record) in (0..).zip(records) {
                        if skipped.is_some_and(|skipped| index <= skipped) {
                            continue;
                        }
                        if items.len() == limit {
                            return Err("the page is full".into());
                        }
                        let place = Place { group: position, index: Some(index) };
                        items.push((place, group.time_ms, record));
                    }
                    Ok(())
                });
            next = match (read, items.last()) {
                (Ok(()), _) => Place::after(end.min(up_to).0),
                // The page is full, or the next entry cannot be read: then the next read has this error.
                (Err(_), Some((place, ..))) => *place,
                (Err(error), _) => return Err(error.into()),
            };
        }
        Ok(Records { items, next })
    }
}

/// The writer's side of the feed.
pub(crate) struct ChangeLog {
    /// `None` after an error.
    files: Option<Files>,
    bytes_max: u64,
    kept: Arc<Kept>,
}

/// Files of the feed.
struct Files {
    log: LocalLog,
    /// Last group that has an entry, or before which the feed begins.
    written: u64,
    /// Last group whose records are in the files; the groups after `written` had none.
    done: u64,
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
        let (files, segments, error) = match open(&dir, ends) {
            Ok((files, segments)) => (Some(files), segments, None),
            Err(error) => (None, VecDeque::new(), Some(error)),
        };
        let (last, entries) =
            files.as_ref().map_or((0, 0), |files| (files.written, files.log.last().0));
        let kept = Arc::new(Kept {
            dir,
            last: AtomicU64::new(last),
            entries: AtomicU64::new(entries),
            segments: Mutex::new(segments),
            bytes: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
        });
        error.iter().for_each(|error| kept.fail(error));
        Some(Self { files, bytes_max: options.changes_max, kept })
    }

    /// Returns the state that readers need.
    pub(crate) fn kept(&self) -> Arc<Kept> {
        Arc::clone(&self.kept)
    }

    /// Appends the records of a group, unless the feed has them already, or there are none.
    pub(crate) fn record(&mut self, position: Position, time_ms: u64, effects: &[Effect]) {
        self.attempt(|files, kept| {
            if position.0 <= files.done {
                return Ok(());
            }
            if position.0 != files.done + 1 {
                let last = Position(files.done);
                return Err(LogError::ShorterThanStore { last, from: position });
            }
            let records: Vec<Record> = effects.iter().filter_map(Record::of).collect();
            if !records.is_empty() {
                files.write(&Entry::Group(position.0, records), time_ms, kept)?;
                kept.last.store(position.0, Ordering::Release);
            }
            files.done = position.0;
            Ok(())
        });
    }

    /// Removes the oldest segment if the files are larger than the limit, or than the smallest one while the disk has
    /// little free space. Returns whether it did.
    pub(crate) fn shrink(&mut self, is_low: bool) -> bool {
        let bytes_max = if is_low { self.bytes_max.min(BYTES_MIN) } else { self.bytes_max };
        let removed = self.attempt(|files, kept| {
            let has_removed = files.log.size() > bytes_max && kept.forget_oldest();
            if has_removed {
                files.log.shrink(bytes_max)?;
            }
            kept.bytes.store(files.log.size(), Ordering::Relaxed);
            Ok(has_removed)
        });
        removed == Some(true)
    }

    /// Notes the last group, unless it has an entry, and returns a sync of all records so far. A start that finds a
    /// later group in the store begins the feed again.
    pub(crate) fn sync_point(&mut self) -> RecordSync {
        self.attempt(|files, kept| {
            if files.written == files.done {
                return Ok(());
            }
            files.write(&Entry::Group(files.done, Vec::new()), 0, kept)
        });
        RecordSync(self.files.as_ref().map(|files| files.log.sync_point()), self.kept())
    }

    /// Changes the files, unless the feed has failed. An error ends the feed.
    fn attempt<T>(
        &mut self,
        change: impl FnOnce(&mut Files, &Kept) -> Result<T, LogError>,
    ) -> Option<T> {
        let files = self.files.as_mut().filter(|_| !self.kept.has_failed());
        let changed = files.map(|files| change(files, &self.kept))?;
        let done = changed.map_err(|error| self.kept.fail(&error)).ok();
        if done.is_none() {
            self.files = None;
        }
        done
    }
}

impl Files {
    /// Appends an entry, and shows it to readers.
    fn write(&mut self, entry: &Entry, time_ms: u64, kept: &Kept) -> Result<(), LogError> {
        let number = Position(self.log.last().0 + 1);
        self.log.write_group(&encoded(entry, number)?, time_ms)?;
        if self.log.newest_segment() == number {
            let segment = Segment { first: number.0, from: self.written + 1 };
            kept.segments.lock().push_back(segment);
        }
        kept.entries.store(number.0, Ordering::Release);
        self.written = entry.group();
        Ok(())
    }
}

impl Entry {
    /// Position of its group, or before the first group.
    fn group(&self) -> u64 {
        match self {
            Self::Begin(group) | Self::Group(group, _) => *group,
        }
    }
}

/// Opens the files in `dir`, or begins again if they do not continue the store.
fn open(
    dir: &Path,
    (applied, last): (Position, Position),
) -> Result<(Files, VecDeque<Segment>), LogError> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    match open_kept(&disk, dir) {
        Ok(Some(kept)) if (applied.0..=last.0).contains(&kept.0.written) => return Ok(kept),
        Ok(None) => {}
        Ok(Some((files, _))) => tracing::warn!(
            kept = files.written,
            applied = applied.0,
            "the change feed begins again: it does not continue what was applied"
        ),
        Err(
            error @ (LogError::Damaged { .. }
            | LogError::Read { .. }
            | LogError::StartsAfterStore { .. }
            | LogError::ShorterThanStore { .. }),
        ) => {
            tracing::error!(%error, "the change feed begins again: its files are damaged");
        }
        Err(error) => return Err(error),
    }
    clear(&*disk, dir)?;
    begin_after(&*disk, dir, Position(0), SEGMENT_BYTES)?;
    let mut log = LocalLog::open_with(disk, dir, LOG_OPTIONS, Position(0))?;
    let (written, done) = (applied.0, applied.0);
    log.write_group(&encoded(&Entry::Begin(applied.0), Position(1))?, 0)?;
    let segments = VecDeque::from([Segment { first: 1, from: applied.0 + 1 }]);
    Ok((Files { log, written, done }, segments))
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

/// Opens existing files; `None` if there are none, or no entries.
fn open_kept(
    disk: &Arc<dyn Disk>,
    dir: &Path,
) -> Result<Option<(Files, VecDeque<Segment>)>, LogError> {
    if !dir.exists() {
        return Ok(None);
    }
    let reader = LogReader::open_after(Arc::clone(disk), dir, Position(0), 1)?;
    let Some(first) = reader.first() else { return Ok(None) };
    let before = Position(first.0.saturating_sub(1));
    let log = LocalLog::open_with(Arc::clone(disk), dir, LOG_OPTIONS, before)?;
    let last = log.last();
    if last < first {
        return Ok(None);
    }
    let entry = |number: Position, reader: &LogReader| {
        let mut found = None;
        reader.read(Position(number.0 - 1), number, &mut |group| {
            found = Some(postcard::from_bytes(group.payload)?);
            Ok(())
        })?;
        found.ok_or(LogError::ShorterThanStore { last, from: number })
    };
    let (mut segments, mut next) = (VecDeque::new(), first);
    while next <= last {
        let before = Position(next.0 - 1);
        let reader = LogReader::open_after(Arc::clone(disk), dir, before, SEGMENTS_OPEN_MAX)?;
        loop {
            let end = reader.end_of_segment(Position(next.0 - 1));
            // The last open segment is the last one only if it is alone.
            if next > last || (end.0 == u64::MAX && next.0 > before.0 + 1) {
                break;
            }
            let from = match entry(next, &reader)? {
                Entry::Begin(group) => group + 1,
                Entry::Group(group, _) => group,
            };
            segments.push_back(Segment { first: next.0, from });
            next = Position(end.0.saturating_add(1));
        }
    }
    let reader = LogReader::open_after(Arc::clone(disk), dir, Position(last.0 - 1), 1)?;
    let written = entry(last, &reader)?.group();
    Ok(Some((Files { log, written, done: written }, segments)))
}

fn encoded(entry: &Entry, number: Position) -> Result<Vec<u8>, LogError> {
    let encoded = postcard::to_allocvec(entry);
    encoded.map_err(|source| LogError::Read { position: number, source: source.into() })
}
