//! Checkpoints: decides when the overlay is written to the store, and cuts the log afterwards.
//!
//! **Invariant:** the changes of a checkpoint are durable in the log first, and their records in the change feed unless
//! it has failed, while a node runs and while it replays.
//! **Invariant:** the size of the overlay is compared with its limit after each group, also in a replay.
//!
//! Read this file, then `space` (free space of the disk) and `archive_progress`, which limit writing and cutting.

pub(crate) mod archive_progress;
pub(crate) mod space;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use commitlog::{Log, Position, SyncPoint};
use feed::Effect;
use store::{Checkpoint, Store, StoreWriter};

use crate::changes::{ChangeLog, RecordSync};
use crate::clock::Clock;
use crate::fatal::DiskError;
use crate::metrics::Metrics;
use crate::threads::{Background, Job};
use archive_progress::ArchiveProgress;
use space::Space;

/// Work after which a checkpoint is due even if the overlay is small, in the unit of [`rows::Cost::work`]. It bounds
/// the replay at the next start to about a second, and is the work of 1.5 million small commands or of 122 MiB of long
/// groups.
pub(crate) const WORK_MAX: usize = 1_500_000 * rows::WORK_PER_ROW;
/// Size from which a group is long, in bytes: reading it takes longer than applying it.
const LONG_GROUP_BYTES: usize = 1 << 20;
/// Work per byte of a long group at a start, for reading it twice and checking it.
const LONG_GROUP_WORK: usize = 6;
/// Time after which an idle server takes a checkpoint.
const IDLE: Duration = Duration::from_secs(30);
/// Time after which a server with few but steady changes takes a checkpoint. Each checkpoint rewrites a part of the
/// newest level of the store, so taking one every half minute would cost too much.
const QUIET: Duration = Duration::from_secs(600);
/// Wait of an erasure for reads after which it polls less often.
const READS_USUAL: Duration = Duration::from_secs(1);
/// Interval at which a waiting erasure is logged.
const WAITING_SAID: Duration = Duration::from_secs(10);

/// Returns the work of reading a group of `group_bytes` bytes at a start, in addition to applying it.
pub(crate) fn reading_work(group_bytes: usize) -> usize {
    if group_bytes > LONG_GROUP_BYTES { group_bytes.saturating_mul(LONG_GROUP_WORK) } else { 0 }
}

/// Takes checkpoints, one at a time, in parallel to the writer.
pub(crate) struct Checkpoints {
    overlay_bytes_max: usize,
    /// Work since the overlay was last frozen.
    work: usize,
    /// Time at which the overlay was last frozen, by [`Clock::elapsed`].
    last: Duration,
    /// Time at which a group was last applied, by [`Clock::elapsed`].
    last_change: Duration,
    running: Option<Running>,
    /// Whether an erasure is requested; see [`Checkpoints::want_erasure`].
    erasing: bool,
    erasure: Option<Job>,
    /// Completed checkpoints, oldest first; the log is cut after the older of the last two, or after the last one if
    /// that erased.
    completed: VecDeque<Position>,
    /// Position up to which the log will be cut once it is archived.
    uncut: Option<Position>,
    changes: Option<ChangeLog>,
    clock: Clock,
    background: Background,
    space: Arc<Space>,
    archive: Arc<ArchiveProgress>,
    metrics: Arc<Metrics>,
}

/// Running checkpoint.
struct Running {
    position: Position,
    /// Store to erase after the checkpoint.
    erased: Option<Store>,
    job: Job,
}

impl Checkpoints {
    /// Creates the state after a start: `applied` is the position of the store, `work` the work of the replay.
    pub(crate) fn new(
        overlay_bytes_max: usize,
        applied: Position,
        (work, changes): (usize, Option<ChangeLog>),
        (clock, background): (Clock, Background),
        (space, archive, metrics): (Arc<Space>, Arc<ArchiveProgress>, Arc<Metrics>),
    ) -> Self {
        Self {
            overlay_bytes_max,
            work,
            last: clock.elapsed(),
            last_change: clock.elapsed(),
            running: None,
            erasing: false,
            erasure: None,
            completed: VecDeque::from([applied]),
            uncut: None,
            changes,
            space,
            archive,
            clock,
            background,
            metrics,
        }
    }

    /// Counts a group of `group_bytes` bytes in the log.
    pub(crate) fn logged(&mut self, group_bytes: usize) {
        self.work += reading_work(group_bytes);
    }

    /// Records the changes of an applied group in the change feed, if there is one.
    pub(crate) fn record(&mut self, (position, time_ms): (Position, u64), effects: &[Effect]) {
        let Some(changes) = &mut self.changes else { return };
        changes.record(position, time_ms, effects);
        changes.shrink(self.space.is_low());
    }

    /// Makes all records so far durable. Called before a checkpoint that is not started here.
    pub(crate) fn sync_changes(&mut self) {
        self.changes.iter_mut().for_each(|changes| changes.sync_point().run());
    }

    /// Called while there is nothing else to do: makes the change feed smaller if it is too large, or if the disk has
    /// little free space. Returns whether there may be more to remove.
    pub(crate) fn yield_space(&mut self) -> bool {
        let Some(changes) = &mut self.changes else { return false };
        let has_removed = changes.shrink(self.space.is_low());
        if has_removed {
            self.space.check();
        }
        has_removed
    }

    /// Called after a group that took `work`: starts a checkpoint if the overlay is full, the replay would be long, or
    /// the last checkpoint is old, unless the disk is used up. If twice the limit is reached while one runs, waits for
    /// it: that bounds memory and the next start, at the price of a pause in writing.
    pub(crate) fn when_due(
        &mut self,
        rows: &mut StoreWriter,
        log: &mut dyn Log,
        work: usize,
    ) -> Result<(), DiskError> {
        self.work += work;
        self.last_change = self.clock.elapsed();
        if self.space.is_used_up() {
            return Ok(());
        }
        self.conclude(rows, log)?;
        let bytes = rows.overlay_bytes();
        let is_old = self.last_change >= self.last + QUIET;
        if bytes < self.overlay_bytes_max && self.work < WORK_MAX && !is_old {
            return Ok(());
        }
        if self.is_running() {
            if bytes < 2 * self.overlay_bytes_max && self.work < 2 * WORK_MAX {
                return Ok(());
            }
            tracing::debug!("changes wait for a checkpoint");
        }
        self.finish(log)?;
        self.start(rows, log);
        Ok(())
    }

    /// Called while there is nothing else to do: writes the overlay to the store, so that the next start is quick.
    pub(crate) fn when_idle(
        &mut self,
        rows: &mut StoreWriter,
        log: &mut dyn Log,
    ) -> Result<(), DiskError> {
        if self.space.is_used_up() {
            return Ok(());
        }
        self.conclude(rows, log)?;
        let is_idle = self.clock.elapsed() >= self.last_change.max(self.last) + IDLE;
        if is_idle && !self.is_running() && self.work > 0 {
            self.start(rows, log);
        }
        Ok(())
    }

    /// Returns the position of the older of the last two completed checkpoints: earlier groups are not needed.
    pub(crate) fn oldest(&self) -> Position {
        self.completed.front().copied().unwrap_or_default()
    }

    /// Starts a checkpoint even if little has changed, unless one runs or the disk is used up.
    pub(crate) fn take_soon(
        &mut self,
        rows: &mut StoreWriter,
        log: &mut dyn Log,
    ) -> Result<(), DiskError> {
        self.conclude(rows, log)?;
        if !self.is_running() && !self.space.is_used_up() {
            self.start(rows, log);
        }
        Ok(())
    }

    /// Whether the disk is used up and the overlay is full, so that changes of other nodes have to wait.
    pub(crate) fn is_overdue(&self, overlay_bytes: usize) -> bool {
        self.space.is_used_up() && overlay_bytes >= 2 * self.overlay_bytes_max
    }

    /// Requests that the remains of removed stories are erased from the files: the log is dropped up to the next
    /// checkpoint, and then the store rewrites the remaining rows.
    pub(crate) fn want_erasure(&mut self) {
        self.erasing = true;
    }

    /// Whether the next checkpoint is due while one runs. Costly changes then wait, so that other changes need not: see
    /// [`Checkpoints::when_due`].
    pub(crate) fn is_behind(&self, overlay_bytes: usize) -> bool {
        (overlay_bytes >= self.overlay_bytes_max || self.work >= WORK_MAX) && self.is_running()
    }

    /// Whether an erasure waits for its next step, which the writer takes.
    pub(crate) fn has_rows_left(&self) -> bool {
        let running = self.running.as_ref().is_some_and(|running| running.erased.is_some());
        (self.erasing || running) && !self.space.is_used_up()
    }

    /// Whether the log will be cut once it is archived.
    pub(crate) fn waits_for_archive(&self) -> bool {
        self.uncut.is_some()
    }

    /// Cuts the log up to a completed checkpoint. Starts an erasing checkpoint if one is requested and the log has a
    /// new segment, so that all earlier segments can be removed.
    fn conclude(&mut self, rows: &mut StoreWriter, log: &mut dyn Log) -> Result<(), DiskError> {
        if self.is_running() {
            return Ok(());
        }
        self.finish(log)?;
        self.cut(log)?;
        let erases = self.erasure.as_ref().is_some_and(|job| !job.is_finished());
        if self.erasing && !erases && log.renew()? {
            self.start(rows, log);
        }
        Ok(())
    }

    /// Writes everything to the store when the node closes, after all groups up to `position` are applied. Returns
    /// whether the store then has everything.
    pub(crate) fn last(
        &mut self,
        rows: &mut StoreWriter,
        log: &mut dyn Log,
        position: Position,
    ) -> Result<bool, DiskError> {
        self.finish(log)?;
        let is_stored = self.work == 0 || !self.space.is_used_up();
        if !is_stored {
            tracing::warn!(
                "skipping the last checkpoint because the disk is full: the next start replays the log"
            );
        } else if self.work > 0 {
            self.start_at(position, rows, log);
            self.finish(log)?;
        }
        // The thread of the erasure must end first: it holds the store, which may be reopened as soon as this node is
        // closed.
        if let Some(erasure) = self.erasure.take() {
            erasure.join()?;
        }
        Ok(is_stored)
    }

    fn is_running(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.job.is_finished())
    }

    fn start(&mut self, rows: &mut StoreWriter, log: &dyn Log) {
        self.start_at(log.delivered(), rows, log);
    }

    fn start_at(&mut self, position: Position, rows: &mut StoreWriter, log: &dyn Log) {
        let position = Position(position.0 + u64::from(rows::has_bug("checkpoint-ahead")));
        let Some(checkpoint) = rows.freeze(position.0) else { return };
        let metrics = Arc::clone(&self.metrics);
        let recorded = self.changes.as_mut().map(ChangeLog::sync_point);
        let logged = (log.sync_point(), recorded);
        let work = move || run(&logged, checkpoint, &metrics);
        let job = self.background.start("checkpoint", work);
        // The log can be dropped up to here only if it has a new segment.
        let erased = (self.erasing && log.is_renewed()).then(|| rows.store());
        self.erasing &= erased.is_none();
        self.running = Some(Running { position, erased, job });
        self.work = 0;
        self.last = self.clock.elapsed();
    }

    /// Cuts the log as far as checkpoints and the archive allow.
    fn cut(&mut self, log: &mut dyn Log) -> Result<(), DiskError> {
        let Some(wanted) = self.uncut else { return Ok(()) };
        let up_to = self.archive.cut(wanted, log.size(), self.space.is_low());
        if up_to >= wanted {
            self.uncut = None;
        }
        log.cut(up_to)?;
        Ok(())
    }

    /// Waits for the running checkpoint, if any, and cuts the log.
    fn finish(&mut self, log: &mut dyn Log) -> Result<(), DiskError> {
        let Some(Running { position, erased, job }) = self.running.take() else {
            return Ok(());
        };
        job.join()?;
        self.completed.push_back(position);
        while self.completed.len() > if erased.is_some() { 1 } else { 2 } {
            self.completed.pop_front();
        }
        self.uncut = self.completed.front().copied();
        self.cut(log)?;
        if let Some(store) = erased {
            self.erasure = Some(self.background.start("erasure", move || erase(&store)));
        }
        Ok(())
    }
}

/// Runs a checkpoint to its end. Syncs the log and the change feed first, or a power loss could leave a store that is
/// ahead of them. If the store cannot be written, the process ends: the log still has the changes.
fn run(
    (logged, recorded): &(SyncPoint, Option<RecordSync>),
    checkpoint: Checkpoint,
    metrics: &Metrics,
) -> Result<(), DiskError> {
    let start = Instant::now();
    if !rows::has_bug("checkpoint-before-sync") {
        logged.sync()?;
    }
    recorded.as_ref().inspect(|recorded| recorded.run());
    let stats = checkpoint.run()?;
    Metrics::observe(&metrics.checkpoint, start.elapsed());
    tracing::debug!(?stats, "checkpoint");
    Ok(())
}

/// Erases removed stories. Runs in the background, because an erasure may take long and changes must not wait for it.
fn erase(store: &Store) -> Result<(), DiskError> {
    let start = Instant::now();
    let mut say_at = WAITING_SAID;
    let wait = || {
        let waited = start.elapsed();
        if waited >= say_at {
            tracing::warn!("a read, such as a slow backup, delays the erasure of stories");
            say_at = waited + WAITING_SAID;
        }
        // Most reads take milliseconds, a backup may take hours. Closing the node waits for this pause.
        let pause = if waited < READS_USUAL { 1 } else { 100 };
        std::thread::sleep(Duration::from_millis(pause));
    };
    Ok(store.erase(wait)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_reads_a_bounded_number_of_bytes_of_long_values() {
        let value = kv::limits::VALUE_BYTES_MAX;
        let groups = WORK_MAX.div_ceil(reading_work(value));
        assert!(groups * value <= 128 << 20, "{groups} groups");
        // A group below the limit adds no work of reading.
        assert_eq!(reading_work(LONG_GROUP_BYTES), 0);
    }
}
