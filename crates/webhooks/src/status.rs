//! State of a webhook for operators, and requests of operators to its task.

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::stored::Stored;
use crate::{Action, DeadLetter};

/// State of a webhook.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Position of the last delivered change; `None` before the oldest kept one.
    pub after: Option<String>,
    /// Time of the oldest change that was read and not yet delivered, in milliseconds since 1970.
    pub pending_since_ms: Option<u64>,
    /// Time of the last accepted request since the start, in milliseconds since 1970.
    pub delivered_ms: Option<u64>,
    /// Error of the last request or read, and its time in milliseconds since 1970; `None` after a success.
    pub error: Option<(u64, String)>,
    /// Changes that were given up, and gaps.
    pub dead: Vec<DeadLetter>,
    /// Number of changes delivered since the start.
    pub changes: u64,
    /// Number of accepted requests since the start.
    pub accepted: u64,
    /// Number of failed requests since the start.
    pub failed: u64,
}

/// State that a task shares with operators.
pub(crate) struct Shared {
    status: Mutex<Status>,
    requested: Mutex<Option<Action>>,
    /// Notified of a request.
    wake: Notify,
}

impl Shared {
    pub(crate) fn new(stored: &Stored) -> Self {
        let (after, dead) = (stored.after.clone(), stored.dead.clone());
        let status = Mutex::new(Status { after, dead, ..Status::default() });
        Self { status, requested: Mutex::default(), wake: Notify::new() }
    }

    pub(crate) fn status(&self) -> Status {
        self.status.lock().clone()
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status.lock());
    }

    pub(crate) fn request(&self, action: Action) {
        *self.requested.lock() = Some(action);
        self.wake.notify_one();
    }

    /// Takes the request, if there is one.
    pub(crate) fn take_request(&self) -> Option<Action> {
        self.requested.lock().take()
    }

    /// Waits for a request.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }
}
