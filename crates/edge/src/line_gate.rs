//! Limit of one line per second for log lines that clients can cause. If each refusal wrote a line, the line would cost
//! more than the refusal, and the log would fill the disk.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Gate that passes one line per second, and counts the suppressed lines.
#[derive(Debug, Default)]
pub struct LineGate {
    /// Second of the last line, counted from 1; 0 before the first line.
    last: AtomicU64,
    skipped: AtomicU64,
}

impl LineGate {
    /// Creates a gate that has not passed a line.
    #[must_use]
    pub const fn new() -> Self {
        Self { last: AtomicU64::new(0), skipped: AtomicU64::new(0) }
    }

    /// Number of lines that the line to write now represents; `None` if it must be suppressed.
    pub fn due(&self) -> Option<u64> {
        self.due_at(START.elapsed().as_secs() + 1)
    }

    fn due_at(&self, second: u64) -> Option<u64> {
        // In each second, only one thread writes a line. Lines counted at the same time belong to the next line.
        let last = self.last.load(Ordering::Relaxed);
        let won = last < second
            && self
                .last
                .compare_exchange(last, second, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if won {
            Some(self.skipped.swap(0, Ordering::Relaxed) + 1)
        } else {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_second_says_how_many_there_were() {
        let gate = LineGate::new();
        assert_eq!(gate.due_at(5), Some(1));
        assert!((0..1_000).all(|_| gate.due_at(5).is_none()));
        assert_eq!(gate.due_at(4), None, "a late thread");
        assert_eq!(gate.due_at(6), Some(1_002));
        assert_eq!(gate.due_at(8), Some(1));
    }
}
