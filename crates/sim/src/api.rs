//! Interface to the supported servers: turns actions into requests, and parses responses. Only its implementations
//! contain routes and field names.

mod error;
mod last_posts;
mod mastodon;
mod roost;
mod steps;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::client::{Client, Dial, Requests, Response};
use crate::options::{ApiOptions, SimulateOptions};
use crate::scenario::Scenario;
use crate::workload::Action;
pub use error::LoadError;
use mastodon::Mastodon;
pub(crate) use roost::Roost;

/// Maximum number of posts in a page of a timeline.
pub(crate) const PAGE: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Timeline {
    /// Posts of the user and of those the user follows.
    Home(u32),
    /// Posts of the user.
    Posts(u32),
    /// Posts that mention the user.
    Mentions(u32),
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Timeline::Home(user) => write!(f, "the home timeline of user {user}"),
            Timeline::Posts(user) => write!(f, "the posts of user {user}"),
            Timeline::Mentions(user) => write!(f, "the mentions of user {user}"),
        }
    }
}

/// A post as it appears in timelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimelinePost {
    /// The id of the post; later posts have higher ids.
    pub(crate) id: u64,
    pub(crate) author: u32,
    /// The user it replies to.
    pub(crate) reply_to: Option<u32>,
}

/// The resources that a server has used since it started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Used {
    /// CPU time in seconds; 1 s per second is one core.
    pub(crate) processor_s: f64,
    /// Resident memory now, in bytes.
    pub(crate) memory_bytes: u64,
}

/// Longest time for a response to a request before the run.
const PATIENCE: Duration = Duration::from_secs(10);

/// Data that must not exist on the server yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    /// Whether the server must have no users.
    pub(crate) no_users: bool,
    /// Whether the bucket to fill must not exist.
    pub(crate) no_bucket: bool,
}

/// Longest time in which a server may report its resource usage.
const USED: Duration = Duration::from_secs(1);

/// Asks a server for its resource usage; `None` if no report arrives within [`USED`].
pub(crate) async fn ask_used<D: Dial>(api: &dyn Api, client: &mut Client<D>) -> Option<Used> {
    let mut request = Vec::new();
    api.write_used(&mut request);
    let answer = timeout(USED, client.send(&request)).await.ok()?.ok()?;
    api.used(answer.body)
}

/// Returns the API for the server of a simulation.
pub(crate) fn of(options: &SimulateOptions) -> Arc<dyn Api> {
    let target = options.target.clone();
    let requests = Requests::new(target.authority(), options.key.as_deref());
    let references = options.drawings.as_ref().map(|drawings| Arc::clone(&drawings.references));
    let own = Roost::new(target, requests, options.making.seed, references);
    match &options.api {
        ApiOptions::Roost => Arc::new(own),
        ApiOptions::Mastodon(with) => Arc::new(Mastodon::new(own, with.clone(), !options.loaded)),
    }
}

/// API of a kind of server.
pub(crate) trait Api: Send + Sync {
    /// Checks that the server answers, accepts the credentials, and satisfies `needs`.
    fn check(self: Arc<Self>, needs: Needs) -> JoinHandle<Result<(), LoadError>>;

    /// Signs in `users` users, if the API needs it, and creates missing accounts.
    fn sign_in(self: Arc<Self>, users: u32) -> JoinHandle<Result<(), LoadError>>;

    /// Loads the scenario into an empty server: users, follows, friendships, and the data that must exist when the run
    /// begins.
    fn load(self: Arc<Self>, scenario: Arc<Scenario>) -> JoinHandle<Result<(), LoadError>>;

    /// Reason why a run with `count` failures of this kind is inconclusive, if it is.
    fn limited(&self, failure: &str, count: u64) -> Option<String>;

    /// Replaces `request` with the action's request.
    fn write(&self, action: &Action, request: &mut Vec<u8>);

    /// Replaces `request` with the second request of an action; `first` is the body of the response to the first
    /// request.
    fn write_second(&self, action: &Action, first: &[u8], request: &mut Vec<u8>);

    /// Number of operations that succeeded, of the `count` operations of an action.
    fn done_in(&self, answer: &Response<'_>, count: u64) -> u64;

    /// Error of the first failed operation, in a response with a success status.
    fn first_refusal(&self, body: &[u8]) -> String;

    /// Post that the response says was created, if any.
    fn posted(&self, body: &[u8]) -> Option<TimelinePost>;

    /// Replaces `request` with a request for the newest [`PAGE`] posts of a timeline.
    fn write_page(&self, timeline: Timeline, request: &mut Vec<u8>);

    /// Posts of a page in its order; `None` if the body is not a page.
    fn page(&self, body: &[u8]) -> Option<Vec<TimelinePost>>;

    /// Replaces `request` with a request for the server's resource usage.
    fn write_used(&self, request: &mut Vec<u8>);

    /// Parses the response to [`Api::write_used`]; `None` if the server does not report its usage.
    fn used(&self, body: &[u8]) -> Option<Used>;
}
