//! Turns between long values and other changes. While a value of some MiB is written, all other changes wait for the
//! disk, so a client that sets one such value after another would slow down everyone else.

use std::ops::Range;

/// Ratio of a wait to the duration of the last long append. Costly changes with long values wait so long, if there are
/// other changes.
const TURN: u64 = 3;
/// Maximum duration of an append that counts, in milliseconds, because a clock may jump during the append.
const TOOK_MAX_MS: u64 = 1_000;

/// State of the wait of costly changes with long values after a long append.
#[derive(Debug, Default)]
pub(crate) struct LongAppends {
    /// End of the turn of other changes, in milliseconds.
    until_ms: u64,
    /// Whether there was another append since the long one.
    has_others: bool,
}

impl LongAppends {
    /// Records an append: whether it has long values, and its begin and end.
    pub(crate) fn appended(&mut self, is_long: bool, time_ms: Range<u64>) {
        if !is_long {
            self.has_others = true;
            return;
        }
        let took_ms = time_ms.end.saturating_sub(time_ms.start).min(TOOK_MAX_MS);
        *self = Self { until_ms: time_ms.end + TURN * took_ms, has_others: false };
    }

    /// Whether costly changes with long values have to wait.
    pub(crate) fn is_turn_of_others(&self, now_ms: u64) -> bool {
        self.has_others && now_ms < self.until_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costly_changes_wait_after_a_long_append_only_if_there_are_others() {
        let mut appends = LongAppends::default();
        appended_other(&mut appends, 0);
        assert!(!appends.is_turn_of_others(1), "there was no long append");
        appends.appended(true, 10..30);
        assert!(!appends.is_turn_of_others(31), "nobody else is there");
        appended_other(&mut appends, 32);
        assert!(appends.is_turn_of_others(89));
        assert!(!appends.is_turn_of_others(90), "three times 20 ms after 30");
        appends.appended(true, 90..91);
        assert!(!appends.is_turn_of_others(91), "others have to come again");
        appends.appended(true, 100..1 << 40);
        appended_other(&mut appends, 1 << 40);
        assert!(!appends.is_turn_of_others((1 << 40) + 3_000), "the clock jumped");
    }

    fn appended_other(appends: &mut LongAppends, at_ms: u64) {
        appends.appended(false, at_ms..at_ms);
    }
}
