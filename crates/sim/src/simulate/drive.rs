//! Validation of the options of a run.

use std::time::Duration;

use super::SimError;
use crate::options::Drive;

/// Minimum and maximum number of requests per second.
const RATES: (f64, f64) = (0.001, 10_000_000.0);
/// The longest run.
const DURATION_MAX: Duration = Duration::from_hours(24 * 366);

impl Drive {
    /// Creates the options of an open loop at the default rates, with constant activity and 64 connections.
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
