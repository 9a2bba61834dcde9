//! Timer that is reset by progress.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Timer that completes when it was not reset for a given time. It starts when it is first polled.
#[derive(Default)]
pub(crate) struct Alarm {
    running: bool,
    armed: bool,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// Stops the timer. It starts again when it is next polled.
    pub(crate) fn reset(&mut self) {
        self.running = false;
        self.armed = false;
    }

    /// Starts the timer, so that it is polled.
    pub(crate) fn start(&mut self) {
        self.running = true;
    }

    /// Whether the timer was started or polled since its last reset.
    pub(crate) fn is_running(&self) -> bool {
        self.running
    }

    /// Ready after `patience`.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, patience: Duration) -> Poll<()> {
        self.running = true;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        if !self.armed {
            self.armed = true;
            sleep.as_mut().reset(Instant::now() + patience);
        }
        sleep.as_mut().poll(cx)
    }
}
