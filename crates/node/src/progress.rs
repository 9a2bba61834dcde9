//! Progress of opening a node.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Progress of [`crate::Node::open`]. Clones share it.
///
/// The counts are only displayed, so their atomics are relaxed.
#[derive(Clone, Debug, Default)]
pub struct OpenProgress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    replayed: AtomicU64,
    groups: AtomicU64,
}

impl OpenProgress {
    /// Returns the number of replayed groups of the log, and of all groups to replay. Both are 0 until the log is read.
    #[must_use]
    pub fn groups(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.0.replayed), read(&self.0.groups))
    }

    pub(crate) fn begin(&self, groups: u64) {
        self.0.replayed.store(0, Ordering::Relaxed);
        self.0.groups.store(groups, Ordering::Relaxed);
    }

    pub(crate) fn replayed(&self, groups: u64) {
        self.0.replayed.store(groups, Ordering::Relaxed);
    }
}

impl fmt::Display for OpenProgress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.groups() {
            (_, 0) => out.write_str("opening the store and the log"),
            (replayed, groups) => write!(out, "replayed {replayed} of {groups} groups of the log"),
        }
    }
}
