//! What a running server reads again without a restart: at SIGHUP its application keys, its certificate and the level
//! of its log, and its keys also when `roost key` has changed them.
//!
//! **Invariant:** what cannot be read or used changes nothing, and no signal but SIGTERM and SIGINT ends the server.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use crate::key::ServerKeys;
use crate::logging;
use crate::settings::Settings;

/// Takes the signals that would end the process by default, but are none to stop. SIGUSR1 and SIGUSR2 have no effect
/// then. The returned one is SIGHUP.
///
/// # Errors
/// The operating system reports one.
pub(crate) fn take_signals() -> std::io::Result<Signal> {
    // The process keeps a handler although nobody waits for it.
    drop(signal(SignalKind::user_defined1())?);
    drop(signal(SignalKind::user_defined2())?);
    signal(SignalKind::hangup())
}

/// The sources of what is read again.
pub(crate) struct Reload {
    /// None in open mode.
    pub(crate) keys: Option<Arc<ServerKeys>>,
    /// Wakes who follows the certificate.
    pub(crate) certificate: Arc<Notify>,
    /// The configuration file if it can have the level of the log: a flag and a variable come before it.
    pub(crate) config: Option<PathBuf>,
}

impl Reload {
    /// Reads everything again at each SIGHUP, for as long as the server runs.
    pub(crate) async fn follow(self: Arc<Self>, mut hang_up: Signal) {
        while hang_up.recv().await.is_some() {
            tracing::info!(
                "SIGHUP: reading application keys, the certificate and the log level again"
            );
            self.keys().await;
            self.certificate.notify_one();
            let reload = Arc::clone(&self);
            let level = tokio::task::spawn_blocking(move || reload.level()).await;
            if let Ok(Err(error)) = level {
                tracing::error!("{error:#}; the log level stays as it is");
            }
        }
    }

    /// Accepts the keys that are stored now.
    pub(crate) async fn keys(&self) {
        if let Some(keys) = self.keys.clone() {
            drop(tokio::task::spawn_blocking(move || keys.look().is_ok()).await);
        }
    }

    fn level(&self) -> anyhow::Result<()> {
        let Some(file) = &self.config else { return Ok(()) };
        let level = Settings::of_file(file)?.log_level;
        logging::set_level(level.as_deref().unwrap_or(logging::LEVEL))
    }
}
