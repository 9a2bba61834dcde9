//! Computes the measures of objectives from the summary of a run.

use std::time::Duration;

use super::{Lag, Latency, Measures};
use crate::summary::{Correctness, KindSummary, Summary};

/// Minimum share of all requests that a kind of requests must have for its percentiles to count, because percentiles of
/// a few requests are meaningless.
const KIND_SHARE_MIN: f64 = 0.01;

impl Measures {
    /// Measures of a run whose actions were due within `due_for`.
    pub fn of(summary: &Summary, due_for: Duration) -> Measures {
        let sum = |of: fn(&KindSummary) -> u64| summary.kinds.iter().map(of).sum::<u64>() as f64;
        let (done, errors) = (sum(|kind| kind.count), sum(|kind| kind.errors));
        // Every due request is a success or an error.
        let due = done + errors;
        let many = |kind: &&KindSummary| (kind.count + kind.errors) as f64 >= due * KIND_SHARE_MIN;
        let worst = |of: fn(&KindSummary) -> f64| {
            summary.kinds.iter().filter(many).map(of).fold(0.0, f64::max)
        };
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
            asked_per_s: due / due_for.as_secs_f64(),
            done_per_s: summary.kinds.iter().map(|kind| kind.per_second).sum(),
            errors_share: if due > 0.0 { errors / due } else { 0.0 },
            latency,
            lag,
            faults: summary.correctness.as_ref().map_or(0, Correctness::faults),
            delivers: summary.correctness.is_some(),
            scheduling_delay_p99_ms: summary.lag.scheduling_delay_p99_ms,
            inconclusive: summary.inconclusive.clone(),
        }
    }
}
