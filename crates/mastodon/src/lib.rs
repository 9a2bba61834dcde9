//! Mastodon client API and OAuth 2: users sign up and log in, and give apps access to their accounts.
//!
//! - `oauth` is the protocol: apps, authorization codes, tokens. `pages` are its HTML forms, which work without
//!   scripts. `routes` lists every route with the scope it requires.
//! - `sessions` identifies for `/v1` the user of a request, by a token or a browser session.
//! - `password` hashes and compares passwords within bounds; `limiter` counts the actions of addresses and accounts;
//!   `tokens` caches the permissions of tokens.
//! - `api` has the handlers by topic, `entities` the JSON for one reader, `streams` the state shared by live streams,
//!   `paging` the pages. `answers`, `bodies` and `uploads` bound the memory of responses and requests.
//!
//! Read `endpoints`, `routes`, `access`, `tokens`, `state`, then `api/statuses` and `entities/mod.rs`. The binary
//! passes the router and the sessions ([`edge::Sessions`]) to `api`, whose server serves both without depending on this
//! crate.
//!
//! **Invariant:** handlers change facts with the same commands as `/v1`.
//! **Invariant:** no secret is stored or logged: codes, tokens and sessions are hashed before they leave this crate.
//! **Invariant:** comparing a password takes the same work whether the account exists or not.
//! **Invariant:** memory held for clients is bounded: bodies, waiting password hashes, counters, cached tokens.

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

/// Maximum memory of this crate in addition to that of the node, in bytes: password hashes, bodies, responses, cached
/// tokens, streams.
pub const MEMORY: usize =
    password::MEMORY + bodies::MEMORY + tokens::MEMORY + answers::MEMORY + streams::MEMORY;
/// Maximum memory of forms with files, in bytes, in addition to [`MEMORY`], if the node accepts pictures.
pub const UPLOAD_MEMORY: usize = uploads::MEMORY;

/// Users who may sign up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registrations {
    /// No client: operators create accounts.
    #[default]
    Closed,
    /// Users with an invite.
    Invite,
    /// Everybody, but an operator must approve the account.
    Approval,
    /// Everybody.
    Open,
}

/// Options of the Mastodon API.
#[derive(Clone, Debug)]
pub struct MastodonOptions {
    /// URL of the server as users see it, such as `https://social.example`: scheme and host, without a slash at the
    /// end.
    pub base: String,
    /// Description of the server by its operator.
    pub about: Arc<About>,
    /// Users who may sign up.
    pub registrations: Registrations,
    /// Whether `/v1` needs no key, so that its clients act for any user without a session.
    pub open: bool,
    /// Whether apps may send passwords of users themselves (`grant_type=password`).
    pub password_grant: bool,
    /// Whether clients without a user may read public data: without a token, or with an app's own.
    pub anonymous_reads: bool,
    /// Maximum number of connections of the server. Live streams take at most three eighths of them.
    pub connections_max: u32,
    /// Whether entities are cached as JSON, in the memory of the node. False only in tests.
    pub keeps_entities: bool,
    /// Runner of reads that may block.
    pub reads: BlockingReads,
    /// Limits on the actions of one address or account.
    pub rates: Rates,
    /// True when the server stops; streams then end.
    pub closing: Option<watch::Receiver<bool>>,
    /// Counters of this API.
    pub metrics: Metrics,
}

impl MastodonOptions {
    /// Whether the server stops.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.as_ref().is_some_and(|closing| *closing.borrow())
    }

    /// Default options: sign-up is closed, apps may not send passwords, only users may read, and the default rates
    /// apply.
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

/// Makes the router of all routes over `node`, and the sessions in which `/v1` looks up users.
pub fn router(node: Node, options: MastodonOptions) -> (Router, Arc<dyn Sessions>) {
    let state = state::Server::new(node, options);
    (routes::routes(Arc::clone(&state)), Arc::new(UserSessions(state)))
}

/// All endpoints, including those of Mastodon's API that do not exist here, by path and method.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    let mut endpoints: Vec<_> = routes::table().0.into_iter().map(|route| route.endpoint).collect();
    endpoints.sort_by(|one, other| (one.path, one.method).cmp(&(other.path, other.method)));
    endpoints
}
