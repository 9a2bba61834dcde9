//! Counters of the Redis edge. Its threads and the metrics page share them.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use budget::MemoryBudget;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::command::Group;
use super::reader::LookUps;

/// Upper bounds of the histogram of batch sizes.
const SIZES: [usize; 7] = [1, 4, 16, 64, 256, 1_024, 4_096];

/// Counters of the Redis edge. Clones share the counters.
#[derive(Clone, Debug, Default)]
pub struct RedisMetrics(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    connected: AtomicU64,
    accepted: AtomicU64,
    refused: AtomicU64,
    commands: [AtomicU64; Group::ALL.len()],
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    /// Number of commands in the last full second.
    rate: AtomicU64,
    batches: [AtomicU64; SIZES.len() + 1],
    batched: AtomicU64,
    /// Budgets of the connections and of their buffers.
    memory: OnceLock<[MemoryBudget; 2]>,
}

/// Counts of a connection that were not yet added to the totals.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// Number of commands by group.
    pub(crate) commands: [u64; Group::ALL.len()],
    /// Number of bytes read.
    pub(crate) bytes_in: u64,
    /// Number of bytes written.
    pub(crate) bytes_out: u64,
    /// Number of keys looked up.
    looked_up: LookUps,
}

impl Turn {
    pub(crate) fn count_look_ups(&mut self, more: LookUps) {
        self.looked_up.hits += more.hits;
        self.looked_up.misses += more.misses;
    }
}

/// Counts a connection until it is dropped.
#[derive(Debug)]
pub(crate) struct Connected(RedisMetrics);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.0.connected.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts that INFO reports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) connected: u64,
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    pub(crate) commands: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// Number of commands in the last full second.
    pub(crate) rate: u64,
}

impl RedisMetrics {
    pub(crate) fn connect(&self) -> Connected {
        self.0.connected.fetch_add(1, Ordering::Relaxed);
        self.0.accepted.fetch_add(1, Ordering::Relaxed);
        Connected(self.clone())
    }

    /// Reports the use of these budgets in the metrics.
    pub(crate) fn watch_memory(&self, connections: &MemoryBudget, buffers: &MemoryBudget) {
        let first = self.0.memory.set([connections.clone(), buffers.clone()]);
        if first.is_err() {
            tracing::warn!(
                "two Redis listeners share their counters; the memory of the first counts"
            );
        }
    }

    /// Memory reserved for all Redis clients, and its limit, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> (usize, usize) {
        let budgets = self.0.memory.get().into_iter().flatten();
        budgets.fold((0, 0), |(used, limit), budget| (used + budget.used(), limit + budget.limit()))
    }

    pub(crate) fn count_refused(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the counts of a connection, and resets them.
    pub(crate) fn take(&self, turn: &mut Turn) {
        for (counter, count) in self.0.commands.iter().zip(turn.commands) {
            if count > 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        }
        self.0.bytes_in.fetch_add(turn.bytes_in, Ordering::Relaxed);
        self.0.bytes_out.fetch_add(turn.bytes_out, Ordering::Relaxed);
        self.0.hits.fetch_add(turn.looked_up.hits, Ordering::Relaxed);
        self.0.misses.fetch_add(turn.looked_up.misses, Ordering::Relaxed);
        *turn = Turn::default();
    }

    /// Measures the number of commands per second. Never returns.
    pub(crate) async fn measure_rate(&self) -> Infallible {
        let mut seconds = tokio::time::interval(Duration::from_secs(1));
        let mut before = self.totals().commands;
        loop {
            seconds.tick().await;
            let now = self.totals().commands;
            self.0.rate.store(now - before, Ordering::Relaxed);
            before = now;
        }
    }

    pub(crate) fn count_batch(&self, operations: usize) {
        let size = SIZES.partition_point(|end| *end < operations);
        if let Some(counter) = self.0.batches.get(size) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        self.0.batched.fetch_add(operations as u64, Ordering::Relaxed);
    }

    pub(crate) fn totals(&self) -> Totals {
        let Counters { connected, accepted, refused, commands, bytes_in, bytes_out, .. } = &*self.0;
        let Counters { hits, misses, rate, .. } = &*self.0;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Totals {
            connected: read(connected),
            accepted: read(accepted),
            refused: read(refused),
            commands: commands.iter().map(read).sum(),
            bytes_in: read(bytes_in),
            bytes_out: read(bytes_out),
            hits: read(hits),
            misses: read(misses),
            rate: read(rate),
        }
    }

    fn encode_batches(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let counts = self.0.batches.each_ref().map(|count| count.load(Ordering::Relaxed));
        let ends = SIZES.iter().map(|size| *size as f64).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = ends.zip(counts).collect();
        let sum = self.0.batched.load(Ordering::Relaxed) as f64;
        let mut histogram = encoder.encode_descriptor(
            "roost_redis_batch_operations",
            "Number of changes of Redis clients per batch",
            None,
            MetricType::Histogram,
        )?;
        histogram.encode_histogram::<NoLabelSet>(sum, counts.iter().sum(), &buckets, None)
    }
}

impl Collector for RedisMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let totals = self.totals();
        let help = "Connections of Redis clients";
        let (used, limit) = self.memory_bytes();
        for (name, help, value) in [
            ("roost_redis_connected", help, totals.connected),
            ("roost_redis_memory_bytes", "Memory reserved for Redis clients", used as u64),
            ("roost_redis_memory_limit_bytes", "Maximum memory for Redis clients", limit as u64),
        ] {
            let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(descriptor)?;
        }
        for (name, help, count) in [
            ("roost_redis_connections", "Redis clients that connected", totals.accepted),
            ("roost_redis_refused", "Redis clients refused: limit reached", totals.refused),
            ("roost_redis_read_bytes", "Bytes read from Redis clients", totals.bytes_in),
            ("roost_redis_written_bytes", "Bytes written to Redis clients", totals.bytes_out),
        ] {
            let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count).encode(descriptor)?;
        }
        let mut family = encoder.encode_descriptor(
            "roost_redis_commands",
            "Commands of Redis clients, by group",
            None,
            MetricType::Counter,
        )?;
        for (group, counter) in Group::ALL.iter().zip(&self.0.commands) {
            let count = ConstCounter::new(counter.load(Ordering::Relaxed));
            count.encode(family.encode_family(&[("group", group.name())])?)?;
        }
        self.encode_batches(&mut encoder)
    }
}
