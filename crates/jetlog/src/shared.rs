//! What the log and its two tasks share.

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::window::Window;

pub(crate) struct Shared {
    /// Locked only for a moment.
    pub(crate) window: Mutex<Window>,
    /// Wakes the publisher.
    pub(crate) changed: Notify,
    /// The last trouble; none once a group arrived after it.
    trouble: Mutex<Option<String>>,
}

impl Shared {
    pub(crate) fn new(window: Window) -> Self {
        Self { window: Mutex::new(window), changed: Notify::new(), trouble: Mutex::new(None) }
    }

    /// Takes note of a trouble that may pass by itself.
    pub(crate) fn report(&self, trouble: &str) {
        let mut last = self.trouble.lock();
        if last.as_deref() != Some(trouble) {
            tracing::warn!(trouble, "the log of the cluster");
            *last = Some(trouble.to_owned());
        }
    }

    /// Groups arrive.
    pub(crate) fn recovered(&self) {
        *self.trouble.lock() = None;
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }
}
