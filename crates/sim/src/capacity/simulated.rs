//! Trials on a real server: drives one simulation repeatedly, at different rates.

use std::io;
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::sync::watch;

use super::Trials;
use crate::options::Drive;
use crate::simulate::{SimError, Simulation};
use crate::slo::Measures;
use crate::summary::Summary;
use crate::watch::{Plan, Watcher, Window};

/// Ratio of a trial's length to that of its warm-up. The warm-up is not measured, because it shows effects of the
/// previous rate.
const WARM_UP_SHARE: u32 = 5;
/// Drives a simulation at the rates that a search tries.
pub struct SimulatedTrials<'a> {
    /// The loaded server and its users.
    pub simulation: &'a mut Simulation,
    /// Options of each trial, except its rate. The duration is that of one trial.
    pub drive: Drive,
    /// Ends the search when it becomes true.
    pub cancel: watch::Receiver<bool>,
}

impl Trials for SimulatedTrials<'_> {
    async fn run(&mut self, rate_per_s: f64) -> Result<Measures, SimError> {
        let drive = Drive { rate: Some(rate_per_s), ..self.drive.clone() };
        let warm_up = Drive { duration: drive.duration / WARM_UP_SHARE, ..drive.clone() };
        self.drive_once(&warm_up, &mut InTime::new(warm_up.duration)).await?;
        let mut in_time = InTime::new(drive.duration);
        let summary = self.drive_once(&drive, &mut in_time).await?;
        let measures = Measures::of(&summary, drive.duration);
        let done_per_s = in_time.done as f64 / drive.duration.as_secs_f64();
        Ok(Measures { done_per_s, ..measures })
    }
}

impl SimulatedTrials<'_> {
    async fn drive_once(
        &mut self,
        drive: &Drive,
        in_time: &mut InTime,
    ) -> Result<Summary, SimError> {
        let summary = self.simulation.drive(drive, &mut [in_time], &mut self.cancel).await?;
        if summary.interrupted { Err(SimError::Interrupted) } else { Ok(summary) }
    }
}

/// Number of requests completed before the end of the trial. Requests completed in the grace period do not count: the
/// server was too slow for them.
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
        // Windows end slightly late, and the last one ends with the last response, which may be in the grace period.
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
