//! When the overlay goes to the store, and when the log is cut behind it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use store::{Checkpoint, StoreWriter};

use crate::fatal::fatal;
use crate::log::{LocalLog, Log, Position, SyncPoint};
use crate::metrics::Metrics;

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
    running: Option<(Position, JoinHandle<()>)>,
    /// Completed ones, oldest first; the log is cut behind the older of the last two.
    completed: VecDeque<Position>,
    metrics: Arc<Metrics>,
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
            completed: VecDeque::from([applied]),
            metrics,
        }
    }

    /// After a group: starts a checkpoint if the overlay is full or the replay would be long. If
    /// the overlay has grown to twice its bound while one is under way, waits for it: memory is
    /// bounded, at the price of a pause in writing.
    pub(crate) fn when_due(&mut self, rows: &mut StoreWriter, log: &mut LocalLog, commands: usize) {
        self.commands += commands;
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
        if self.is_running() || self.last.elapsed() < IDLE {
            return;
        }
        self.finish(log);
        if self.commands > 0 {
            self.start(rows, log);
        }
    }

    /// At the end: everything into the store.
    pub(crate) fn last(&mut self, rows: &mut StoreWriter, log: &mut LocalLog) {
        self.finish(log);
        if self.commands > 0 {
            self.start(rows, log);
            self.finish(log);
        }
    }

    fn is_running(&self) -> bool {
        self.running.as_ref().is_some_and(|(_, thread)| !thread.is_finished())
    }

    fn start(&mut self, rows: &mut StoreWriter, log: &LocalLog) {
        let position = log.last();
        let Some(checkpoint) = rows.freeze(position.0) else { return };
        let metrics = Arc::clone(&self.metrics);
        let logged = log.sync_point();
        let thread = std::thread::Builder::new()
            .name("checkpoint".into())
            .spawn(move || run(&logged, checkpoint, &metrics));
        match thread {
            Ok(thread) => self.running = Some((position, thread)),
            Err(error) => fatal("no thread for a checkpoint", &error),
        }
        self.commands = 0;
        self.last = Instant::now();
    }

    /// Waits for the checkpoint under way, if any, and cuts the log.
    fn finish(&mut self, log: &mut LocalLog) {
        let Some((position, thread)) = self.running.take() else { return };
        if thread.join().is_err() {
            std::process::abort();
        }
        self.completed.push_back(position);
        if self.completed.len() > 2 {
            self.completed.pop_front();
        }
        if let Some(older) = self.completed.front()
            && let Err(error) = log.cut(*older)
        {
            fatal("the log could not be cut", &error);
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
