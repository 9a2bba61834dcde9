//! The writer with a log that several nodes share: it applies the groups of all nodes in the order of the log. One group
//! of its own is under way at a time, as with a log of its own: what arrives meanwhile shares the next one.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use commitlog::Placed;

use super::{PATIENCE, PATIENCE_WITH_EXPIRIES, Writer};
use crate::cluster::CONFIRMED_WITHIN;
use crate::fatal::DiskError;

/// Groups that are applied before new submissions are looked at.
const GROUPS_MAX: usize = 64;
/// Pause of a writer that cannot go on: readers lag, or the disk is full and so is the overlay.
const PAUSE: Duration = Duration::from_millis(1);
/// How long a node that closes waits for its group.
const CLOSED_WITHIN: Duration = Duration::from_secs(5);

/// What the writer waits for.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// Since when a group of this node has been under way.
    since: Option<Instant>,
    /// Whether the log may have more groups at once.
    more: bool,
    /// When the inbox was found closed.
    closed: Option<Instant>,
}

impl Waiting {
    /// A group is under way.
    pub(super) fn begin(&mut self) {
        self.since = Some(Instant::now());
    }

    fn is_stalled(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= CONFIRMED_WITHIN)
    }
}

impl Writer {
    pub(super) fn patience_with_others(&self) -> Duration {
        let can_propose = self.applier.has_work() && !self.applier.awaits_place();
        if self.waiting.more || can_propose && !self.is_out_of_space() {
            Duration::ZERO
        } else if self.applier.expects_sweep() || self.waiting.since.is_some() {
            PATIENCE_WITH_EXPIRIES
        } else {
            PATIENCE
        }
    }

    /// Applies groups that the log has, of this node and of others.
    pub(super) fn apply_arrived(&mut self, closed: bool) -> Result<(), DiskError> {
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
            cluster.set_stalled(self.waiting.is_stalled());
            cluster.note_checkpoint(self.checkpoints.oldest());
        }
        if self.shared.checkpoint_due.swap(false, Ordering::AcqRel) {
            self.checkpoints.take_soon(self.applier.rows_mut(), &mut *self.log)?;
        }
        if closed {
            self.waiting.closed.get_or_insert_with(Instant::now);
            // A closed inbox does not wait.
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Whether there is room for the changes of others, which were never asked.
    fn can_apply(&mut self) -> bool {
        let overlay_bytes = self.applier.rows_mut().overlay_bytes();
        self.shared.views.has_room() && !self.checkpoints.is_overdue(overlay_bytes)
    }

    /// Applies the next group; false if none is here.
    fn apply_next(&mut self) -> Result<bool, DiskError> {
        let Some(group) = self.log.next()? else { return Ok(false) };
        let shared = &self.shared;
        let output = self.applier.apply_shared(&group, |last_ms| {
            // Before a row of the group is visible, as for groups of a log of one node.
            shared.time.at_least(last_ms);
            shared.snapshot_lock.write()
        })?;
        if group.is_own {
            self.waiting.since = None;
        }
        self.shared.log_last.store(group.position.0, Ordering::Release);
        self.show(output, Placed { position: group.position, time_ms: group.time_ms })?;
        Ok(true)
    }

    /// Whether everything that was submitted is answered, or the log does not answer.
    pub(super) fn is_done_with_others(&self) -> bool {
        let gives_up = self.waiting.closed.is_some_and(|since| since.elapsed() > CLOSED_WITHIN);
        gives_up || !self.applier.has_queue() && !self.applier.awaits_place()
    }
}
