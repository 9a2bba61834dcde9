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
//! - **Invariant:** records depend only on effects, so they are the same on all nodes of a cluster.
//! - **Invariant:** files take at most [`NodeOptions::changes_max`] bytes, a segment and the longest group.

mod record;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use commitlog::disk::{Disk, RealDisk};
use commitlog::{
    LocalLog, Log as _, LogError, LogOptions, LogReader, Position, SyncPoint, begin_after,
};
use feed::Effect;

use crate::directory::open_error::OpenError;
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

/// Reason why records cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// The node has no change feed.
    #[error("the server has no change feed")]
    Off,
    /// The records after the place are not kept, or the place is after the end.
    #[error("the changes after this position are not kept")]
    Gone,
    /// The files cannot be read.
    #[error("the change feed cannot be read")]
    Unreadable(#[from] LogError),
}

impl Place {
    /// Returns the place after a whole group.
    #[must_use]
    pub fn after(group: u64) -> Self {
        Self { group, index: None }
    }

    /// Returns the last group that is completely before the place.
    fn before(self) -> Position {
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

/// The writer's side of the feed.
pub(crate) struct ChangeLog {
    log: LocalLog,
    bytes_max: u64,
}

impl ChangeLog {
    /// Opens the feed of a store that has the groups up to `applied`, of a log that ends at `last`. `None` if the
    /// options have no feed.
    ///
    /// # Errors
    /// [`OpenError`] if the files can be neither used nor replaced.
    pub(crate) fn open(
        options: &NodeOptions,
        (applied, last): (Position, Position),
    ) -> Result<Option<Self>, OpenError> {
        let Some(dir) = options.changes_dir() else { return Ok(None) };
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let log = match open_kept(&disk, &dir) {
            Ok(Some(log)) if (applied..=last).contains(&log.last()) => log,
            found => {
                match &found {
                    Ok(None) => {}
                    Ok(Some(log)) => tracing::warn!(
                        kept = log.last().0,
                        applied = applied.0,
                        "the change feed begins again: it was off for some changes"
                    ),
                    Err(error) => {
                        tracing::error!(%error, "the change feed begins again: its files are damaged");
                    }
                }
                // It may still write to the directory.
                drop(found);
                if dir.exists() {
                    std::fs::remove_dir_all(&dir)
                        .map_err(|error| OpenError::Directory(dir.clone(), error))?;
                }
                begin_after(&*disk, &dir, applied, SEGMENT_BYTES)?;
                LocalLog::open_with(disk, &dir, LOG_OPTIONS, applied)?
            }
        };
        Ok(Some(Self { log, bytes_max: options.changes_max }))
    }

    /// Appends the records of a group, unless the feed has them already.
    pub(crate) fn record(
        &mut self,
        position: Position,
        time_ms: u64,
        effects: &[Effect],
    ) -> Result<(), LogError> {
        if position <= self.log.last() {
            return Ok(());
        }
        let records: Vec<Record> = effects.iter().filter_map(Record::of).collect();
        let Ok(payload) = postcard::to_allocvec(&records) else {
            unreachable!("numbers can be written into memory")
        };
        let placed = self.log.write_group(&payload, time_ms)?;
        debug_assert_eq!(placed.position, position, "the log has no gaps");
        self.log.shrink(self.bytes_max)
    }

    /// Returns a sync of all records so far, for another thread.
    pub(crate) fn sync_point(&self) -> SyncPoint {
        self.log.sync_point()
    }

    /// Waits until all records so far survive a power loss.
    pub(crate) fn sync(&self) -> Result<(), LogError> {
        self.sync_point().sync()
    }
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

/// Reads at most `limit` records after a place, or after the beginning, from groups up to `up_to`. Reads a bounded part
/// of the files, so `next` may be before `up_to` even if there are no records. Blocks.
///
/// # Errors
/// [`Unavailable`]
pub(crate) fn read(
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
            (Err(_), Some((place, ..))) if items.len() == limit => *place,
            (Err(error), _) => return Err(error.into()),
        };
    }
    Ok(Records { items, next })
}
