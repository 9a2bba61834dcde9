//! Options of a simulation.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Target;
use crate::population::Making;
use crate::workload::{Drawings, KeyLoad, Load, StoryLoad};

/// The API of a server.
#[derive(Debug, Clone)]
pub enum ApiOptions {
    /// roost's own API.
    Roost,
    /// Mastodon's client API.
    Mastodon(MastodonOptions),
}

/// Options of Mastodon's client API.
#[derive(Clone)]
pub struct MastodonOptions {
    /// Credentials of the users, in the order of their numbers; `None` to sign them up.
    pub credentials: Option<Arc<[Credential]>>,
    /// Password of signed-up users.
    pub password: String,
    /// Whether to load the follows through roost's own API of the same server, which is faster.
    pub own_api: bool,
}

/// Credential of a user.
#[derive(Clone)]
pub enum Credential {
    /// An access token.
    Token(String),
    /// A name and a password, for a server that lets apps ask for passwords.
    Password(String, String),
}

impl fmt::Debug for MastodonOptions {
    /// Formats the options without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let credentials = self.credentials.as_ref().map(|credentials| credentials.len());
        write!(f, "MastodonOptions {{ credentials: {credentials:?}, own_api: {} }}", self.own_api)
    }
}

/// Options of a simulation, and of its server.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// The server; it must be empty.
    pub target: Target,
    /// The API of the server.
    pub api: ApiOptions,
    /// The application key for roost's own API, if the server requires one.
    pub key: Option<String>,
    /// Users to generate, at least 2; ignored with a graph. The seed also determines names, actions and texts.
    pub making: Making,
    /// Load with posts and home timelines, if they are simulated.
    pub feed: Option<Load>,
    /// Load with friends and stories, if they are simulated.
    pub stories: Option<StoryLoad>,
    /// The drawings to recognize, if that is simulated.
    pub drawings: Option<Drawings>,
    /// The load on keys of a bucket, if that is simulated.
    pub keys: Option<KeyLoad>,
    /// Edge list to read follows and friendships from, instead of generating them.
    pub graph: Option<PathBuf>,
    /// Whether the server already has these users from an earlier simulation.
    pub loaded: bool,
}

impl SimulateOptions {
    /// Whether the simulation has users.
    pub(crate) fn has_users(&self) -> bool {
        self.feed.is_some() || self.stories.is_some()
    }
}

/// Options of a run, after loading.
#[derive(Debug, Clone)]
pub struct Drive {
    /// The duration of the run.
    pub duration: Duration,
    /// Average number of actions per second; `None` uses the default rates of the scenario.
    pub rate: Option<f64>,
    /// Whether each connection starts its next action after the response to the previous one, instead of at the
    /// action's due time.
    pub closed: bool,
    /// Length of a simulated day, over which the activity of users varies; `None` for constant activity.
    pub day: Option<Duration>,
    /// Time at which the most followed user posts and all followers read, if any.
    pub flash: Option<Duration>,
    /// Number of connections, at least 1.
    pub connections: usize,
    /// Number of threads, at least 1.
    pub threads: usize,
}
