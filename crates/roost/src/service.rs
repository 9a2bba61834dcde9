//! Messages to the service manager that started the process (systemd's `sd_notify` protocol). Nothing is sent if
//! `NOTIFY_SOCKET` is not set.

use sd_notify::NotifyState;

/// Reports that the server serves.
pub(crate) fn ready() {
    send(&[NotifyState::Ready, NotifyState::Status("serving")]);
}

/// Reports that the server has begun to stop.
pub(crate) fn stopping() {
    send(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

/// Reports the current state of the server, for `systemctl status`.
pub(crate) fn status(status: &str) {
    send(&[NotifyState::Status(status)]);
}

/// Sends a state; logs failures, which must not stop the server.
fn send(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}
