//! The node: log, writer, store and views, assembled. Opening recovers all acknowledged changes; closing leaves nothing
//! to recover. The read functions are in one file per topic.

mod backup;
mod changes;
mod current;
mod files;
mod keys;
mod media;
mod open;
mod ranked;
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

pub use self::ranked::{RankedPage, RankedPlace, RankedPost, Reason};
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

/// Maximum memory of a node in addition to the budgets of its options, in bytes: pending changes, a group and its
/// sectors before they are written to the log, a group beyond each of two full overlays, answers, and effects for
/// consumers.
pub const FIXED_MEMORY: usize =
    BYTES_MAX + 2 * KEY_OPS_BYTES_MAX + 2 * CHANGE_BYTES_MAX + ANSWER_BYTES + EFFECTS_BYTES_MAX;

/// Maximum number of commands of one submission.
pub const SUBMISSION_COMMANDS_MAX: usize = GROUP_COMMANDS_MAX;

/// A running node. Clones share the same node.
#[derive(Clone)]
pub struct Node {
    shared: Arc<Shared>,
    threads: Arc<Mutex<Threads>>,
}

struct Threads {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
    others: Vec<JoinHandle<()>>,
    /// Lock of the data directory, held until the last clone of the node is dropped. `None` in the simulator.
    lock: Option<DataLock>,
}

/// Current sizes of a node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sizes {
    /// Number of registered users.
    pub users: u64,
    /// Size of the change feed's files, in bytes.
    pub changes_bytes: u64,
    /// Whether the change feed ended with an error.
    pub changes_failed: bool,
    /// Number of deleted users whose rows are not all removed yet.
    pub users_erasing: u64,
    /// Number of live posts.
    pub posts: u64,
    /// Number of live follows.
    pub follows: u64,
    /// Size of the kept log, in bytes.
    pub log_bytes: u64,
    /// Size of the store on disk, in bytes.
    pub store_bytes: u64,
    /// Number of pictures.
    pub pictures: u64,
    /// Size of the files of pictures in disk blocks, in bytes. Files with equal contents count each time.
    pub picture_bytes: u64,
    /// Size of the changes not yet in the store, in bytes.
    pub overlay_bytes: u64,
    /// Size of the keys that are in the store and cached in memory, in bytes.
    pub resident_bytes: u64,
    /// Size of the samples, including what snapshots hold, in bytes.
    pub sample_bytes: u64,
    /// Number of commands that wait for the writer.
    pub queued_commands: u64,
    /// Free space of the disk, in bytes.
    pub disk_free_bytes: u64,
    /// Whether only deletions are accepted because the disk is full.
    pub disk_full: bool,
    /// Number of reads since the start that found a damaged row.
    pub unreadable_reads: u64,
    /// Time for which the archive of the log has been incomplete; 0 without an archive.
    pub archive_lag: Duration,
    /// Number of failed writes to the archive.
    pub archive_failures: u64,
    /// Number of times that the log was cut before it was archived.
    pub archive_gaps: u64,
    /// Time at which the last backup of the directory was completed, in milliseconds since 1970; 0 if unknown.
    pub last_backup_ms: u64,
    /// Difference of the machine's clock and the node's time, in milliseconds; positive if the clock is ahead.
    pub clock_offset_ms: i64,
    /// Sizes of the views.
    pub views: ViewSizes,
}

impl Node {
    /// Whether only removals are accepted because the disk has too little free space.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        self.shared.space.is_full()
    }

    /// Opens the node in `options.data` and recovers everything that was acknowledged: the store at its last
    /// checkpoint, then the log after it. Blocks.
    ///
    /// # Errors
    /// [`OpenError`]. A refused directory's log is not changed.
    pub fn open(options: &NodeOptions) -> Result<Self, OpenError> {
        // An unusable clock is detected before anything is opened.
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

    /// Opens the node in `options.data` as a member of the cluster of the directory. `open_log` opens the log at a
    /// given position; the node applies all groups after its last checkpoint. Blocks.
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
            // The directory is marked only now, so that a start that fails because of the log changes nothing.
            lock.mark_used(&options.data)?;
            let beside = (identity, Background::Threads, Some(cluster));
            let parts = Parts::recover(options, store, log, beside);
            if was_closed && matches!(parts, Err(OpenError::Log(_))) {
                // The store has everything that was applied before the log ended the start.
                let closed = lock.close();
                closed.map_err(|error| OpenError::Directory(options.data.clone(), error))?;
            }
            parts
        };
        let parts = unless_unreadable(recover);
        Self::start(options, lock, parts)
    }

    /// Starts the recovered node if all rows could be read.
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

    /// Returns the status of the cluster; `None` for a node with its own log.
    #[must_use]
    pub fn cluster(&self) -> Option<ClusterStatus> {
        let now_ms = self.shared.time.now_ms();
        let missing = self.shared.exchange.as_ref().map_or((0, false), |files| files.missing());
        self.shared.cluster.as_ref().map(|cluster| cluster.status(now_ms, missing))
    }

    /// Returns the position of the last applied group; `None` for a node with its own log.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        self.shared.cluster.as_ref().map(|cluster| cluster.position().0)
    }

    /// Waits until this node has applied the group at `position`, for at most as long as commands wait for a reply;
    /// returns false after that time. Returns true at once for a node with its own log.
    pub async fn applied(&self, position: u64) -> bool {
        let reached = self.shared.positions.reached(Position(position));
        let is_alone = self.shared.cluster.is_none();
        is_alone || tokio::time::timeout(CONFIRMED_WITHIN, reached).await.is_ok()
    }

    /// Submits one command and waits until it is applied, and durable under the node's policy.
    ///
    /// # Errors
    /// [`SubmitError`]
    pub async fn submit(&self, request: Request) -> Result<Reply, SubmitError> {
        let (submission, reply) = Submission::of_requests(smallvec![request]);
        self.shared.put(submission)?;
        let replies = self.shared.reply(reply).await?;
        replies.first().copied().ok_or(SubmitError::Stopped)
    }

    /// Submits commands that are applied in this order; commands of other callers may come in between. Waits for room
    /// instead of returning [`SubmitError::Busy`].
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

    /// Stops accepting commands, applies the pending ones and takes a last checkpoint. Blocks. Reads still work.
    /// Another node can open the directory only after the last clone of this node is dropped. A second call does
    /// nothing.
    pub fn close(&self) {
        self.threads.lock().end();
    }

    /// Runs all scheduled work that is due; a thread of the node does the same periodically. Blocks.
    pub fn do_due(&self) {
        loop {
            let mut due = DueLoop::default();
            while due.step(&self.shared, due::wait) != DueStep::Idle {}
            if !due.is_overtaken() {
                return;
            }
        }
    }

    /// Returns the counters and histograms of the write path.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Returns the current sizes. Reads directories, so it may block.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let totals = self.shared.store.totals();
        let media = unless_unreadable(|| self.facts().all_media_space()).unwrap_or_default();
        let (changes_bytes, changes_failed) = self.changes_state();
        Sizes {
            changes_bytes,
            changes_failed,
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
    /// Stops the writer, then the other threads. None of them can have panicked: a panic aborts the process.
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
        // From here on, everything is in the store or in the log of this node, so a copy of the directory is complete
        // and consistent.
        let has_all =
            self.shared.cluster.is_none() || self.shared.is_stored.load(Ordering::Acquire);
        if let Some(lock) = self.lock.as_mut().filter(|_| has_all)
            && let Err(error) = lock.close()
        {
            tracing::warn!(%error, "cannot mark the data directory as closed");
        }
    }
}

/// Closes the node if [`Node::close`] was not called.
impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}
