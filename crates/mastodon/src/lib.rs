//! The Mastodon client API and OAuth 2: people sign up and log in, and give apps access to their accounts.
//!
//! - `oauth` is the protocol: apps, authorization codes, tokens. `pages` are the HTML forms of it, which work without
//!   scripts. `routes` names every route with the scope that it requires.
//! - `sessions` tells `/v1` which user has sent a request, by a token or the session of a browser.
//! - `password` hashes and compares passwords within bounds; `limiter` counts what one address or account may do;
//!   `tokens` knows what a presented token permits.
//! - `api` has the handlers by topic, `entities` the JSON for one reader, `streams` what live streams share, `paging` the
//!   pages. `answers`, `bodies` and `uploads` bound the memory of responses and requests.
//!
//! Read `endpoints`, `routes`, `access`, `tokens`, `state`, then `api/statuses` and `entities/mod.rs`. The binary hands
//! the router and the sessions ([`edge::Sessions`]) to `api`, whose server serves both and does not know this crate.
//!
//! **Invariant:** handlers change facts with the commands that `/v1` uses.
//! **Invariant:** no secret is stored or logged: codes, tokens and sessions are hashed before they leave this crate.
//! **Invariant:** comparing a password takes the same work whether the account exists or not.
//! **Invariant:** what clients make it hold is bounded: bodies, waiting password hashes, counters and cached tokens.

mod about;
mod access;
mod accounts;
mod answers;
mod api;
mod bodies;
mod endpoints;
mod entities;
mod error;
mod fields;
mod filters;
mod form;
mod input;
mod limiter;
mod metrics;
mod multipart;
mod oauth;
mod pages;
mod paging;
pub mod password;
mod rate_headers;
mod routes;
mod secret;
mod sessions;
mod state;
mod streams;
mod tokens;
mod uploads;
mod without;

use std::sync::Arc;

use axum::Router;
use edge::{BlockingReads, Sessions};
use node::Node;
use tokio::sync::watch;

use sessions::UserSessions;

pub use about::{About, PICTURE_BYTES_MAX, Picture};
pub use endpoints::{Endpoint, EndpointState};
pub use limiter::{Rate, Rates};
pub use metrics::Metrics;
pub use password::PasswordError;

/// The most memory that it takes beside that of the node, in bytes: for hashing passwords, bodies, responses, and cached
/// tokens.
pub const MEMORY: usize =
    password::MEMORY + bodies::MEMORY + tokens::MEMORY + answers::MEMORY + streams::MEMORY;
/// The most memory of forms with files, in bytes, in addition to [`MEMORY`], if the node accepts pictures.
pub const UPLOAD_MEMORY: usize = uploads::MEMORY;

/// Who may sign up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registrations {
    /// Nobody: operators create accounts.
    #[default]
    Closed,
    /// Whoever has an invite.
    Invite,
    /// Everybody, but an operator must approve the account.
    Approval,
    /// Everybody.
    Open,
}

/// Options of the Mastodon API.
#[derive(Clone, Debug)]
pub struct MastodonOptions {
    /// The URL of the server as its users see it, such as `https://social.example`: scheme and host, without a slash
    /// at the end.
    pub base: String,
    /// What the operator says about the server.
    pub about: Arc<About>,
    /// Who may sign up.
    pub registrations: Registrations,
    /// Whether `/v1` needs no key, so that its clients act for any user and need no session.
    pub open: bool,
    /// Whether apps may ask for passwords themselves (`grant_type=password`).
    pub password_grant: bool,
    /// Whether who is not a user may read what is public: without a token, or with one of an app itself.
    pub anonymous_reads: bool,
    /// Most connections of the server, of which live streams take at most half.
    pub connections_max: u32,
    /// Whether entities are kept as JSON, in the memory of the node. A server that does not makes each again: only for tests.
    pub keeps_entities: bool,
    /// Runs reads that may block.
    pub reads: BlockingReads,
    /// What one address or account may do.
    pub rates: Rates,
    /// True when the server stops: then streams end.
    pub closing: Option<watch::Receiver<bool>>,
    /// What is counted.
    pub metrics: Metrics,
}

impl MastodonOptions {
    /// Whether the server stops.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.as_ref().is_some_and(|closing| *closing.borrow())
    }

    /// Sign-up is closed, apps may not ask for passwords, only users read, the usual rates.
    #[must_use]
    pub fn new(base: &str) -> Self {
        Self {
            base: base.trim_end_matches('/').to_owned(),
            about: Arc::default(),
            registrations: Registrations::Closed,
            open: false,
            password_grant: false,
            anonymous_reads: false,
            connections_max: 4_096,
            keeps_entities: true,
            reads: BlockingReads::new(64),
            rates: Rates::default(),
            closing: None,
            metrics: Metrics::default(),
        }
    }

    /// Host and port of the server's URL.
    #[must_use]
    pub fn domain(&self) -> &str {
        domain(&self.base)
    }
}

/// Host and port of a server's URL.
fn domain(base: &str) -> &str {
    base.split_once("://").map_or(base, |(_, host)| host)
}

/// All routes over `node`, and the sessions in which `/v1` looks up users.
pub fn router(node: Node, options: MastodonOptions) -> (Router, Arc<dyn Sessions>) {
    let state = state::Server::new(node, options);
    (routes::routes(Arc::clone(&state)), Arc::new(UserSessions(state)))
}

/// Every endpoint, also those of Mastodon's API that do not exist here, by path and method.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    let mut endpoints: Vec<_> = routes::table().0.into_iter().map(|route| route.endpoint).collect();
    endpoints.sort_by(|one, other| (one.path, one.method).cmp(&(other.path, other.method)));
    endpoints
}
