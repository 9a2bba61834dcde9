//! Records a run for the report: its windows, and all latencies by kind.

use std::io;

use hdrhistogram::Histogram;

use crate::watch::{Plan, Watcher, Window};

/// Maximum number of recorded windows, which bounds the memory. Runs have fewer; further windows are only counted.
const WINDOWS_MAX: usize = 1_200;

/// Recorded run.
#[derive(Debug, Default)]
pub struct Recording {
    plan: Option<Plan>,
    windows: Vec<Window>,
    windows_left_out: u64,
    latencies_us: Vec<Histogram<u64>>,
}

impl Recording {
    /// The plan of the run, once it has begun.
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// Kinds of requests, in the order used by the windows and by [`Self::latencies_us`].
    pub fn kinds(&self) -> &[&'static str] {
        self.plan.as_ref().map_or(&[], |plan| &plan.kinds)
    }

    /// The windows in the order of time.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Number of windows that were not recorded.
    pub fn windows_left_out(&self) -> u64 {
        self.windows_left_out
    }

    /// All latencies of each kind, in microseconds; empty before the first window.
    pub fn latencies_us(&self) -> &[Histogram<u64>] {
        &self.latencies_us
    }
}

impl Watcher for Recording {
    fn begin(&mut self, plan: &Plan) -> io::Result<()> {
        *self = Recording { plan: Some(plan.clone()), ..Recording::default() };
        Ok(())
    }

    fn window(&mut self, window: &Window, latencies_us: &[Histogram<u64>]) -> io::Result<()> {
        if self.latencies_us.is_empty() {
            self.latencies_us = latencies_us.to_vec();
        } else {
            for (all, latencies) in self.latencies_us.iter_mut().zip(latencies_us) {
                *all += latencies;
            }
        }
        if self.windows.len() < WINDOWS_MAX {
            self.windows.push(window.clone());
        } else {
            self.windows_left_out += 1;
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}
