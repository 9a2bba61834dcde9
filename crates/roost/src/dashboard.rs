//! Terminal display of a run: rates, latencies, errors and resource usage of the server.
//!
//! The screen is a pure function of a [`Model`]. It is drawn at the end of each window of the run, at key presses and
//! when the terminal is resized. The terminal is restored at the end of the run, after an error and after a panic.

mod charts;
mod draw;
mod model;
mod screen;

use std::io;

use hdrhistogram::Histogram;
use sim::watch::{Plan, Watcher, Window};
use tokio::sync::watch;

use model::Model;
use screen::Screen;

/// Watcher that shows a run on the terminal at standard output.
pub(crate) struct Dashboard {
    /// Becomes true when the user stops the run.
    stop: watch::Sender<bool>,
    /// `Some` during a run.
    screen: Option<Screen>,
}

impl Dashboard {
    /// Creates a dashboard that stops the run through `stop`.
    pub(crate) fn new(stop: watch::Sender<bool>) -> Self {
        Self { stop, screen: None }
    }
}

impl Watcher for Dashboard {
    fn begin(&mut self, plan: &Plan) -> io::Result<()> {
        // The screen of an earlier run is dropped first, which restores the terminal.
        self.screen = None;
        self.screen = Some(Screen::open(Model::new(plan), self.stop.clone())?);
        Ok(())
    }

    fn window(&mut self, window: &Window, latencies_us: &[Histogram<u64>]) -> io::Result<()> {
        match &self.screen {
            Some(screen) => screen.change(|model| model.add(window, latencies_us)),
            None => Ok(()),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        self.screen = None;
        Ok(())
    }
}
