//! Progress of a run: consecutive windows with the latencies measured in them, passed to watchers.
//!
//! A window never changes. Watchers get all windows, in order.

mod lines;

use std::time::Duration;
use std::{fmt, io};

use hdrhistogram::Histogram;
use serde::Serialize;

pub use lines::Lines;

/// The plan of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The scenario as one line of text.
    pub title: String,
    /// Length of the run.
    pub duration: Duration,
    /// Length of a window; the last may be shorter.
    pub window: Duration,
    /// The kinds of requests, in the order of every window.
    pub kinds: Vec<&'static str>,
    /// Whether each connection sends its next request after the response to the previous one.
    pub closed: bool,
}

/// Measurements of one window of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Window {
    /// End of the window, in seconds from the start of the run.
    pub end_s: f64,
    /// Length, in seconds.
    pub seconds: f64,
    /// Counts and latencies by kind, in the order of [`Plan::kinds`].
    pub kinds: Vec<WindowKind>,
    /// Delivery lag, if any was sampled in this window.
    pub delivery: Option<Delivery>,
    /// The 99th percentile of the generator's scheduling delay, in milliseconds.
    pub scheduling_delay_p99_ms: f64,
    /// Resource usage of the server, if it reports it.
    pub server: Option<ServerLoad>,
}

/// Requests of one kind that ended in a window. Latencies are measured from the due times.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WindowKind {
    /// Number of successful requests or operations.
    pub count: u64,
    /// Number of failed ones.
    pub errors: u64,
    /// Median in milliseconds.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}

/// Times from the acceptance of sampled posts until they appeared in a follower's home.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Delivery {
    /// Number of sampled posts that appeared.
    pub samples: u64,
    /// Median in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Delivery { samples, p50_ms, p99_ms, max_ms } = self;
        write!(
            f,
            "seen in a follower's home timeline p50 {p50_ms:.2} p99 {p99_ms:.2} max {max_ms:.2} ms after it \
             was accepted ({samples} samples)"
        )
    }
}

/// The server's report about itself at the end of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ServerLoad {
    /// Resident memory in bytes.
    pub memory_bytes: u64,
    /// Processor time used in the window, in cores.
    pub cores: f64,
}

/// Receives the windows of a run.
pub trait Watcher: Send {
    /// Begins the run; the users are loaded.
    ///
    /// # Errors
    /// If its output cannot be written; the run does not begin.
    fn begin(&mut self, plan: &Plan) -> io::Result<()>;

    /// Reports a finished window. `latencies_us` has the latencies of the window, one histogram (in microseconds) for
    /// each kind.
    ///
    /// # Errors
    /// If its output cannot be written; the run ends.
    fn window(&mut self, window: &Window, latencies_us: &[Histogram<u64>]) -> io::Result<()>;

    /// Ends the run.
    ///
    /// # Errors
    /// If its output cannot be written.
    fn end(&mut self) -> io::Result<()>;
}
