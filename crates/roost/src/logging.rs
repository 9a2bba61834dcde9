//! Structured logs on standard error: text on a terminal, JSON for programs.

use std::io::IsTerminal as _;

use clap::ValueEnum;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;

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

/// Starts logging. `ROOST_LOG` chooses what (`info` if it says nothing).
pub(crate) fn start(format: LogFormat) {
    let filter = EnvFilter::try_from_env("ROOST_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let terminal = std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if format == LogFormat::Json || (format == LogFormat::Auto && !terminal) {
        log.json().flatten_event(true).init();
    } else {
        log.with_ansi(terminal).with_target(false).init();
    }
}
