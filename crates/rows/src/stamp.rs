//! Stamps: time and position of a command in the order of all commands.

use serde::{Deserialize, Serialize};

/// Time and position of a command in the order of all commands: 41 bits of milliseconds since [`EPOCH_MS`], 22 bits of
/// sequence. Unique and never reused; fits a signed 64-bit number.
///
/// A stamp is made when a command is applied, from the last stamp and the time of the command's group in the log.
/// Applying the same log thus always makes the same stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stamp(pub u64);

/// 2024-01-01T00:00:00Z in milliseconds since 1970. The 41 bits last until 2093.
pub const EPOCH_MS: u64 = 1_704_067_200_000;
const TIME_SHIFT: u32 = 22;

impl Stamp {
    /// Smallest stamp of a command. Smaller numbers are ids of records that no command made.
    pub const MIN: Self = Self(1 << TIME_SHIFT);
    /// Largest stamp: 63 bits.
    pub const MAX: Self = Self(i64::MAX as u64);

    /// Returns the milliseconds since 1970 at which the command was stamped.
    #[must_use]
    pub const fn unix_ms(self) -> u64 {
        (self.0 >> TIME_SHIFT) + EPOCH_MS
    }

    /// Returns the first stamp of `time_ms`, in milliseconds since 1970. Times before [`EPOCH_MS`] count as the epoch's
    /// first millisecond, times after 2093 as the last one.
    #[must_use]
    pub fn first_of(time_ms: u64) -> Self {
        let since = time_ms.saturating_sub(EPOCH_MS).clamp(1, Self::MAX.0 >> TIME_SHIFT);
        Self(since << TIME_SHIFT)
    }

    /// Returns the stamp that is `count` stamps later.
    ///
    /// # Panics
    /// If there is no such stamp. There are 4 million stamps per millisecond until 2093.
    #[must_use]
    pub const fn after(self, count: u64) -> Self {
        assert!(count <= Self::MAX.0 - self.0, "stamps fit 63 bits");
        Self(self.0 + count)
    }

    /// Returns whole days since 1970.
    #[must_use]
    pub const fn unix_day(self) -> u32 {
        (self.unix_ms() / 86_400_000) as u32
    }

    /// Returns whole seconds since 1970.
    #[must_use]
    pub const fn unix_second(self) -> u64 {
        self.unix_ms() / 1_000
    }
}

/// Source of stamps that always increase, even if the clock steps back.
///
/// If the time stays the same or steps back, the sequence continues, if necessary into the next millisecond. A stamp
/// may then be later than the clock, but is always greater than all earlier stamps.
#[derive(Debug, Clone)]
pub struct StampClock {
    last: Stamp,
}

impl StampClock {
    /// Creates a clock that continues after `last`, the highest stamp in use.
    #[must_use]
    pub fn new(last: Stamp) -> Self {
        Self { last }
    }

    /// Returns the next stamp at `time_ms`, in milliseconds since 1970.
    pub fn next(&mut self, time_ms: u64) -> Stamp {
        self.next_run(time_ms, 1)
    }

    /// Reserves `count` consecutive stamps and returns the first; [`Stamp::after`] returns the others.
    pub fn next_run(&mut self, time_ms: u64, count: usize) -> Stamp {
        let first = Stamp::first_of(time_ms).max(self.last.after(1));
        self.last = first.after((count as u64).saturating_sub(1));
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_increase_if_the_clock_steps_back_stops_or_jumps() {
        let mut clock = StampClock::new(Stamp(0));
        let mut last = Stamp(0);
        let far = [EPOCH_MS - 1, 0, u64::MAX >> 1, u64::MAX, 7];
        for now in [5, 5, 4, 0, 9, 9, 1_000_000, 2].map(|ms| EPOCH_MS + ms).into_iter().chain(far) {
            for _ in 0..5_000 {
                let next = clock.next(now);
                assert!(next > last && next <= Stamp::MAX);
                last = next;
            }
        }
    }

    #[test]
    fn runs_of_stamps_increase_and_do_not_overlap() {
        let mut clock = StampClock::new(Stamp(0));
        let mut last = Stamp(0);
        for count in [1, 2, 4_095, 4_096, 1, 20_000, 1, 1, 4_097, 7].into_iter().cycle().take(100) {
            let first = clock.next_run(EPOCH_MS + 5, count);
            for stamp in (0..count as u64).map(|index| first.after(index)) {
                assert!(stamp > last);
                last = stamp;
            }
        }
    }

    #[test]
    fn a_stamp_has_the_time_it_was_made_at() {
        let now = EPOCH_MS + 123_456_789;
        assert_eq!(StampClock::new(Stamp(0)).next(now).unix_ms(), now);
    }

    #[test]
    fn a_new_clock_continues_after_the_last_stamp() {
        let last = StampClock::new(Stamp(0)).next(EPOCH_MS + 50);
        assert!(StampClock::new(last).next(EPOCH_MS + 10) > last);
    }
}
