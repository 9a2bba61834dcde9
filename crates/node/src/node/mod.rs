//! A node: the log, the writer, the store and the views, put together. Opening one recovers what
//! was acknowledged; closing one leaves nothing to recover. The read functions are in files by topic.

mod backup;
mod current;
mod files;
mod keys;
mod media;
mod open;
mod reads;
mod replay;
mod samples;
#[cfg(feature = "simulation")]
mod simulation;
mod stories;
mod uploads;
mod waker;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use commitlog::disk::RealDisk;
use commitlog::{Applied, ClusterId, LocalLog, Log, LogError, NodeId, Position};
use feed::{Reply, Request};
use parking_lot::Mutex;
use rows::{CHANGE_BYTES_MAX, Rows as _};
use smallvec::{SmallVec, smallvec};
use store::{Store, unless_unreadable, unreadable_reads};

pub use self::reads::Watch;
#[cfg(feature = "simulation")]
pub use self::simulation::{Logged, PendingKeys, PendingRequests, SimulatedNode, SimulationError};

pub(crate) use self::open::{Parts, Stored, recover_once, store_once};
use crate::applier::{ANSWER_BYTES, GROUP_COMMANDS_MAX, KEY_OPS_BYTES_MAX, last_group};
use crate::backup::last_backup;
use crate::cluster::{CONFIRMED_WITHIN, ClusterStatus};
use crate::directory::identity;
use crate::directory::last_run::LastRun;
use crate::directory::lock::DataLock;
use crate::directory::membership;
use crate::directory::open_error::OpenError;
use crate::due::{self, DueLoop, DueStep};
use crate::metrics::Metrics;
use crate::options::NodeOptions;
use crate::shared::Shared;
use crate::submission::Submission;
use crate::submission::inbox::{BYTES_MAX, SubmitError};
use crate::threads::Background;
use crate::views::{EFFECTS_BYTES_MAX, ViewSizes};

/// Memory that a node takes beside what its options say, in bytes, at most: changes under way, a group and
/// its sectors on their way into the log, a group beyond each of two full overlays, answers, and effects for consumers.
pub const FIXED_MEMORY: usize =
    BYTES_MAX + 2 * KEY_OPS_BYTES_MAX + 2 * CHANGE_BYTES_MAX + ANSWER_BYTES + EFFECTS_BYTES_MAX;

/// Most commands that are submitted together.
pub const SUBMISSION_COMMANDS_MAX: usize = GROUP_COMMANDS_MAX;

/// A running node. Clones are the same node.
#[derive(Clone)]
pub struct Node {
    shared: Arc<Shared>,
    threads: Arc<Mutex<Threads>>,
}

struct Threads {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
    others: Vec<JoinHandle<()>>,
    /// Held until the last clone of the node is dropped. None in the simulator.
    lock: Option<DataLock>,
}

/// Current sizes of a node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sizes {
    /// Registered users.
    pub users: u64,
    /// Deleted users whose rows are not all removed.
    pub users_erasing: u64,
    /// Live posts.
    pub posts: u64,
    /// Live follows.
    pub follows: u64,
    /// Bytes of the log that are kept.
    pub log_bytes: u64,
    /// Bytes of the store on disk.
    pub store_bytes: u64,
    /// Pictures.
    pub pictures: u64,
    /// Bytes of the files of pictures, in blocks of a disk. Equal files count each time.
    pub picture_bytes: u64,
    /// Bytes of changes not yet in the store.
    pub overlay_bytes: u64,
    /// Bytes of keys that are in the store and also cached in memory.
    pub resident_bytes: u64,
    /// Bytes of samples, including what snapshots hold.
    pub sample_bytes: u64,
    /// Commands that wait for the writer.
    pub queued_commands: u64,
    /// Bytes that are free on the disk.
    pub disk_free_bytes: u64,
    /// Whether only deletions are accepted, because the disk is full.
    pub disk_full: bool,
    /// Reads since the start that met a damaged row.
    pub unreadable_reads: u64,
    /// For how long the archive of the log has lacked a change; 0 without an archive.
    pub archive_lag: Duration,
    /// Attempts to write to the archive that failed.
    pub archive_failures: u64,
    /// Times that the log was cut before it was archived.
    pub archive_gaps: u64,
    /// When the last backup of the directory was written to its end, in milliseconds since 1970; 0 if that is not known.
    pub last_backup_ms: u64,
    /// Time by which the machine's clock is ahead of the time of the node, in milliseconds.
    pub clock_offset_ms: i64,
    /// Sizes of the views.
    pub views: ViewSizes,
}

impl Node {
    /// Whether so little of the disk is free that only changes that remove something are accepted.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        self.shared.space.is_full()
    }

    /// Opens the node in `options.data`, recovering everything that was acknowledged: the store as of its
    /// last checkpoint, then the log after it. Blocks.
    ///
    /// # Errors
    /// See [`OpenError`]. The log of a directory that is refused is not changed.
    pub fn open(options: &NodeOptions) -> Result<Self, OpenError> {
        // A clock that no start can use is refused before anything is opened.
        options.clock.check(0, None)?;
        let lock = DataLock::take(&options.data)?;
        let recover = || {
            let store = Store::open(&options.store_dir(), options.store())?;
            let log = LocalLog::open(Arc::new(RealDisk), &options.log_dir(), Position(store.1))?;
            let identity = identity::read_or_make(&options.data)?;
            let beside = (identity, Background::Threads, None);
            Parts::recover(options, store, Box::new(log), beside)
        };
        let parts = unless_unreadable(recover);
        Self::start(options, lock, parts)
    }

    /// Opens the node in `options.data` as one of the cluster that the directory belongs to, on the log that `open_log`
    /// opens for it from where it is: takes what the log has after the last checkpoint. Blocks.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_shared(
        options: &NodeOptions,
        open_log: impl FnOnce(ClusterId, NodeId, Applied) -> Result<Box<dyn Log>, LogError>,
    ) -> Result<Self, OpenError> {
        options.clock.check(0, None)?;
        let (mut lock, cluster) = DataLock::take_member(&options.data)?;
        membership::refuse_diverged(&options.data, cluster)?;
        let recover = || {
            let store = Store::open(&options.store_dir(), options.store())?;
            let identity = identity::read_or_make(&options.data)?;
            let node = identity::node(&identity);
            let (position, counted) = (Position(store.1), last_group(&store.0));
            let log = open_log(cluster, node, Applied { position, counted })?;
            let was_closed = lock.was_closed(&options.data)?;
            // Not before: a start that fails for the log changes nothing.
            lock.mark_used(&options.data)?;
            let beside = (identity, Background::Threads, Some(cluster));
            let parts = Parts::recover(options, store, log, beside);
            if was_closed && matches!(parts, Err(OpenError::Log(_))) {
                // The store has what was applied until the log stopped the start, and had everything before.
                let closed = lock.close();
                closed.map_err(|error| OpenError::Directory(options.data.clone(), error))?;
            }
            parts
        };
        let parts = unless_unreadable(recover);
        Self::start(options, lock, parts)
    }

    /// Starts what was recovered, if all rows could be read.
    fn start(
        options: &NodeOptions,
        lock: DataLock,
        parts: Option<Result<Parts, OpenError>>,
    ) -> Result<Self, OpenError> {
        let parts = parts.ok_or_else(|| OpenError::unreadable(options))??;
        let last_run = LastRun::open(&options.data)?;
        parts.check_clock(options, last_run.read())?;
        parts.start(options, lock, last_run)
    }

    /// The cluster that this node is one of; none if its log is its own.
    #[must_use]
    pub fn cluster(&self) -> Option<ClusterStatus> {
        let now_ms = self.shared.time.now_ms();
        let missing = self.shared.exchange.as_ref().map_or((0, false), |files| files.missing());
        self.shared.cluster.as_ref().map(|cluster| cluster.status(now_ms, missing))
    }

    /// The position of the last group that was applied, of a node of a cluster.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        self.shared.cluster.as_ref().map(|cluster| cluster.position().0)
    }

    /// Waits until this node has applied the group at `position`, as long as others wait for an answer; returns whether
    /// it has. True if its log is its own.
    pub async fn applied(&self, position: u64) -> bool {
        let reached = self.shared.positions.reached(Position(position));
        let is_alone = self.shared.cluster.is_none();
        is_alone || tokio::time::timeout(CONFIRMED_WITHIN, reached).await.is_ok()
    }

    /// Submits one command and waits until it is durable, under the node's policy, and applied.
    ///
    /// # Errors
    /// [`SubmitError`]
    pub async fn submit(&self, request: Request) -> Result<Reply, SubmitError> {
        let (submission, reply) = Submission::of_requests(smallvec![request]);
        self.shared.put(submission)?;
        let replies = self.shared.reply(reply).await?;
        replies.first().copied().ok_or(SubmitError::Stopped)
    }

    /// Submits commands that are applied in this order; commands of other callers may be applied between
    /// them. Waits for room instead of reporting [`SubmitError::Busy`].
    ///
    /// # Errors
    /// [`SubmitError`]
    ///
    /// # Panics
    /// If there are more than [`SUBMISSION_COMMANDS_MAX`].
    pub async fn submit_all(&self, requests: Vec<Request>) -> Result<Vec<Reply>, SubmitError> {
        let (submission, reply) = Submission::of_requests(requests.into());
        self.shared.put_waiting(submission).await?;
        self.shared.reply(reply).await.map(SmallVec::into_vec)
    }

    /// Accepts no more commands, applies those that wait and takes a last checkpoint. Blocks. Reads still
    /// work, so the directory is free for another node only when the last clone of this one is dropped.
    /// Closing again does nothing.
    pub fn close(&self) {
        self.threads.lock().end();
    }

    /// Does all that is due, which a thread of the node also does by itself. Blocks.
    pub fn do_due(&self) {
        loop {
            let mut due = DueLoop::default();
            while due.step(&self.shared, due::wait) != DueStep::Idle {}
            if !due.is_overtaken() {
                return;
            }
        }
    }

    /// Counters and histograms of the write path.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Current sizes. Reads directories, so it may block.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let totals = self.shared.store.totals();
        let media = unless_unreadable(|| self.facts().all_media_space()).unwrap_or_default();
        Sizes {
            users: (totals.users - totals.users_deleted).into(),
            users_erasing: totals.users_erasing.into(),
            posts: totals.posts,
            follows: totals.follows,
            log_bytes: self.shared.log_bytes.load(Ordering::Relaxed),
            store_bytes: self.shared.store.disk_bytes(),
            pictures: media.pictures.into(),
            picture_bytes: media.bytes,
            overlay_bytes: self.shared.overlay_bytes.load(Ordering::Relaxed),
            resident_bytes: self.shared.store.resident_bytes() as u64,
            sample_bytes: self.shared.samples.bytes() as u64,
            queued_commands: self.shared.inbox.len() as u64,
            disk_free_bytes: self.shared.space.free_bytes(),
            disk_full: self.shared.space.is_full(),
            unreadable_reads: unreadable_reads(),
            archive_lag: self.shared.archive.lag(),
            archive_failures: self.shared.archive.failures(),
            archive_gaps: self.shared.archive.gaps(),
            last_backup_ms: self.data().map_or(0, last_backup::read),
            clock_offset_ms: self.shared.time.offset_ms(),
            views: self.shared.views.sizes(),
        }
    }
}

impl Threads {
    /// Stops the writer, then the other threads. None of them can have panicked: a panic aborts the
    /// process.
    fn end(&mut self) {
        self.shared.uploads.close();
        self.shared.exchange.as_ref().inspect(|exchange| exchange.close());
        self.shared.inbox.close();
        if let Some(writer) = self.writer.take() {
            drop(writer.join());
        }
        self.shared.stopped.store(true, Ordering::Release);
        for thread in self.others.drain(..) {
            thread.thread().unpark();
            drop(thread.join());
        }
        // A copy of the directory is complete and consistent from now on: everything is in the store, or in the log of
        // the directory.
        let has_all =
            self.shared.cluster.is_none() || self.shared.is_stored.load(Ordering::Acquire);
        if let Some(lock) = self.lock.as_mut().filter(|_| has_all)
            && let Err(error) = lock.close()
        {
            tracing::warn!(%error, "cannot mark the data directory as closed");
        }
    }
}

/// Closes a node that is dropped without being closed.
impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}
