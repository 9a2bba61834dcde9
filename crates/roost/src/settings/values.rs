//! Values of settings: choices, times and levels.

use std::num::NonZeroU32;
use std::time::Duration;

use anyhow::Context as _;
use api::Lifetime;
use bytesize::ByteSize;
use clap::ValueEnum;
use jiff::{Span, SpanRelativeTo};
use tracing_subscriber::EnvFilter;

/// Minimum of `--erase-within`. Half of that time passes before an erasure begins.
const ERASE_WITHIN_MIN: Duration = Duration::from_secs(10);

/// Levels of the log.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    #[default]
    Auto,
    /// Text, one line per event.
    Text,
    /// JSON, one object per event.
    Json,
}

/// Sync policy: see [`node::Durability`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// A change is on disk before it is acknowledged.
    Always,
    /// A change is on disk within `--fsync-interval`.
    Interval,
    /// Syncing is left to the operating system.
    Never,
}

/// Users who may sign up: see [`mastodon::Registrations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SignUp {
    /// Nobody.
    Closed,
    /// Users with an invite.
    Invite,
    /// Everybody, after approval by an operator.
    Approval,
    /// Everybody.
    Open,
}

/// Parses a time with its unit, such as `1s`, `500ms`, `2m` or `7d`.
pub(crate) fn duration(text: &str) -> anyhow::Result<Duration> {
    let example = "a time has a unit: 500ms, 1s, 2m, 12h or 7d";
    let span: Span = text.parse().map_err(|_| anyhow::anyhow!(example))?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours());
    let duration = duration.map_err(|_| anyhow::anyhow!(example))?;
    let duration = Duration::try_from(duration).context("a time cannot be negative")?;
    anyhow::ensure!(!duration.is_zero(), "a time must be longer than 0");
    Ok(duration)
}

/// Parses an erasure time, and refuses a time too short for rewriting the texts of all stories.
pub(super) fn erase_within(text: &str) -> anyhow::Result<Duration> {
    let time = duration(text)?;
    anyhow::ensure!(time >= ERASE_WITHIN_MIN, "it must be at least 10s: an erasure rewrites files");
    Ok(time)
}

/// Largest size of the change feed's files, in bytes: a start reads all of them, and each read lists their names.
const CHANGES_MAX: u64 = 16 << 30;

/// Parses the size of the change feed, which must hold several segments.
pub(super) fn changes_max(text: &str) -> anyhow::Result<ByteSize> {
    let size: ByteSize = text.parse().map_err(anyhow::Error::msg)?;
    let is_usable = matches!(size.as_u64(), 0 | node::changes::BYTES_MIN..=CHANGES_MAX);
    anyhow::ensure!(is_usable, "it must be between 8MiB and 16GiB, or 0");
    Ok(size)
}

/// Parses the TTL of a story.
pub(crate) fn life(text: &str) -> anyhow::Result<Lifetime> {
    Ok(Lifetime::from_secs(whole_seconds(text)?)?)
}

/// Parses a time in whole seconds.
pub(crate) fn whole_seconds(text: &str) -> anyhow::Result<u64> {
    let time = duration(text)?;
    anyhow::ensure!(time.subsec_nanos() == 0, "it must be a whole number of seconds, such as 90s");
    Ok(time.as_secs())
}

/// Parses a number of at least 1.
pub(super) fn count(text: &str) -> anyhow::Result<NonZeroU32> {
    text.parse().with_context(|| format!("it must be a number from 1 to {}", u32::MAX))
}

/// Parses a level of the log.
pub(super) fn log_level(text: &str) -> anyhow::Result<String> {
    check_level(text)?;
    Ok(text.to_owned())
}

/// Checks a level of the log. The library would read an unknown word such as `verbose` as the name of a module, and
/// disable all other log lines.
pub(crate) fn check_level(text: &str) -> anyhow::Result<()> {
    let example = "a level looks like debug or info,node=debug";
    EnvFilter::try_new(text).context(example)?;
    let is_level = |part: &str| LEVELS.iter().any(|level| part.eq_ignore_ascii_case(level));
    let mut parts = text.split(',').map(str::trim);
    anyhow::ensure!(parts.all(|part| part.contains(['=', '[']) || is_level(part)), example);
    Ok(())
}
