//! Progress of the archive: written by the archiving thread, read by the writer and the metrics.
//!
//! **Invariant:** only archived groups are cut from the log, except beyond a limit and when the disk is nearly full.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use commitlog::Position;

use crate::options::ArchiveOptions;

/// Progress of the archive.
pub(crate) struct ArchiveProgress {
    /// Last group that is durable in the archive. The log is cut only up to it.
    up_to: AtomicU64,
    /// Size of the log in bytes above which it is cut even if it is not archived.
    backlog_max: u64,
    /// Time since which the archive has been incomplete, in milliseconds.
    lag_ms: AtomicU64,
    failures: AtomicU64,
    gaps: AtomicU64,
}

impl ArchiveProgress {
    /// Creates the progress of an archive; `None` disables it, so that the log is not kept for one.
    pub(crate) fn new(options: Option<&ArchiveOptions>) -> Self {
        Self {
            up_to: AtomicU64::new(if options.is_some() { 0 } else { u64::MAX }),
            backlog_max: options.map_or(0, |options| options.backlog_max),
            lag_ms: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            gaps: AtomicU64::new(0),
        }
    }

    /// Returns the position up to which a log of `log_bytes` bytes may be cut, if groups up to `wanted` are no longer
    /// needed. `low` is whether the disk has little free space.
    pub(crate) fn cut(&self, wanted: Position, log_bytes: u64, low: bool) -> Position {
        if log_bytes > self.backlog_max || low {
            return wanted;
        }
        wanted.min(self.up_to())
    }

    /// Returns for how long the archive has been incomplete.
    pub(crate) fn lag(&self) -> Duration {
        Duration::from_millis(self.lag_ms.load(Ordering::Relaxed))
    }

    /// Returns the number of failed writes to the archive.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Returns the number of times that the log was cut before it was archived.
    pub(crate) fn gaps(&self) -> u64 {
        self.gaps.load(Ordering::Relaxed)
    }

    /// Returns the last group that is durable in the archive.
    pub(crate) fn up_to(&self) -> Position {
        Position(self.up_to.load(Ordering::Acquire))
    }

    pub(crate) fn set(&self, up_to: Position) {
        self.up_to.store(up_to.0, Ordering::Release);
    }

    pub(crate) fn set_lag(&self, lag: Duration) {
        self.lag_ms.store(lag.as_millis() as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_gap(&self) {
        self.gaps.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_kept_for_the_archive_up_to_a_limit_and_while_there_is_room() {
        let options = ArchiveOptions { backlog_max: 1_000, ..ArchiveOptions::new("x") };
        let progress = ArchiveProgress::new(Some(&options));
        progress.set(Position(7));
        for (wanted, bytes, low, cut) in
            [(5, 1_000, false, 5), (9, 1_000, false, 7), (9, 1_001, false, 9), (9, 10, true, 9)]
        {
            assert_eq!(progress.cut(Position(wanted), bytes, low), Position(cut), "{wanted}");
        }
        assert_eq!(ArchiveProgress::new(None).cut(Position(9), 10, false), Position(9));
    }
}
