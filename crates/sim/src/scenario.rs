//! Users of a simulation and their relations, derived only from the options.

use std::sync::Arc;

use crate::Population;
use crate::options::SimulateOptions;
use crate::population::{GraphError, Making, Measured};
use crate::workload::{Drawings, KeyLoad, Load, StoryLoad, StorySchedule};

#[derive(Debug)]
pub(crate) struct Scenario {
    /// Number of users.
    pub(crate) users: u32,
    pub(crate) feed: Option<Feed>,
    pub(crate) stories: Option<Stories>,
    pub(crate) drawings: Option<Drawings>,
    pub(crate) keys: Option<KeyLoad>,
    /// Seed of names, actions and texts.
    pub(crate) seed: u64,
}

/// The part with follows and posts.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) follows: Arc<Population>,
    pub(crate) measured: Measured,
    pub(crate) load: Load,
}

/// The part with friends and stories.
#[derive(Debug, Clone)]
pub(crate) struct Stories {
    pub(crate) friends: Arc<Population>,
    pub(crate) schedule: Arc<StorySchedule>,
    pub(crate) story_load: StoryLoad,
}

impl Scenario {
    /// Makes the scenario.
    ///
    /// # Errors
    /// If there is a graph that cannot be read.
    pub(crate) fn new(options: &SimulateOptions) -> Result<Scenario, GraphError> {
        let making = options.making;
        let Making { people: requested, seed, .. } = making;
        let joined = |made: &dyn Fn() -> Population| match &options.graph {
            Some(path) => Population::from_edges(path).map(Arc::new),
            None => Ok(Arc::new(made())),
        };
        let drawings = options.drawings.clone();
        // Drawings need no users.
        let mut users = if options.has_users() { requested } else { 0 };
        let mut feed = None;
        if let Some(load) = options.feed {
            let follows = joined(&|| Population::made(&making))?;
            users = follows.people();
            let measured = follows.measured(options.graph.is_none().then_some(&making));
            feed = Some(Feed { follows, measured, load });
        }
        let mut stories = None;
        if let Some(story_load) = options.stories {
            let friends = joined(&|| Population::friends(requested, story_load.friends, seed))?;
            users = friends.people();
            let schedule = Arc::new(StorySchedule::new(users, &story_load, seed));
            stories = Some(Stories { friends, schedule, story_load });
        }
        Ok(Scenario { users, feed, stories, drawings, keys: options.keys, seed })
    }
}
