//! Windows of a run: at the end of each, merges the measurements of the lanes, the resource usage of the server and the
//! observed deliveries, and reports them to the watchers. Also adds up all windows.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use super::checker::Checker;
use super::meter::{Kind, Meter, quantile_ms};
use super::{RunConfig, lock};
use crate::api::{Api, Used, ask_used};
use crate::client::{Client, Dial};
use crate::summary::{Correctness, ServerSummary};
use crate::watch::{Delivery, Plan, ServerLoad, Watcher, Window};

/// Maximum number of windows of a run; it determines their length.
const MAX: u32 = 600;

/// The length of the windows of a run, in whole seconds.
pub(crate) fn window_of(run: Duration) -> Duration {
    Duration::from_secs((run / MAX).as_secs() + 1)
}

/// The end of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    /// Time from the start to the last response.
    pub(crate) took: Duration,
    /// Whether it was cut short.
    pub(crate) interrupted: bool,
    /// Share of the time in which the generator's threads were busy.
    pub(crate) busy_share: f64,
}

/// A run that is over.
pub(crate) struct Finished {
    pub(crate) meter: Meter,
    pub(crate) ended: Ended,
    pub(crate) delivery: Option<Delivery>,
    pub(crate) correctness: Option<Correctness>,
    pub(crate) server: Option<ServerSummary>,
}

pub(super) struct Windows<D: Dial> {
    /// Connection for requesting the server's resource usage.
    client: Client<D>,
    /// Whether there are several servers; then no resource usage is reported.
    is_cluster: bool,
    api: Arc<dyn Api>,
    plan: Plan,
    kinds: Vec<Kind>,
    meters: Vec<Arc<Mutex<Meter>>>,
    /// Empty meter, to be exchanged for a lane's full one.
    spare: Meter,
    whole: Meter,
    /// Resource usage of the server at the end of the last window, with the time of the report.
    used: Option<(Used, Instant)>,
    used_first: Option<(Used, Instant)>,
    memory_bytes_max: u64,
    /// End of the last window, from the start.
    ended: Duration,
}

impl<D: Dial> Windows<D> {
    pub(super) fn new(client: Client<D>, api: Arc<dyn Api>, config: &RunConfig) -> Windows<D> {
        let kinds = config.kinds.clone();
        let plan = Plan {
            title: config.title.clone(),
            duration: config.end,
            window: config.window,
            kinds: kinds.iter().map(|kind| kind.name()).collect(),
            closed: config.closed,
        };
        let (spare, whole) = (Meter::new(&kinds), Meter::new(&kinds));
        let (used, used_first, ended) = (None, None, Duration::ZERO);
        let (meters, memory_bytes_max) = (Vec::new(), 0);
        Windows {
            client,
            is_cluster: config.retries,
            api,
            plan,
            kinds,
            meters,
            spare,
            whole,
            used,
            used_first,
            memory_bytes_max,
            ended,
        }
    }

    /// Creates the meter of another lane.
    pub(super) fn meter(&mut self) -> Arc<Mutex<Meter>> {
        let meter = Arc::new(Mutex::new(Meter::new(&self.kinds)));
        self.meters.push(Arc::clone(&meter));
        meter
    }

    pub(super) async fn begin(&mut self, watchers: &mut [&mut dyn Watcher]) -> io::Result<()> {
        self.used = self.ask_used().await;
        self.used_first = self.used;
        for watcher in watchers {
            watcher.begin(&self.plan)?;
        }
        Ok(())
    }

    /// Ends the current window, waits for the server's resource usage or a timeout, and reports the window.
    pub(super) async fn close(
        &mut self,
        start: Instant,
        checker: &Checker,
        watchers: &mut [&mut dyn Watcher],
    ) -> io::Result<()> {
        let mut meter = Meter::new(&self.kinds);
        for lane in &self.meters {
            // This lock is short: a lane only waits until two structures are exchanged.
            let full = std::mem::replace(
                &mut *lock(lane),
                std::mem::replace(&mut self.spare, Meter::new(&[])),
            );
            meter.add(&full);
            self.spare = full;
            self.spare.clear();
        }
        let ended = start.elapsed();
        let seconds = ended.saturating_sub(std::mem::replace(&mut self.ended, ended));
        let window = Window {
            end_s: ended.as_secs_f64(),
            seconds: seconds.as_secs_f64(),
            kinds: meter.kinds.iter().map(super::meter::KindMeter::window).collect(),
            delivery: checker.window(),
            scheduling_delay_p99_ms: quantile_ms(&meter.scheduling_delay_us, 0.99),
            server: self.server_load().await,
        };
        self.whole.add(&meter);
        let latencies: Vec<Histogram<u64>> =
            meter.kinds.into_iter().map(|kind| kind.latency_us).collect();
        for watcher in watchers {
            watcher.window(&window, &latencies)?;
        }
        Ok(())
    }

    async fn ask_used(&mut self) -> Option<(Used, Instant)> {
        if self.is_cluster {
            return None;
        }
        let used = ask_used(&*self.api, &mut self.client).await?;
        Some((used, Instant::now()))
    }

    async fn server_load(&mut self) -> Option<ServerLoad> {
        let now = self.ask_used().await?;
        self.memory_bytes_max = self.memory_bytes_max.max(now.0.memory_bytes);
        let before = self.used.replace(now)?;
        Some(ServerLoad { memory_bytes: now.0.memory_bytes, cores: cores(before, now) })
    }

    /// Adds up the whole run.
    pub(super) fn end(
        self,
        checker: &Checker,
        correctness: Option<Correctness>,
        ended: Ended,
        watchers: &mut [&mut dyn Watcher],
    ) -> io::Result<Finished> {
        let server = self.used_first.zip(self.used).map(|(first, last)| ServerSummary {
            cores: cores(first, last),
            memory_bytes: last.0.memory_bytes,
            memory_bytes_max: self.memory_bytes_max,
        });
        for watcher in watchers {
            watcher.end()?;
        }
        let delivery = checker.whole();
        Ok(Finished { meter: self.whole, ended, delivery, correctness, server })
    }
}

fn cores(from: (Used, Instant), to: (Used, Instant)) -> f64 {
    let seconds = to.1.saturating_duration_since(from.1).as_secs_f64();
    if seconds > 0.0 { (to.0.processor_s - from.0.processor_s) / seconds } else { 0.0 }
}
