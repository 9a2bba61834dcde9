//! Options of a node.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rank::Feeds;
use store::StoreOptions;

use crate::clock::Clock;
use crate::progress::OpenProgress;

const MIB: usize = 1 << 20;

/// Time at which a change is synced from the operating system's cache to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Sync before the reply: acknowledged changes survive a power loss.
    Always,
    /// Sync at most this long after the reply: a power loss can lose the changes of this time; a crash of the process
    /// loses nothing.
    Interval(Duration),
    /// Sync left to the operating system: a crash of the process loses nothing.
    Never,
}

/// Options of the archive.
#[derive(Clone, Debug)]
pub struct ArchiveOptions {
    /// Directory of the archive; used by one data directory only.
    pub dir: PathBuf,
    /// Longest time from a change to its copy in the archive.
    pub interval: Duration,
    /// Size in bytes up to which the log is kept while the archive cannot be written.
    pub backlog_max: u64,
}

impl ArchiveOptions {
    /// Archives to `dir` every minute, with a backlog of at most 8 GiB.
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
    /// Policy of syncing the log to disk.
    pub durability: Durability,
    /// Budget of home timelines. When it is used up, the least recently read timelines are dropped.
    pub timeline_memory: usize,
    /// Budget of rendered entities, of the newest posts of all users, and of lists of stories.
    pub post_memory: usize,
    /// Additional budget of rendered statuses and accounts of the Mastodon API.
    pub entity_memory: usize,
    /// Budget of keys of buckets. When it is used up, the least recently read keys are dropped from memory, and read
    /// from disk when they are needed.
    pub bucket_memory: usize,
    /// Budget of samples of the recognizer, at least [`crate::SAMPLE_MEMORY_MIN`]. A third is for the samples, the rest
    /// for the earlier states that snapshots hold.
    pub sample_memory: usize,
    /// Budget of the store's block cache.
    pub store_cache: usize,
    /// Size of the changes that trigger a checkpoint. While a checkpoint runs and writes continue, changes may take
    /// four times as much.
    pub overlay_memory: usize,
    /// Maximum number of pending commands; beyond it callers get [`crate::SubmitError::Busy`].
    pub queue_commands_max: usize,
    /// Whether to apply a log whose outcomes under this build's rules differ from those that another build
    /// acknowledged.
    pub accept_other_outcomes: bool,
    /// Longest time until texts and views of an expired or deleted story are erased from all files of a running node.
    pub erase_within: Duration,
    /// Bytes of the disk that are kept free: when less is free, only removals are accepted. 0 disables the check.
    pub disk_reserve: u64,
    /// Maximum size of all files of pictures, in bytes.
    pub media_max: u64,
    /// Program that converts uploaded pictures in a separate process, see [`CONVERT`](crate::CONVERT). `None` converts
    /// them in this process without a memory limit: only for tests.
    pub converter: Option<PathBuf>,
    /// Archive of the log.
    pub archive: Option<ArchiveOptions>,
    /// Maximum size of the change feed's files, in bytes; 0 disables the change feed. The files may exceed it by one
    /// segment of 1 MiB and the longest group.
    pub changes_max: u64,
    /// Built-in definitions of ranked feeds, and those of a file.
    pub feeds: Arc<Feeds>,
    /// Rate in bytes per second at which the scrub compares files with their checksums; 0 disables it.
    pub scrub_rate: u64,
    /// Source of the time.
    pub clock: Clock,
    /// Maximum error of the clock that is accepted. A running node does not follow a larger jump ahead, and a start is
    /// refused if the clock is further than this from the time at which the node last ran.
    pub clock_jump_max: Duration,
    /// Whether a start accepts a larger error of the clock.
    pub accept_clock: bool,
    /// Progress of opening the node.
    pub progress: OpenProgress,
}

impl NodeOptions {
    /// Creates options with [`Durability::Always`] and budgets of 1,536 MiB in total; 192 MiB more while a checkpoint
    /// runs, and [`crate::FIXED_MEMORY`].
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
            changes_max: 0,
            feeds: Arc::default(),
            scrub_rate: MIB as u64,
            clock: Clock::system(),
            clock_jump_max: Duration::from_secs(7 * 86_400),
            accept_clock: false,
            progress: OpenProgress::default(),
        }
    }

    /// Adjusts the options for commands that serve no requests: they accept any number of samples in the directory, and
    /// continue a change feed of any size.
    #[must_use]
    pub fn for_commands(self) -> Self {
        let keeps_changes = self.changes_max > 0 || self.data.join("changes").exists();
        let changes_max = if keeps_changes { u64::MAX } else { 0 };
        Self { sample_memory: 1 << 40, changes_max, ..self }
    }

    /// Returns the directory of the log.
    pub(crate) fn log_dir(&self) -> PathBuf {
        self.data.join("log")
    }

    /// Returns the directory of the change feed, if there is one.
    pub(crate) fn changes_dir(&self) -> Option<PathBuf> {
        (self.changes_max > 0).then(|| self.data.join("changes"))
    }

    /// Returns the directory of the store.
    pub(crate) fn store_dir(&self) -> PathBuf {
        self.data.join("store")
    }

    /// Options of the store.
    pub(crate) fn store(&self) -> StoreOptions {
        StoreOptions { cache_bytes: self.store_cache as u64, bucket_bytes: self.bucket_memory }
    }
}
