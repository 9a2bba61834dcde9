//! Data on the screen: the run so far. Its size is bounded for runs of any length.

use std::collections::VecDeque;
use std::time::Duration;

use hdrhistogram::Histogram;
use sim::watch::{Delivery, Plan, ServerLoad, Window, WindowKind};

/// Number of windows kept for charts; older ones are dropped.
const WINDOWS_MAX: usize = 1_200;

/// State of a run.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) title: String,
    pub(super) duration: Duration,
    pub(super) closed: bool,
    /// Seconds from the start to the end of the last window.
    pub(super) elapsed_s: f64,
    pub(super) kinds: Vec<Kind>,
    /// Figures of each window, oldest first.
    pub(super) moments: VecDeque<Moment>,
    /// Whether the user has stopped the run.
    pub(super) is_stopping: bool,
}

/// Figures of one kind of request.
#[derive(Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// Counts of the last window, whose length is `seconds`.
    pub(super) now: WindowKind,
    pub(super) seconds: f64,
    /// Totals since the start.
    pub(super) count: u64,
    pub(super) errors: u64,
    pub(super) latencies_us: Option<Histogram<u64>>,
}

/// Figures of one window over all kinds.
#[derive(Debug, Clone, Default)]
pub(super) struct Moment {
    pub(super) end_s: f64,
    pub(super) per_second: f64,
    pub(super) errors_per_second: f64,
    /// Median and 99th percentile; `None` without measurements.
    pub(super) p50_p99_ms: Option<(f64, f64)>,
    pub(super) delivery: Option<Delivery>,
    pub(super) server: Option<ServerLoad>,
    pub(super) scheduling_delay_ms: f64,
}

impl Kind {
    /// 99th percentile since the start, in milliseconds; 0 without measurements.
    pub(super) fn p99_ms(&self) -> f64 {
        self.latencies_us.as_ref().map_or(0.0, |all| all.value_at_quantile(0.99) as f64 / 1e3)
    }

    pub(super) fn per_second(&self) -> f64 {
        per_second(self.now.count, self.seconds)
    }
}

impl Model {
    /// Creates the state of a run that has not begun.
    pub(super) fn new(plan: &Plan) -> Self {
        let kind = |&name| Kind {
            name,
            now: WindowKind::default(),
            seconds: 0.0,
            count: 0,
            errors: 0,
            latencies_us: None,
        };
        Self {
            title: plan.title.clone(),
            duration: plan.duration,
            closed: plan.closed,
            elapsed_s: 0.0,
            kinds: plan.kinds.iter().map(kind).collect(),
            moments: VecDeque::new(),
            is_stopping: false,
        }
    }

    /// Adds a finished window.
    pub(super) fn add(&mut self, window: &Window, latencies_us: &[Histogram<u64>]) {
        self.elapsed_s = window.end_s;
        let mut all: Option<Histogram<u64>> = None;
        let reported = window.kinds.iter().zip(latencies_us);
        for (kind, (now, latencies)) in self.kinds.iter_mut().zip(reported) {
            kind.now = now.clone();
            kind.seconds = window.seconds;
            kind.count += now.count;
            kind.errors += now.errors;
            add(&mut kind.latencies_us, latencies);
            add(&mut all, latencies);
        }
        let sum = |of: fn(&WindowKind) -> u64| window.kinds.iter().map(of).sum();
        let ms = |all: &Histogram<u64>, quantile| all.value_at_quantile(quantile) as f64 / 1e3;
        let measured = all.filter(|all| !all.is_empty());
        self.moments.push_back(Moment {
            end_s: window.end_s,
            per_second: per_second(sum(|kind| kind.count), window.seconds),
            errors_per_second: per_second(sum(|kind| kind.errors), window.seconds),
            p50_p99_ms: measured.map(|all| (ms(&all, 0.5), ms(&all, 0.99))),
            delivery: window.delivery.filter(|delivery| delivery.samples > 0),
            server: window.server,
            scheduling_delay_ms: window.scheduling_delay_p99_ms,
        });
        if self.moments.len() > WINDOWS_MAX {
            self.moments.pop_front();
        }
    }

    /// Figures of the last window.
    pub(super) fn last(&self) -> Moment {
        self.moments.back().cloned().unwrap_or_default()
    }

    /// Returns the value of `of` in the latest window that has one.
    pub(super) fn latest<T>(&self, of: impl Fn(&Moment) -> Option<T>) -> Option<T> {
        self.moments.iter().rev().find_map(of)
    }

    pub(super) fn errors(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.errors).sum()
    }
}

fn add(all: &mut Option<Histogram<u64>>, more: &Histogram<u64>) {
    match all {
        Some(all) => *all += more,
        None => *all = Some(more.clone()),
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}
