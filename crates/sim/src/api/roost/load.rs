//! Loads the scenario into an empty server. Users are registered in order over one connection, so
//! that the server's ids equal our numbers. Then follows and friendships are sent over several
//! connections, and last the stories that are live when the run begins.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thiserror::Error;
use tokio::task::JoinSet;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::batch::batch;
use super::{keys, lines};
use crate::Population;
use crate::client::{ClientError, Requests, Target};
use crate::joined::joined;
use crate::scenario::{Feed, Scenario, Stories};
use crate::workload::{PostKind, StorySchedule};
use crate::{progress, texts};

/// Connections that send follows and friendships. The server applies changes one after another, so
/// more connections only keep it from waiting for input.
const TIE_CONNECTIONS: u32 = 4;
/// Most follows of a line.
const LINE_FOLLOWS_MAX: usize = 500;

/// Why loading failed.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The connection failed, or the answer is malformed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server requires an application key, or does not accept the given one.
    #[error("the server requires a valid application key (status {status})")]
    Unauthorized {
        /// The status of the answer.
        status: u16,
    },
    /// The server refused the whole batch.
    #[error("the server refused with status {status}: {body}")]
    Refused {
        /// The status of the answer.
        status: u16,
        /// The beginning of its body.
        body: String,
    },
    /// The server refused one command.
    #[error("command {number} was refused: {error}: {message}")]
    Command {
        /// Number of the command within its batch, from 0.
        number: u64,
        /// The server's error code.
        error: String,
        /// The server's error message.
        message: String,
    },
    /// The server already has users.
    #[error("the server already has users; a simulation needs an empty one")]
    NotEmpty,
    /// The server refused a bucket or a record.
    #[error("the server refused {what} with status {status}: {body}")]
    Key {
        /// The path of the request.
        what: String,
        /// The status of the answer.
        status: u16,
        /// The beginning of its body.
        body: String,
    },
    /// The bucket that is to be filled exists already.
    #[error("the server already has a bucket {0:?}; delete it first")]
    BucketExists(&'static str),
    /// The answer ended before the last result.
    #[error("the response ended after {done} of {total} results")]
    Short {
        /// Number of results received.
        done: u64,
        /// Number of commands sent.
        total: u64,
    },
    /// Nothing was received for too long.
    #[error("no result for {seconds} s")]
    Stalled {
        /// The timeout in seconds.
        seconds: u64,
    },
}

/// Everything that loading needs.
pub(crate) struct Loading {
    pub(crate) target: Target,
    pub(crate) requests: Requests,
    pub(crate) scenario: Arc<Scenario>,
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
        if let Some(Feed { follows, .. }) = &self.scenario.feed {
            self.join(Tie::Follow, follows).await?;
        }
        if let Some(Stories { friends, schedule, .. }) = &self.scenario.stories {
            self.join(Tie::Friendship, friends).await?;
            let done = AtomicU64::new(0);
            let posted = self.post_stories(schedule, &done);
            with_progress("stories", schedule.stories(), &done, posted).await?;
        }
        Ok(())
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
                (Tie::Follow, others) => lines::follow(user, others, lines),
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
    /// The ties of these users to others, as many of one user as a line has. A friendship belongs to both users
    /// and is returned once, for the user with the lower number.
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

pub(super) async fn all(mut parts: JoinSet<Result<(), LoadError>>) -> Result<(), LoadError> {
    while let Some(part) = parts.join_next().await {
        joined(part)?;
    }
    Ok(())
}

async fn with_progress(
    what: &'static str,
    total: u64,
    done: &AtomicU64,
    work: impl Future<Output = Result<(), LoadError>>,
) -> Result<(), LoadError> {
    tokio::select! {
        outcome = work => outcome,
        () = progress::show(what, total, done) => unreachable!("progress never ends by itself"),
    }
}

/// Ranges of followers with about the same number of follows each; none is empty.
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
