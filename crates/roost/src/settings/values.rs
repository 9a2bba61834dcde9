//! Values of settings: names of choices, times, and networks.

use std::time::Duration;

use anyhow::Context as _;
use api::Lifetime;
use clap::ValueEnum;
use edge::TrustedProxies;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;

/// Shortest time within which expired stories can be erased. Half of it passes before an erasure
/// begins.
const ERASE_WITHIN_MIN: Duration = Duration::from_secs(10);

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// A line of text per event.
    Text,
    /// A JSON object per event.
    Json,
}

/// See [`node::Durability`].
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Policy {
    /// A change is on disk before it is acknowledged.
    Always,
    /// A change is on disk within `--fsync-interval`.
    Interval,
    /// Syncing is left to the operating system.
    Never,
}

/// See [`mastodon::Registrations`].
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SignUp {
    /// Nobody may sign up.
    Closed,
    /// Whoever has an invite.
    Invite,
    /// Everybody, with approval.
    Approval,
    /// Everybody.
    Open,
}

/// A time such as `1s`, `500ms` or `2m`.
pub(crate) fn duration(text: &str) -> anyhow::Result<Duration> {
    let duration: jiff::SignedDuration =
        text.parse().map_err(|_| anyhow::anyhow!("a time looks like 1s, 500ms or 2m"))?;
    let duration = Duration::try_from(duration).context("a time cannot be negative")?;
    anyhow::ensure!(!duration.is_zero(), "a time must be longer than 0");
    Ok(duration)
}

pub(super) fn duration_in_file<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    duration(&text).map(Some).map_err(serde::de::Error::custom)
}

/// A time within which an erasure can finish: each rewrites the texts of all stories.
pub(super) fn erase_within(text: &str) -> anyhow::Result<Duration> {
    let time = duration(text)?;
    anyhow::ensure!(time >= ERASE_WITHIN_MIN, "it must be at least 10s: an erasure rewrites files");
    Ok(time)
}

pub(super) fn erase_within_in_file<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    erase_within(&text).map(Some).map_err(serde::de::Error::custom)
}

/// The TTL of a story in seconds.
pub(super) fn life(text: &str) -> anyhow::Result<Lifetime> {
    let secs = text.parse().context("a TTL is a number of seconds")?;
    Ok(Lifetime::from_secs(secs)?)
}

pub(super) fn life_in_file<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Lifetime>, D::Error> {
    let secs = u64::deserialize(deserializer)?;
    Lifetime::from_secs(secs).map(Some).map_err(serde::de::Error::custom)
}

/// A level of the log.
pub(super) fn log_level(text: &str) -> anyhow::Result<String> {
    EnvFilter::try_new(text).context("a level looks like debug or info,node=debug")?;
    Ok(text.to_owned())
}

pub(super) fn log_level_in_file<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    log_level(&text).map(Some).map_err(serde::de::Error::custom)
}

pub(super) fn trusted_proxies_in_file<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<TrustedProxies>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}
