//! Metrics of webhooks.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::{State, Status, now_ms};

/// Metrics of all webhooks, each with the label `webhook`, and whether the webhooks were loaded.
pub struct Metrics(Arc<Mutex<State>>);

impl Metrics {
    pub(crate) fn new(state: Arc<Mutex<State>>) -> Self {
        Self(state)
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
        let (all, is_failed): (Vec<(String, Status)>, bool) = {
            let State { running, load_error } = &*self.0.lock();
            let all = running.iter().map(|(name, running)| (name.clone(), running.shared.status()));
            (all.collect(), load_error.is_some())
        };
        let help = "Whether the stored webhooks could not be loaded";
        let failed = ConstGauge::new(u64::from(is_failed));
        let kind = MetricType::Gauge;
        failed.encode(encoder.encode_descriptor("roost_webhooks_failed", help, None, kind)?)?;
        if all.is_empty() {
            return Ok(());
        }
        let changes: fn(&Status) -> u64 = |status| status.changes;
        let failed: fn(&Status) -> u64 = |status| status.failed;
        let panics: fn(&Status) -> u64 = |status| status.panics;
        for (name, help, value) in [
            ("roost_webhook_changes", "Changes that receivers of webhooks accepted", changes),
            ("roost_webhook_failures", "Failed requests of webhooks", failed),
            ("roost_webhook_panics", "Errors in roost that interrupted a webhook", panics),
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
