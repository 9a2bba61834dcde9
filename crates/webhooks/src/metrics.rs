//! Metrics of webhooks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::{Running, Status, now_ms};

/// Metrics of all webhooks, each with the label `webhook`.
pub struct Metrics(Arc<Mutex<BTreeMap<String, Running>>>);

impl Metrics {
    pub(crate) fn new(running: Arc<Mutex<BTreeMap<String, Running>>>) -> Self {
        Self(running)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Status {
    /// Age of the oldest change that was read and not yet delivered, in seconds; 0 if there is none.
    #[must_use]
    pub fn lag_secs(&self) -> u64 {
        self.pending_since_ms.map_or(0, |since| now_ms().saturating_sub(since) / 1_000)
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let of = |(name, running): (&String, &Running)| (name.clone(), running.shared.status());
        let all: Vec<(String, Status)> = self.0.lock().iter().map(of).collect();
        if all.is_empty() {
            return Ok(());
        }
        let changes: fn(&Status) -> u64 = |status| status.changes;
        let failed: fn(&Status) -> u64 = |status| status.failed;
        for (name, help, value) in [
            ("roost_webhook_changes", "Changes that receivers of webhooks accepted", changes),
            ("roost_webhook_failures", "Failed requests of webhooks", failed),
        ] {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (webhook, status) in &all {
                let count = ConstCounter::new(value(status));
                count.encode(family.encode_family(&[("webhook", webhook.as_str())])?)?;
            }
        }
        let dead: fn(&Status) -> u64 = |status| status.dead.len() as u64;
        for (name, help, value) in [
            (
                "roost_webhook_lag_seconds",
                "Age of the oldest change that a webhook has not delivered",
                Status::lag_secs as fn(&Status) -> u64,
            ),
            ("roost_webhook_dead_letters", "Changes that a webhook has given up, and gaps", dead),
        ] {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (webhook, status) in &all {
                let gauge = ConstGauge::new(value(status));
                gauge.encode(family.encode_family(&[("webhook", webhook.as_str())])?)?;
            }
        }
        Ok(())
    }
}
