//! What a node knows of the log that it shares with others.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use commitlog::{ClusterId, NodeId, Position};
use tokio::sync::watch;

/// For how long a change waits for the log, and a read for a position.
pub(crate) const CONFIRMED_WITHIN: Duration = Duration::from_secs(2);

/// State of a node of a cluster. The writer changes it.
pub(crate) struct Cluster {
    id: ClusterId,
    node: NodeId,
    /// Position of the last group that was applied and is visible to reads.
    applied: watch::Sender<u64>,
    /// The time of that group, in milliseconds since 1970.
    applied_ms: AtomicU64,
    /// Of the groups up to there that count.
    digest: AtomicU64,
    /// Position of the older of the last two checkpoints.
    checkpoint: AtomicU64,
    /// Whether a group of this node has been under way for longer than [`CONFIRMED_WITHIN`]. A hint: nothing depends
    /// on when it is seen.
    stalled: AtomicBool,
}

/// State of a node of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterStatus {
    /// The cluster, 32 hexadecimal digits.
    pub cluster: String,
    /// The node, 32 hexadecimal digits.
    pub node: String,
    /// Position of the last group that was applied.
    pub position: u64,
    /// Its time, in milliseconds since 1970; 0 if none was applied since the start.
    pub position_ms: u64,
    /// Digest of the groups up to there: nodes at the same position have the same.
    pub digest: u64,
    /// This node needs no group up to here, whatever happens to it: the older of its last two checkpoints.
    pub checkpoint: u64,
    /// Whether changes are accepted: the log answers.
    pub accepts_changes: bool,
}

impl Cluster {
    pub(crate) fn new(
        (id, node): (ClusterId, NodeId),
        (checkpoint, applied): (Position, Position),
        digest: u64,
    ) -> Self {
        Self {
            id,
            node,
            applied: watch::Sender::new(applied.0),
            applied_ms: AtomicU64::new(0),
            digest: AtomicU64::new(digest),
            checkpoint: AtomicU64::new(checkpoint.0),
            stalled: AtomicBool::new(false),
        }
    }

    /// Takes note of an applied group, once reads see it.
    pub(crate) fn note(&self, position: Position, time_ms: u64, digest: u64) {
        // Position and digest of a status must be of the same group: both change while the watch is locked.
        self.applied.send_modify(|applied| {
            *applied = position.0;
            self.applied_ms.store(time_ms, Ordering::Relaxed);
            self.digest.store(digest, Ordering::Relaxed);
        });
    }

    /// Takes note of the older of the last two checkpoints.
    pub(crate) fn note_checkpoint(&self, position: Position) {
        self.checkpoint.store(position.0, Ordering::Relaxed);
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

    /// Waits up to [`CONFIRMED_WITHIN`] until the group at `position` is applied; returns whether it is.
    pub(crate) async fn applied(&self, position: u64) -> bool {
        let mut applied = self.applied.subscribe();
        let wait = applied.wait_for(|applied| *applied >= position);
        matches!(tokio::time::timeout(CONFIRMED_WITHIN, wait).await, Ok(Ok(_)))
    }

    pub(crate) fn status(&self) -> ClusterStatus {
        let position = self.applied.borrow();
        ClusterStatus {
            cluster: self.id.to_string(),
            node: self.node.to_string(),
            position: *position,
            position_ms: self.applied_ms.load(Ordering::Relaxed),
            digest: self.digest.load(Ordering::Relaxed),
            checkpoint: self.checkpoint.load(Ordering::Relaxed),
            accepts_changes: !self.is_stalled(),
        }
    }
}
