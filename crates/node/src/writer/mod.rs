//! Writer: the only thread that changes facts. It runs the [`Applier`]: takes pending submissions, appends the proposed
//! groups to the log, applies the groups that the log returns, publishes the effects, and sends the replies.
//!
//! **Invariant:** a reply is sent only when its group is in the log (durable, under policy
//! `always`), applied, and visible to reads.
//! **Invariant:** for each key that a command names the writer reads a constant number of rows. Callers load the keys
//! of their operations before they submit them. Keys that were evicted meanwhile are read before the group is applied,
//! without the snapshot lock. The writer scans rows only in sweeps, which are bounded.

mod arrivals;
mod long_appends;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use commitlog::{Log, Position, SyncPoint};
use feed::{Effect, StoryChange, UserChange};
use parking_lot::Mutex;
use store::StoreWriter;

use crate::applier::{Applier, Input, LONG_BYTES, Output};
use crate::checkpoints::Checkpoints;
use crate::directory::lock::DataLock;
use crate::fatal::DiskError;
use crate::metrics::Metrics;
use crate::options::Durability;
use crate::shared::Shared;
use crate::submission::Answer;
use crate::submission::inbox::{Size, Ticket, Wakeup};
pub(crate) use arrivals::Waiting;
pub(crate) use long_appends::LongAppends;

/// Longest sleep of the writer before it checks whether a checkpoint is due.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest sleep between the steps of an erasure, which has a deadline; while changes wait for a checkpoint; and while
/// the change feed removes old files.
const PATIENCE_SHORT: Duration = Duration::from_millis(10);
/// Longest sleep while there are keys that expire, or while the log must be cut after it is archived.
const PATIENCE_WITH_EXPIRIES: Duration = Duration::from_millis(250);

/// State that the writer shares with the thread that syncs the log periodically.
pub(crate) type SyncSlot = Mutex<Option<SyncPoint>>;

/// State of the writer thread.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) log: Box<dyn Log>,
    pub(crate) applier: Applier<StoreWriter, Ticket>,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) durability: Durability,
    pub(crate) sync_slot: Arc<SyncSlot>,
    /// Waker thread; `None` until it is started.
    pub(crate) waker: Option<std::thread::Thread>,
    pub(crate) sweeper: Option<std::thread::Thread>,
    pub(crate) long_appends: LongAppends,
    pub(crate) waiting: Waiting,
    /// Whether the change feed has more old files to remove.
    pub(crate) yields_space: bool,
    /// Data directory.
    pub(crate) data: PathBuf,
    /// Lock of the data directory, in a cluster.
    pub(crate) lock: Option<DataLock>,
}

impl Writer {
    /// Works until the inbox is closed and empty, then takes a last checkpoint.
    ///
    /// # Errors
    /// The disk fails. A failed write must not be retried: the process ends.
    pub(crate) fn run(mut self) -> Result<(), DiskError> {
        loop {
            match self.turn(self.patience()) {
                Ok(true) => {}
                Ok(false) => return self.end(),
                Err(error) => return Err(self.stopped_by(error)),
            }
        }
    }

    /// Returns the longest time that the writer may wait for new submissions.
    fn patience(&self) -> Duration {
        let can_propose = self.applier.has_work() && !self.applier.awaits_place();
        let may_propose = !self.is_out_of_space() && !self.log.refuses_changes();
        let has_queue = self.applier.has_queue() && !self.applier.awaits_place();
        if self.waiting.has_more() || can_propose && may_propose {
            Duration::ZERO
        } else if self.checkpoints.has_rows_left() && !self.log.refuses_changes()
            || has_queue
            || self.yields_space
        {
            PATIENCE_SHORT
        } else if self.applier.expects_sweep()
            || self.checkpoints.waits_for_archive()
            || self.waiting.is_waiting()
        {
            PATIENCE_WITH_EXPIRIES
        } else {
            PATIENCE
        }
    }

    /// Whether the disk is used up and no accepted submission waits.
    fn is_out_of_space(&self) -> bool {
        self.shared.space.is_used_up() && !self.applier.has_queue()
    }

    /// Waits up to `patience` for submissions, then logs and applies a group. Returns false if the inbox is closed and
    /// nothing is left.
    ///
    /// # Errors
    /// See [`Writer::run`].
    pub(crate) fn turn(&mut self, patience: Duration) -> Result<bool, DiskError> {
        let mut taken = Vec::new();
        let wakeup = self.shared.inbox.take(&mut taken, patience);
        if self.shared.erasure_due.swap(false, Ordering::AcqRel) {
            self.checkpoints.want_erasure();
        }
        if self.shared.checkpoint_due.swap(false, Ordering::AcqRel) {
            self.checkpoints.take_soon(self.applier.rows_mut(), &mut *self.log)?;
        }
        if matches!(wakeup, Wakeup::Idle) {
            self.yields_space = self.checkpoints.yield_space();
        }
        let is_closed = matches!(wakeup, Wakeup::Closed);
        self.apply_arrived(is_closed)?;
        let input = match wakeup {
            Wakeup::Work => Input::Submit(taken),
            Wakeup::Closed if self.is_done() => return Ok(false),
            // Without free disk space, even sweeps are not logged.
            Wakeup::Idle if self.is_out_of_space() || self.log.refuses_changes() => {
                return Ok(true);
            }
            Wakeup::Idle | Wakeup::Closed => Input::Tick,
        };
        let overlay_bytes = self.applier.rows_mut().overlay_bytes();
        let is_turn_of_others = self.long_appends.is_turn_of_others(self.shared.time.now_ms());
        self.applier.hold_costly(!is_closed && self.checkpoints.is_behind(overlay_bytes));
        self.applier.hold_long(!is_closed && is_turn_of_others);
        let output = self.applier.step(input, self.shared.log_ms());
        match output.append {
            Some(payload) => {
                self.append(payload)?;
                // A log of one node returns the group at once. Disk space for a group is checked when its changes are
                // accepted.
                self.apply_next()?;
            }
            None if output.answers.is_empty() => {
                self.checkpoints.when_idle(self.applier.rows_mut(), &mut *self.log)?;
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
        self.log.sync()?;
        let last = self.log.delivered();
        let is_stored = self.checkpoints.last(self.applier.rows_mut(), &mut *self.log, last)?;
        self.shared.is_stored.store(is_stored, Ordering::Release);
        Ok(())
    }

    /// Makes an applied group visible to readers, sends the answers, and takes a checkpoint if one is due.
    fn show(
        &mut self,
        output: Output<Ticket>,
        (position, time_ms): (Position, u64),
    ) -> Result<(), DiskError> {
        let metrics = &self.shared.metrics;
        metrics.group_commands.observe(output.commands as f64);
        metrics.commands.inc_by(output.commands as u64);
        let failures = self.applier.failures() - metrics.failures.get();
        metrics.failures.inc_by(failures);
        let Output { answers, effects, work, .. } = output;
        // Reads cost more until the rows of a deleted user are removed, so the sweeper starts at once. In a cluster,
        // the node that got the request wakes its sweeper; other nodes check later.
        let deletes =
            |effect: &Effect| matches!(effect, Effect::User { change: UserChange::Deleted, .. });
        let wakes_sweeper = !answers.is_empty() && effects.iter().any(deletes);
        // Changes are recorded before the group is visible, so that a reader of the change feed finds all visible
        // groups.
        self.checkpoints.record((position, time_ms), &effects);
        self.publish(effects, position, failures > 0);
        // The stamp becomes visible after the views have the effects, and before any answer is sent.
        if let Some(last) = self.applier.facts().totals().last_stamp {
            self.shared.visible_up_to.store(last.0, Ordering::Release);
        }
        if let Some(cluster) = &self.shared.cluster {
            cluster.note(position, time_ms, self.applier.digest());
        }
        self.shared.positions.reach(position);
        if wakes_sweeper {
            self.sweeper.as_ref().inspect(|thread| thread.unpark());
        }
        self.answer(answers);
        self.checkpoints.when_due(self.applier.rows_mut(), &mut *self.log, work)?;
        let overlay_bytes = self.applier.rows_mut().overlay_bytes() as u64;
        self.shared.overlay_bytes.store(overlay_bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Appends the proposed group to the log, and syncs it according to the policy.
    fn append(&mut self, payload: Vec<u8>) -> Result<(), DiskError> {
        let (now_ms, bytes) = (self.shared.time.now_ms(), payload.len());
        self.log.append(payload.into(), now_ms)?;
        match self.durability {
            // In a cluster the group is durable when the log returns it.
            _ if self.shared.cluster.is_some() => self.waiting.begin(now_ms),
            Durability::Always if rows::has_bug("acknowledge-before-sync") => {}
            Durability::Always => {
                let start = Instant::now();
                self.log.sync()?;
                Metrics::observe(&self.shared.metrics.fsync, start.elapsed());
            }
            Durability::Interval(_) => *self.sync_slot.lock() = Some(self.log.sync_point()),
            Durability::Never => {}
        }
        let is_long = bytes >= LONG_BYTES && self.applier.proposes_long();
        self.long_appends.appended(is_long, now_ms..self.shared.time.now_ms());
        self.shared.log_bytes.store(self.log.size(), Ordering::Relaxed);
        Ok(())
    }

    fn publish(&self, effects: Vec<Effect>, position: Position, is_undone: bool) {
        // Every node sets this, because each has the texts of the story in its own files.
        let ends =
            |effect: &Effect| matches!(effect, Effect::Story { change: StoryChange::Gone, .. });
        if effects.iter().any(ends) {
            self.shared.has_removed_stories.store(true, Ordering::Release);
        }
        let wakes = is_undone || !effects.is_empty();
        self.shared.samples.apply(self.applier.facts(), &effects);
        self.shared.views.publish(position, effects, is_undone);
        if wakes && self.shared.views.is_watched() {
            self.waker.as_ref().inspect(|thread| thread.unpark());
        }
    }

    fn answer(&self, answers: Vec<(Ticket, Answer)>) {
        let mut answered = Size::default();
        answers.iter().for_each(|(ticket, _)| answered += ticket.size());
        // Room is released first, so that a caller who gets an answer finds room for the next change.
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
