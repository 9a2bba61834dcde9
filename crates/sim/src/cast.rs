//! Who takes part in a rehearsal and what they do in it: made from the options alone.

use std::sync::Arc;

use crate::Population;
use crate::population::GraphError;
use crate::simulate::SimulateOptions;
use crate::workload::{
    Drawings, Load, Merged, Storytelling, Tellings, Workload, read_friends, read_homes, recognise,
    tell,
};

/// Everybody, and what they have to do with each other. Each part of the rehearsal is there or not.
#[derive(Debug)]
pub(crate) struct Cast {
    /// How many people there are.
    pub(crate) people: u32,
    pub(crate) feed: Option<Feed>,
    pub(crate) stories: Option<Stories>,
    pub(crate) drawings: Option<Drawings>,
    /// Seed of names, actions and texts.
    pub(crate) seed: u64,
}

/// Those who follow each other and post.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) follows: Arc<Population>,
    pub(crate) load: Load,
}

/// Those who are friends and tell stories.
#[derive(Debug)]
pub(crate) struct Stories {
    pub(crate) friends: Arc<Population>,
    pub(crate) tellings: Arc<Tellings>,
    pub(crate) telling: Storytelling,
}

impl Cast {
    /// The people of a rehearsal.
    ///
    /// # Errors
    /// If there is a graph and it cannot be read.
    pub(crate) fn new(options: &SimulateOptions) -> Result<Cast, GraphError> {
        let SimulateOptions { users, seed, .. } = *options;
        let joined = |made: &dyn Fn() -> Population| match &options.graph {
            Some(path) => Population::from_edges(path).map(Arc::new),
            None => Ok(Arc::new(made())),
        };
        let drawings = options.drawings.clone();
        // A drawing has no author.
        let mut people = if options.has_people() { users } else { 0 };
        let mut feed = None;
        if let Some(load) = options.feed {
            let follows = joined(&|| Population::made(users, seed))?;
            people = follows.people();
            feed = Some(Feed { follows, load });
        }
        let mut stories = None;
        if let Some(telling) = options.stories {
            let friends = joined(&|| Population::friends(users, telling.friends, seed))?;
            people = friends.people();
            let tellings = Arc::new(Tellings::new(people, &telling, seed));
            stories = Some(Stories { friends, tellings, telling });
        }
        Ok(Cast { people, feed, stories, drawings, seed })
    }

    /// Everything that everybody does, in order of time.
    pub(crate) fn actions(&self) -> Merged {
        let (people, seed) = (self.people, self.seed);
        let mut actions = Merged::new();
        if let Some(Feed { follows, load }) = &self.feed {
            actions.add(Workload::new(Arc::clone(follows), *load, seed));
        }
        if let Some(Stories { friends, tellings, telling }) = &self.stories {
            // Seeds next to each other make sequences that have nothing to do with each other.
            actions.add(tell(Arc::clone(tellings), seed.wrapping_add(1)));
            let per_second = telling.homes_per_second.into();
            actions.add(read_homes(people, per_second, seed.wrapping_add(2)));
            let per_second = telling.story_reads_per_second();
            actions.add(read_friends(Arc::clone(friends), per_second, seed.wrapping_add(3)));
        }
        if let Some(drawings) = &self.drawings {
            actions.add(recognise(drawings.per_second, seed.wrapping_add(4)));
        }
        actions
    }
}
