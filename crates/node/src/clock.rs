//! What time it is: the machine's clock, or one that a test turns by hand, made to run one way only.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the time comes from: milliseconds since 1970. It may step back; what the node makes of it
/// does not.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Clock {
    /// The machine's.
    #[must_use]
    pub fn system() -> Self {
        Self::from_fn(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        })
    }

    /// Whatever `unix_ms` says.
    pub fn from_fn(unix_ms: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(unix_ms))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Clock({})", (self.0)())
    }
}

/// A clock that never goes back: what has expired once stays expired.
///
/// **Invariant:** [`Time::now_ms`] is at least the time of every stamp in the log and everything it
/// has told before.
pub(crate) struct Time {
    clock: Clock,
    highest_ms: AtomicU64,
}

impl Time {
    /// Runs on from `from_ms`, the time of the last stamp.
    pub(crate) fn new(clock: Clock, from_ms: u64) -> Self {
        Self { clock, highest_ms: AtomicU64::new(from_ms) }
    }

    /// Milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        let now = (self.clock.0)();
        // Most calls find a time that somebody has told already, and need not write.
        match self.highest_ms.load(Ordering::Acquire) {
            highest if highest >= now => highest,
            _ => self.highest_ms.fetch_max(now, Ordering::AcqRel).max(now),
        }
    }

    /// The latest time that anybody was told, without a look at the clock.
    pub(crate) fn last_ms(&self) -> u64 {
        self.highest_ms.load(Ordering::Acquire)
    }

    /// A stamp of this time was given out; the sequence of stamps may run ahead of the clock.
    pub(crate) fn at_least(&self, ms: u64) {
        if self.highest_ms.load(Ordering::Acquire) < ms {
            self.highest_ms.fetch_max(ms, Ordering::AcqRel);
        }
    }
}
