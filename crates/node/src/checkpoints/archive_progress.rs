//! The progress of the archive: written by the archiving thread, read by the writer and the metrics.
//!
//! **Invariant:** only archived groups are cut from the log, except beyond a limit and when the disk is nearly full.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use commitlog::Position;

use crate::options::ArchiveOptions;

/// Progress of the archive.
pub(crate) struct ArchiveProgress {
    /// The last group that is durable in the archive. A log is cut only up to it.
    up_to: AtomicU64,
    /// The log is cut all the same when it has more bytes.
    backlog_max: u64,
    /// For how long the archive has lacked a group, in milliseconds.
    lag_ms: AtomicU64,
    failures: AtomicU64,
    gaps: AtomicU64,
}

impl ArchiveProgress {
    /// Without an archive nothing is kept for it.
    pub(crate) fn new(options: Option<&ArchiveOptions>) -> Self {
        Self {
            up_to: AtomicU64::new(if options.is_some() { 0 } else { u64::MAX }),
            backlog_max: options.map_or(0, |options| options.backlog_max),
            lag_ms: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            gaps: AtomicU64::new(0),
        }
    }

    /// Up to where a log of so many bytes, of which groups up to `wanted` are no longer needed, may be cut. `low` says
    /// whether the disk has little room.
    pub(crate) fn cut(&self, wanted: Position, log_bytes: u64, low: bool) -> Position {
        if log_bytes > self.backlog_max || low {
            return wanted;
        }
        wanted.min(self.up_to())
    }

    /// For how long the archive has lacked a group.
    pub(crate) fn lag(&self) -> Duration {
        Duration::from_millis(self.lag_ms.load(Ordering::Relaxed))
    }

    /// Number of attempts to write to the archive that failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Number of times that the log was cut before it was archived.
    pub(crate) fn gaps(&self) -> u64 {
        self.gaps.load(Ordering::Relaxed)
    }

    /// The last group that is durable in the archive.
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
