//! State that the log and its tasks share.

use std::sync::OnceLock;
use std::time::Instant;

use commitlog::{LogEnd, Position};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::window::Window;

pub(crate) struct Shared {
    /// Window of pending groups. Locked only briefly.
    pub(crate) window: Mutex<Window>,
    /// Wakes the publisher.
    pub(crate) changed: Notify,
    /// Last reported reason why groups do not come back; `None` when a later group arrived.
    trouble: Mutex<Option<String>>,
    /// Last known position of the stream, and the time of the server's report.
    end: Mutex<(Position, Instant)>,
    /// Reason why changes are refused, if they are: the configuration of the stream was changed.
    refusal: Mutex<Option<String>>,
    /// Called after each group or error that arrived.
    pub(crate) wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Shared {
    pub(crate) fn new(window: Window) -> Self {
        let (changed, trouble, wake) = (Notify::new(), Mutex::new(None), OnceLock::new());
        let end = Mutex::new((Position(0), Instant::now()));
        Self { window: Mutex::new(window), changed, trouble, end, refusal: Mutex::new(None), wake }
    }

    /// Records a reason, possibly temporary, why groups do not come back.
    pub(crate) fn report(&self, trouble: &str) {
        let mut last = self.trouble.lock();
        if last.as_deref() != Some(trouble) {
            tracing::warn!(trouble, "the log of the cluster");
            *last = Some(trouble.to_owned());
        }
    }

    /// Calls `wake`, because a group or error can be delivered.
    pub(crate) fn wake(&self) {
        self.wake.get().inspect(|wake| wake());
    }

    /// Records that groups come back.
    pub(crate) fn recovered(&self) {
        *self.trouble.lock() = None;
    }

    pub(crate) fn trouble(&self) -> Option<String> {
        self.refusal().or_else(|| self.trouble.lock().clone())
    }

    /// Records the last position of the stream as reported by a server.
    pub(crate) fn note_end(&self, end: Position) {
        let mut last = self.end.lock();
        *last = (last.0.max(end), Instant::now());
    }

    pub(crate) fn end(&self) -> LogEnd {
        let (position, at) = *self.end.lock();
        LogEnd { position, ago: at.elapsed() }
    }

    /// Records whether changes are refused, and the reason.
    pub(crate) fn refuse(&self, why: Option<String>) {
        let mut refusal = self.refusal.lock();
        if *refusal == why {
            return;
        }
        match &why {
            Some(why) => tracing::error!("changes are refused: {why}"),
            None => tracing::info!("the configuration of the stream is valid again"),
        }
        *refusal = why;
        drop(refusal);
        self.wake();
    }

    pub(crate) fn refusal(&self) -> Option<String> {
        self.refusal.lock().clone()
    }
}
