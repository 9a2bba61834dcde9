//! Opening a node: recovery of its state, and the start of its threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use commitlog::disk::RealDisk;
use commitlog::{ClusterId, LocalLog, Log, Position};
use feed::PostId;
use parking_lot::{Mutex, RwLock};
use rows::Rows as _;
use store::{Store, StoreWriter, unless_unreadable};

use super::replay::{catch_up, check_samples};
use super::waker;
use super::{Node, Threads};
use crate::applier::{ANSWER_BYTES, Applier, SHARED_PAYLOAD_MIN};
use crate::backup::archive::Archiver;
use crate::changes::ChangeLog;
use crate::checkpoints::Checkpoints;
use crate::checkpoints::archive_progress::ArchiveProgress;
use crate::checkpoints::space::Space;
use crate::clock::{ClockError, Time};
use crate::cluster::Cluster;
use crate::cluster::exchange::Exchange;
use crate::directory::last_run::LastRun;
use crate::directory::lock::DataLock;
use crate::directory::open_error::OpenError;
use crate::due::sweeper::Sweeper;
use crate::metrics::Metrics;
use crate::options::{Durability, NodeOptions};
use crate::pictures::converter::Converter;
use crate::pictures::files::MediaFiles;
use crate::pictures::uploads::Uploads;
use crate::scrub::Scrub;
use crate::shared::Shared;
use crate::submission::inbox::{Inbox, Ticket};
use crate::threads::{Background, spawn};
use crate::views::Views;
use crate::views::ids::Ids;
use crate::views::positions::Positions;
use crate::views::samples::{SampleSets, taught_bytes_max};
use crate::writer::{self, LongAppends, Waiting, Writer};
use budget::MemoryBudget;

/// A node whose threads do not run yet.
pub(crate) struct Parts {
    pub(crate) shared: Arc<Shared>,
    pub(crate) writer: Writer,
    /// First group whose outcomes differ from those that another build acknowledged.
    pub(crate) other_outcomes: Option<Position>,
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

    /// Applies to the store the groups of the log after its applied position, and begins to append. `cluster` is the
    /// cluster of a shared log.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub(crate) fn recover(
        options: &NodeOptions,
        (rows, applied): (StoreWriter, u64),
        mut log: Box<dyn Log>,
        (identity, background, cluster): (String, Background, Option<ClusterId>),
    ) -> Result<Self, OpenError> {
        let start = Instant::now();
        let applied = Position(applied);
        if log.payload_bytes_max() < SHARED_PAYLOAD_MIN {
            return Err(OpenError::ShortMessages(log.payload_bytes_max()));
        }
        let taught_bytes_max = taught_bytes_max(options.sample_memory);
        let mut applier = Applier::new(rows, MemoryBudget::new(ANSWER_BYTES), taught_bytes_max);
        if let Some(node) = log.node() {
            applier.share(node, log.payload_bytes_max());
        }
        let mut changes = ChangeLog::open(options, (applied, log.last_at_open()));
        let mut up_to = applied;
        let parts = (&mut applier, &mut changes);
        let work = match catch_up(&mut *log, &mut up_to, parts, options) {
            Ok(work) => work,
            Err(error) if cluster.is_some() => {
                // What could be applied is stored, so that the next start, or `leave`, continues from it.
                if let Some(checkpoint) = applier.rows_mut().freeze(up_to.0) {
                    changes.iter_mut().for_each(|changes| changes.sync_point().run());
                    checkpoint.run()?;
                }
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        applier.replayed();
        check_samples(&applier, taught_bytes_max)?;
        tracing::info!(
            replayed = work.commands, applied = log.delivered().0, elapsed = ?start.elapsed(), "recovered"
        );
        // The reference is weak, because the log's threads outlive the node briefly and must not keep its store open.
        let woken = Arc::new(OnceLock::<Weak<Shared>>::new());
        let shared = cluster.map(|cluster| {
            share(options, &mut *log, &applier, (cluster, applied), Arc::clone(&woken))
        });
        let of = (identity, background, shared.flatten());
        let mut parts = Self::new(options, applier, log, (applied, work.work, changes), of);
        parts.other_outcomes = work.other_outcomes;
        assert!(woken.set(Arc::downgrade(&parts.shared)).is_ok(), "it is set once");
        parts.shared.inbox.wake();
        Ok(parts)
    }

    fn new(
        options: &NodeOptions,
        mut applier: Applier<StoreWriter, Ticket>,
        log: Box<dyn Log>,
        (applied, replayed, changes): (Position, usize, Option<ChangeLog>),
        (identity, background, shared): (String, Background, Option<(Cluster, Arc<Exchange>)>),
    ) -> Self {
        let (cluster, exchange) = shared.unzip();
        let rows = applier.rows_mut();
        let first_post = PostId(rows.totals().last_stamp.map_or(0, |last| last.0 + 1));
        let metrics = Arc::new(Metrics::default());
        let space = Arc::new(Space::new(&options.data, options.disk_reserve));
        let archive = Arc::new(ArchiveProgress::new(options.archive.as_ref()));
        let shared = Arc::new(Shared {
            inbox: Inbox::new(options.queue_commands_max),
            views: Views::new(
                (options.timeline_memory, options.post_memory, options.entity_memory),
                (log.delivered(), first_post),
            ),
            samples: SampleSets::load(feed::Facts::new(&*rows), options.sample_memory),
            store: rows.store(),
            snapshot_lock: RwLock::new(()),
            metrics: Arc::clone(&metrics),
            feeds: Arc::clone(&options.feeds),
            visible_up_to: AtomicU64::new(rows.totals().last_stamp.map_or(0, |stamp| stamp.0)),
            positions: Positions::new(log.delivered()),
            log_bytes: AtomicU64::new(log.size()),
            log_last: AtomicU64::new(log.delivered().0),
            log_dir: options.log_dir(),
            changes: changes.as_ref().map(ChangeLog::kept),
            identity,
            archive: Arc::clone(&archive),
            overlay_bytes: AtomicU64::new(rows.overlay_bytes() as u64),
            media_files: Arc::new(MediaFiles::new(&options.data)),
            media_max: options.media_max,
            exchange,
            uploads: Uploads::new(Converter::new(options.converter.clone())),
            handles: Ids::new(),
            bucket_ids: Ids::new(),
            time: Time::new(
                options.clock.clone(),
                rows.totals().last_stamp.map_or(0, rows::Stamp::unix_ms),
                options.clock_jump_max,
            ),
            space: Arc::clone(&space),
            erasure_due: AtomicBool::new(false),
            has_removed_stories: AtomicBool::new(false),
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
                (replayed, changes),
                beside,
                (space, archive, metrics),
            ),
            shared: Arc::clone(&shared),
            log,
            applier,
            durability: options.durability,
            sync_slot: Arc::new(Mutex::new(None)),
            waker: None,
            sweeper: None,
            long_appends: LongAppends::default(),
            waiting: Waiting::default(),
            yields_space: false,
            data: options.data.clone(),
            lock: None,
        };
        Self { shared, writer, other_outcomes: None }
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
        let Self { shared, mut writer, .. } = self;
        shared.space.check();
        let archiver = options.archive.clone();
        let archiver =
            archiver.map(|archive| Archiver::open(Arc::clone(&shared), archive)).transpose()?;
        let start = |name, run: fn(&Shared)| {
            let shared = Arc::clone(&shared);
            spawn(name, move || {
                run(&shared);
                Ok(())
            })
        };
        // Unreadable posts and keys are not loaded. Requests that read them fail later.
        let mut others = vec![
            start("warm-posts", |shared| {
                unless_unreadable(|| shared.warm_posts(|| shared.stopped()));
            }),
            start("warm-keys", |shared| {
                unless_unreadable(|| shared.store.warm_keys(|| shared.stopped()));
            }),
            start("media", Shared::collect_files),
            start("uploads", Shared::take_uploads),
        ];
        let exchange = shared.exchange.as_ref();
        others.extend(exchange.map(|_| start("exchange", Shared::exchange_files)));
        let waker = start("waker", waker::run);
        let sweeper = spawn("sweeper", {
            let sweeper = Sweeper::new(Arc::clone(&shared), options.erase_within);
            move || {
                sweeper.run(last_run);
                Ok(())
            }
        });
        if options.scrub_rate > 0 {
            let pictures = Arc::clone(&shared.media_files);
            let of = (shared.store.clone(), shared.log_dir.clone(), pictures);
            let mut scrub = Scrub::new(of, (*shared.metrics).clone(), options.scrub_rate);
            scrub.exchange.clone_from(&shared.exchange);
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
        writer.waker = Some(waker.thread().clone());
        writer.sweeper = Some(sweeper.thread().clone());
        if shared.cluster.is_some() {
            let again = lock.again();
            let again = again.map_err(|error| OpenError::Directory(options.data.clone(), error));
            writer.lock = Some(again?);
        }
        let writer = Some(spawn("writer", move || writer.run()));
        others.extend([waker, sweeper]);
        let threads = Threads { shared: Arc::clone(&shared), writer, others, lock: Some(lock) };
        Ok(Node { shared, threads: Arc::new(Mutex::new(threads)) })
    }
}

/// Begins to append to a shared log; `None` for a node with its own log.
fn share(
    options: &NodeOptions,
    log: &mut dyn Log,
    applier: &Applier<StoreWriter, Ticket>,
    (cluster, checkpoint): (ClusterId, Position),
    woken: Arc<OnceLock<Weak<Shared>>>,
) -> Option<(Cluster, Arc<Exchange>)> {
    let (node, files) = log.node().zip(log.files())?;
    let epoch = options.clock.unix_ms().max(applier.last_epoch(node) + 1);
    let wake = move || {
        if let Some(shared) = woken.get().and_then(Weak::upgrade) {
            shared.inbox.wake();
        }
    };
    log.begin(epoch, Box::new(wake));
    let applied_ms = applier.facts().totals().last_stamp.map_or(0, rows::Stamp::unix_ms);
    let of = ((cluster, node), (checkpoint, log.delivered()), (applier.digest(), applied_ms));
    let cluster = Cluster::new(of.0, of.1, of.2);
    cluster.set_commands(applier.common_commands());
    Some((cluster, Exchange::new(files)))
}

/// Opens the store of a directory and applies its log to it, without starting threads. The caller holds the lock.
/// Accepts any number of samples: `serve` reports the memory that they need.
///
/// # Errors
/// See [`OpenError`].
pub(crate) fn recover_once(options: &NodeOptions) -> Result<Store, OpenError> {
    let options = options.clone().for_commands();
    let store = Store::open(&options.store_dir(), options.store())?;
    let log = LocalLog::open(Arc::new(RealDisk), &options.log_dir(), Position(store.1))?;
    let beside = (String::new(), Background::Threads, None);
    let parts = Parts::recover(&options, store, Box::new(log), beside)?;
    Ok(parts.shared.store.clone())
}

/// Directory whose store contains the whole log.
pub(crate) struct Stored {
    pub(crate) store: Store,
    /// Last position of the log.
    pub(crate) last: Position,
    /// First group whose outcomes differ from those that another build acknowledged; the options accept it.
    pub(crate) other_outcomes: Option<Position>,
}

/// Does the same as [`recover_once`] and writes everything to the store.
///
/// # Errors
/// See [`OpenError`].
pub(crate) fn store_once(options: &NodeOptions) -> Result<Stored, OpenError> {
    let options = options.clone().for_commands();
    let store = Store::open(&options.store_dir(), options.store())?;
    let log = LocalLog::open(Arc::new(RealDisk), &options.log_dir(), Position(store.1))?;
    let last = log.last();
    let beside = (String::new(), Background::Threads, None);
    let mut parts = Parts::recover(&options, store, Box::new(log), beside)?;
    if let Some(checkpoint) = parts.writer.applier.rows_mut().freeze(last.0) {
        parts.writer.checkpoints.sync_changes();
        checkpoint.run()?;
    }
    Ok(Stored { store: parts.shared.store.clone(), last, other_outcomes: parts.other_outcomes })
}
