//! State of a webhook for operators.

use parking_lot::Mutex;

use crate::DeadLetter;

/// State of a webhook.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Position of the last delivered change; `None` before the oldest kept one.
    pub after: Option<String>,
    /// Lower bound of the time of the oldest change that is not yet delivered, in milliseconds since 1970; `None` if
    /// everything is delivered.
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
    /// Number of panics since the start.
    pub panics: u64,
}

/// State that a task shares with operators.
#[derive(Default)]
pub(crate) struct Shared(Mutex<Status>);

impl Shared {
    pub(crate) fn status(&self) -> Status {
        self.0.lock().clone()
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.0.lock());
    }
}
