//! Messages to the service manager that started the process, with the protocol of systemd's `sd_notify`. If
//! `NOTIFY_SOCKET` names no service manager, nothing is sent.

use sd_notify::NotifyState;

/// The server serves.
pub(crate) fn ready() {
    send(&[NotifyState::Ready, NotifyState::Status("serving")]);
}

/// The server has begun to stop.
pub(crate) fn stopping() {
    send(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

/// The current state of the server, for `systemctl status`.
pub(crate) fn status(status: &str) {
    send(&[NotifyState::Status(status)]);
}

/// A service manager that cannot be reached is no reason to stop serving.
fn send(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}
