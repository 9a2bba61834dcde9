//! The options of a run, and their check.

use std::time::Duration;

use super::SimError;

/// Minimum and maximum requests per second that can be requested.
const RATES: (f64, f64) = (0.001, 10_000_000.0);
/// The longest run.
const DURATION_MAX: Duration = Duration::from_hours(24 * 366);

/// How a server is driven after loading.
#[derive(Debug, Clone)]
pub struct Drive {
    /// The duration of the run.
    pub duration: Duration,
    /// Average number of actions per second; `None` uses the default rates of the scenario.
    pub rate: Option<f64>,
    /// Whether each connection waits for an answer before it does the next action, and does not
    /// wait for the action's time.
    pub closed: bool,
    /// The length of a simulated day, over which the activity of users varies; `None` keeps it constant.
    pub day: Option<Duration>,
    /// The time at which the most followed user posts and all their followers read it, if any.
    pub flash: Option<Duration>,
    /// Number of connections, at least 1.
    pub connections: usize,
    /// Number of threads, at least 1.
    pub threads: usize,
}

impl Drive {
    /// An open loop at the default rates, with constant activity, over 64 connections.
    pub fn new(duration: Duration) -> Drive {
        let (rate, closed, day, flash) = (None, false, None, None);
        Drive { duration, rate, closed, day, flash, connections: 64, threads: 1 }
    }

    pub(super) fn check(&self) -> Result<(), SimError> {
        let bad = |problem: &str| Err(SimError::BadOption(problem.to_owned()));
        if self.connections == 0 || self.threads == 0 {
            return bad("a simulation needs at least 1 connection and 1 thread");
        }
        if self.rate.is_some_and(|rate| !(RATES.0..=RATES.1).contains(&rate)) {
            return bad("a rate is a number of requests per second from 0.001 to 10 million");
        }
        if self.duration > DURATION_MAX {
            return bad("a run is at most a year long");
        }
        if self.flash.is_some_and(|flash| flash >= self.duration) {
            return bad("--flash is after the end of the run");
        }
        if self.closed && (self.rate.is_some() || self.day.is_some() || self.flash.is_some()) {
            return bad("a closed loop takes no rate, no day and no flash");
        }
        Ok(())
    }
}
