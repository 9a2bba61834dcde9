//! State of a node about the log that it shares with others.
//!
//! Read this file, then `exchange` for the files of pictures, and `missing_files` for the decision which files are
//! fetched.

pub(crate) mod exchange;
pub(crate) mod missing_files;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use commitlog::{ClusterId, LogEnd, NodeId, Position};
use parking_lot::Mutex;

use crate::submission::Changes;
use crate::submission::inbox::SubmitError;
use crate::submission::versions::{COMMANDS, PICTURES, needed_for};

/// Longest wait of a change for the log, and of a read for a position.
pub(crate) const CONFIRMED_WITHIN: Duration = Duration::from_secs(2);

/// Silence of the servers of the log that counts as lag: normally they report every few seconds.
const SILENT_FOR: Duration = Duration::from_secs(8);

/// State of a node of a cluster. The writer changes it.
pub(crate) struct Cluster {
    id: ClusterId,
    node: NodeId,
    applied: Mutex<Applied>,
    /// Position of the older of the last two checkpoints.
    checkpoint: AtomicU64,
    /// Whether a group of this node has been pending for longer than [`CONFIRMED_WITHIN`], or the log refuses changes.
    /// Other threads may see a change of this late.
    stalled: AtomicBool,
    /// Last known position of the log.
    end: AtomicU64,
    /// Time since which known groups have not been applied, in milliseconds since 1970; 0 if all are.
    behind_since_ms: AtomicU64,
    /// Time for which the servers of the log have been silent, in milliseconds.
    silent_ms: AtomicU64,
    /// Milliseconds by which the node's clock was ahead of the log when it last appended a group. The value may be old:
    /// whether a sweep removes a key is decided when the sweep is applied.
    ahead_ms: AtomicU64,
    /// Version of commands that all live nodes can apply. An outdated value has the same effect as an earlier
    /// submission.
    commands: AtomicU32,
}

/// Last group that was applied and is visible to reads.
#[derive(Clone, Copy)]
struct Applied {
    position: Position,
    /// Time of the group, in milliseconds since 1970.
    ms: u64,
    /// Digest of the counted groups up to this one.
    digest: u64,
}

/// Status of a node of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterStatus {
    /// Id of the cluster, 32 hexadecimal digits.
    pub cluster: String,
    /// Id of the node, 32 hexadecimal digits.
    pub node: String,
    /// Position of the last applied group.
    pub position: u64,
    /// Time of the last applied group, in milliseconds since 1970.
    pub position_ms: u64,
    /// Digest of the groups up to the last applied one. Nodes at the same position have the same digest.
    pub digest: u64,
    /// Position of the older of the node's last two checkpoints. The node never needs a group up to this position.
    pub checkpoint: u64,
    /// Number of known groups of the log that are not applied.
    pub lag_groups: u64,
    /// Longest time for which the node may have lacked a group.
    pub lag: Duration,
    /// Whether changes are accepted because the log confirms them.
    pub accepts_changes: bool,
    /// Version of commands that all live nodes can apply.
    pub commands: u32,
    /// Number of files of pictures that this node is known to lack.
    pub missing_files: u64,
    /// Whether the node lacks files, or has not scanned all pictures since its start.
    pub fetches_files: bool,
}

impl Cluster {
    pub(crate) fn new(
        (id, node): (ClusterId, NodeId),
        (checkpoint, applied): (Position, Position),
        (digest, applied_ms): (u64, u64),
    ) -> Self {
        Self {
            id,
            node,
            applied: Mutex::new(Applied { position: applied, ms: applied_ms, digest }),
            checkpoint: AtomicU64::new(checkpoint.0),
            stalled: AtomicBool::new(false),
            end: AtomicU64::new(applied.0),
            behind_since_ms: AtomicU64::new(0),
            silent_ms: AtomicU64::new(0),
            ahead_ms: AtomicU64::new(0),
            commands: AtomicU32::new(0),
        }
    }

    pub(crate) fn id(&self) -> ClusterId {
        self.id
    }

    /// Records an applied group after reads see it.
    pub(crate) fn note(&self, position: Position, time_ms: u64, digest: u64) {
        *self.applied.lock() = Applied { position, ms: time_ms, digest };
    }

    /// Records the older of the last two checkpoints.
    pub(crate) fn note_checkpoint(&self, position: Position) {
        self.checkpoint.store(position.0, Ordering::Relaxed);
    }

    /// Returns the position of the last applied group.
    pub(crate) fn position(&self) -> Position {
        self.applied.lock().position
    }

    /// Records the last position that the servers of the log reported, after the available groups were applied.
    pub(crate) fn note_end(&self, end: LogEnd, now_ms: u64) {
        let is_behind = end.position > self.position();
        let since_ms = self.behind_since_ms.load(Ordering::Relaxed);
        if is_behind != (since_ms > 0) {
            self.behind_since_ms.store(if is_behind { now_ms } else { 0 }, Ordering::Relaxed);
        }
        let silent_ms = u64::try_from(end.ago.as_millis()).unwrap_or(u64::MAX);
        self.end.store(end.position.0, Ordering::Relaxed);
        self.silent_ms.store(silent_ms, Ordering::Relaxed);
    }

    pub(crate) fn set_ahead_ms(&self, ahead_ms: u64) {
        self.ahead_ms.store(ahead_ms, Ordering::Relaxed);
    }

    pub(crate) fn ahead_ms(&self) -> u64 {
        self.ahead_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn set_stalled(&self, stalled: bool) {
        if self.stalled.swap(stalled, Ordering::Relaxed) != stalled {
            match stalled {
                true => tracing::warn!(
                    "the log of the cluster does not confirm changes: they are refused"
                ),
                false => tracing::info!("the log of the cluster confirms changes again"),
            }
        }
    }

    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed)
    }

    /// Records the version of commands that all live nodes can apply.
    pub(crate) fn set_commands(&self, commands: u32) {
        self.commands.store(commands, Ordering::Relaxed);
    }

    /// Checks that the log accepts changes and that all nodes can apply these.
    pub(crate) fn admit(&self, changes: &Changes) -> Result<(), SubmitError> {
        let commands = self.commands.load(Ordering::Relaxed);
        if self.is_stalled() {
            Err(SubmitError::NoLog)
        } else if commands < COMMANDS && needed_for(changes) > commands {
            Err(SubmitError::Upgrading)
        } else {
            Ok(())
        }
    }

    /// Checks that a picture can be added now, before it is converted.
    pub(crate) fn admits_pictures(&self) -> Result<(), SubmitError> {
        if self.is_stalled() {
            Err(SubmitError::NoLog)
        } else if self.commands.load(Ordering::Relaxed) < PICTURES {
            Err(SubmitError::Upgrading)
        } else {
            Ok(())
        }
    }

    /// Returns the status at `now_ms`, in milliseconds since 1970, of a node that lacks `missing_files` files, or more
    /// if `fetches_files`.
    pub(crate) fn status(
        &self,
        now_ms: u64,
        (missing_files, fetches_files): (usize, bool),
    ) -> ClusterStatus {
        let Applied { position, ms: position_ms, digest } = *self.applied.lock();
        let lag_groups = self.end.load(Ordering::Relaxed).saturating_sub(position.0);
        // A node under load always lags a little, and after a pause the last group is old, so the shorter of both times
        // counts.
        let since_ms = self.behind_since_ms.load(Ordering::Relaxed);
        let behind_ms = match since_ms {
            0 => 0,
            _ => now_ms.saturating_sub(since_ms.max(position_ms)),
        };
        let silent = Duration::from_millis(self.silent_ms.load(Ordering::Relaxed));
        let silent = if silent > SILENT_FOR { silent } else { Duration::ZERO };
        ClusterStatus {
            cluster: self.id.to_string(),
            node: self.node.to_string(),
            position: position.0,
            position_ms,
            digest,
            checkpoint: self.checkpoint.load(Ordering::Relaxed),
            lag_groups,
            lag: Duration::from_millis(behind_ms).max(silent),
            accepts_changes: !self.is_stalled(),
            commands: self.commands.load(Ordering::Relaxed),
            missing_files: missing_files as u64,
            fetches_files,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lag_is_the_time_without_a_known_group() {
        let ids = (ClusterId(1), NodeId(2));
        let cluster = Cluster::new(ids, (Position(5), Position(10)), (0, 1_000));
        let end = |position, seconds| {
            let (position, ago) = (Position(position), Duration::from_secs(seconds));
            LogEnd { position, ago }
        };
        let lag = |cluster: &Cluster, now_ms| {
            let status = cluster.status(now_ms, (0, false));
            (status.lag_groups, status.lag.as_millis())
        };
        cluster.note_end(end(10, 0), 900_000);
        assert_eq!(lag(&cluster, 900_000), (0, 0), "nothing happens");
        cluster.note_end(end(12, 0), 900_000);
        assert_eq!(lag(&cluster, 900_000), (2, 0), "they have just come");
        assert_eq!(lag(&cluster, 903_000), (2, 3_000));
        cluster.note(Position(11), 902_500, 0);
        cluster.note_end(end(13, 8), 903_000);
        assert_eq!(lag(&cluster, 903_000), (2, 500), "the last one was made half a second ago");
        cluster.note(Position(13), 903_000, 0);
        cluster.note_end(end(13, 9), 904_000);
        assert_eq!(
            lag(&cluster, 904_000),
            (0, 9_000),
            "there may be more: nobody has said for long"
        );
    }
}
