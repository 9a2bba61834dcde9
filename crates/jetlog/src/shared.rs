//! What the log and its two tasks share.

use std::sync::OnceLock;

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
    /// Called after each group or error that arrived.
    pub(crate) wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Shared {
    pub(crate) fn new(window: Window) -> Self {
        let (changed, trouble, wake) = (Notify::new(), Mutex::new(None), OnceLock::new());
        Self { window: Mutex::new(window), changed, trouble, wake }
    }

    /// Takes note of a trouble that may pass by itself.
    pub(crate) fn report(&self, trouble: &str) {
        let mut last = self.trouble.lock();
        if last.as_deref() != Some(trouble) {
            tracing::warn!(trouble, "the log of the cluster");
            *last = Some(trouble.to_owned());
        }
    }

    /// Something can be taken.
    pub(crate) fn wake(&self) {
        self.wake.get().inspect(|wake| wake());
    }

    /// Groups arrive.
    pub(crate) fn recovered(&self) {
        *self.trouble.lock() = None;
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }
}
