//! When the overlay goes to the store, and when the log is cut behind it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use store::{Checkpoint, Store, StoreError, StoreWriter};

use crate::fatal::fatal;
use crate::log::{LocalLog, Log, Position, SyncPoint};
use crate::metrics::Metrics;
use crate::threads::spawn;

/// Commands after which a checkpoint is due even if the overlay is small: bounds the replay at the
/// next start to about a second.
const COMMANDS_MAX: usize = 1_500_000;
/// An idle server takes a checkpoint of what it has after this long.
const IDLE: Duration = Duration::from_secs(30);

/// Takes checkpoints, one at a time, on a thread of their own.
pub(crate) struct Checkpoints {
    overlay_bytes_max: usize,
    /// Commands applied since the overlay was frozen last.
    commands: usize,
    last: Instant,
    running: Option<Running>,
    /// Whether an erasure is wanted; see [`Checkpoints::want_erasure`].
    erasing: bool,
    erasure: Option<JoinHandle<()>>,
    /// Completed ones, oldest first; the log is cut behind the older of the last two, or behind the
    /// last one if that erased.
    completed: VecDeque<Position>,
    metrics: Arc<Metrics>,
}

/// A checkpoint under way.
struct Running {
    position: Position,
    /// What is to be erased behind it, if anything.
    erased: Option<Store>,
    thread: JoinHandle<()>,
}

impl Checkpoints {
    /// `applied` is what the store holds, `commands` how many were replayed onto it.
    pub(crate) fn new(
        overlay_bytes_max: usize,
        applied: Position,
        commands: usize,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            overlay_bytes_max,
            commands,
            last: Instant::now(),
            running: None,
            erasing: false,
            erasure: None,
            completed: VecDeque::from([applied]),
            metrics,
        }
    }

    /// After a group: starts a checkpoint if the overlay is full or the replay would be long. If
    /// the overlay has grown to twice its bound while one is under way, waits for it: memory is
    /// bounded, at the price of a pause in writing.
    pub(crate) fn when_due(&mut self, rows: &mut StoreWriter, log: &mut LocalLog, commands: usize) {
        self.commands += commands;
        self.conclude(rows, log);
        let bytes = rows.overlay_bytes();
        if bytes < self.overlay_bytes_max && self.commands < COMMANDS_MAX {
            return;
        }
        if self.is_running() {
            if bytes < 2 * self.overlay_bytes_max {
                return;
            }
            tracing::debug!("writing waits for a checkpoint");
        }
        self.finish(log);
        self.start(rows, log);
    }

    /// While nothing is asked for: puts what there is into the store, so that the next start is
    /// quick.
    pub(crate) fn when_idle(&mut self, rows: &mut StoreWriter, log: &mut LocalLog) {
        self.conclude(rows, log);
        if !self.is_running() && self.commands > 0 && self.last.elapsed() >= IDLE {
            self.start(rows, log);
        }
    }

    /// What removed stories left in the files is to be erased: the log is dropped up to the next
    /// checkpoint, and behind that the store rewrites the rows of those that stand.
    pub(crate) fn want_erasure(&mut self) {
        self.erasing = true;
    }

    /// Cuts the log behind a checkpoint that has ended. Starts an erasing one if it is wanted, once
    /// the log has a new segment: then nothing of what came before has to stay.
    fn conclude(&mut self, rows: &mut StoreWriter, log: &mut LocalLog) {
        if self.is_running() {
            return;
        }
        self.finish(log);
        let erases = self.erasure.as_ref().is_some_and(|thread| !thread.is_finished());
        if !self.erasing || erases {
            return;
        }
        match log.renew() {
            Ok(true) => self.start(rows, log),
            Ok(false) => {}
            Err(error) => fatal("the log could not be continued in a new file", &error),
        }
    }

    /// At the end: everything into the store.
    pub(crate) fn last(&mut self, rows: &mut StoreWriter, log: &mut LocalLog) {
        self.finish(log);
        if self.commands > 0 {
            self.start(rows, log);
            self.finish(log);
        }
        // It holds the store, which somebody may open again as soon as this one is closed.
        if let Some(erasure) = self.erasure.take() {
            drop(erasure.join());
        }
    }

    fn is_running(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.thread.is_finished())
    }

    fn start(&mut self, rows: &mut StoreWriter, log: &LocalLog) {
        let position = log.last();
        let Some(checkpoint) = rows.freeze(position.0) else { return };
        let metrics = Arc::clone(&self.metrics);
        let logged = log.sync_point();
        let thread = spawn("checkpoint", move || run(&logged, checkpoint, &metrics));
        // Only a log that begins anew can be dropped up to here.
        let erased = (self.erasing && log.is_renewed()).then(|| rows.store());
        self.erasing &= erased.is_none();
        self.running = Some(Running { position, erased, thread });
        self.commands = 0;
        self.last = Instant::now();
    }

    /// Waits for the checkpoint under way, if any, and cuts the log.
    fn finish(&mut self, log: &mut LocalLog) {
        let Some(Running { position, erased, thread }) = self.running.take() else { return };
        drop(thread.join());
        self.completed.push_back(position);
        while self.completed.len() > if erased.is_some() { 1 } else { 2 } {
            self.completed.pop_front();
        }
        if let Some(older) = self.completed.front()
            && let Err(error) = log.cut(*older)
        {
            fatal("the log could not be cut", &error);
        }
        if let Some(store) = erased {
            self.erasure = Some(spawn("erasure", move || erase(&store)));
        }
    }
}

/// Runs a checkpoint to its end. The log comes first, or a power loss could leave a store that is
/// ahead of it. A store that cannot be written stops the process: the log keeps what it would have
/// held.
fn run(logged: &SyncPoint, checkpoint: Checkpoint, metrics: &Metrics) {
    let start = Instant::now();
    if let Err(error) = logged.sync() {
        fatal("the log could not be made durable", &error);
    }
    match checkpoint.run() {
        Ok(stats) => {
            Metrics::observe(&metrics.checkpoint, start.elapsed());
            tracing::debug!(?stats, "checkpoint");
        }
        Err(error) => fatal("a checkpoint could not be written", &error),
    }
}

/// On a thread of its own: writing must not wait for it, however many stories there are.
fn erase(store: &Store) {
    loop {
        match store.erase() {
            Ok(()) => return,
            Err(StoreError::StillRead) => tracing::warn!("a read holds up the erasure of stories"),
            Err(error) => fatal("removed stories could not be erased", &error),
        }
    }
}
