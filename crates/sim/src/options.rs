//! Options of a simulation.

use std::path::PathBuf;
use std::time::Duration;

use crate::client::Target;
use crate::population::Making;
use crate::workload::{Drawings, KeyLoad, Load, StoryLoad};

/// The options of a simulation and its server.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// The server; it must be empty.
    pub target: Target,
    /// The application key, if the server requires one.
    pub key: Option<String>,
    /// The users to generate, at least 2; ignored if there is a graph. Names, actions and texts use
    /// the same seed.
    pub making: Making,
    /// The load with posts and home timelines, if these are simulated.
    pub feed: Option<Load>,
    /// The load with friends and stories, if these are simulated.
    pub stories: Option<StoryLoad>,
    /// The drawings to recognize, if that is simulated.
    pub drawings: Option<Drawings>,
    /// The load on keys of a bucket, if that is simulated.
    pub keys: Option<KeyLoad>,
    /// An edge list to take follows and friendships from instead of making them.
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
    /// Whether each connection starts the next action when it has a response, instead of at the
    /// action's due time.
    pub closed: bool,
    /// The length of a simulated day, over which the activity of users varies; `None` keeps it constant.
    pub day: Option<Duration>,
    /// The time at which the most followed user posts and all their followers read it, if any.
    pub flash: Option<Duration>,
    /// Number of connections, at least 1.
    pub connections: usize,
    /// Number of threads, at least 1.
    pub threads: usize,
}
