//! Counts and latencies of requests by route. Each handler has a reference to the counters of its route, so that
//! counting a request takes a few additions to atomics and no lookup.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use edge::{RequestMemory, process};
use node::{Node, Sizes, ViewSizes};
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// Upper bounds of the latency buckets, in microseconds.
const BUCKETS_US: [u64; 16] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000,
];
const STATUS_MIN: u16 = 100;
const STATUSES: usize = 500;

/// Counters of one route.
#[derive(Debug)]
pub(crate) struct RouteCounters {
    method: &'static str,
    path: &'static str,
    statuses: [AtomicU64; STATUSES],
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
    total_ns: AtomicU64,
}

impl RouteCounters {
    /// Counts a response.
    pub(crate) fn count(&self, status: StatusCode, elapsed: Duration) {
        let ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_US.partition_point(|end_us| end_us * 1_000 < ns);
        for counter in [
            self.statuses.get(usize::from(status.as_u16().saturating_sub(STATUS_MIN))),
            self.buckets.get(bucket),
        ] {
            counter.map(|counter| counter.fetch_add(1, Ordering::Relaxed));
        }
        self.total_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Method and path of the route, for the log.
    pub(crate) fn name(&self) -> (&'static str, &'static str) {
        (self.method, self.path)
    }

    fn encode_statuses(&self, family: &mut MetricEncoder<'_>) -> std::fmt::Result {
        for (status, count) in (STATUS_MIN..).zip(&self.statuses) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let status = status.to_string();
                let labels =
                    [("method", self.method), ("route", self.path), ("status", status.as_str())];
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn encode_latencies(&self, family: &mut MetricEncoder<'_>) -> std::fmt::Result {
        let counts = self.buckets.each_ref().map(|count| count.load(Ordering::Relaxed));
        let total = counts.iter().sum();
        if total == 0 {
            return Ok(());
        }
        let ends = BUCKETS_US.iter().map(|us| *us as f64 / 1e6).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = ends.zip(counts).collect();
        let sum = self.total_ns.load(Ordering::Relaxed) as f64 / 1e9;
        let labels = [("method", self.method), ("route", self.path)];
        family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, total, &buckets, None)
    }
}

/// Counters of all routes.
#[derive(Debug, Default)]
pub(crate) struct HttpMetrics {
    routes: Mutex<Vec<Arc<RouteCounters>>>,
}

impl HttpMetrics {
    /// Creates the counters of a route, which its handler owns.
    pub(crate) fn route(&self, method: &'static str, path: &'static str) -> Arc<RouteCounters> {
        let counters = Arc::new(RouteCounters {
            method,
            path,
            statuses: [const { AtomicU64::new(0) }; STATUSES],
            buckets: [const { AtomicU64::new(0) }; BUCKETS_US.len() + 1],
            total_ns: AtomicU64::new(0),
        });
        self.routes.lock().push(Arc::clone(&counters));
        counters
    }
}

/// Sources that are read at each request of `/metrics`.
pub(crate) struct Sampled {
    /// Counters of the routes.
    pub(crate) http: Arc<HttpMetrics>,
    /// Node, for its sizes.
    pub(crate) node: Node,
    /// Memory of requests.
    pub(crate) memory: RequestMemory,
}

impl std::fmt::Debug for Sampled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sampled").field("http", &self.http).finish_non_exhaustive()
    }
}

impl Collector for Sampled {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let routes = self.http.routes.lock();
        let mut requests = encoder.encode_descriptor(
            "roost_http_requests",
            "Number of HTTP responses",
            None,
            MetricType::Counter,
        )?;
        routes.iter().try_for_each(|route| route.encode_statuses(&mut requests))?;
        let mut latencies = encoder.encode_descriptor(
            "roost_http_request_duration",
            "Time from the head of a request to the head of its response",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        routes.iter().try_for_each(|route| route.encode_latencies(&mut latencies))?;
        drop(routes);
        Self::encode_sizes(&mut encoder, &self.node.sizes())?;
        if let Some(cluster) = self.node.cluster() {
            let (groups, position) = (cluster.lag_groups, cluster.position);
            gauge(&mut encoder, "roost_cluster_position", "Last applied group", position)?;
            let help = "Known groups of the log that are not yet applied";
            gauge(&mut encoder, "roost_cluster_lag_groups", help, groups)?;
            let help = "Time by which this node lags, or for which it has not reached the log";
            let lag = cluster.lag.as_secs();
            gauge(&mut encoder, "roost_cluster_lag_seconds", help, lag)?;
        }
        let help = "Maximum bytes of the files of pictures";
        gauge(&mut encoder, "roost_picture_limit_bytes", help, self.node.media_max())?;
        let memory = self.memory.used();
        gauge(&mut encoder, "roost_request_bytes", "Memory reserved by HTTP requests", memory)?;
        encode_process(&mut encoder)
    }
}

impl Sampled {
    fn encode_sizes(encoder: &mut DescriptorEncoder<'_>, sizes: &Sizes) -> std::fmt::Result {
        for (name, help, size) in [
            ("roost_users", "Registered users", sizes.users),
            ("roost_users_erasing", "Deleted users with rows to remove", sizes.users_erasing),
            ("roost_posts", "Stored posts", sizes.posts),
            ("roost_follows", "Stored follows", sizes.follows),
            ("roost_log_bytes", "Bytes of the log on disk", sizes.log_bytes),
            ("roost_changes_bytes", "Bytes of the change feed on disk", sizes.changes_bytes),
            (
                "roost_changes_failed",
                "1 if the change feed has ended with an error: see the log, and restart",
                sizes.changes_failed.into(),
            ),
            ("roost_store_bytes", "Bytes of the store on disk", sizes.store_bytes),
            ("roost_pictures", "Stored pictures", sizes.pictures),
            ("roost_picture_bytes", "Bytes of the files of pictures", sizes.picture_bytes),
            ("roost_overlay_bytes", "Bytes of changes not yet in the store", sizes.overlay_bytes),
            ("roost_disk_free_bytes", "Bytes free on the disk", sizes.disk_free_bytes),
            (
                "roost_disk_full",
                "1 if only deletions are accepted because the disk is full",
                sizes.disk_full.into(),
            ),
            (
                "roost_archive_lag_seconds",
                "Time for which the archive has been incomplete; 0 if it is complete",
                sizes.archive_lag.as_secs(),
            ),
            (
                "roost_last_backup_timestamp_seconds",
                "Time at which the last backup was completed; 0 if unknown",
                sizes.last_backup_ms / 1_000,
            ),
            ("roost_sample_bytes", "Bytes of samples and their snapshots", sizes.sample_bytes),
            ("roost_queued_commands", "Commands queued for the writer", sizes.queued_commands),
        ] {
            gauge(encoder, name, help, size)?;
        }
        let descriptor = encoder.encode_descriptor(
            "roost_clock_offset_seconds",
            "Time by which the machine's clock is ahead of the server's time",
            None,
            MetricType::Gauge,
        )?;
        ConstGauge::new(sizes.clock_offset_ms as f64 / 1e3).encode(descriptor)?;
        Self::encode_views(encoder, &sizes.views)?;
        Self::encode_counts(encoder, sizes)
    }

    fn encode_views(encoder: &mut DescriptorEncoder<'_>, views: &ViewSizes) -> std::fmt::Result {
        for (name, help, size) in [
            (
                "roost_active_timelines",
                "Users whose home timeline is in memory",
                views.active_timelines,
            ),
            ("roost_timeline_bytes", "Estimated bytes of home timelines", views.timeline_bytes),
            (
                "roost_rendered_bytes",
                "Bytes of cached posts, stories, statuses and accounts as JSON, and of names of users",
                views.rendered_bytes,
            ),
            (
                "roost_recent_bytes",
                "Bytes of the newest posts of all users, and of cached lists of stories",
                views.recent_bytes,
            ),
            (
                "roost_unindexed_watchers",
                "Event streams that are checked for each post",
                views.unindexed_watchers,
            ),
            (
                "roost_ranked_view_loaded",
                "1 if ranked feeds and trends have all recent posts; 0 before their first read",
                views.ranked_loaded.into(),
            ),
        ] {
            gauge(encoder, name, help, size)?;
        }
        Ok(())
    }

    fn encode_counts(encoder: &mut DescriptorEncoder<'_>, sizes: &Sizes) -> std::fmt::Result {
        let views = sizes.views;
        for (name, help, count) in [
            ("roost_unreadable_reads", "Reads of damaged rows on the disk", sizes.unreadable_reads),
            (
                "roost_archive_failures",
                "Failed attempts to write to the archive",
                sizes.archive_failures,
            ),
            (
                "roost_archive_gaps",
                "Number of times the log was cut before it was archived",
                sizes.archive_gaps,
            ),
            ("roost_view_hits", "Home pages served from memory", views.hits),
            ("roost_view_rebuilds", "Timelines rebuilt from the store", views.rebuilds),
            (
                "roost_view_evictions",
                "Timelines evicted because a limit was reached",
                views.evictions,
            ),
            (
                "roost_wake_overflows",
                "Number of times all event streams had to read again, after too many changes or a failed command",
                views.wake_overflows,
            ),
            (
                "roost_ranked_view_skipped",
                "Changes that ranked feeds do not count because there were too many",
                views.ranked_skipped,
            ),
        ] {
            let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count).encode(descriptor)?;
        }
        Ok(())
    }
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> std::fmt::Result {
    let gauge = ConstGauge::new(value);
    gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn encode_process(encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
    let memory = process::resident_bytes();
    gauge(encoder, "process_resident_memory_bytes", "Resident memory", memory)?;
    ConstCounter::new(process::cpu_seconds()).encode(encoder.encode_descriptor(
        "process_cpu",
        "Processor time used",
        Some(&Unit::Seconds),
        MetricType::Counter,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_counted_in_the_first_bucket_whose_bound_is_not_smaller() {
        let metrics = HttpMetrics::default();
        let route = metrics.route("GET", "/x");
        for (us, bucket) in [(0, 0), (100, 0), (101, 1), (10_000_000, 15), (10_000_001, 16)] {
            let before = route.buckets[bucket].load(Ordering::Relaxed);
            route.count(StatusCode::OK, Duration::from_micros(us));
            assert_eq!(route.buckets[bucket].load(Ordering::Relaxed), before + 1, "{us} us");
        }
        assert_eq!(route.statuses[100].load(Ordering::Relaxed), 5);
    }
}
