//! Shows a run on the terminal: rates, latencies, errors and the resource usage of the server.
//!
//! The screen is a pure function of a [`Model`]. It is drawn at the end of each window of the run, when a
//! key is pressed and when the size of the terminal changes. The terminal is restored at the end of the run,
//! after an error and after a panic.

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

/// Shows a run on the terminal at standard output.
pub(crate) struct Dashboard {
    /// Set to true when the user stops the run.
    stop: watch::Sender<bool>,
    /// From the beginning of a run to its end.
    screen: Option<Screen>,
}

impl Dashboard {
    /// A dashboard that stops the run through `stop`.
    pub(crate) fn new(stop: watch::Sender<bool>) -> Self {
        Self { stop, screen: None }
    }
}

impl Watcher for Dashboard {
    fn begin(&mut self, plan: &Plan) -> io::Result<()> {
        // The screen of an earlier run restores the terminal first.
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
