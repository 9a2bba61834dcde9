//! The progress of a run: consecutive windows with the latencies measured in them, passed to
//! watchers.
//!
//! A window is made once and never changes. Watchers get all of them, in order.

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
    /// The kinds of requests, in the order in which every window reports them.
    pub kinds: Vec<&'static str>,
    /// Whether the next request waits for the answer to the one before.
    pub closed: bool,
}

/// Measurements of one window of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Window {
    /// When it ended, in seconds from the start of the run.
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

/// Requests of one kind that ended in a window; latencies count from when they were due.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WindowKind {
    /// Things done: requests answered with success, or parts of them.
    pub count: u64,
    /// Number of them that failed.
    pub errors: u64,
    /// Half took at most this long, in milliseconds.
    pub p50_ms: f64,
    /// 90 % took at most this long.
    pub p90_ms: f64,
    /// 99 % took at most this long.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// Times from the acceptance of sampled posts until they were seen in a follower's home.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Delivery {
    /// Posts that were looked for and seen.
    pub samples: u64,
    /// Half were seen within this time, in milliseconds.
    pub p50_ms: f64,
    /// 99 % were.
    pub p99_ms: f64,
    /// The longest.
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
    /// The users are loaded and the run begins.
    ///
    /// # Errors
    /// If its output cannot be written; the run does not begin.
    fn begin(&mut self, plan: &Plan) -> io::Result<()>;

    /// A window is over. `latencies_us` holds what was measured in it, one histogram (in
    /// microseconds) for each kind, and lives no longer than the call.
    ///
    /// # Errors
    /// If its output cannot be written; the run ends.
    fn window(&mut self, window: &Window, latencies_us: &[Histogram<u64>]) -> io::Result<()>;

    /// The run is over.
    ///
    /// # Errors
    /// If its output cannot be written.
    fn end(&mut self) -> io::Result<()>;
}
