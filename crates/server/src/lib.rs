//! The HTTP edge: turns requests into commands and reads of a [`node::Node`], and outcomes into
//! answers.
//!
//! - [`serve()`] accepts connections and ends them in good order; [`router`] is the same API without
//!   a listener.
//! - `http/<noun>.rs` holds the handlers of one noun; `http/error.rs` is the only place where a
//!   refusal becomes a status; `http/guard.rs` runs before and after every handler.
//!
//! The edge owns no state of the feed. It holds its options, its counters, and the permits that
//! bound connections and blocking reads, and the budgets of requests' memory. **Invariant:** nothing here
//! grows with the number of requests that wait: beyond a bound they are refused with 503.

mod deadline;
pub mod drawing;
mod head;
mod held;
mod http;
mod line_gate;
mod memory;
mod metrics;
mod process;
mod reads;
pub mod redis;
mod seats;
mod serve;
mod stall;

use std::path::PathBuf;

use axum::Router;
use feed::limits;
use node::Node;

use memory::RequestMemory;

pub use feed::Lifetime;
pub use memory::CONNECTION_BYTES;
pub use serve::serve;

/// Who may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody on this machine, but no page of a foreign origin in a browser. Bind to loopback
    /// only; the old report URLs exist in this mode.
    Open,
    /// Whoever presents the key as `Authorization: Bearer KEY`.
    Key {
        /// SHA-256 of the key.
        sha256: [u8; 32],
    },
}

/// Where the pages at `/` come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// From the program.
    #[default]
    Embedded,
    /// From this folder, read again at every request: for those who work on them.
    Folder(PathBuf),
    /// There are none; the API is served all the same.
    None,
}

/// How the edge is set up.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Who may call.
    pub access: Access,
    /// Most connections at a time. A further one takes the place of one that has presented no key, or of an
    /// idle one. At least 1.
    pub connections_max: u32,
    /// Most reads that may touch a disk at a time; 16 times as many may wait, beyond that callers
    /// are told to come back. At least 1.
    pub blocking_reads_max: usize,
    /// Memory that HTTP requests and answers take together, in bytes, beside [`CONNECTION_BYTES`] of every
    /// connection. A quarter of it is for those of up to 64 KiB.
    pub request_memory: usize,
    /// How long a story lives if its author does not say.
    pub story_life: Lifetime,
    /// What is served at `/`.
    pub pages: Pages,
    /// Threads that serve Redis clients; half of the processors if not said.
    pub redis_threads: Option<usize>,
    /// Memory in bytes that all Redis clients take together: what they have sent, what they are
    /// answered and have not read, and what each connection needs. Beyond it commands that need more
    /// than a little are answered with `-BUSY`, and clients are not read from.
    pub redis_memory: usize,
    /// What the Redis edge counts, for the page of metrics.
    pub redis_metrics: redis::RedisMetrics,
}

impl ServerOptions {
    /// 4,096 connections, 64 blocking reads, 256 MiB each for requests and for Redis clients, stories of 24
    /// hours, and the pages of the program.
    #[must_use]
    pub fn new(access: Access) -> Self {
        let Ok(story_life) = Lifetime::from_secs(limits::STORY_SECS_DEFAULT) else {
            unreachable!("the default is within the limits");
        };
        Self {
            access,
            connections_max: 4_096,
            blocking_reads_max: 64,
            request_memory: 256 << 20,
            story_life,
            pages: Pages::default(),
            redis_threads: None,
            redis_memory: 256 << 20,
            redis_metrics: redis::RedisMetrics::default(),
        }
    }
}

/// The whole API over `node`, to be served by the caller. Live streams of events do not end by
/// themselves here, since nobody tells of a shutdown, and `/metrics/history` stays empty.
pub fn router(node: Node, options: &ServerOptions) -> Router {
    let (_, never_closing) = tokio::sync::watch::channel(false);
    http::routes(node, options, never_closing, RequestMemory::new(options.request_memory)).0
}
