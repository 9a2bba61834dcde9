//! A durable log: an ordered sequence of groups, each a payload of bytes at a position with a time. It is
//! the source of truth: all other data can be rebuilt from it. It does not interpret the payloads.
//!
//! [`Log`] is the interface: one way in and one way out, for a log of one node as for one that several nodes share.
//! [`LocalLog`] keeps groups in segment files of one directory, through the layer of files in [`disk`], which tests
//! replace. [`Archive`] copies them elsewhere. [`SharedFiles`] are the files that nodes of a cluster give each other.
//!
//! Read `format`, `segment`, `local`, `recover`, then `reader` and `archive`; `salvage` reads damaged logs.
//!
//! State: that of each kind of log; `Durability` is shared by a log and its sync points.
//! What always holds:
//! - **Invariant:** positions begin at 1 and have no gaps.
//! - **Invariant:** a group whose position was synced is read again, unchanged, at every later opening,
//!   or the opening fails and reports where the damage is. The log never loses groups without an error.
//! - **Invariant:** after an error from the disk every operation of the log fails; only opening it again
//!   shows which groups are left.
//! - **Invariant:** a log that has become shorter is refused.
//! - **Invariant:** it uses no other crate of ours.

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

/// The position of a group in the log. The first group is at 1; 0 is before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);

/// A group as it is read from a log.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    /// Its position.
    pub position: Position,
    /// The time that the log gave it, in milliseconds since 1970.
    pub time_ms: u64,
    /// The payload as it was appended.
    pub payload: &'a [u8],
}

/// The position and time of an appended group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Its position.
    pub position: Position,
    /// The time that the log gave it, in milliseconds since 1970.
    pub time_ms: u64,
}

/// A log as its writer uses it: what is appended comes back by [`Log::next`], with its place. Before anything is appended
/// what the log had when it was opened comes, from the position on that the caller has.
///
/// A log of its own, in files of this machine, has a node that is none, can be cut, and gives back at once what was
/// appended. One that several nodes share also gives the groups of the others.
pub trait Log: Send {
    /// Hands over a group of 1 to [`Log::payload_bytes_max`] bytes. One of a log of its own survives the end of the process
    /// then, but not yet a power loss; one of a shared log is durable when it comes back. `time_ms` is the caller's time in
    /// milliseconds since 1970; a log that keeps its own time gives the group that instead, and keeps the caller's beside
    /// it. A payload of another length is refused and changes nothing; any other error poisons the log.
    fn append(&mut self, payload: Bytes, time_ms: u64) -> Result<(), LogError>;

    /// The next group, if it is here. Does not wait for others. An error poisons the log.
    fn next(&mut self) -> Result<Option<Arrived>, LogError>;

    /// Takes the next group like [`Log::next`], and waits up to `wait` for one of others.
    fn next_within(&mut self, _wait: Duration) -> Result<Option<Arrived>, LogError> {
        self.next()
    }

    /// Waits until every group appended so far survives a power loss. An error poisons the log.
    fn sync(&mut self) -> Result<(), LogError> {
        self.sync_point().sync()
    }

    /// A sync of everything appended so far, to run on another thread while this one goes on appending.
    fn sync_point(&self) -> SyncPoint;

    /// The position of the last group that [`Log::next`] has given, or after which it began; 0 if there is none.
    fn delivered(&self) -> Position;

    /// The position of the last group when it was opened.
    fn last_at_open(&self) -> Position;

    /// The node that appends, in a log that several nodes share.
    fn node(&self) -> Option<NodeId> {
        None
    }

    /// The longest payload that it accepts, in bytes.
    fn payload_bytes_max(&self) -> usize {
        PAYLOAD_BYTES_MAX
    }

    /// Lets this node append to a shared log, in an epoch that must be greater than all of it before. From then on `wake` is
    /// called after each group, or error, that [`Log::next`] can give.
    fn begin(&mut self, _epoch: u64, _wake: Box<dyn Fn() + Send + Sync>) {}

    /// Whether the log cannot be trusted with changes now. It may pass.
    fn refuses_changes(&self) -> bool {
        false
    }

    /// No node needs the groups of a shared log up to here: it may drop them, at any time.
    fn trim(&mut self, _up_to: Position) {}

    /// The last position that the log is known to have.
    fn end(&self) -> LogEnd {
        LogEnd { position: self.delivered(), ago: Duration::ZERO }
    }

    /// Files that the nodes that share a log give each other.
    fn files(&self) -> Option<Arc<dyn SharedFiles>> {
        None
    }

    /// Drops old groups of a log of its own, none of them after `up_to`: only whole segments, and never the last one.
    /// Returns the bytes freed on the disk. An error poisons the log.
    fn cut(&mut self, _up_to: Position) -> Result<u64, LogError> {
        Ok(0)
    }

    /// Makes the next group begin a new segment, so that [`Log::cut`] can drop all that came before.
    /// False if the segment is still being prepared: ask again later. An error poisons the log.
    fn renew(&mut self) -> Result<bool, LogError> {
        Ok(true)
    }

    /// Whether the last segment has no groups yet.
    fn is_renewed(&self) -> bool {
        true
    }

    /// The bytes on this machine from the oldest group kept to the last one, with headers and padding.
    fn size(&self) -> u64 {
        0
    }
}

/// The error of the callback that receives the groups.
pub type ReadError = Box<dyn std::error::Error + Send + Sync>;

/// Why a log could not be opened, or why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file is not a log, and not a log after a power loss.
    #[error("the log is damaged: {} at byte {offset}, group {}: {what}", file.display(), position.0)]
    Damaged {
        /// The segment.
        file: PathBuf,
        /// Position in the file, in bytes.
        offset: u64,
        /// The group expected there.
        position: Position,
        /// Description of the damage.
        what: &'static str,
    },
    /// The file has another format than this program.
    #[error("{} has log format {found}, but this program reads format {known}", file.display())]
    Version {
        /// The segment.
        file: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this program reads.
        known: u32,
    },
    /// Groups that the caller has not seen are no longer in the log.
    #[error("the log begins at group {}, but the groups after {} are needed", first.0, from.0)]
    StartsAfterStore {
        /// The oldest group in the log.
        first: Position,
        /// The last group that the caller has seen.
        from: Position,
    },
    /// The caller has seen more groups than there are.
    #[error("the log ends at group {}, but group {} has been applied already", last.0, from.0)]
    ShorterThanStore {
        /// The last group in the log.
        last: Position,
        /// The last group that the caller has seen.
        from: Position,
    },
    /// A payload is empty or longer than [`PAYLOAD_BYTES_MAX`].
    #[error("a group has 1 to {PAYLOAD_BYTES_MAX} bytes, not {bytes}")]
    Length {
        /// Its length.
        bytes: usize,
    },
    /// The callback that received this group returned an error.
    #[error("group {} of the log cannot be replayed", position.0)]
    Read {
        /// The group.
        position: Position,
        /// The error of the callback.
        source: ReadError,
    },
    /// The operating system reports an error.
    #[error("cannot {doing} {}", file.display())]
    Disk {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file or directory.
        file: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A group cannot be applied, or a log that several nodes share has stopped.
    #[error(transparent)]
    Shared(ReadError),
    /// There was an error from the disk before; every operation of the log fails.
    #[error("the log has stopped after an earlier error from the disk")]
    Poisoned,
}

/// Returns a closure that converts an I/O error into a [`LogError`].
fn disk_error(doing: &'static str, file: &Path) -> impl FnOnce(io::Error) -> LogError {
    let file = file.to_owned();
    move |source| LogError::Disk { doing, file, source }
}

/// Everything that had been appended at one moment, to be made durable on any thread.
#[must_use = "nothing is durable before `sync`"]
pub struct SyncPoint {
    last: Position,
    /// None if it is durable.
    unsynced: Option<Unsynced>,
}

struct Unsynced {
    file: Arc<dyn DiskFile>,
    path: Arc<Path>,
    durability: Arc<Durability>,
}

impl SyncPoint {
    /// Of a log whose groups are durable before they have their place.
    pub fn durable(last: Position) -> Self {
        Self { last, unsynced: None }
    }

    /// The last group that `sync` makes durable.
    pub fn last(&self) -> Position {
        self.last
    }

    /// Waits until the groups up to `last` survive a power loss. An error poisons the log: groups that
    /// were acknowledged may be lost, and another sync would only hide it.
    pub fn sync(&self) -> Result<(), LogError> {
        let Some(Unsynced { file, path, durability }) = &self.unsynced else { return Ok(()) };
        durability.sync(self.last, &**file, path)
    }
}

/// The last durable position of the log, and whether the log has failed.
#[derive(Default)]
struct Durability {
    last: AtomicU64,
    poisoned: AtomicBool,
    /// One sync at a time: the kernel reports a failed write to only one of the threads that sync a file,
    /// and the other must see that the log is poisoned before it reports success.
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

/// Whether a bug that is seeded on purpose is switched on: the simulator must find each
/// (`cargo xtask dst --bugs NAME`).
#[cfg(feature = "bugs")]
pub(crate) fn has_bug(name: &str) -> bool {
    use std::sync::OnceLock;
    static BUG: OnceLock<String> = OnceLock::new();
    BUG.get_or_init(|| std::env::var("ROOST_BUG").unwrap_or_default()) == name
}

/// False: seeded bugs exist only with the feature.
#[cfg(not(feature = "bugs"))]
pub(crate) const fn has_bug(_name: &str) -> bool {
    false
}
