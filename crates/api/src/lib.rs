//! The HTTP API: turns requests into commands and reads of a [`node::Node`], and outcomes into
//! answers.
//!
//! - [`serve()`] accepts connections and ends them in good order; [`router`] is the same API without
//!   a listener.
//! - `v1/<noun>.rs` holds the handlers of one noun; `error.rs` is the only place where a refusal becomes a
//!   status; `guard.rs` runs before and after every handler; `state.rs` is what all handlers share.
//!
//! It owns no state of the feed. It holds its options, its counters, and the permits that
//! bound connections and blocking reads, and the budgets of requests' memory. **Invariant:** nothing here
//! grows with the number of requests that wait: beyond a bound they are refused with 503.

mod auth;
mod body;
mod changes;
mod deadline;
mod docs;
pub mod drawing;
mod error;
mod files;
mod guard;
mod head;
mod held;
mod history;
mod idempotency;
mod input;
mod legacy;
mod memory;
mod metrics;
mod operations;
mod page;
mod params;
mod query;
mod request_id;
mod routes;
mod seats;
mod serve;
mod stall;
mod state;
#[cfg(test)]
mod tests;
mod time;
mod v1;

use std::sync::Arc;

use axum::Router;
use edge::{Access, BlockingReads, FileSource};
use feed::limits;
use node::Node;
use prometheus_client::registry::Registry;

use memory::RequestMemory;

pub use feed::Lifetime;
pub use memory::CONNECTION_BYTES;
pub use serve::serve;

/// How the API is set up.
#[derive(Debug)]
pub struct ApiOptions {
    /// Who may call.
    pub access: Access,
    /// Most connections at a time. A further one takes the place of one that has presented no key, or of an
    /// idle one. At least 1.
    pub connections_max: u32,
    /// Where reads run that may block.
    pub reads: BlockingReads,
    /// Memory that HTTP requests and answers take together, in bytes, beside [`CONNECTION_BYTES`] of every
    /// connection. A quarter of it is for those of up to 64 KiB.
    pub request_memory: usize,
    /// How long a story lives if its author does not say.
    pub story_life: Lifetime,
    /// What is served at `/` and `/assets/`, if anything.
    pub pages: Option<Arc<dyn FileSource>>,
    /// What else is shown at `/metrics`.
    pub registry: Registry,
}

impl ApiOptions {
    /// 4,096 connections, 64 reads at a time, 256 MiB for requests, stories of 24 hours, no pages.
    #[must_use]
    pub fn new(access: Access) -> Self {
        let Ok(story_life) = Lifetime::from_secs(limits::STORY_SECS_DEFAULT) else {
            unreachable!("the default is within the limits");
        };
        Self {
            access,
            connections_max: 4_096,
            reads: BlockingReads::new(64),
            request_memory: 256 << 20,
            story_life,
            pages: None,
            registry: Registry::default(),
        }
    }
}

/// The whole API over `node`, to be served by the caller. Live streams of events do not end by
/// themselves here, since nothing announces a shutdown, and
/// `/metrics/history` stays empty.
pub fn router(node: Node, options: ApiOptions) -> Router {
    let (_, never_closing) = tokio::sync::watch::channel(false);
    let memory = RequestMemory::new(options.request_memory);
    routes::routes(node, options, never_closing, memory).0
}
