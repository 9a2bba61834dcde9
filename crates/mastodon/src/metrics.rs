//! Counts of log-ins, and the number of accounts that wait for approval; log lines about both.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use edge::LineGate;
use node::Node;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Number of the newest users among whom accounts that wait for approval are counted.
const COUNTED_MAX: u32 = 1_000;
/// How long a count is used.
const COUNTED_FOR: Duration = Duration::from_secs(15);

/// Metrics of the Mastodon API. Clones are the same metrics.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Inner>);

#[derive(Default)]
struct Inner {
    failed: AtomicU64,
    refused: AtomicU64,
    node: OnceLock<Node>,
    /// The last count of accounts that wait for approval.
    pending: Mutex<Option<(Instant, u64)>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Sets the node whose accounts are counted, once.
    pub(crate) fn of_node(&self, node: &Node) {
        let _ = self.0.node.set(node.clone());
    }

    /// Counts and logs a log-in with a wrong name or password. The name is not logged: it may be a password.
    pub(crate) fn failed(&self, address: IpAddr) {
        self.0.failed.fetch_add(1, Ordering::Relaxed);
        static LINES: LineGate = LineGate::new();
        if let Some(lines) = LINES.due() {
            tracing::info!(%address, lines, "a log-in failed");
        }
    }

    /// Counts a log-in that is refused because there were too many.
    pub(crate) fn refused(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of accounts that wait for approval, among the newest users. May block.
    fn pending(&self) -> u64 {
        let Some(node) = self.0.node.get() else { return 0 };
        let mut pending = self.0.pending.lock();
        let now = Instant::now();
        if let Some((at, count)) = *pending
            && now.duration_since(at) < COUNTED_FOR
        {
            return count;
        }
        let count = node.pending_accounts(COUNTED_MAX);
        *pending = Some((now, count));
        count
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, count) in [
            ("roost_log_ins_failed", "Log-ins with a wrong name or password", &self.0.failed),
            ("roost_log_ins_refused", "Log-ins refused after too many", &self.0.refused),
        ] {
            let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(count.load(Ordering::Relaxed)).encode(descriptor)?;
        }
        let (name, help) =
            ("roost_accounts_pending", "Accounts that wait for approval, at most 1,000");
        let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(self.pending()).encode(descriptor)
    }
}
