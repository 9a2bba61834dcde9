//! Structured logs on standard error: text on a terminal, JSON for programs.
//!
//! Lines that cannot be written are dropped: see [`crate::output`].

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;

use anyhow::Context as _;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::reload::Handle;

use crate::exit::Exit;
use crate::output;
use crate::settings::{LogFormat, check_level};

/// Default log level.
pub(crate) const LEVEL: &str = "info";

/// Replaces the filter of the running log.
static RELOAD: OnceLock<Box<dyn Fn(EnvFilter) + Send + Sync>> = OnceLock::new();

/// Standard error, as a writer that never fails and waits only for a bounded time.
struct Lines;

impl io::Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        output::LOG.write(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts the log of a program other than the server, with the level in the environment.
///
/// # Errors
/// If the level is not valid.
pub(crate) fn start_by_environment() -> anyhow::Result<()> {
    let level = std::env::var("ROOST_LOG").unwrap_or_else(|_| LEVEL.to_owned());
    check_level(&level).context("ROOST_LOG is wrong").map_err(Exit::setting)?;
    start(LogFormat::Auto, &level)
}

/// Starts logging at `level`. Logs panics too, except those that the log writer catches and reports.
///
/// # Errors
/// If the level is not valid.
pub(crate) fn start(format: LogFormat, level: &str) -> anyhow::Result<()> {
    let terminal = io::stderr().is_terminal();
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_new(level)?)
        .with_writer(|| Lines)
        .log_internal_errors(false);
    if format == LogFormat::Json || (format == LogFormat::Auto && !terminal) {
        let log = log.json().flatten_event(true).with_filter_reloading();
        keep(log.reload_handle());
        log.init();
    } else {
        let log = log.with_ansi(terminal).with_target(false).with_filter_reloading();
        keep(log.reload_handle());
        log.init();
    }
    std::panic::set_hook(Box::new(|panic| {
        if node::is_of_rules(panic) {
            return;
        }
        let backtrace = Backtrace::capture();
        let backtrace = (backtrace.status() == BacktraceStatus::Captured).then_some(backtrace);
        let backtrace = backtrace.as_ref().map(tracing::field::display);
        tracing::error!(backtrace, "{panic}");
    }));
    Ok(())
}

fn keep<S: 'static>(handle: Handle<EnvFilter, S>) {
    let _once = RELOAD.set(Box::new(move |filter| drop(handle.reload(filter))));
}

/// Changes the level of the running log.
///
/// # Errors
/// If the level is not valid.
pub(crate) fn set_level(level: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(level)?;
    if let Some(reload) = RELOAD.get() {
        reload(filter);
    }
    Ok(())
}
