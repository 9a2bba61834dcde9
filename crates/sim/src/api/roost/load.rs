//! Loads the scenario into an empty server. Registers the users in order over one connection, so that their ids equal
//! their numbers. Then sends follows and friendships over several connections, and last the stories that are live when
//! the run begins.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::JoinSet;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::batch::batch;
use super::{keys, lines};
use crate::Population;
use crate::api::LoadError;
use crate::api::steps::{all, with_progress};
use crate::client::{Requests, Target};
use crate::scenario::{Feed, Scenario, Stories};
use crate::texts;
use crate::workload::{PostKind, StorySchedule};

/// Number of connections that send follows and friendships. More connections would not help: the server applies changes
/// one after another, so it only must not wait for input.
const TIE_CONNECTIONS: u32 = 4;
/// Maximum number of follows per line.
const LINE_FOLLOWS_MAX: usize = 500;

/// Parameters of loading.
pub(crate) struct Loading {
    pub(crate) target: Target,
    pub(crate) requests: Requests,
    pub(crate) scenario: Arc<Scenario>,
    /// Ids of the users, in the order of their numbers; `None` if they are equal to the numbers.
    pub(crate) ids: Option<Vec<u32>>,
}

/// A relation between two users.
#[derive(Clone, Copy)]
enum Tie {
    Follow,
    Friendship,
}

impl Loading {
    /// Registers all users, creates follows and friendships, and posts the first stories.
    pub(crate) async fn load(self: Arc<Loading>) -> Result<(), LoadError> {
        let done = AtomicU64::new(0);
        let users = self.scenario.users.into();
        if users > 0 {
            with_progress("users", users, &done, self.register(&done)).await?;
        }
        if let Some(load) = self.scenario.keys {
            let done = Arc::new(AtomicU64::new(0));
            let records = keys::load(&self.target, &self.requests, load, self.scenario.seed, &done);
            with_progress("records", load.records.into(), &done, records).await?;
        }
        self.follow().await?;
        if let Some(Stories { friends, schedule, .. }) = &self.scenario.stories {
            self.join(Tie::Friendship, friends).await?;
            let done = AtomicU64::new(0);
            let posted = self.post_stories(schedule, &done);
            with_progress("stories", schedule.stories(), &done, posted).await?;
        }
        Ok(())
    }

    /// Creates the follows.
    pub(in crate::api) async fn follow(self: &Arc<Loading>) -> Result<(), LoadError> {
        match &self.scenario.feed {
            Some(Feed { follows, .. }) => self.join(Tie::Follow, follows).await,
            None => Ok(()),
        }
    }

    /// Id of the user with this number.
    fn id(&self, number: u32) -> u32 {
        let ids = self.ids.as_ref();
        ids.and_then(|ids| ids.get(number as usize).copied()).unwrap_or(number)
    }

    async fn register(&self, done: &AtomicU64) -> Result<(), LoadError> {
        let users = self.scenario.users;
        let mut numbers = 0..users;
        let next = |lines: &mut Vec<u8>| {
            let Some(number) = numbers.next() else { return false };
            lines::register(self.scenario.seed, number, lines);
            true
        };
        let check = |number: u64, id: Option<u64>| {
            if id != Some(number) {
                return Err(LoadError::NotEmpty);
            }
            done.store(number + 1, Ordering::Relaxed);
            Ok(())
        };
        let registered = batch(&self.target, &self.requests, users.into(), next, check).await;
        registered.map_err(|error| match error {
            LoadError::Command { error, .. } if error == "handle_taken" => LoadError::NotEmpty,
            error => error,
        })
    }

    async fn join(
        self: &Arc<Loading>,
        tie: Tie,
        population: &Arc<Population>,
    ) -> Result<(), LoadError> {
        let done = Arc::new(AtomicU64::new(0));
        let mut parts = JoinSet::new();
        for users in split(population, TIE_CONNECTIONS) {
            let (population, done) = (Arc::clone(population), Arc::clone(&done));
            parts.spawn(Arc::clone(self).join_part(tie, population, users, done));
        }
        let (what, total) = match tie {
            Tie::Follow => ("follows", population.follows()),
            Tie::Friendship => ("friendships", population.follows() / 2),
        };
        with_progress(what, total, &done, all(parts)).await
    }

    async fn join_part(
        self: Arc<Loading>,
        tie: Tie,
        population: Arc<Population>,
        users: Range<u32>,
        done: Arc<AtomicU64>,
    ) -> Result<(), LoadError> {
        let total = tie.lists(&population, users.clone()).count() as u64;
        let mut lists = tie.lists(&population, users.clone());
        let mut confirmed = tie.lists(&population, users);
        let next = |lines: &mut Vec<u8>| {
            let Some((user, others)) = lists.next() else { return false };
            match (tie, others) {
                (Tie::Follow, others) => {
                    let others: Vec<u32> = others.iter().map(|other| self.id(*other)).collect();
                    lines::follow(self.id(user), &others, lines);
                }
                (Tie::Friendship, [other]) => lines::befriend(user, *other, lines),
                (Tie::Friendship, _) => unreachable!("each friendship has a line"),
            }
            true
        };
        let check = |_, _: Option<u64>| {
            let ties = confirmed.next().map_or(0, |(_, others)| others.len() as u64);
            done.fetch_add(ties, Ordering::Relaxed);
            Ok(())
        };
        batch(&self.target, &self.requests, total, next, check).await
    }

    async fn post_stories(
        &self,
        schedule: &StorySchedule,
        done: &AtomicU64,
    ) -> Result<(), LoadError> {
        let mut rng = StdRng::seed_from_u64(self.scenario.seed);
        let mut initial = schedule.initial();
        let next = |lines: &mut Vec<u8>| {
            let Some((user, left_s)) = initial.next() else { return false };
            let text = texts::post_text(&mut rng, PostKind::Plain);
            lines::post_story(user, &text, left_s, lines);
            true
        };
        let check = |_, _: Option<u64>| {
            done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        batch(&self.target, &self.requests, schedule.stories(), next, check).await
    }
}

impl Tie {
    /// Returns the ties of these users to others, in lists of one user that fit into a line. A friendship is returned
    /// once, for the user with the lower number.
    fn lists(
        self,
        population: &Population,
        users: Range<u32>,
    ) -> impl Iterator<Item = (u32, &[u32])> + Send {
        let size = match self {
            Tie::Follow => LINE_FOLLOWS_MAX,
            Tie::Friendship => 1,
        };
        let of = move |user| {
            let lists = population.following(user).chunks(size);
            lists.map(move |others| (user, others))
        };
        users.flat_map(of).filter(move |(user, others)| match self {
            Tie::Follow => true,
            Tie::Friendship => others.iter().all(|other| user < other),
        })
    }
}

/// Splits the followers into ranges with about the same number of follows; no range is empty.
fn split(population: &Population, parts: u32) -> Vec<Range<u32>> {
    let a_part = population.follows().div_ceil(u64::from(parts));
    let mut ranges = Vec::new();
    let (mut start, mut follows) = (0, 0);
    for user in 0..population.people() {
        follows += population.following(user).len() as u64;
        if follows > 0 && (follows >= a_part || user + 1 == population.people()) {
            ranges.push(start..user + 1);
            (start, follows) = (user + 1, 0);
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::Making;

    #[test]
    fn followers_are_split_into_parts_of_about_the_same_size() {
        let population = Population::made(&Making::of(2_000, 1));
        let parts = split(&population, 4);
        assert!((3..=5).contains(&parts.len()), "{parts:?}");
        let covered: Vec<u32> = parts.iter().cloned().flatten().collect();
        let follows =
            |range: Range<u32>| range.map(|p| population.following(p).len() as u64).sum::<u64>();
        assert!(covered.iter().copied().eq(0..covered.len() as u32), "ranges are adjacent");
        assert_eq!(
            follows(0..covered.len() as u32),
            population.follows(),
            "all follows are covered"
        );
        assert!(split(&Population::made(&Making::of(1, 1)), 4).is_empty());
    }
}
