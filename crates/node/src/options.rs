//! Options of a node.

use std::path::PathBuf;
use std::time::Duration;

use store::StoreOptions;

use crate::clock::Clock;
use crate::progress::OpenProgress;

const MIB: usize = 1 << 20;

/// When a change is on disk and not only in the caches of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Before it is acknowledged: survives a power loss.
    Always,
    /// At most this long after it is acknowledged: a power loss may lose the changes of that time, the end
    /// of the process loses nothing.
    Interval(Duration),
    /// Left to the operating system: the end of the process loses nothing.
    Never,
}

/// Options of the archive.
#[derive(Clone, Debug)]
pub struct ArchiveOptions {
    /// Directory of the archive, which belongs to one data directory.
    pub dir: PathBuf,
    /// A change is in the archive at most this long after it was made.
    pub interval: Duration,
    /// The log is kept for an archive that cannot be written while it has at most this many bytes.
    pub backlog_max: u64,
}

impl ArchiveOptions {
    /// Within a minute, and 8 GiB.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), interval: Duration::from_secs(60), backlog_max: 8 << 30 }
    }
}

/// Options of a node. Sizes are bytes of memory.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Directory of the log and the store; created if it does not exist.
    pub data: PathBuf,
    /// See [`Durability`].
    pub durability: Durability,
    /// Budget of home timelines; beyond it those not read lately are dropped.
    pub timeline_memory: usize,
    /// Budget of what is rendered, of the newest posts of all users, and of lists of stories.
    pub post_memory: usize,
    /// Additional budget of what is rendered, for statuses and accounts of the Mastodon API.
    pub entity_memory: usize,
    /// Budget of keys of buckets; beyond it those not read lately are dropped and come from the disk.
    pub bucket_memory: usize,
    /// Memory for samples of the recognizer, at least [`crate::SAMPLE_MEMORY_MIN`]. A third is for the samples
    /// themselves, the rest for what snapshots hold of earlier states.
    pub sample_memory: usize,
    /// Cache of the store.
    pub store_cache: usize,
    /// Changes held before a checkpoint writes them to the store; up to four times as much while one is
    /// under way and writing goes on.
    pub overlay_memory: usize,
    /// Number of commands that may be pending; beyond it callers get [`crate::SubmitError::Busy`].
    pub queue_commands_max: usize,
    /// Whether the log is applied even if another build has acknowledged other outcomes of it than those by the rules of this
    /// one.
    pub accept_other_outcomes: bool,
    /// Texts and views of a story are erased from every file within this time after it has expired or was
    /// deleted, while the node runs.
    pub erase_within: Duration,
    /// Bytes of the disk that are kept free: when less is free, only changes that remove something are accepted. 0
    /// for none.
    pub disk_reserve: u64,
    /// Most bytes that the files of pictures take.
    pub media_max: u64,
    /// The program that converts uploaded pictures in a process of its own: see [`CONVERT`](crate::CONVERT). Without one
    /// they are converted in this process, whose memory is not limited then: only for tests.
    pub converter: Option<PathBuf>,
    /// The archive of the log, if there is one.
    pub archive: Option<ArchiveOptions>,
    /// Bytes per second that are read, at most, to compare everything on the disk with its checksums; 0 for not at
    /// all.
    pub scrub_rate: u64,
    /// Source of the time.
    pub clock: Clock,
    /// The clock is not followed if it jumps ahead by more than this, and not accepted at the start if it differs by
    /// more from when the node last ran.
    pub clock_jump_max: Duration,
    /// Whether it is accepted at the start all the same.
    pub accept_clock: bool,
    /// Says how far the opening is.
    pub progress: OpenProgress,
}

impl NodeOptions {
    /// With [`Durability::Always`], within budgets of 1,536 MiB, 192 MiB more while checkpoints lag, and
    /// [`crate::FIXED_MEMORY`].
    #[must_use]
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            durability: Durability::Always,
            timeline_memory: 512 * MIB,
            post_memory: 384 * MIB,
            entity_memory: 128 * MIB,
            bucket_memory: 256 * MIB,
            sample_memory: 128 * MIB,
            store_cache: 64 * MIB,
            overlay_memory: 64 * MIB,
            queue_commands_max: 16_384,
            accept_other_outcomes: false,
            erase_within: Duration::from_secs(3_600),
            disk_reserve: 512 * MIB as u64,
            media_max: 10 << 30,
            converter: None,
            archive: None,
            scrub_rate: MIB as u64,
            clock: Clock::system(),
            clock_jump_max: Duration::from_secs(7 * 86_400),
            accept_clock: false,
            progress: OpenProgress::default(),
        }
    }

    /// These options for a program that serves nobody: it opens a directory whatever number of samples was added.
    #[must_use]
    pub fn with_any_samples(self) -> Self {
        Self { sample_memory: 1 << 40, ..self }
    }

    /// The directory of the log.
    pub(crate) fn log_dir(&self) -> PathBuf {
        self.data.join("log")
    }

    /// The directory of the store.
    pub(crate) fn store_dir(&self) -> PathBuf {
        self.data.join("store")
    }

    /// Options of the store.
    pub(crate) fn store(&self) -> StoreOptions {
        StoreOptions { cache_bytes: self.store_cache as u64, bucket_bytes: self.bucket_memory }
    }
}
