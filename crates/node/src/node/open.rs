//! Opening a node: recovering its state, and starting its threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use commitlog::disk::RealDisk;
use commitlog::{ClusterId, LocalLog, Log, LogError, OwnLog, Position, SharedLog};
use feed::PostId;
use parking_lot::{Mutex, RwLock};
use quick_cache::sync::Cache;
use rows::Rows as _;
use store::{Store, StoreError, StoreWriter, unless_unreadable};

use super::{Node, Threads};
use crate::applier::{ANSWER_BYTES, Applier, Replayed, SHARED_PAYLOAD_MIN};
use crate::archive::Archiver;
use crate::archive_progress::ArchiveProgress;
use crate::budget::MemoryBudget;
use crate::checkpoints::{Checkpoints, WORK_MAX};
use crate::clock::{ClockError, Time};
use crate::cluster::Cluster;
use crate::deliverer;
use crate::inbox::{Inbox, Ticket};
use crate::last_run::LastRun;
use crate::lock::DataLock;
use crate::metrics::Metrics;
use crate::node_log::NodeLog;
use crate::open_error::OpenError;
use crate::options::{Durability, NodeOptions};
use crate::samples::{SampleSets, memory_for, taught_bytes, taught_bytes_max};
use crate::scrub::Scrub;
use crate::shared::{NAMES, Shared};
use crate::space::Space;
use crate::sweeper::Sweeper;
use crate::threads::{Background, spawn};
use crate::views::Views;
use crate::writer::{self, Waiting, Writer};

/// A start reports that it waits for the log after this time.
const CATCH_UP_WAIT: Duration = Duration::from_secs(5);

/// A node whose threads do not run yet.
pub(crate) struct Parts {
    pub(crate) shared: Arc<Shared>,
    pub(crate) writer: Writer,
}

impl Parts {
    /// Checks the clock of a server that last ran at `last_run_ms`.
    ///
    /// # Errors
    /// [`ClockError`]
    pub(super) fn check_clock(
        &self,
        options: &NodeOptions,
        last_run_ms: u64,
    ) -> Result<(), ClockError> {
        let last_ms = self.shared.time.last_ms().max(last_run_ms);
        let jump_max = (!options.accept_clock).then_some(options.clock_jump_max);
        options.clock.check(last_ms, jump_max)
    }

    /// Replays onto the store, which has applied the log up to a position, what the log has after it.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub(crate) fn recover(
        options: &NodeOptions,
        (rows, applied): (StoreWriter, u64),
        log: Box<dyn OwnLog>,
        (identity, background): (String, Background),
    ) -> Result<Self, OpenError> {
        let start = Instant::now();
        let applied = Position(applied);
        let taught_bytes_max = taught_bytes_max(options.sample_memory);
        let mut applier = Applier::new(rows, MemoryBudget::new(ANSWER_BYTES), taught_bytes_max);
        let work = replay(&*log, applied, &mut applier, options)?;
        check_samples(&applier, taught_bytes_max)?;
        tracing::info!(
            replayed = work.commands, applied = applied.0, elapsed = ?start.elapsed(), "recovered"
        );
        let of = (identity, background, None);
        Ok(Self::new(options, applier, NodeLog::Own(log), (applied, work.work), of))
    }

    /// As [`Parts::recover`], with a log that several nodes share: applies what it has, and begins to append.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub(crate) fn recover_shared(
        options: &NodeOptions,
        (rows, applied): (StoreWriter, u64),
        mut log: Box<dyn SharedLog>,
        (cluster, (identity, background)): (ClusterId, (String, Background)),
    ) -> Result<Self, OpenError> {
        let start = Instant::now();
        let applied = Position(applied);
        if log.payload_bytes_max() < SHARED_PAYLOAD_MIN {
            return Err(OpenError::ShortMessages(log.payload_bytes_max()));
        }
        let taught_bytes_max = taught_bytes_max(options.sample_memory);
        let mut applier = Applier::new(rows, MemoryBudget::new(ANSWER_BYTES), taught_bytes_max);
        applier.share(log.node(), log.payload_bytes_max());
        let mut up_to = applied;
        let work = match catch_up(&mut *log, &mut up_to, &mut applier, options) {
            Ok(work) => work,
            Err(error) => {
                // The next start, or `leave`, has what could be applied.
                if let Some(checkpoint) = applier.rows_mut().freeze(up_to.0) {
                    checkpoint.run()?;
                }
                return Err(error);
            }
        };
        check_samples(&applier, taught_bytes_max)?;
        tracing::info!(
            %cluster, node = %log.node(), replayed = work.commands, applied = log.last().0,
            elapsed = ?start.elapsed(), "recovered"
        );
        let now_ms = options.clock.unix_ms();
        let epoch = now_ms.max(applier.last_epoch(log.node()) + 1);
        // The log's threads outlive the node by a moment, and must not keep its store open.
        let woken = Arc::new(OnceLock::<Weak<Shared>>::new());
        let wake = Arc::clone(&woken);
        log.begin(
            epoch,
            Box::new(move || {
                if let Some(shared) = wake.get().and_then(Weak::upgrade) {
                    shared.inbox.wake();
                }
            }),
        );
        let applied_ms = applier.facts().totals().last_stamp.map_or(0, rows::Stamp::unix_ms);
        let digest = (applier.digest(), applied_ms);
        let cluster = Cluster::new((cluster, log.node()), (applied, log.last()), digest);
        cluster.set_commands(applier.common_commands());
        let of = (identity, background, Some(cluster));
        let parts = Self::new(options, applier, NodeLog::Shared(log), (applied, work.work), of);
        assert!(woken.set(Arc::downgrade(&parts.shared)).is_ok(), "it is set once");
        parts.shared.inbox.wake();
        Ok(parts)
    }

    fn new(
        options: &NodeOptions,
        mut applier: Applier<StoreWriter, Ticket>,
        log: NodeLog,
        (applied, replayed): (Position, usize),
        (identity, background, cluster): (String, Background, Option<Cluster>),
    ) -> Self {
        let rows = applier.rows_mut();
        let first_post = PostId(rows.totals().last_stamp.map_or(0, |last| last.0 + 1));
        let metrics = Arc::new(Metrics::default());
        let space = Arc::new(Space::new(&options.data, options.disk_reserve));
        let archive = Arc::new(ArchiveProgress::new(options.archive.as_ref()));
        let shared = Arc::new(Shared {
            inbox: Inbox::new(options.queue_commands_max),
            views: Views::new(options.timeline_memory, options.post_memory, first_post),
            samples: SampleSets::load(feed::Facts::new(&*rows), options.sample_memory),
            store: rows.store(),
            snapshot_lock: RwLock::new(()),
            metrics: Arc::clone(&metrics),
            visible_up_to: AtomicU64::new(rows.totals().last_stamp.map_or(0, |stamp| stamp.0)),
            log_bytes: AtomicU64::new(log.size()),
            log_last: AtomicU64::new(log.any().last().0),
            log_dir: options.log_dir(),
            identity,
            archive: Arc::clone(&archive),
            overlay_bytes: AtomicU64::new(rows.overlay_bytes() as u64),
            delivery_due: AtomicBool::new(false),
            handles: Cache::new(NAMES),
            bucket_ids: Cache::new(NAMES),
            time: Time::new(
                options.clock.clone(),
                rows.totals().last_stamp.map_or(0, rows::Stamp::unix_ms),
                options.clock_jump_max,
            ),
            space: Arc::clone(&space),
            sweep_from: AtomicU64::new(0),
            erasure_due: AtomicBool::new(false),
            checkpoint_due: AtomicBool::new(false),
            cluster,
            stopped: AtomicBool::new(false),
            is_stored: AtomicBool::new(false),
        });
        let beside = (options.clock.clone(), background);
        let writer = Writer {
            checkpoints: Checkpoints::new(
                options.overlay_memory,
                applied,
                replayed,
                beside,
                (space, archive, metrics),
            ),
            shared: Arc::clone(&shared),
            log,
            applier,
            durability: options.durability,
            sync_slot: Arc::new(Mutex::new(None)),
            deliverer: None,
            waiting: Waiting::default(),
            lock: None,
        };
        Self { shared, writer }
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// [`OpenError::Archive`] and [`OpenError::Directory`]
    pub(super) fn start(
        self,
        options: &NodeOptions,
        lock: DataLock,
        last_run: LastRun,
    ) -> Result<Node, OpenError> {
        let Self { shared, mut writer } = self;
        shared.space.check();
        let archiver = options.archive.clone();
        let archiver =
            archiver.map(|archive| Archiver::open(Arc::clone(&shared), archive)).transpose()?;
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
                sweeper.run(last_run);
                Ok(())
            }
        }));
        others.push(spawn("warm-posts", {
            let shared = Arc::clone(&shared);
            move || {
                // Posts that cannot be read are not kept in memory, and reads of them will fail.
                unless_unreadable(|| shared.warm_posts(|| shared.stopped()));
                Ok(())
            }
        }));
        others.push(spawn("warm-keys", {
            let shared = Arc::clone(&shared);
            move || {
                // Keys that cannot be read stay on disk, where reads of them will fail.
                unless_unreadable(|| shared.store.warm_keys(|| shared.stopped()));
                Ok(())
            }
        }));
        if options.scrub_rate > 0 {
            let (log_dir, metrics) = (shared.log_dir.clone(), (*shared.metrics).clone());
            let mut scrub = Scrub::new(shared.store.clone(), log_dir, metrics, options.scrub_rate);
            let shared = Arc::clone(&shared);
            others.push(spawn("scrub", move || {
                while !shared.stopped.load(Ordering::Acquire) {
                    std::thread::park_timeout(scrub.step(shared.time.elapsed()));
                }
                Ok(())
            }));
        }
        if let Durability::Interval(interval) = options.durability {
            let (slot, shared) = (Arc::clone(&writer.sync_slot), Arc::clone(&shared));
            others.push(spawn("log-sync", move || {
                writer::sync_periodically(&slot, interval, &shared.stopped, &shared.metrics)
            }));
        }
        if let Some(archiver) = archiver {
            others.push(spawn("archiver", move || archiver.run()));
        }
        writer.deliverer = Some(deliverer.thread().clone());
        if shared.cluster.is_some() {
            let again = lock.again();
            let again = again.map_err(|error| OpenError::Directory(options.data.clone(), error));
            writer.lock = Some(again?);
        }
        let writer = Some(spawn("writer", move || writer.run()));
        others.push(deliverer);
        let threads = Threads { shared: Arc::clone(&shared), writer, others, lock: Some(lock) };
        Ok(Node { shared, threads: Arc::new(Mutex::new(threads)) })
    }
}

/// Opens the store of a directory and applies its log to it, without starting threads; the caller has the lock.
/// Whatever number of samples was taught is accepted: `serve` reports the memory that they need.
///
/// # Errors
/// See [`OpenError`].
pub(crate) fn recover_once(options: &NodeOptions) -> Result<Store, OpenError> {
    let options = options.clone().with_any_samples();
    let store = Store::open(&options.store_dir(), options.store())?;
    let log = LocalLog::open(Arc::new(RealDisk), &options.log_dir(), Position(store.1))?;
    let beside = (String::new(), Background::Threads);
    let parts = Parts::recover(&options, store, Box::new(log), beside)?;
    Ok(parts.shared.store.clone())
}

/// As [`recover_once`], and writes everything to the store; returns the last position of the log.
///
/// # Errors
/// See [`OpenError`].
pub(crate) fn store_once(options: &NodeOptions) -> Result<Position, OpenError> {
    let options = options.clone().with_any_samples();
    let store = Store::open(&options.store_dir(), options.store())?;
    let log = LocalLog::open(Arc::new(RealDisk), &options.log_dir(), Position(store.1))?;
    let last = Log::last(&log);
    let beside = (String::new(), Background::Threads);
    let mut parts = Parts::recover(&options, store, Box::new(log), beside)?;
    if let Some(checkpoint) = parts.writer.applier.rows_mut().freeze(last.0) {
        checkpoint.run()?;
    }
    Ok(last)
}

/// Applies what the log has after `applied`; returns what is not in the store yet. It takes checkpoints as
/// a running node does: that bounds memory, and a start that is killed part-way still makes progress.
fn replay(
    log: &dyn OwnLog,
    applied: Position,
    applier: &mut Applier<StoreWriter, Ticket>,
    options: &NodeOptions,
) -> Result<Replayed, OpenError> {
    let mut replayed = Replayed::default();
    options.progress.begin(log.last().0.saturating_sub(applied.0));
    log.read(applied, &mut |group| {
        let position = group.position.0;
        let done = applier.replay(group)?;
        if rows::has_bug("apply-twice") && position == applied.0 + 1 {
            applier.replay(group)?;
        }
        replayed.commands += done.commands;
        replayed.work += done.work;
        write_if_much(applier.rows_mut(), position, &mut replayed, options)?;
        options.progress.replayed(position - applied.0);
        Ok(())
    })?;
    Ok(replayed)
}

/// As [`replay`], for what a shared log had when it was opened. Waits for it as long as it takes. `up_to` is what is
/// applied, also after an error.
fn catch_up(
    log: &mut dyn SharedLog,
    up_to: &mut Position,
    applier: &mut Applier<StoreWriter, Ticket>,
    options: &NodeOptions,
) -> Result<Replayed, OpenError> {
    let mut replayed = Replayed::default();
    let applied = *up_to;
    options.progress.begin(log.last_at_open().0.saturating_sub(applied.0));
    while log.last() < log.last_at_open() {
        let Some(group) = log.next_within(CATCH_UP_WAIT)? else {
            tracing::warn!(position = log.last().0, "waiting for groups of the cluster's log");
            continue;
        };
        let done = applier.apply_shared(&group, |_| ());
        let done = done.map_err(|error| LogError::Shared(Box::new(error)))?;
        replayed.commands += done.commands;
        replayed.work += done.work;
        *up_to = group.position;
        write_if_much(applier.rows_mut(), up_to.0, &mut replayed, options)?;
        options.progress.replayed(up_to.0 - applied.0);
    }
    Ok(replayed)
}

/// Takes a checkpoint of what was replayed up to `position`, if it is much.
fn write_if_much(
    rows: &mut StoreWriter,
    position: u64,
    replayed: &mut Replayed,
    options: &NodeOptions,
) -> Result<(), StoreError> {
    if rows.overlay_bytes() >= options.overlay_memory || replayed.work >= WORK_MAX {
        if let Some(checkpoint) = rows.freeze(position) {
            checkpoint.run()?;
        }
        replayed.work = 0;
    }
    Ok(())
}

fn check_samples(
    applier: &Applier<StoreWriter, Ticket>,
    taught_bytes_max: usize,
) -> Result<(), OpenError> {
    let taught = taught_bytes(applier.facts());
    match taught > taught_bytes_max {
        true => Err(OpenError::Samples(memory_for(taught).div_ceil(1 << 20))),
        false => Ok(()),
    }
}
