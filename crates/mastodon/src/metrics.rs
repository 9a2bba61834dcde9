//! Counts of log-ins and of accounts that await approval, with log lines.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use edge::LineGate;
use node::Node;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Metrics of the Mastodon API. Clones share the counters.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Inner>);

#[derive(Default)]
struct Inner {
    failed: AtomicU64,
    refused: AtomicU64,
    node: OnceLock<Node>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Sets the node whose accounts are counted. Later calls have no effect.
    pub(crate) fn of_node(&self, node: &Node) {
        let _ = self.0.node.set(node.clone());
    }

    /// Counts and logs a log-in with a wrong name or password. The name is not logged, because it may be a password.
    pub(crate) fn failed(&self, address: IpAddr) {
        self.0.failed.fetch_add(1, Ordering::Relaxed);
        static LINES: LineGate = LineGate::new();
        if let Some(lines) = LINES.due() {
            tracing::info!(%address, lines, "a log-in failed");
        }
    }

    /// Counts a log-in that is refused after too many.
    pub(crate) fn refused(&self) {
        self.0.refused.fetch_add(1, Ordering::Relaxed);
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
        let (name, help) = ("roost_accounts_pending", "Accounts that wait for approval");
        let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        let pending = self.0.node.get().map_or(0, |node| node.facts().totals().accounts_pending);
        ConstGauge::new(u64::from(pending)).encode(descriptor)
    }
}
