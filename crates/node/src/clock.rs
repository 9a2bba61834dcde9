//! Time of the node. It follows the machine's clock while that is plausible, and otherwise the monotonic clock: it
//! never goes back and never stops.
//!
//! **Invariant:** the time never goes back while a process runs, and is never less than a stamp in the log. So a
//! restart sets it back only if the clock was set back, and at most to the last change.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use rows::EPOCH_MS;

/// 2093-01-01T00:00:00Z in milliseconds since 1970. Stamps end in September of that year.
pub(crate) const LATEST_MS: u64 = 3_881_520_000_000;
/// Minimum difference between the machine's clock and the time of the node that is reported.
const REPORTED: Duration = Duration::from_secs(60);
/// Minimum interval between such reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(3_600);

/// Source of the time.
#[derive(Clone)]
pub struct Clock {
    /// Returns milliseconds since 1970; may step in either direction.
    unix_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Returns the elapsed time; never goes back.
    elapsed: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// Whether the time advances by `elapsed` while `unix_ms` is implausible.
    checked: bool,
}

impl Clock {
    /// Returns the machine's clock.
    #[must_use]
    pub fn system() -> Self {
        let start = Instant::now();
        let unix_ms = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        };
        Self::from_fns(unix_ms, move || start.elapsed())
    }

    /// Creates a clock from `unix_ms`, whose time is followed unless it goes back. Pauses use the machine's monotonic
    /// clock.
    pub fn from_fn(unix_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        let start = Instant::now();
        Self { checked: false, ..Self::from_fns(unix_ms, move || start.elapsed()) }
    }

    /// Creates a clock that is checked like the machine's, from `unix_ms` and `elapsed`. `elapsed` never goes back.
    pub fn from_fns(
        unix_ms: impl Fn() -> u64 + Send + Sync + 'static,
        elapsed: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self { unix_ms: Arc::new(unix_ms), elapsed: Arc::new(elapsed), checked: true }
    }

    /// Returns the milliseconds since 1970 of the machine's clock.
    pub(crate) fn unix_ms(&self) -> u64 {
        (self.unix_ms)()
    }

    /// Returns the time since some moment before the first call. Never goes back.
    pub(crate) fn elapsed(&self) -> Duration {
        (self.elapsed)()
    }

    /// Checks that a server that last ran at `last_ms` (0: never) can use the machine's clock. `jump_max` is the
    /// longest accepted jump; `None` accepts any.
    ///
    /// # Errors
    /// [`ClockError`]
    pub(crate) fn check(&self, last_ms: u64, jump_max: Option<Duration>) -> Result<(), ClockError> {
        if !self.checked {
            return Ok(());
        }
        let now_ms = (self.unix_ms)();
        if !(EPOCH_MS..LATEST_MS).contains(&now_ms) {
            return Err(ClockError::Range(Date(now_ms)));
        }
        let jump = Duration::from_millis(now_ms.abs_diff(last_ms));
        if last_ms == 0 || jump < REPORTED {
            return Ok(());
        }
        let error = match now_ms < last_ms {
            true => ClockError::Behind(Date(now_ms), Date(last_ms)),
            false => ClockError::Jump(Date(now_ms), Date(last_ms)),
        };
        if jump_max.is_some_and(|most| jump > most) {
            return Err(error);
        }
        if now_ms < last_ms {
            tracing::warn!(%error, "the time continues from when this server last ran");
        }
        Ok(())
    }
}

/// Reason why the machine's clock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The clock is not between 2024 and 2092.
    #[error("the machine's clock shows {0}; set it: roost works from 2024 to 2092")]
    Range(Date),
    /// The clock (first) differs too much from the time at which the server last ran (second).
    #[error(
        "the machine's clock shows {0}, but this server last ran at {1}; set the clock, or if it is right start \
         once with --accept-clock"
    )]
    Jump(Date, Date),
    /// The clock (first) is much earlier than the time at which the server last ran (second).
    #[error(
        "the machine's clock shows {0}, but this server last ran at {1}; set the clock. If it is right and was wrong \
         then, see docs/operations.md: roost export and roost import --set-back undo that; with --accept-clock the \
         server continues from {1}"
    )]
    Behind(Date, Date),
}

/// Milliseconds since 1970, displayed as RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date(pub u64);

impl fmt::Display for Date {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = i64::try_from(self.0).unwrap_or(i64::MAX);
        match Timestamp::from_millisecond(ms) {
            Ok(time) => write!(formatter, "{time}"),
            Err(_) => write!(formatter, "{} ms after 1970", self.0),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Clock({})", (self.unix_ms)())
    }
}

/// Time of the node. It never goes back: what has expired stays expired.
///
/// **Invariant:** [`Time::now_ms`] is at least the time of every stamp in the log and every time that it has returned
/// before.
pub(crate) struct Time {
    clock: Clock,
    highest_ms: AtomicU64,
    /// Time of the node at which the elapsed time was zero.
    base_ms: AtomicU64,
    /// Largest jump ahead of the machine's clock that is followed, in milliseconds.
    jump_max_ms: u64,
    /// Elapsed time before which differences are not reported again, in milliseconds.
    report_at_ms: AtomicU64,
}

impl Time {
    /// Begins at `from_ms`, the time of the last stamp, or at the time of the clock if that is later. Later jumps ahead
    /// by more than `jump_max` are not followed.
    pub(crate) fn new(clock: Clock, from_ms: u64, jump_max: Duration) -> Self {
        let start_ms = (clock.unix_ms)().max(from_ms);
        let base_ms = start_ms.saturating_sub(passed_ms(&clock));
        Self {
            clock,
            highest_ms: AtomicU64::new(from_ms),
            base_ms: AtomicU64::new(base_ms),
            jump_max_ms: u64::try_from(jump_max.as_millis()).unwrap_or(u64::MAX),
            report_at_ms: AtomicU64::new(0),
        }
    }

    /// Returns milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        let unix_ms = (self.clock.unix_ms)();
        let now = if self.clock.checked { self.plausible(unix_ms) } else { unix_ms };
        // Most calls return a time that was returned before, and need not write.
        match self.highest_ms.load(Ordering::Acquire) {
            highest if highest >= now => highest,
            _ => self.highest_ms.fetch_max(now, Ordering::AcqRel).max(now),
        }
    }

    /// Returns the time of the machine's clock, or the elapsed time if the clock went back or jumped too far ahead.
    fn plausible(&self, unix_ms: u64) -> u64 {
        let passed = passed_ms(&self.clock);
        let steady = self.base_ms.load(Ordering::Acquire).saturating_add(passed);
        if steady.abs_diff(unix_ms) >= REPORTED.as_millis() as u64 {
            self.report(unix_ms, steady, passed);
        }
        if unix_ms <= steady || unix_ms - steady > self.jump_max_ms {
            return steady;
        }
        self.base_ms.fetch_max(unix_ms.saturating_sub(passed), Ordering::AcqRel);
        unix_ms
    }

    fn report(&self, unix_ms: u64, steady_ms: u64, passed_ms: u64) {
        let due = self.report_at_ms.load(Ordering::Relaxed);
        let next = passed_ms + REPORT_INTERVAL.as_millis() as u64;
        let exchanged =
            self.report_at_ms.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed);
        if passed_ms >= due && exchanged.is_ok() {
            let followed = unix_ms > steady_ms && unix_ms - steady_ms <= self.jump_max_ms;
            tracing::warn!(
                clock = %Date(unix_ms), server = %Date(steady_ms), followed,
                "the machine's clock has jumped"
            );
        }
    }

    /// Returns the difference of the machine's clock and the time of the node in milliseconds; negative if the clock is
    /// slow.
    pub(crate) fn offset_ms(&self) -> i64 {
        let now = self.now_ms();
        (self.clock.unix_ms)().cast_signed() - now.cast_signed()
    }

    /// Returns [`Clock::elapsed`].
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Returns the latest time that was returned to any caller, without reading the clock.
    pub(crate) fn last_ms(&self) -> u64 {
        self.highest_ms.load(Ordering::Acquire)
    }

    /// Raises the time to that of a stamp: stamps may run ahead of the clock.
    pub(crate) fn at_least(&self, ms: u64) {
        if self.highest_ms.load(Ordering::Acquire) < ms {
            self.highest_ms.fetch_max(ms, Ordering::AcqRel);
        }
    }
}

/// Returns the elapsed time in whole milliseconds.
fn passed_ms(clock: &Clock) -> u64 {
    clock.elapsed().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);
    const DAY_MS: u64 = 86_400_000;
    const START_MS: u64 = EPOCH_MS + 1_000 * DAY_MS;

    /// Returns a clock, its time and its elapsed time, in milliseconds.
    fn clock() -> (Clock, Arc<AtomicU64>, Arc<AtomicU64>) {
        let (says, passed) = (Arc::new(AtomicU64::new(START_MS)), Arc::new(AtomicU64::new(0)));
        let (unix_ms, elapsed) = (Arc::clone(&says), Arc::clone(&passed));
        let clock = Clock::from_fns(
            move || unix_ms.load(Ordering::Relaxed),
            move || Duration::from_millis(elapsed.load(Ordering::Relaxed)),
        );
        (clock, says, passed)
    }

    #[test]
    fn time_follows_the_clock_or_goes_on_as_it_passes() {
        let (clock, says, passed) = clock();
        let time = Time::new(clock, START_MS - 5, DAY);
        // Clock, elapsed time, expected time; all in milliseconds after the start.
        for (unix, elapsed, expected) in [
            (0, 0, 0),
            (10, 10, 10),
            // The clock goes back: the time continues at its rate.
            (5, 20, 20),
            (6, 1_000, 1_000),
            // The clock is ahead of the time again.
            (2_000, 1_500, 2_000),
            (2_000, 1_600, 2_100),
            // The clock jumps, but not too far.
            (DAY_MS, 1_700, DAY_MS),
            // The clock jumps too far: the time does not follow.
            (3 * DAY_MS, 1_800, DAY_MS + 100),
            (3 * DAY_MS + 50, 1_850, DAY_MS + 150),
            (DAY_MS + 160, 1_860, DAY_MS + 160),
        ] {
            says.store(START_MS + unix, Ordering::Relaxed);
            passed.store(elapsed, Ordering::Relaxed);
            assert_eq!(time.now_ms() - START_MS, expected, "{unix} {elapsed}");
            assert_eq!(time.offset_ms(), unix.cast_signed() - expected.cast_signed());
        }
    }

    #[test]
    fn time_goes_on_from_the_last_stamp_if_the_clock_is_behind_it() {
        let (clock, says, passed) = clock();
        let last = START_MS + 3 * DAY_MS;
        let time = Time::new(clock, last, DAY);
        assert_eq!(time.now_ms(), last);
        says.fetch_add(1_000, Ordering::Relaxed);
        passed.store(1_000, Ordering::Relaxed);
        assert_eq!(time.now_ms(), last + 1_000);
    }

    #[test]
    fn a_start_with_an_implausible_clock_is_refused() {
        let (clock, says, _) = clock();
        for (unix, last, fine, accepted) in [
            (START_MS, 0, true, true),
            (START_MS, START_MS, true, true),
            (START_MS, START_MS - DAY_MS, true, true),
            (START_MS, START_MS + DAY_MS, true, true),
            (START_MS, START_MS - DAY_MS - 1, false, true),
            (START_MS, START_MS + DAY_MS + 1, false, true),
            (EPOCH_MS - 1, 0, false, false),
            (0, 0, false, false),
            (LATEST_MS, LATEST_MS - 1, false, false),
            (LATEST_MS - 1, LATEST_MS - 2, true, true),
            (u64::MAX, 0, false, false),
        ] {
            says.store(unix, Ordering::Relaxed);
            assert_eq!(clock.check(last, Some(DAY)).is_ok(), fine, "{unix} {last}");
            assert_eq!(clock.check(last, None).is_ok(), accepted, "{unix} {last}");
        }
        says.store(START_MS, Ordering::Relaxed);
        let error = clock.check(START_MS - 2 * DAY_MS, Some(DAY)).unwrap_err().to_string();
        assert!(error.contains("2026-09-27T00:00:00Z"), "{error}");
        assert!(error.contains("2026-09-25T00:00:00Z"), "{error}");
        assert!(Clock::from_fn(|| 7).check(START_MS, Some(DAY)).is_ok(), "taken as it is");
    }
}
