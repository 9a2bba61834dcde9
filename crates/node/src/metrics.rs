//! Metrics of a node.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// Counters and histograms of the write path. Sizes are read on request: see [`crate::Sizes`].
#[derive(Clone)]
pub struct Metrics {
    pub(crate) group_commands: Histogram,
    pub(crate) fsync: Histogram,
    pub(crate) checkpoint: Histogram,
    pub(crate) commands: Counter,
    pub(crate) failures: Counter,
    pub(crate) scrub_read: Counter,
    pub(crate) scrub_passes: Counter,
    pub(crate) scrub_damaged: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            group_commands: Histogram::new(exponential_buckets(1.0, 2.0, 13)),
            fsync: Histogram::new(exponential_buckets(50e-6, 2.0, 14)),
            checkpoint: Histogram::new(exponential_buckets(1e-3, 2.0, 15)),
            commands: Counter::default(),
            failures: Counter::default(),
            scrub_read: Counter::default(),
            scrub_passes: Counter::default(),
            scrub_damaged: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Adds the metrics to `registry` under the prefix `roost`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("roost");
        registry.register(
            "group_commands",
            "Commands per group, which shares one write to the log",
            self.group_commands.clone(),
        );
        registry.register_with_unit(
            "log_fsync",
            "Time of an fdatasync of the log",
            Unit::Seconds,
            self.fsync.clone(),
        );
        registry.register_with_unit(
            "checkpoint",
            "Time of a checkpoint in the background",
            Unit::Seconds,
            self.checkpoint.clone(),
        );
        registry.register("commands", "Commands applied", self.commands.clone());
        let failures = "Commands that failed because the rules panicked: an error in roost";
        registry.register("failed_commands", failures, self.failures.clone());
        let read = "Bytes that the scrub has read from the disk";
        registry.register_with_unit("scrub_read", read, Unit::Bytes, self.scrub_read.clone());
        let passes = "Completed passes of the scrub over all files";
        registry.register("scrub_passes", passes, self.scrub_passes.clone());
        let damaged = "Damaged files found by the last pass of the scrub";
        registry.register("scrub_damaged_files", damaged, self.scrub_damaged.clone());
    }

    pub(crate) fn observe(histogram: &Histogram, time: Duration) {
        histogram.observe(time.as_secs_f64());
    }
}
