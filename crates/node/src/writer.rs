//! The writer: the only thread that changes facts. It runs the [`Applier`]: takes pending submissions, appends
//! the proposed groups to the log, has them applied, publishes the effects, and sends the replies.
//!
//! **Invariant:** a reply is sent only when its group is in the log (durable, under policy
//! `always`), applied, and visible to reads.

mod long_appends;
mod shared_log;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use commitlog::{Placed, SyncPoint};
use feed::Effect;
use parking_lot::Mutex;
use store::StoreWriter;

use crate::applier::{Applier, Input, LONG_BYTES, Output};
use crate::checkpoints::Checkpoints;
use crate::fatal::DiskError;
use crate::inbox::{Size, Ticket, Wakeup};
use crate::lock::DataLock;
use crate::metrics::Metrics;
use crate::node_log::NodeLog;
use crate::options::Durability;
use crate::shared::Shared;
use crate::submission::Answer;
pub(crate) use long_appends::LongAppends;
pub(crate) use shared_log::Waiting;

/// Longest time for which the writer sleeps before it checks whether a checkpoint is due.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same between the steps of an erasure, which has to end in time, and while changes wait for a checkpoint.
const PATIENCE_SHORT: Duration = Duration::from_millis(10);
/// The same while there are keys that expire, or the log is to be cut when it is archived.
const PATIENCE_WITH_EXPIRIES: Duration = Duration::from_millis(250);

/// State that the writer shares with the thread that syncs the log periodically.
pub(crate) type SyncSlot = Mutex<Option<SyncPoint>>;

/// State of the writer thread.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) log: NodeLog,
    pub(crate) applier: Applier<StoreWriter, Ticket>,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) durability: Durability,
    pub(crate) sync_slot: Arc<SyncSlot>,
    /// None until they are started.
    pub(crate) waker: Option<std::thread::Thread>,
    pub(crate) sweeper: Option<std::thread::Thread>,
    pub(crate) long_appends: LongAppends,
    /// For a log that several nodes share.
    pub(crate) waiting: Waiting,
    /// The data directory.
    pub(crate) data: PathBuf,
    /// The lock of the directory of a node of a cluster.
    pub(crate) lock: Option<DataLock>,
}

impl Writer {
    /// Works until the inbox is closed and empty, then takes a last checkpoint.
    ///
    /// # Errors
    /// When the disk fails. A failed write must not be tried again: the process ends.
    pub(crate) fn run(mut self) -> Result<(), DiskError> {
        loop {
            match self.turn(self.patience()) {
                Ok(true) => {}
                Ok(false) => return self.end(),
                Err(error) => return Err(self.stopped_by(error)),
            }
        }
    }

    /// Longest time for which the writer may wait for new submissions.
    fn patience(&self) -> Duration {
        if self.shared.cluster.is_some() {
            return self.patience_with_others();
        }
        if self.applier.has_work() && !self.is_out_of_space() {
            Duration::ZERO
        } else if self.checkpoints.is_erasing() || self.applier.has_queue() {
            PATIENCE_SHORT
        } else if self.applier.expects_sweep() || self.checkpoints.waits_for_archive() {
            PATIENCE_WITH_EXPIRIES
        } else {
            PATIENCE
        }
    }

    /// Whether the disk is used up, and nothing was accepted before that.
    fn is_out_of_space(&self) -> bool {
        self.shared.space.is_used_up() && !self.applier.has_queue()
    }

    /// Takes what waits, for which it waits up to `patience`, and logs and applies a group. False if the
    /// inbox is closed and nothing is left.
    ///
    /// # Errors
    /// See [`Writer::run`].
    pub(crate) fn turn(&mut self, patience: Duration) -> Result<bool, DiskError> {
        let mut taken = Vec::new();
        let wakeup = self.shared.inbox.take(&mut taken, patience);
        if self.shared.erasure_due.swap(false, Ordering::AcqRel) {
            self.checkpoints.want_erasure();
        }
        if self.shared.cluster.is_some() {
            self.apply_arrived(matches!(wakeup, Wakeup::Closed))?;
        }
        let is_closed = matches!(wakeup, Wakeup::Closed);
        let input = match wakeup {
            Wakeup::Work => Input::Submit(taken),
            Wakeup::Closed if self.is_done() => return Ok(false),
            // Not even a sweep is logged then.
            Wakeup::Idle if self.is_out_of_space() || self.refuses_changes() => return Ok(true),
            Wakeup::Idle | Wakeup::Closed => Input::Tick,
        };
        let overlay_bytes = self.applier.rows_mut().overlay_bytes();
        let is_turn_of_others = self.long_appends.is_turn_of_others(self.shared.time.now_ms());
        self.applier.hold_costly(!is_closed && self.checkpoints.is_behind(overlay_bytes));
        self.applier.hold_long(!is_closed && is_turn_of_others);
        let output = self.applier.step(input, self.shared.sweep_ms());
        match output.append {
            Some(payload) => {
                if let Some(placed) = self.append(&payload)? {
                    self.apply(placed)?;
                }
            }
            None if output.answers.is_empty() => {
                self.checkpoints.when_idle(self.applier.rows_mut(), &mut self.log)?;
            }
            None => self.answer(output.answers),
        }
        Ok(true)
    }

    /// Takes a last checkpoint.
    ///
    /// # Errors
    /// See [`Writer::run`].
    pub(crate) fn end(&mut self) -> Result<(), DiskError> {
        self.log.any_mut().sync()?;
        let last = self.log.any().last();
        let is_stored = self.checkpoints.last(self.applier.rows_mut(), &mut self.log, last)?;
        self.shared.is_stored.store(is_stored, Ordering::Release);
        Ok(())
    }

    /// Whether everything that was submitted is answered.
    fn is_done(&self) -> bool {
        match self.shared.cluster {
            None => !self.applier.has_queue(),
            Some(_) => self.is_done_with_others(),
        }
    }

    /// Applies the proposed group, which has its place.
    fn apply(&mut self, placed: Placed) -> Result<(), DiskError> {
        let placed = match rows::has_bug("stamp-from-clock") {
            true => Placed { time_ms: self.shared.time.now_ms() + 1, ..placed },
            false => placed,
        };
        // Before a row of the group is visible: what has expired at the time of the group has then expired
        // for every reader.
        self.shared.time.at_least(self.applier.last_ms(placed.time_ms));
        let output = {
            let _snapshot = self.applier.proposes_keys().then(|| self.shared.snapshot_lock.write());
            self.applier.step(Input::Placed(placed), placed.time_ms)
        };
        self.show(output, placed)
    }

    /// Lets readers see an applied group, sends the answers, and takes a checkpoint if it is time.
    fn show(&mut self, output: Output<Ticket>, placed: Placed) -> Result<(), DiskError> {
        let metrics = &self.shared.metrics;
        metrics.group_commands.observe(output.commands as f64);
        metrics.commands.inc_by(output.commands as u64);
        metrics.failures.inc_by(self.applier.failures() - metrics.failures.get());
        let Output { answers, effects, work, .. } = output;
        self.publish(&effects, placed);
        // After the views have the effects, before any answer is sent.
        if let Some(last) = self.applier.facts().totals().last_stamp {
            self.shared.visible_up_to.store(last.0, Ordering::Release);
        }
        if let Some(cluster) = &self.shared.cluster {
            cluster.note(placed.position, placed.time_ms, self.applier.digest());
        }
        // While rows of a deleted user are left, reads cost more. Other nodes of a cluster leave them to the one that was
        // asked, and look later.
        let deletes = |effect: &Effect| matches!(effect, Effect::UserDeleted { .. });
        if !answers.is_empty() && effects.iter().any(deletes) {
            self.sweeper.as_ref().inspect(|thread| thread.unpark());
        }
        self.answer(answers);
        self.checkpoints.when_due(self.applier.rows_mut(), &mut self.log, work)?;
        let overlay_bytes = self.applier.rows_mut().overlay_bytes() as u64;
        self.shared.overlay_bytes.store(overlay_bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Hands the proposed group to the log; returns its place if it has one already.
    fn append(&mut self, payload: &[u8]) -> Result<Option<Placed>, DiskError> {
        let now_ms = self.shared.time.now_ms();
        let Some(placed) = self.log.any_mut().append(payload, now_ms)? else {
            self.waiting.begin(now_ms);
            return Ok(None);
        };
        self.checkpoints.logged(payload.len());
        match self.durability {
            Durability::Always if rows::has_bug("acknowledge-before-sync") => {}
            Durability::Always => {
                let start = Instant::now();
                self.log.any_mut().sync()?;
                Metrics::observe(&self.shared.metrics.fsync, start.elapsed());
            }
            Durability::Interval(_) => *self.sync_slot.lock() = Some(self.log.any().sync_point()),
            Durability::Never => {}
        }
        let is_long = payload.len() >= LONG_BYTES && self.applier.proposes_long();
        self.long_appends.appended(is_long, now_ms..self.shared.time.now_ms());
        self.shared.log_last.store(placed.position.0, Ordering::Release);
        self.shared.log_bytes.store(self.log.size(), Ordering::Relaxed);
        Ok(Some(placed))
    }

    fn publish(&self, effects: &[Effect], placed: Placed) {
        if effects.is_empty() {
            return;
        }
        // A deleted story waits for the sweep at the second of its deletion, which the sweeper may have
        // checked before.
        if effects.iter().any(|effect| matches!(effect, Effect::StoryGone { .. })) {
            self.shared.sweep_from.fetch_min(placed.time_ms / 1_000, Ordering::AcqRel);
        }
        self.shared.samples.apply(self.applier.facts(), effects);
        self.shared.views.publish(effects);
        if self.shared.views.is_watched() {
            self.waker.as_ref().inspect(|thread| thread.unpark());
        }
    }

    fn answer(&self, answers: Vec<(Ticket, Answer)>) {
        let mut answered = Size::default();
        answers.iter().for_each(|(ticket, _)| answered += ticket.size());
        // First, so that a caller who gets an answer finds room for the next change.
        self.shared.inbox.release(answered);
        for (ticket, answer) in answers {
            ticket.answer(answer);
        }
    }
}

/// Makes the log durable every `interval` until `stopped` is set.
pub(crate) fn sync_periodically(
    slot: &SyncSlot,
    interval: Duration,
    stopped: &AtomicBool,
    metrics: &Metrics,
) -> Result<(), DiskError> {
    while !stopped.load(Ordering::Acquire) {
        std::thread::park_timeout(interval);
        let Some(point) = slot.lock().take() else { continue };
        let start = Instant::now();
        point.sync()?;
        Metrics::observe(&metrics.fsync, start.elapsed());
    }
    Ok(())
}
