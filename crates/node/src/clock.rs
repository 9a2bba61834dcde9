//! The time of the node. It follows the machine's clock while that is plausible, and otherwise the monotonic
//! clock: it never goes back and never stops.
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
/// A difference between the machine's clock and the time of the node is reported from this length on.
const REPORTED: Duration = Duration::from_secs(60);
/// Interval between such reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(3_600);

/// The source of the time.
#[derive(Clone)]
pub struct Clock {
    /// Milliseconds since 1970; may step in either direction.
    unix_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// The time that has passed; never goes back.
    elapsed: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// Whether the time goes on by `elapsed` if `unix_ms` is not plausible.
    checked: bool,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        let start = Instant::now();
        let unix_ms = || {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        };
        Self::from_fns(unix_ms, move || start.elapsed())
    }

    /// A clock whose time is what `unix_ms` returns, whatever that is, unless it goes back. Pauses are those of
    /// the machine.
    pub fn from_fn(unix_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        let start = Instant::now();
        Self { checked: false, ..Self::from_fns(unix_ms, move || start.elapsed()) }
    }

    /// A clock like the machine's, whose time is what `unix_ms` returns. `elapsed` never goes back.
    pub fn from_fns(
        unix_ms: impl Fn() -> u64 + Send + Sync + 'static,
        elapsed: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self { unix_ms: Arc::new(unix_ms), elapsed: Arc::new(elapsed), checked: true }
    }

    /// Milliseconds since 1970, as the machine says.
    pub(crate) fn unix_ms(&self) -> u64 {
        (self.unix_ms)()
    }

    /// The time since some moment before the first call. Never goes back.
    pub(crate) fn elapsed(&self) -> Duration {
        (self.elapsed)()
    }

    /// Whether the machine's clock can be used by a server that last ran at `last_ms`, 0 if it never did. A jump
    /// may be as long as `jump_max`, or of any length if that is `None`.
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

/// Why the machine's clock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// It is not between 2024 and 2092.
    #[error("the machine's clock shows {0}; set it: roost works from 2024 to 2092")]
    Range(Date),
    /// It differs much from the time at which the server last ran, which comes second.
    #[error(
        "the machine's clock shows {0}, but this server last ran at {1}; set the clock, or if it is right start \
         once with --accept-clock"
    )]
    Jump(Date, Date),
    /// It is far behind the time at which the server last ran, which comes second.
    #[error(
        "the machine's clock shows {0}, but this server last ran at {1}; set the clock. If it is right and was wrong \
         then, see docs/operations.md: roost export and roost import --set-back undo that, and with --accept-clock the \
         server goes on from {1}"
    )]
    Behind(Date, Date),
}

/// Milliseconds since 1970, shown as RFC 3339 in UTC.
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

/// The time of the node. It never goes back: what has expired once stays expired.
///
/// **Invariant:** [`Time::now_ms`] is at least the time of every stamp in the log and every time it has
/// returned before.
pub(crate) struct Time {
    clock: Clock,
    highest_ms: AtomicU64,
    /// The time of the node when nothing had passed yet.
    base_ms: AtomicU64,
    /// The machine's clock is not followed further ahead at once, in milliseconds.
    jump_max_ms: u64,
    /// Differences are reported again when so many milliseconds have passed.
    report_at_ms: AtomicU64,
}

impl Time {
    /// Begins at `from_ms`, the time of the last stamp, or at the time of the clock, if that is later. Later on
    /// the clock is not followed if it jumps ahead by more than `jump_max`.
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

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        let unix_ms = (self.clock.unix_ms)();
        let now = if self.clock.checked { self.plausible(unix_ms) } else { unix_ms };
        // Most calls find a time that was already returned, and need not write.
        match self.highest_ms.load(Ordering::Acquire) {
            highest if highest >= now => highest,
            _ => self.highest_ms.fetch_max(now, Ordering::AcqRel).max(now),
        }
    }

    /// The time of the machine's clock, or the time as it passes if the clock went back or jumped ahead.
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

    /// Time by which the machine's clock is ahead of the time of the node, in milliseconds; negative if it is slow.
    pub(crate) fn offset_ms(&self) -> i64 {
        let now = self.now_ms();
        (self.clock.unix_ms)().cast_signed() - now.cast_signed()
    }

    /// See [`Clock::elapsed`].
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// The latest time that was returned to any caller, without reading the clock.
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

/// Whole milliseconds that have passed.
fn passed_ms(clock: &Clock) -> u64 {
    clock.elapsed().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);
    const DAY_MS: u64 = 86_400_000;
    const START_MS: u64 = EPOCH_MS + 1_000 * DAY_MS;

    /// A clock, and what it says and what has passed, in milliseconds.
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
        // What the clock says, what has passed, the time; all in milliseconds after the start.
        for (unix, elapsed, expected) in [
            (0, 0, 0),
            (10, 10, 10),
            // It goes back: the time goes on at its rate.
            (5, 20, 20),
            (6, 1_000, 1_000),
            // It is ahead of the time again.
            (2_000, 1_500, 2_000),
            (2_000, 1_600, 2_100),
            // It jumps, but not too far.
            (DAY_MS, 1_700, DAY_MS),
            // It jumps too far: that is not followed.
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
