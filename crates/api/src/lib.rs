//! HTTP API: turns requests into commands and reads of a [`node::Node`], and results into responses.
//!
//! - [`serve()`] accepts connections and shuts them down gracefully; [`router`] is the same API without a listener.
//! - `v1/<noun>.rs` holds the handlers of one noun.
//! - `routes` is the table of all routes; each module lists its own. A `route::Route` declares path, handler, scope,
//!   access of users, and description. The router, `guard` and the OpenAPI document are derived from it.
//! - `guard` runs before and after every handler; `auth` and `session` decide who may call it, `cors` which pages may.
//! - `input` and `query` read parts of requests, `changes` submits commands, `page` writes lists, and `error` writes
//!   errors.
//! - `unsent` bounds the memory of unsent responses, `edge` that of other parts of requests. `state` is shared by all
//!   handlers.
//!
//! Read `route`, `routes`, `guard`, `auth`, `input`, `changes`, `v1/posts`, then `serve`.
//!
//! The crate owns no state of the feed. It owns its options, its counters, the permits that bound connections and
//! blocking reads, and the memory budgets of requests.
//!
//! **Invariant:** nothing here grows with the number of queued requests: above a limit, requests are refused with 503.
//! **Invariant:** only a route declares the scope it needs, only `error` and its folder turn a refusal into a status,
//! only `query` reads a query, and only `page` writes a list.
//! **Invariant:** a read for the response to an applied change waits and is never refused.
//! **Invariant:** live streams pull events; users have no queues. Streams are woken from memory, and share a few
//! permits to read the store.

mod after;
mod auth;
mod backup;
mod changes;
mod cluster;
mod conditions;
mod cors;
mod current_session;
mod described;
mod docs;
pub mod drawing;
mod error;
mod files;
mod guard;
mod history;
mod idempotency;
mod input;
mod legacy;
mod metrics;
mod operations;
mod page;
mod positions;
mod query;
mod results;
mod route;
mod routes;
mod rule;
mod serve;
mod session;
mod state;
#[cfg(test)]
mod tests;
mod time;
mod unsent;
mod v1;
pub mod webhooks;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use edge::{Access, BlockingReads, FileSource, RequestMemory, Sessions, TrustedProxies};
use feed::limits;
use node::Node;
use prometheus_client::registry::Registry;

pub use cors::{BadOrigins, Origins};
pub use feed::Lifetime;
pub use serve::serve;

/// Default of [`ApiOptions::max_lag`].
const MAX_LAG_DEFAULT: Duration = Duration::from_secs(10);

/// Options of the API.
#[derive(Debug)]
pub struct ApiOptions {
    /// Authorized clients.
    pub access: Access,
    /// Maximum number of open connections, at least 1. A further connection replaces an idle one, or one that has
    /// presented neither a key nor a user's token.
    pub connections_max: u32,
    /// Runner of reads that may block.
    pub reads: BlockingReads,
    /// Memory for all HTTP requests and responses together, in bytes, in addition to [`edge::CONNECTION_BYTES`] per
    /// connection. A quarter is reserved for amounts of up to 64 KiB.
    pub request_memory: usize,
    /// Default lifetime of a story.
    pub story_life: Lifetime,
    /// Host and port of the server's URL. In a text, `@name@domain` mentions the user `name` of this server.
    pub domain: String,
    /// Files at `/` and `/assets/`, if any.
    pub pages: Option<Arc<dyn FileSource>>,
    /// Routes of another crate, served in addition to the API. They check their clients themselves; each request has an
    /// [`edge::ClientAddress`].
    pub beside: Option<Router>,
    /// Users, by their tokens and browser sessions. If `None`, as in open mode, only keys open `/v1`.
    pub sessions: Option<Arc<dyn Sessions>>,
    /// Origins whose pages may send requests with a token.
    pub origins: Origins,
    /// Proxies that are trusted to report client addresses.
    pub trusted_proxies: TrustedProxies,
    /// File of the application keys; backups include it if it exists.
    pub keys_file: Option<PathBuf>,
    /// Maximum lag of a cluster node that counts as ready.
    pub max_lag: Duration,
    /// Additional metrics for `/metrics`.
    pub registry: Registry,
    /// Whether responses make browsers use only https (HSTS).
    pub https_only: bool,
}

impl ApiOptions {
    /// Default options: 4,096 connections, 64 reads at a time, 256 MiB for requests, stories of 24 hours, a lag of 10
    /// s, no pages.
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
            domain: String::new(),
            pages: None,
            beside: None,
            sessions: None,
            origins: Origins::default(),
            trusted_proxies: TrustedProxies::default(),
            keys_file: None,
            max_lag: MAX_LAG_DEFAULT,
            registry: Registry::default(),
            https_only: false,
        }
    }
}

/// Makes a router of the whole API, to be served by the caller. There is no shutdown signal, so event streams do not
/// end at a shutdown, and `/metrics/history` stays empty.
pub fn router(node: Node, options: ApiOptions) -> Router {
    let (_, never_closing) = tokio::sync::watch::channel(false);
    let memory = RequestMemory::new(options.request_memory);
    routes::routes(node, options, never_closing, memory).0
}
