//! The seam to the servers that can be driven: how actions become requests of one kind of server,
//! and what its answers mean. Only its implementations know a route or a field of an answer.

mod roost;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::client::{Client, Dial, Response};
use crate::scenario::Scenario;
use crate::workload::Action;
pub use roost::load::LoadError;
pub(crate) use roost::{Needs, Roost};

/// Posts that a page of a timeline has, if there are so many.
pub(crate) const PAGE: usize = 20;

/// A timeline that can be read, of one person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Timeline {
    /// What those they follow have posted, and they themselves.
    Home(u32),
    /// What they have posted.
    Posts(u32),
    /// What mentions them.
    Mentions(u32),
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Timeline::Home(person) => write!(f, "the home timeline of user {person}"),
            Timeline::Posts(person) => write!(f, "the posts of user {person}"),
            Timeline::Mentions(person) => write!(f, "the mentions of user {person}"),
        }
    }
}

/// A post as it appears in timelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its id; ids of later posts are higher.
    pub(crate) id: u64,
    pub(crate) author: u32,
    /// Whom it answers.
    pub(crate) reply_to: Option<u32>,
}

/// What a server has used since it started.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Used {
    /// Processor time in seconds, of which 1 per second is one core.
    pub(crate) processor_s: f64,
    /// Resident memory now, in bytes.
    pub(crate) memory_bytes: u64,
}

/// How long a server may take to report what it has used.
const USED: Duration = Duration::from_secs(1);

/// Asks a server what it has used; none if it reports nothing, or not soon.
pub(crate) async fn ask_used<D: Dial>(api: &dyn Api, client: &mut Client<D>) -> Option<Used> {
    let mut request = Vec::new();
    api.write_used(&mut request);
    let answer = timeout(USED, client.send(&request)).await.ok()?.ok()?;
    api.used(answer.body)
}

/// A kind of server.
pub(crate) trait Api: Send + Sync {
    /// Brings everybody of the scenario into an empty server: people, what joins them, and what is
    /// there when the run begins.
    fn load(self: Arc<Self>, scenario: Arc<Scenario>) -> JoinHandle<Result<(), LoadError>>;

    /// Replaces `request` with the action's request.
    fn write(&self, action: &Action, request: &mut Vec<u8>);

    /// Replaces `request` with the second request of an action that takes two, after the first was
    /// answered with this body.
    fn write_second(&self, action: &Action, first: &[u8], request: &mut Vec<u8>);

    /// How many of an action's `count` things are done by its answer.
    fn done_in(&self, answer: &Response<'_>, count: u64) -> u64;

    /// What an answer of success says of the first thing that is not done.
    fn first_refusal(&self, body: &[u8]) -> String;

    /// The post that was created according to the answer, if it says.
    fn posted(&self, body: &[u8]) -> Option<Entry>;

    /// Replaces `request` with a request for the newest [`PAGE`] posts of a timeline.
    fn write_page(&self, timeline: Timeline, request: &mut Vec<u8>);

    /// The posts of a page, in its order; none if it is not a page.
    fn page(&self, body: &[u8]) -> Option<Vec<Entry>>;

    /// Replaces `request` with the question what the server has used.
    fn write_used(&self, request: &mut Vec<u8>);

    /// The answer to it; none if the server does not report.
    fn used(&self, body: &[u8]) -> Option<Used>;
}
