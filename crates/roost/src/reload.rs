//! Reloading in a running server: SIGHUP reloads application keys, webhooks, the certificate and the log level; `roost
//! key` reloads the keys, and `roost webhook` the webhooks.
//!
//! **Invariant:** unreadable or unusable input changes nothing, and no signal except SIGTERM and SIGINT ends the
//! server.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use crate::key::ServerKeys;
use crate::logging;
use crate::settings::Settings;
use crate::webhook::ServerWebhooks;

/// Installs handlers for the signals that end a process by default but must not stop the server. SIGUSR1 and SIGUSR2
/// have no effect. Returns the stream of SIGHUP.
///
/// # Errors
/// That of the operating system.
pub(crate) fn take_signals() -> std::io::Result<Signal> {
    // The handler stays when the stream is dropped.
    drop(signal(SignalKind::user_defined1())?);
    drop(signal(SignalKind::user_defined2())?);
    signal(SignalKind::hangup())
}

/// Sources of the reloaded state.
pub(crate) struct Reload {
    /// `None` in open mode.
    pub(crate) keys: Option<Arc<ServerKeys>>,
    pub(crate) webhooks: Arc<ServerWebhooks>,
    /// Wakes the task that follows the certificate.
    pub(crate) certificate: Arc<Notify>,
    /// Configuration file, if it decides the log level: an option and a variable override it.
    pub(crate) config: Option<PathBuf>,
}

impl Reload {
    /// Reloads everything at each SIGHUP, for as long as the server runs.
    pub(crate) async fn follow(self: Arc<Self>, mut hang_up: Signal) {
        while hang_up.recv().await.is_some() {
            tracing::info!(
                "SIGHUP: reading application keys, webhooks, the certificate and the log level again"
            );
            self.keys().await;
            self.webhooks.load_or_log().await;
            self.certificate.notify_one();
            let reload = Arc::clone(&self);
            let level = tokio::task::spawn_blocking(move || reload.level()).await;
            if let Ok(Err(error)) = level {
                tracing::error!("{error:#}; the log level is unchanged");
            }
        }
    }

    /// Reloads the stored keys.
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
