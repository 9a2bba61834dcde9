//! A node: the log, the writer, the store and the views, put together. Opening one recovers what
//! was acknowledged; closing one leaves nothing to recover. The read functions are in files by topic.

mod keys;
mod reads;
mod samples;
mod stories;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use commitlog::disk::RealDisk;
use commitlog::{LocalLog, Log as _, LogError, Position};
use feed::{Reply, Request};
use parking_lot::{Mutex, RwLock};
use quick_cache::sync::Cache;
use rows::Rows as _;
use smallvec::{SmallVec, smallvec};
use store::{Store, StoreOptions, StoreWriter};

pub use self::reads::{PageEnds, Watch};

use crate::applier::{Applier, GROUP_COMMANDS_MAX, Replayed};
use crate::budget::MemoryBudget;
use crate::checkpoints::{Checkpoints, WORK_MAX};
use crate::clock::Time;
use crate::deliverer;
use crate::inbox::{Inbox, SubmitError, Ticket};
use crate::metrics::Metrics;
use crate::options::{ANSWER_BYTES, Durability, NodeOptions};
use crate::samples::{SampleSets, memory_for, taught_bytes, taught_bytes_max};
use crate::shared::{NAMES, Shared};
use crate::submission::Submission;
use crate::sweeper::Sweeper;
use crate::threads::spawn;
use crate::views::{ViewSizes, Views};
use crate::writer::{self, Writer};

/// Most commands that are submitted together.
pub const SUBMISSION_COMMANDS_MAX: usize = GROUP_COMMANDS_MAX;

/// Why a node did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process uses the directory.
    #[error("another roost uses {}; stop it or choose another --data", .0.display())]
    InUse(PathBuf),
    /// The operating system reports an error.
    #[error("cannot use {}", .0.display())]
    Directory(PathBuf, #[source] std::io::Error),
    /// The log is damaged, newer than this program, or cannot be read.
    #[error("the log cannot be used")]
    Log(#[from] LogError),
    /// The store is damaged, newer than this program, or cannot be read.
    #[error("the store cannot be used")]
    Store(#[from] store::StoreError),
    /// The samples that were taught need more memory than is configured for them now. The value is the
    /// memory needed, in MiB.
    #[error("the samples that were taught need {0} MiB; start with --sample-memory {0}MiB or more")]
    Samples(usize),
}

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
    /// Held until the last clone of the node is dropped.
    _lock: File,
}

/// How much a node holds now.
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
    /// Bytes of changes not yet in the store.
    pub overlay_bytes: u64,
    /// Bytes of keys that are in the store and also cached in memory.
    pub resident_bytes: u64,
    /// Bytes of samples, including what snapshots hold.
    pub sample_bytes: u64,
    /// Commands that wait for the writer.
    pub queued_commands: u64,
    /// Sizes of the views.
    pub views: ViewSizes,
}

impl Node {
    /// Opens the node in `options.data`, recovering everything that was acknowledged: the store as of its
    /// last checkpoint, then the log after it. Blocks.
    ///
    /// # Errors
    /// See [`OpenError`]. The log of a directory that is refused is not changed.
    pub fn open(options: &NodeOptions) -> Result<Self, OpenError> {
        let start = Instant::now();
        let lock = lock(&options.data)?;
        let (rows, applied) = Store::open(
            &options.data.join("store"),
            StoreOptions {
                cache_bytes: options.store_cache as u64,
                bucket_bytes: options.bucket_memory,
            },
        )?;
        let applied = Position(applied);
        let log = LocalLog::open(Arc::new(RealDisk), &options.data.join("log"), applied)?;
        let taught_bytes_max = taught_bytes_max(options.sample_memory);
        let mut applier = Applier::new(rows, MemoryBudget::new(ANSWER_BYTES), taught_bytes_max);
        let work = replay(&log, applied, &mut applier, options.overlay_memory)?;
        let taught = taught_bytes(applier.facts());
        if taught > taught_bytes_max {
            return Err(OpenError::Samples(memory_for(taught).div_ceil(1 << 20)));
        }
        tracing::info!(
            replayed = work.commands, applied = applied.0, elapsed = ?start.elapsed(), "recovered"
        );
        Ok(Self::start(options, lock, applier, log, (applied, work.work)))
    }

    fn start(
        options: &NodeOptions,
        lock: File,
        mut applier: Applier<StoreWriter, Ticket>,
        log: LocalLog,
        (applied, replayed): (Position, usize),
    ) -> Self {
        let rows = applier.rows_mut();
        let metrics = Arc::new(Metrics::default());
        let shared = Arc::new(Shared {
            inbox: Inbox::new(options.queue_commands_max),
            views: Views::new(options.timeline_memory, options.post_memory),
            samples: SampleSets::load(feed::Facts::new(&*rows), options.sample_memory),
            store: rows.store(),
            snapshot_lock: RwLock::new(()),
            metrics: Arc::clone(&metrics),
            visible_up_to: AtomicU64::new(rows.totals().last_stamp.map_or(0, |stamp| stamp.0)),
            log_bytes: AtomicU64::new(log.size()),
            overlay_bytes: AtomicU64::new(rows.overlay_bytes() as u64),
            delivery_due: AtomicBool::new(false),
            handles: Cache::new(NAMES),
            bucket_ids: Cache::new(NAMES),
            time: Time::new(
                options.clock.clone(),
                rows.totals().last_stamp.map_or(0, rows::Stamp::unix_ms),
            ),
            sweep_from: AtomicU64::new(0),
            erasure_due: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
        });
        let deliverer = spawn("deliverer", {
            let shared = Arc::clone(&shared);
            move || {
                deliverer::run(&shared);
                Ok(())
            }
        });
        let mut others = Vec::new();
        others.push(spawn("sweeper", {
            let sweeper = Sweeper::new(Arc::clone(&shared), options.erase_within);
            move || {
                sweeper.run();
                Ok(())
            }
        }));
        others.push(spawn("warm-keys", {
            let shared = Arc::clone(&shared);
            move || {
                shared.store.warm_keys(|| shared.stopped.load(Ordering::Acquire));
                Ok(())
            }
        }));
        let sync_slot = Arc::new(Mutex::new(None));
        if let Durability::Interval(interval) = options.durability {
            let (slot, shared) = (Arc::clone(&sync_slot), Arc::clone(&shared));
            others.push(spawn("log-sync", move || {
                writer::sync_periodically(&slot, interval, &shared.stopped, &shared.metrics)
            }));
        }
        let writer = Writer {
            checkpoints: Checkpoints::new(options.overlay_memory, applied, replayed, metrics),
            shared: Arc::clone(&shared),
            log,
            applier,
            durability: options.durability,
            sync_slot,
            deliverer: deliverer.thread().clone(),
        };
        let writer = Some(spawn("writer", move || writer.run()));
        others.push(deliverer);
        let threads = Threads { shared: Arc::clone(&shared), writer, others, _lock: lock };
        Self { shared, threads: Arc::new(Mutex::new(threads)) }
    }

    /// Submits one command and waits until it is durable, under the node's policy, and applied.
    ///
    /// # Errors
    /// [`SubmitError`]; the command was not applied then.
    pub async fn submit(&self, request: Request) -> Result<Reply, SubmitError> {
        let (submission, reply) = Submission::of_requests(smallvec![request]);
        self.shared.put(submission)?;
        match reply.await.map(|replies| replies.first().copied()) {
            Ok(Some(reply)) => Ok(reply),
            _ => Err(SubmitError::Stopped),
        }
    }

    /// Submits commands that are applied in this order; commands of other callers may be applied between
    /// them.
    ///
    /// # Errors
    /// [`SubmitError`]; none of the commands was applied then.
    ///
    /// # Panics
    /// If there are more than [`SUBMISSION_COMMANDS_MAX`].
    pub async fn submit_all(&self, requests: Vec<Request>) -> Result<Vec<Reply>, SubmitError> {
        let (submission, reply) = Submission::of_requests(requests.into());
        self.shared.put(submission)?;
        reply.await.map(SmallVec::into_vec).map_err(|_| SubmitError::Stopped)
    }

    /// As [`Node::submit_all`], but waits for room instead of reporting [`SubmitError::Busy`].
    ///
    /// # Errors
    /// [`SubmitError::Stopped`]; none of the commands was applied then.
    ///
    /// # Panics
    /// If there are more than [`SUBMISSION_COMMANDS_MAX`].
    pub async fn submit_all_waiting(
        &self,
        requests: Vec<Request>,
    ) -> Result<Vec<Reply>, SubmitError> {
        let (submission, reply) = Submission::of_requests(requests.into());
        self.shared.put_waiting(submission).await?;
        reply.await.map(SmallVec::into_vec).map_err(|_| SubmitError::Stopped)
    }

    /// Accepts no more commands, applies those that wait and takes a last checkpoint. Blocks. Reads still
    /// work, so the directory is free for another node only when the last clone of this one is dropped.
    /// Closing again does nothing.
    pub fn close(&self) {
        self.threads.lock().end();
    }

    /// Removes some of what is left of deleted users, which a thread of the node also does by itself; returns
    /// whether there may be more. Blocks.
    pub fn erase_users(&self) -> bool {
        self.shared.erase_users(&mut None)
    }

    /// Counters and histograms of the write path.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// How much the node holds now. Reads directories, so it may block.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let totals = self.shared.store.totals();
        Sizes {
            users: (totals.users - totals.users_deleted).into(),
            users_erasing: totals.users_erasing.into(),
            posts: totals.posts,
            follows: totals.follows,
            log_bytes: self.shared.log_bytes.load(Ordering::Relaxed),
            store_bytes: self.shared.store.disk_bytes(),
            overlay_bytes: self.shared.overlay_bytes.load(Ordering::Relaxed),
            resident_bytes: self.shared.store.resident_bytes() as u64,
            sample_bytes: self.shared.samples.bytes() as u64,
            queued_commands: self.shared.inbox.len() as u64,
            views: self.shared.views.sizes(),
        }
    }
}

impl Threads {
    /// Stops the writer, then the other threads. None of them can have panicked: a panic aborts the
    /// process.
    fn end(&mut self) {
        self.shared.inbox.close();
        if let Some(writer) = self.writer.take() {
            drop(writer.join());
        }
        self.shared.stopped.store(true, Ordering::Release);
        for thread in self.others.drain(..) {
            thread.thread().unpark();
            drop(thread.join());
        }
    }
}

/// Closes a node that is dropped without being closed.
impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock(data: &Path) -> Result<File, OpenError> {
    let directory = |error| OpenError::Directory(data.to_owned(), error);
    std::fs::create_dir_all(data).map_err(directory)?;
    // Sync the parent, so that the directory itself survives a power loss.
    if let Some(parent) = data.canonicalize().map_err(directory)?.parent() {
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(directory)?;
    }
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(data.join("lock"))
        .map_err(directory)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(data.to_owned())),
        Err(TryLockError::Error(error)) => Err(directory(error)),
    }
}

/// Applies what the log has after `applied`; returns what is not in the store yet. It takes checkpoints as
/// a running node does: that bounds memory, and a start that is killed part-way still makes progress.
fn replay(
    log: &LocalLog,
    applied: Position,
    applier: &mut Applier<StoreWriter, Ticket>,
    overlay_bytes_max: usize,
) -> Result<Replayed, OpenError> {
    let mut replayed = Replayed::default();
    log.read(applied, &mut |group| {
        let position = group.position.0;
        let done = applier.replay(group)?;
        replayed.commands += done.commands;
        replayed.work += done.work;
        let rows = applier.rows_mut();
        if rows.overlay_bytes() >= overlay_bytes_max || replayed.work >= WORK_MAX {
            if let Some(checkpoint) = rows.freeze(position) {
                checkpoint.run()?;
            }
            replayed.work = 0;
        }
        Ok(())
    })?;
    Ok(replayed)
}
