//! Groups that the log returns, in the order of the log: those of this node, and in a cluster those of other nodes. A
//! node has at most one pending group; changes that arrive meanwhile share the next one.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use commitlog::LogError;

use super::Writer;
use crate::cluster::{CONFIRMED_WITHIN, Cluster};
use crate::directory::divergence::{self, Divergence};
use crate::directory::lock::DataLock;
use crate::fatal::DiskError;

/// Maximum number of groups that are applied before new submissions are handled.
const GROUPS_MAX: usize = 64;
/// Pause of a writer that cannot continue because the disk and the overlay are full.
const PAUSE: Duration = Duration::from_millis(1);
/// Longest time that a closing node waits for its pending group.
const CLOSED_WITHIN: Duration = Duration::from_secs(5);

/// State of the writer's wait for its group.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Time since which a group of this node has been pending.
    since: Option<Instant>,
    /// Node time at which the group was appended, in milliseconds since 1970.
    appended_ms: u64,
    /// Whether the log may have more groups immediately.
    more: bool,
    /// Time at which the inbox was found closed.
    closed: Option<Instant>,
}

impl Waiting {
    /// Records that a group is pending.
    pub(super) fn begin(&mut self, now_ms: u64) {
        self.since = Some(Instant::now());
        self.appended_ms = now_ms;
    }

    /// Whether the log may have more groups immediately.
    pub(super) fn has_more(&self) -> bool {
        self.more
    }

    /// Whether a group is pending.
    pub(super) fn is_waiting(&self) -> bool {
        self.since.is_some()
    }

    fn is_stalled(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= CONFIRMED_WITHIN)
    }
}

impl Writer {
    /// Applies the available groups of a shared log, of this node and of others. Does nothing for a log of one node,
    /// whose groups are applied when they are appended.
    pub(super) fn apply_arrived(&mut self, closed: bool) -> Result<(), DiskError> {
        if self.shared.cluster.is_none() {
            return Ok(());
        }
        let (mut more, mut groups) = (true, 0);
        while more && groups < GROUPS_MAX {
            if !self.can_apply() {
                std::thread::sleep(PAUSE);
                break;
            }
            more = self.apply_next()?;
            groups += 1;
        }
        self.waiting.more = more;
        if let Some(cluster) = &self.shared.cluster {
            cluster.set_stalled(self.waiting.is_stalled() || self.log.refuses_changes());
            cluster.set_commands(self.applier.common_commands());
            cluster.note_checkpoint(self.checkpoints.oldest());
            self.applier.set_checkpoint(self.checkpoints.oldest());
            cluster.note_end(self.log.end(), self.shared.time.now_ms());
        }
        if closed {
            self.waiting.closed.get_or_insert_with(Instant::now);
            // If the inbox is closed, it does not wait, so the pause is taken here.
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Whether the overlay has room for groups of other nodes, which are not subject to admission.
    fn can_apply(&mut self) -> bool {
        let overlay_bytes = self.applier.rows_mut().overlay_bytes();
        !self.checkpoints.is_overdue(overlay_bytes)
    }

    /// Applies the next group; returns false if none is available.
    pub(super) fn apply_next(&mut self) -> Result<bool, DiskError> {
        let Some(mut group) = self.log.next()? else { return Ok(false) };
        let shared = &self.shared;
        if rows::has_bug("stamp-from-clock") {
            group.time_ms = shared.time.now_ms() + 1;
        }
        let (position, time_ms) = (group.position, self.applier.credible_ms(&group));
        self.checkpoints.logged(group.payload.len());
        let mut output = self.applier.apply_group(&group, |last_ms, has_keys| {
            // The time is raised before a row of the group is visible: what has expired at the time of the group has
            // then expired for every reader.
            shared.time.at_least(last_ms);
            has_keys.then(|| shared.snapshot_lock.write())
        })?;
        if group.is_own {
            self.waiting.since = None;
            let ahead_ms = self.waiting.appended_ms.saturating_sub(time_ms);
            self.shared.cluster.as_ref().inspect(|cluster| cluster.set_ahead_ms(ahead_ms));
        }
        if let Some(up_to) = output.trim {
            self.log.trim(up_to);
        }
        self.shared.log_last.store(position.0, Ordering::Release);
        let files = std::mem::take(&mut output.files);
        self.show(output, (position, time_ms))?;
        if let Some(exchange) = &self.shared.exchange {
            exchange.add(&files, self.shared.time.elapsed());
        }
        Ok(true)
    }

    /// Called when the log of the cluster stopped the node. Takes a last checkpoint and closes the directory, which
    /// then has everything that the node has applied, for another start and for `leave`. Returns the error that ends
    /// the process.
    pub(super) fn stopped_by(&mut self, error: DiskError) -> DiskError {
        let is_of_log = matches!(error, DiskError::Shared(_) | DiskError::Log(LogError::Shared(_)));
        let Some(position) = self.shared.cluster.as_ref().map(Cluster::position) else {
            return error;
        };
        if !is_of_log {
            return error;
        }
        if let Some(found) = error.divergence() {
            // The divergence is recorded first, because the node must not serve again even if the checkpoint fails.
            self.note_divergence(found);
        }
        tracing::warn!(
            position = position.0,
            "the log of the cluster stops this node: taking a last checkpoint"
        );
        match self.checkpoints.last(self.applier.rows_mut(), &mut *self.log, position) {
            Ok(true) => {
                if let Some(Err(error)) = self.lock.as_mut().map(DataLock::close) {
                    tracing::warn!(%error, "cannot mark the data directory as closed");
                }
            }
            Ok(false) => {}
            Err(error) => tracing::error!(%error, "cannot take a last checkpoint"),
        }
        error
    }

    fn note_divergence(&self, found: Divergence) {
        let Some(cluster) = &self.shared.cluster else { return };
        if let Err(error) = divergence::write(&self.data, cluster.id(), found) {
            tracing::error!(%error, "cannot mark the data directory as diverged: do not start this node again");
        }
    }

    /// Whether all submissions are answered, or the log does not answer.
    pub(super) fn is_done(&self) -> bool {
        let gives_up = self.waiting.closed.is_some_and(|since| since.elapsed() > CLOSED_WITHIN);
        gives_up || !self.applier.has_queue() && !self.applier.awaits_place()
    }
}
