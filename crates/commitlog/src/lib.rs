//! A durable log: an ordered sequence of groups. A group is a payload of bytes with a position and a time. All other
//! data can be rebuilt from the log. The log does not interpret the payloads.
//!
//! [`Log`] is the interface for a log of one node and for a log that several nodes share. [`LocalLog`] stores groups in
//! segment files of one directory, through the file layer in [`disk`], which tests replace. [`Archive`] copies the
//! groups to another directory. [`SharedFiles`] are files that nodes of a cluster exchange.
//!
//! Read `format`, `segment`, `local`, `recover`, then `reader` and `archive`; `salvage` reads damaged logs.
//!
//! State: see each kind of log. A log and its sync points share `Durability`.
//! - **Invariant:** positions begin at 1 and have no gaps.
//! - **Invariant:** a group whose position was synced is read again, unchanged, at every later opening; otherwise the
//!   opening fails and reports the location of the damage. The log never loses groups without an error.
//! - **Invariant:** after an error of the disk, every operation of the log fails. Only opening the log again shows
//!   which groups are left.
//! - **Invariant:** a log that has become shorter is refused.
//! - **Invariant:** this crate uses no other crate of ours.

mod archive;
pub mod disk;
mod files;
mod format;
mod local;
mod read_only;
mod reader;
mod recover;
mod salvage;
mod segment;
mod segment_check;
mod shared;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::disk::DiskFile;

pub use archive::{ARCHIVE_MEMORY, Archive, ArchiveError, ArchiveReader};
pub use files::{FileName, FilesError, SharedFiles};
pub use format::PAYLOAD_BYTES_MAX;
pub use local::{LocalLog, LogOptions, SEGMENT_BYTES};
pub use read_only::{Checked, check, check_all};
pub use reader::{LogReader, begin_after};
pub use salvage::{LogDamage, LogSurvey, Stretch, salvage};
pub use segment_check::{SegmentCheck, closed_segments};
pub use shared::{Applied, Arrived, ClusterId, GroupId, LogEnd, NodeId};

/// Position of a group in the log. The first group is at 1; 0 is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);

/// A group that was read from a log.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    /// Position of the group.
    pub position: Position,
    /// Time that the log gave the group, in milliseconds since 1970.
    pub time_ms: u64,
    /// Appended payload.
    pub payload: &'a [u8],
}

/// Position and time of an appended group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Position of the group.
    pub position: Position,
    /// Time that the log gave the group, in milliseconds since 1970.
    pub time_ms: u64,
}

/// Interface of a log for its writer. Appended groups are returned by [`Log::next`], with their positions. Before them,
/// the log returns the groups that it had when it was opened, after the caller's position.
///
/// A local log is in files of this machine, has no node, can be cut, and returns appended groups at once. A log that
/// several nodes share also returns the groups of the other nodes.
pub trait Log: Send {
    /// Appends a group of 1 to [`Log::payload_bytes_max`] bytes. In a local log, the group then survives the end of the
    /// process but not yet a power loss; in a shared log, it is durable when [`Log::next`] returns it. `time_ms` is the
    /// caller's time in milliseconds since 1970. A log with its own clock gives the group its own time, and also stores
    /// the caller's. A payload of invalid length is refused and changes nothing; any other error poisons the log.
    fn append(&mut self, payload: Bytes, time_ms: u64) -> Result<(), LogError>;

    /// Returns the next group, if one is available. An error poisons the log.
    fn next(&mut self) -> Result<Option<Arrived>, LogError>;

    /// Returns the next group like [`Log::next`], but waits up to `wait` for groups of other nodes.
    fn next_within(&mut self, _wait: Duration) -> Result<Option<Arrived>, LogError> {
        self.next()
    }

    /// Waits until every group appended so far survives a power loss. An error poisons the log.
    fn sync(&mut self) -> Result<(), LogError> {
        self.sync_point().sync()
    }

    /// Returns a sync of all groups appended so far, which another thread can run while this one continues to append.
    fn sync_point(&self) -> SyncPoint;

    /// Returns the position of the last group that [`Log::next`] returned, or the caller's position before the first
    /// one.
    fn delivered(&self) -> Position;

    /// Returns the position of the last group when the log was opened.
    fn last_at_open(&self) -> Position;

    /// Returns the id of this node, in a log that several nodes share.
    fn node(&self) -> Option<NodeId> {
        None
    }

    /// Returns the maximum length of a payload, in bytes.
    fn payload_bytes_max(&self) -> usize {
        PAYLOAD_BYTES_MAX
    }

    /// Lets this node append to a shared log. `epoch` must be greater than all earlier epochs of the node. From then
    /// on, `wake` is called after each group or error that [`Log::next`] can return.
    fn begin(&mut self, _epoch: u64, _wake: Box<dyn Fn() + Send + Sync>) {}

    /// Whether changes must be refused now, because the log might not store them. The state may be temporary.
    fn refuses_changes(&self) -> bool {
        false
    }

    /// Allows a shared log to drop the groups up to `up_to` at any time, because no node needs them.
    fn trim(&mut self, _up_to: Position) {}

    /// Returns the last known position of the log.
    fn end(&self) -> LogEnd {
        LogEnd { position: self.delivered(), ago: Duration::ZERO }
    }

    /// Returns the exchange of files between the nodes that share the log.
    fn files(&self) -> Option<Arc<dyn SharedFiles>> {
        None
    }

    /// Drops old groups of a local log up to at most `up_to`. Drops only whole segments, and never the last one.
    /// Returns the number of bytes freed on the disk. An error poisons the log.
    fn cut(&mut self, _up_to: Position) -> Result<u64, LogError> {
        Ok(0)
    }

    /// Begins a new segment, so that [`Log::cut`] can drop all earlier groups. Returns false if the segment is not
    /// ready yet: call again later. An error poisons the log.
    fn renew(&mut self) -> Result<bool, LogError> {
        Ok(true)
    }

    /// Whether the last segment has no groups yet.
    fn is_renewed(&self) -> bool {
        true
    }

    /// Returns the number of bytes that the groups use on this machine, including headers and padding.
    fn size(&self) -> u64 {
        0
    }
}

/// Error of the callback that receives the groups.
pub type ReadError = Box<dyn std::error::Error + Send + Sync>;

/// Reason why a log could not be opened, or an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file is not a valid log, not even after a power loss.
    #[error("the log is damaged: {} at byte {offset}, group {}: {what}", file.display(), position.0)]
    Damaged {
        /// Path of the segment.
        file: PathBuf,
        /// Offset in the file, in bytes.
        offset: u64,
        /// Group expected there.
        position: Position,
        /// Description of the damage.
        what: &'static str,
    },
    /// The file has another format than this program.
    #[error("{} has log format {found}, but this program reads format {known}", file.display())]
    Version {
        /// Path of the segment.
        file: PathBuf,
        /// Format of the segment.
        found: u32,
        /// Newest format that this program reads.
        known: u32,
    },
    /// Groups that the caller needs are no longer in the log.
    #[error("the log begins at group {}, but the groups after {} are needed", first.0, from.0)]
    StartsAfterStore {
        /// Oldest group in the log.
        first: Position,
        /// Last group that the caller has.
        from: Position,
    },
    /// The caller has more groups than the log.
    #[error("the log ends at group {}, but group {} has been applied already", last.0, from.0)]
    ShorterThanStore {
        /// Last group in the log.
        last: Position,
        /// Last group that the caller has.
        from: Position,
    },
    /// A payload is empty or longer than [`PAYLOAD_BYTES_MAX`].
    #[error("a group has 1 to {PAYLOAD_BYTES_MAX} bytes, not {bytes}")]
    Length {
        /// Length of the payload in bytes.
        bytes: usize,
    },
    /// The callback that received this group returned an error.
    #[error("group {} of the log cannot be replayed", position.0)]
    Read {
        /// Position of the group.
        position: Position,
        /// Error of the callback.
        source: ReadError,
    },
    /// The operating system reports an error.
    #[error("cannot {doing} {}", file.display())]
    Disk {
        /// Operation, as a verb.
        doing: &'static str,
        /// File or directory.
        file: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A group cannot be applied, or a shared log has stopped.
    #[error(transparent)]
    Shared(ReadError),
    /// An earlier error from the disk makes every operation of the log fail.
    #[error("the log has stopped after an earlier error from the disk")]
    Poisoned,
}

/// Returns a closure that converts an I/O error into a [`LogError`].
fn disk_error(doing: &'static str, file: &Path) -> impl FnOnce(io::Error) -> LogError {
    let file = file.to_owned();
    move |source| LogError::Disk { doing, file, source }
}

/// Sync of all groups that were appended before its creation. Any thread can run it.
#[must_use = "nothing is durable before `sync`"]
pub struct SyncPoint {
    last: Position,
    /// Unsynced groups; `None` if all are durable.
    unsynced: Option<Unsynced>,
}

struct Unsynced {
    file: Arc<dyn DiskFile>,
    path: Arc<Path>,
    durability: Arc<Durability>,
}

impl SyncPoint {
    /// Creates a sync point without effect, for a log whose groups are durable before they have a position.
    pub fn durable(last: Position) -> Self {
        Self { last, unsynced: None }
    }

    /// Returns the last group that `sync` makes durable.
    pub fn last(&self) -> Position {
        self.last
    }

    /// Waits until the groups up to `last` survive a power loss. An error poisons the log: acknowledged groups may be
    /// lost, and another sync would hide that.
    pub fn sync(&self) -> Result<(), LogError> {
        let Some(Unsynced { file, path, durability }) = &self.unsynced else { return Ok(()) };
        durability.sync(self.last, &**file, path)
    }
}

/// Last durable position of the log, and whether the log has failed.
#[derive(Default)]
struct Durability {
    last: AtomicU64,
    poisoned: AtomicBool,
    /// Lock that allows one sync at a time. If a write has failed, the kernel reports this to only one of the threads
    /// that sync the file. The others must see that the log is poisoned before they report success.
    syncing: Mutex<()>,
}

impl Durability {
    fn up_to(last: Position) -> Durability {
        Durability { last: AtomicU64::new(last.0), ..Durability::default() }
    }

    fn last(&self) -> Position {
        Position(self.last.load(Ordering::Acquire))
    }

    fn poison(&self) {
        self.poisoned.store(true, Ordering::Release);
    }

    fn check(&self) -> Result<(), LogError> {
        match self.poisoned.load(Ordering::Acquire) {
            true => Err(LogError::Poisoned),
            false => Ok(()),
        }
    }

    fn sync(&self, up_to: Position, file: &dyn DiskFile, path: &Path) -> Result<(), LogError> {
        let _turn = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        self.check()?;
        if self.last() < up_to {
            file.sync_data().map_err(|error| {
                self.poison();
                disk_error("sync", path)(error)
            })?;
            self.last.fetch_max(up_to.0, Ordering::Release);
        }
        Ok(())
    }
}

/// Whether a seeded bug is switched on. The simulator must find each seeded bug (`cargo xtask dst --bugs NAME`).
#[cfg(feature = "bugs")]
pub(crate) fn has_bug(name: &str) -> bool {
    use std::sync::OnceLock;
    static BUG: OnceLock<String> = OnceLock::new();
    BUG.get_or_init(|| std::env::var("ROOST_BUG").unwrap_or_default()) == name
}

/// Always false: seeded bugs exist only with the feature.
#[cfg(not(feature = "bugs"))]
pub(crate) const fn has_bug(_name: &str) -> bool {
    false
}
