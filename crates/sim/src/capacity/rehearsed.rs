//! Trials that drive a real server: a rehearsal driven again and again at other rates.

use std::io;
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::sync::watch;

use super::Trials;
use crate::simulate::{Drive, Rehearsal, SimError};
use crate::slo::{Lag, Latency, Measures};
use crate::summary::{KindSummary, Summary};
use crate::watch::{Plan, Watcher, Window};

/// The part of a trial's length for which the server is driven before anything counts, so that a
/// change of the rate is not measured.
const WARM_UP_SHARE: u32 = 5;
/// The part of all requests that a kind must make up for its percentiles to count.
const KIND_SHARE_MIN: f64 = 0.01;

/// Drives a rehearsal at the rates of a search.
pub struct Rehearsed<'a> {
    /// The people, and the server that has them.
    pub rehearsal: &'a mut Rehearsal,
    /// How it is driven but for the rate; its duration is that of a trial.
    pub drive: Drive,
    /// Ends the search when it turns true.
    pub cancel: watch::Receiver<bool>,
}

impl Trials for Rehearsed<'_> {
    async fn run(&mut self, rate_per_s: f64) -> Result<Measures, SimError> {
        let drive = Drive { rate: Some(rate_per_s), ..self.drive.clone() };
        let warm_up = Drive { duration: drive.duration / WARM_UP_SHARE, ..drive.clone() };
        self.drive_once(&warm_up, &mut InTime::new(warm_up.duration)).await?;
        let mut in_time = InTime::new(drive.duration);
        let summary = self.drive_once(&drive, &mut in_time).await?;
        Ok(measures(&summary, &drive, in_time.done))
    }
}

impl Rehearsed<'_> {
    async fn drive_once(
        &mut self,
        drive: &Drive,
        in_time: &mut InTime,
    ) -> Result<Summary, SimError> {
        let summary = self.rehearsal.drive(drive, &mut [in_time], &mut self.cancel).await?;
        if summary.interrupted { Err(SimError::Interrupted) } else { Ok(summary) }
    }
}

/// Counts what was done before the trial was over: a server that needs its time of grace to come to
/// an end has fallen behind.
struct InTime {
    until_s: f64,
    done: u64,
}

impl InTime {
    fn new(duration: Duration) -> InTime {
        InTime { until_s: duration.as_secs_f64(), done: 0 }
    }
}

impl Watcher for InTime {
    fn begin(&mut self, plan: &Plan) -> io::Result<()> {
        // A window ends a little after its time, and the last one with the last answer.
        self.until_s += plan.window.as_secs_f64() / 2.0;
        Ok(())
    }

    fn window(&mut self, window: &Window, _: &[Histogram<u64>]) -> io::Result<()> {
        if window.end_s < self.until_s {
            self.done += window.kinds.iter().map(|kind| kind.count).sum::<u64>();
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn measures(summary: &Summary, drive: &Drive, done_in_time: u64) -> Measures {
    let seconds = drive.duration.as_secs_f64();
    let sum = |of: fn(&KindSummary) -> u64| summary.kinds.iter().map(of).sum::<u64>() as f64;
    let (done, errors) = (sum(|kind| kind.count), sum(|kind| kind.errors));
    // Of everything that was due it was either done or it is an error.
    let due = done + errors;
    // The 99th percentile of a handful says nothing.
    let many = |kind: &&KindSummary| kind.count as f64 >= done * KIND_SHARE_MIN;
    let worst =
        |of: fn(&KindSummary) -> f64| summary.kinds.iter().filter(many).map(of).fold(0.0, f64::max);
    let latency = Latency {
        p50_ms: worst(|kind| kind.p50_ms),
        p90_ms: worst(|kind| kind.p90_ms),
        p99_ms: worst(|kind| kind.p99_ms),
        p999_ms: worst(|kind| kind.p999_ms),
        max_ms: worst(|kind| kind.max_ms),
    };
    let lag = summary.delivery.map(|delivery| Lag {
        p50_ms: delivery.p50_ms,
        p99_ms: delivery.p99_ms,
        max_ms: delivery.max_ms,
    });
    Measures {
        asked_per_s: due / seconds,
        done_per_s: done_in_time as f64 / seconds,
        errors_share: if due > 0.0 { errors / due } else { 0.0 },
        latency,
        lag,
        delivers: summary.correctness.is_some(),
        own_lag_p99_ms: summary.lag.own_p99_ms,
        invalid: summary.invalid.clone(),
    }
}
