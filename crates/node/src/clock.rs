//! The time: the machine's clock, or one that a test sets, made to never go back.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where the time comes from: milliseconds since 1970, which may step back (the time of the node does not),
/// and the time that has passed, for pauses.
#[derive(Clone)]
pub struct Clock {
    unix_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
    elapsed: Arc<dyn Fn() -> Duration + Send + Sync>,
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self::from_fn(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }

    /// A clock whose time is what `unix_ms` returns. Pauses are those of the machine.
    pub fn from_fn(unix_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        let start = Instant::now();
        Self::from_fns(unix_ms, move || start.elapsed())
    }

    /// A clock whose time is what `unix_ms` returns. `elapsed` never goes back.
    pub fn from_fns(
        unix_ms: impl Fn() -> u64 + Send + Sync + 'static,
        elapsed: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self { unix_ms: Arc::new(unix_ms), elapsed: Arc::new(elapsed) }
    }

    /// The time since some moment before the first call. Never goes back.
    pub(crate) fn elapsed(&self) -> Duration {
        (self.elapsed)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Clock({})", (self.unix_ms)())
    }
}

/// A clock that never goes back: what has expired once stays expired.
///
/// **Invariant:** [`Time::now_ms`] is at least the time of every stamp in the log and every time it has
/// returned before.
pub(crate) struct Time {
    clock: Clock,
    highest_ms: AtomicU64,
}

impl Time {
    /// Begins at `from_ms`, the time of the last stamp, or later.
    pub(crate) fn new(clock: Clock, from_ms: u64) -> Self {
        Self { clock, highest_ms: AtomicU64::new(from_ms) }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        let now = (self.clock.unix_ms)();
        // Most calls find a time that was already returned, and need not write.
        match self.highest_ms.load(Ordering::Acquire) {
            highest if highest >= now => highest,
            _ => self.highest_ms.fetch_max(now, Ordering::AcqRel).max(now),
        }
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
