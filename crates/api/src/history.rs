//! Measurements of the last hour for the dashboard: a ring of samples.
//!
//! A sample is the difference between two readings of `/metrics`. So metrics are defined in one place, and the values
//! equal those that a monitoring system would compute.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde::Serialize;
use utoipa::ToSchema;

/// Time between two samples.
pub(crate) const EVERY: Duration = Duration::from_secs(2);
/// Maximum number of samples. They cover one hour, and take 130 kB of memory and about as much as JSON.
const SAMPLES_MAX: usize = 1_800;
/// Columns of a sample, in order. Rates are per second, times in seconds.
const COLUMNS: [&str; 15] = [
    "requests_per_s",
    "client_errors_per_s",
    "server_errors_per_s",
    "latency_p50_s",
    "latency_p95_s",
    "latency_p99_s",
    "posts_per_s",
    "redis_commands_per_s",
    "commands_per_group",
    "fsync_p50_s",
    "fsync_p99_s",
    "active_timelines",
    "memory_bytes",
    "cpu_cores",
    "disk_bytes",
];

/// Ring of samples, and the start time of the server.
pub(crate) struct History {
    started: Instant,
    samples: Mutex<VecDeque<Sample>>,
}

impl Default for History {
    fn default() -> Self {
        Self { started: Instant::now(), samples: Mutex::default() }
    }
}

impl History {
    fn push(&self, sample: Sample) {
        let mut samples = self.samples.lock();
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// Adds a sample: the change from the `last` reading to `text`, the current `/metrics`. Replaces `last`.
    pub(crate) fn add(&self, last: &mut Option<(Instant, Reading)>, text: &str) {
        let (now, reading) = (Instant::now(), Reading::parse(text));
        if let Some((then, before)) = last {
            let values = reading.since(before, now.duration_since(*then));
            self.push(Sample { at_ms: unix_ms(), values });
        }
        *last = Some((now, reading));
    }

    /// Returns the samples later than a time, oldest first.
    pub(crate) fn after(&self, at_ms: u64) -> HistoryView {
        let samples = self.samples.lock();
        HistoryView {
            version: env!("CARGO_PKG_VERSION"),
            uptime_s: self.started.elapsed().as_secs(),
            every_ms: u64::try_from(EVERY.as_millis()).unwrap_or(u64::MAX),
            columns: &COLUMNS,
            samples: samples.iter().filter(|sample| sample.at_ms > at_ms).copied().collect(),
        }
    }
}

fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Values measured between two readings.
#[derive(Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Sample {
    /// End of the interval, in milliseconds since 1970.
    at_ms: u64,
    /// Values in the order of `columns`; null where nothing was measured.
    #[schema(value_type = Vec<Option<f32>>)]
    values: [f32; COLUMNS.len()],
}

/// Samples of the last hour.
#[derive(Serialize, ToSchema)]
pub(crate) struct HistoryView {
    #[schema(example = "0.1.0")]
    version: &'static str,
    /// Seconds since the server started.
    uptime_s: u64,
    /// Milliseconds between two samples.
    every_ms: u64,
    columns: &'static [&'static str],
    /// Samples, oldest first.
    samples: Vec<Sample>,
}

/// Sums over all series of each metric, from one reading of `/metrics`.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    requests: f64,
    client_errors: f64,
    server_errors: f64,
    posts: f64,
    redis_commands: f64,
    groups: f64,
    group_commands: f64,
    timelines: f64,
    memory: f64,
    cpu_s: f64,
    disk: f64,
    latency: Buckets,
    fsync: Buckets,
}

/// Upper bounds of a histogram's buckets, and the number of values up to each.
type Buckets = Vec<(f64, f64)>;

impl Reading {
    /// Parses the text of `/metrics`. Skips requests of the dashboard and of the pages themselves.
    fn parse(text: &str) -> Self {
        let mut read = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((series, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let own = || {
                let route = label(labels, "route").unwrap_or_default();
                route == "/" || route.starts_with("/assets") || route.starts_with("/metrics")
            };
            match name {
                "roost_http_requests_total" if !own() => {
                    read.requests += value;
                    match label(labels, "status").and_then(|status| status.chars().next()) {
                        Some('4') => read.client_errors += value,
                        Some('5') => read.server_errors += value,
                        _ => {}
                    }
                }
                "roost_http_request_duration_seconds_bucket" if !own() => {
                    add(&mut read.latency, labels, value);
                }
                "roost_log_fsync_seconds_bucket" => add(&mut read.fsync, labels, value),
                "roost_posts" => read.posts = value,
                "roost_redis_commands_total" => read.redis_commands += value,
                "roost_group_commands_count" => read.groups = value,
                "roost_group_commands_sum" => read.group_commands = value,
                "roost_active_timelines" => read.timelines = value,
                "process_resident_memory_bytes" => read.memory = value,
                "process_cpu_seconds_total" => read.cpu_s = value,
                "roost_log_bytes" | "roost_store_bytes" | "roost_changes_bytes" => {
                    read.disk += value;
                }
                _ => {}
            }
        }
        read
    }

    /// Values of a sample, in the order of [`COLUMNS`].
    fn since(&self, before: &Self, elapsed: Duration) -> [f32; COLUMNS.len()] {
        let seconds = elapsed.as_secs_f64().max(1e-3);
        let rate = |of: fn(&Self) -> f64| (of(self) - of(before)).max(0.0) / seconds;
        let latency = |share| percentile(&before.latency, &self.latency, share);
        let fsync = |share| percentile(&before.fsync, &self.fsync, share);
        let groups = self.groups - before.groups;
        [
            rate(|read| read.requests),
            rate(|read| read.client_errors),
            rate(|read| read.server_errors),
            latency(0.5),
            latency(0.95),
            latency(0.99),
            rate(|read| read.posts),
            rate(|read| read.redis_commands),
            if groups > 0.0 {
                (self.group_commands - before.group_commands) / groups
            } else {
                f64::NAN
            },
            fsync(0.5),
            fsync(0.99),
            self.timelines,
            self.memory,
            rate(|read| read.cpu_s),
            self.disk,
        ]
        .map(|value| value as f32)
    }
}

/// Value of a label in `a="x",b="y"`. Label values contain no quotation marks.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    labels.trim_end_matches('}').split("\",").find_map(|pair| {
        let (key, value) = pair.split_once("=\"")?;
        (key == name).then(|| value.trim_end_matches('"'))
    })
}

fn add(buckets: &mut Buckets, labels: &str, count: f64) {
    let Some(Ok(end)) = label(labels, "le").map(str::parse::<f64>) else { return };
    match buckets.iter_mut().find(|bucket| bucket.0 == end) {
        Some(bucket) => bucket.1 += count,
        None => buckets.push((end, count)),
    }
}

/// Quantile `share` (0 to 1) of the values between two readings, interpolated linearly within a bucket; NaN without
/// values.
fn percentile(before: &Buckets, after: &Buckets, share: f64) -> f64 {
    let earlier =
        |end: f64| before.iter().find(|bucket| bucket.0 == end).map_or(0.0, |bucket| bucket.1);
    let came = |(end, upto): &(f64, f64)| (*end, upto - earlier(*end));
    let total = after.last().map_or(0.0, |last| came(last).1);
    if total <= 0.0 {
        return f64::NAN;
    }
    let (mut start, mut below) = (0.0, 0.0);
    for (end, upto) in after.iter().map(came) {
        if upto >= share * total && upto > below {
            let part = (share * total - below) / (upto - below);
            return if end.is_finite() { start + (end - start) * part } else { start };
        }
        (start, below) = (end, upto);
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[f32; COLUMNS.len()], name: &str) -> f32 {
        values[COLUMNS.iter().position(|column| *column == name).unwrap()]
    }

    #[test]
    fn a_sample_is_the_difference_of_two_readings() {
        let before = Reading::parse(
            "roost_http_requests_total{method=\"GET\",route=\"/v1/users\",status=\"200\"} 10\n\
             roost_posts 5\nroost_group_commands_sum 4\nroost_group_commands_count 4\n",
        );
        let after = Reading::parse(
            "# HELP roost_posts Posts\n\
             roost_http_requests_total{method=\"GET\",route=\"/v1/users\",status=\"200\"} 14\n\
             roost_http_requests_total{method=\"GET\",route=\"/v1/users\",status=\"404\"} 6\n\
             roost_http_requests_total{method=\"PUT\",route=\"/v1/x\",status=\"503\"} 2\n\
             roost_http_requests_total{method=\"GET\",route=\"/metrics\",status=\"200\"} 99\n\
             roost_http_requests_total{method=\"GET\",route=\"/assets/{*file}\",status=\"404\"} 99\n\
             roost_posts 3\nroost_log_bytes 4\nroost_changes_bytes 3\nroost_store_bytes 8\n\
             roost_group_commands_sum 16\nroost_group_commands_count 8\n",
        );
        let values = after.since(&before, Duration::from_secs(2));
        for (name, expect) in [
            ("requests_per_s", 6.0),
            ("client_errors_per_s", 3.0),
            ("server_errors_per_s", 1.0),
            // Deleted posts do not make the rate negative.
            ("posts_per_s", 0.0),
            ("commands_per_group", 3.0),
            ("disk_bytes", 15.0),
        ] {
            assert_eq!(column(&values, name), expect, "{name}");
        }
        assert!(column(&values, "latency_p50_s").is_nan(), "nothing was measured");
    }

    #[test]
    fn percentiles_are_of_the_values_between_two_readings() {
        let ends = [0.1, 0.2, f64::INFINITY];
        let check = |before: [f64; 3], after: [f64; 3], share: f64, expect: f64| {
            let buckets = |counts: [f64; 3]| ends.into_iter().zip(counts).collect::<Buckets>();
            let found = percentile(&buckets(before), &buckets(after), share);
            assert!((found - expect).abs() < 1e-9, "{before:?} {after:?} {share}: {found}");
        };
        check([0.0, 0.0, 0.0], [10.0, 10.0, 10.0], 0.5, 0.05);
        check([10.0, 10.0, 10.0], [10.0, 20.0, 20.0], 0.5, 0.15);
        check([0.0, 0.0, 0.0], [5.0, 5.0, 10.0], 0.99, 0.2);
        check([5.0, 5.0, 5.0], [9.0, 9.0, 9.0], 1.0, 0.1);
    }

    #[test]
    fn the_ring_is_bounded_and_can_be_read_from_a_given_time() {
        let history = History::default();
        let last = SAMPLES_MAX as u64 + 50;
        for at_ms in 1..=last {
            history.push(Sample { at_ms, values: [0.0; COLUMNS.len()] });
        }
        let all = history.after(0).samples;
        assert_eq!((all.len(), all[0].at_ms), (SAMPLES_MAX, 51));
        let times = |after| {
            history.after(after).samples.iter().map(|sample| sample.at_ms).collect::<Vec<_>>()
        };
        assert_eq!(times(last - 2), [last - 1, last]);
        assert!(times(last).is_empty());
    }
}
