//! Actions of users: an endless sequence in order of time, determined by a seed.
//!
//! Each user posts and reads at exponential intervals (a Poisson process). The rates have a heavy tail: in a class, the
//! rate of the user at rank r is proportional to r^(-1/3). All actions of a class together are then a Poisson process
//! too, whose rate is the sum of the users' rates, and each action is by a user chosen with a probability proportional
//! to the user's rate. One clock for each kind of action of each class is therefore enough: seven clocks and a list of
//! users give the same distribution as one clock per user.
//!
//! The times do not depend on the server, as required for an open loop.

mod deathstar;
mod drawings;
mod flash;
mod stories;
mod tempo;
mod ycsb;
mod zipf;

use std::iter::Peekable;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom};
use rand::{RngExt, SeedableRng};
use serde::Serialize;

use crate::Population;
use crate::population::apportion;
pub use drawings::Drawings;
pub(crate) use drawings::{distorted, recognize};
pub(crate) use flash::flash;
pub use stories::StoryLoad;
pub(crate) use stories::{StorySchedule, post_stories, read_friends, read_homes};
pub(crate) use tempo::Tempo;
pub use ycsb::{KeyLoad, Value, Ycsb};
pub(crate) use ycsb::{KeyVerb, PER_SECOND as KEYS_PER_SECOND, key, operate};

/// Activity of users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// An ordinary day.
    Light,
    /// All active users act more often.
    Heavy,
    /// The mix of DeathStarBench: 60 % home timelines, 30 % user timelines, 10 % posts.
    Deathstar,
}

/// The content of a post; `T` names the mentioned user (a number, a handle).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostKind<T> {
    /// No mention.
    Plain,
    /// The mention is at the beginning. The post is a reply if a post of the mentioned user is known.
    MentionFirst(T),
    /// The mention is inside the text.
    MentionWithin(T),
}

impl<T> PostKind<T> {
    /// Returns the same kind, with another name for the mentioned user.
    pub fn map<U>(self, name: impl FnOnce(T) -> U) -> PostKind<U> {
        match self {
            PostKind::Plain => PostKind::Plain,
            PostKind::MentionFirst(user) => PostKind::MentionFirst(name(user)),
            PostKind::MentionWithin(user) => PostKind::MentionWithin(name(user)),
        }
    }
}

impl PostKind<String> {
    /// Returns the same kind, with the mentioned user's handle borrowed.
    pub fn as_deref(&self) -> PostKind<&str> {
        match self {
            PostKind::Plain => PostKind::Plain,
            PostKind::MentionFirst(handle) => PostKind::MentionFirst(handle),
            PostKind::MentionWithin(handle) => PostKind::MentionWithin(handle),
        }
    }
}

/// An action of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Writes a post.
    Post {
        /// Position of the mention, if any.
        kind: PostKind<u32>,
        /// Seed of the text.
        text_seed: u64,
    },
    /// Reads the newest posts of their home timeline.
    ReadHome,
    /// Reads the newest posts that mention them.
    ReadMentions,
    /// Posts stories in one request: of this user and of the users with the next numbers.
    PostStories {
        /// Number of users who post one story each, at least 1.
        stories: u32,
        /// TTL of the stories, in seconds.
        life_s: u32,
        /// Seed of the texts.
        text_seed: u64,
    },
    /// Reads the newest stories of their friends.
    ReadStoriesHome,
    /// Reads the stories of a friend, who has this number.
    ReadStories(u32),
    /// Recognizes a drawing. The user has no meaning.
    Recognize {
        /// Seed of the drawing.
        seed: u64,
    },
    /// Reads the newest posts of the user with this number.
    ReadUserTimeline(u32),
    /// Reads the value of a record's key. The user has no meaning.
    ReadKey(u64),
    /// Writes another value to a key.
    UpdateKey {
        /// Number of the record.
        record: u64,
        /// The written value.
        value: Value,
    },
    /// Writes a new key.
    InsertKey {
        /// Number of the record.
        record: u64,
        /// The written value.
        value: Value,
    },
    /// Lists keys in order.
    ScanKeys {
        /// Record whose key precedes the listed ones.
        from: u64,
        /// Number of keys, at least 1.
        keys: u32,
    },
    /// Reads the value of a key, changes a part of it and writes it back.
    ModifyKey {
        /// Number of the record.
        record: u64,
        /// The source of the changed part.
        value: Value,
    },
}

impl What {
    /// Number of operations in the request.
    pub(crate) fn count(self) -> u64 {
        match self {
            What::PostStories { stories, .. } => stories.into(),
            _ => 1,
        }
    }

    /// Whether the request may be repeated, because a repetition changes nothing or the request has an idempotency key.
    pub(crate) fn is_repeatable(self) -> bool {
        !matches!(self, What::PostStories { stories: 2.., .. })
    }

    /// Whether the action needs a second request that depends on the first response.
    pub(crate) fn takes_two(self) -> bool {
        matches!(self, What::ModifyKey { .. })
    }
}

/// Action of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    /// Due time, from the start.
    pub due: Duration,
    /// User who acts.
    pub user: u32,
    /// Kind and parameters of the action.
    pub what: What,
}

/// Merges several sequences of actions, each in order of time.
pub(crate) struct Merged(Vec<Peekable<Box<dyn Iterator<Item = Action> + Send>>>);

impl Merged {
    /// Creates an empty merge.
    pub(crate) fn new() -> Merged {
        Merged(Vec::new())
    }

    /// Adds a sequence.
    pub(crate) fn add(&mut self, actions: impl Iterator<Item = Action> + Send + 'static) {
        let actions: Box<dyn Iterator<Item = Action> + Send> = Box::new(actions);
        self.0.push(actions.peekable());
    }
}

impl Iterator for Merged {
    type Item = Action;

    fn next(&mut self) -> Option<Action> {
        let due = |actions: &mut Peekable<_>| actions.peek().map(|action: &Action| action.due);
        let waiting = self.0.iter_mut().filter_map(|actions| Some((due(actions)?, actions)));
        waiting.min_by_key(|(due, _)| *due)?.1.next()
    }
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Post,
    ReadHome,
    ReadMentions,
    ReadUserTimeline,
}

/// Shares of users by activity, in percent; the last class does nothing. Only the first two classes post: the first 5 %
/// of users write 76 % of the posts under light load, and 89 % under heavy load.
const CLASSES: [f64; 4] = [5.0, 14.25, 60.75, 20.0];

/// Class, action, and mean number of seconds between two such actions of a user (under light load, under heavy load).
const HABITS: [(usize, Verb, f64, f64); 7] = [
    (0, Verb::Post, 10.0, 2.0),
    (0, Verb::ReadHome, 1_000.0, 500.0),
    (1, Verb::Post, 90.0, 45.0),
    (1, Verb::ReadHome, 40.0, 20.0),
    (1, Verb::ReadMentions, 1_000.0, 1_000.0),
    (2, Verb::ReadHome, 20.0, 20.0),
    (2, Verb::ReadMentions, 2_000.0, 2_000.0),
];

/// The clock of one kind of action of one class.
#[derive(Debug)]
struct Clock {
    verb: Verb,
    /// Range of the class in the list of users.
    class: Range<usize>,
    /// Power that maps uniform numbers between 0 and 1 to ranks, according to the rates.
    tail: f64,
    /// Mean seconds between two of these actions, by all users of the class.
    interval_s: f64,
    /// Due time of the next action, in seconds from the start.
    next_s: f64,
}

/// Number of followees that a user mentions.
const COMPANIONS: usize = 4;
/// Power that maps uniform numbers between 0 and 1 to ranks of a class: rates are proportional to rank ^ (-1/3).
const RATE_TAIL: f64 = 1.5;

/// Users ordered by activity: the part of a population that is needed during a run.
#[derive(Debug)]
pub struct Crowd {
    /// Shuffled users; the classes are ranges of this list.
    users: Vec<u32>,
    /// Some followees of each user, without duplicates.
    companions: Vec<[Option<NonZeroU32>; COMPANIONS]>,
}

impl Crowd {
    /// Creates the users of a population. Their activity is random and independent of their followers and followees.
    pub fn new(population: &Population, seed: u64) -> Crowd {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut users: Vec<u32> = (0..population.people()).collect();
        users.shuffle(&mut rng);
        let companions = (0..population.people()).map(|user| {
            let mut chosen = population.following(user).sample(&mut rng, COMPANIONS);
            // Store each number plus one, because 0 means no user.
            std::array::from_fn(|_| NonZeroU32::new(chosen.next()? + 1))
        });
        let companions = companions.collect();
        Crowd { users, companions }
    }

    fn size(&self) -> u32 {
        self.users.len() as u32
    }

    fn companion(&self, user: u32, rng: &mut StdRng) -> Option<u32> {
        let companions = self.companions.get(user as usize)?;
        let known = companions.iter().flatten().count();
        let chosen = companions.get(rng.random_range(0..known.max(1)))?;
        chosen.map(|number| number.get() - 1)
    }
}

/// Endless sequence of actions in order of time, described in the module's documentation.
#[derive(Debug)]
pub struct Workload {
    crowd: Arc<Crowd>,
    clocks: Vec<Clock>,
    rng: StdRng,
}

impl Workload {
    /// The actions of a crowd.
    pub fn new(crowd: Arc<Crowd>, load: Load, seed: u64) -> Workload {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut clocks: Vec<Clock> = match load {
            Load::Light => habits(crowd.size(), false).collect(),
            Load::Heavy => habits(crowd.size(), true).collect(),
            Load::Deathstar => deathstar::clocks(&(0..crowd.users.len())).collect(),
        };
        clocks.retain(|clock| !clock.class.is_empty());
        for clock in &mut clocks {
            clock.next_s = exponential(clock.interval_s, &mut rng);
        }
        Workload { crowd, clocks, rng }
    }

    /// Total actions per second.
    pub fn per_second(&self) -> f64 {
        self.clocks.iter().map(|clock| 1.0 / clock.interval_s).sum()
    }

    fn what(&mut self, verb: Verb, user: u32) -> What {
        match verb {
            Verb::ReadHome => What::ReadHome,
            Verb::ReadMentions => What::ReadMentions,
            Verb::ReadUserTimeline => {
                What::ReadUserTimeline(self.rng.random_range(0..self.crowd.size()))
            }
            Verb::Post => What::Post { kind: self.post_kind(user), text_seed: self.rng.random() },
        }
    }

    /// Draws a kind of post; all kinds have equal chances. The mentioned user is a followee, or any other user if the
    /// author has no followees. In a population of one user there are no mentions.
    fn post_kind(&mut self, author: u32) -> PostKind<u32> {
        let kind = match self.rng.random_range(0..3) {
            0 => PostKind::Plain,
            1 => PostKind::MentionFirst(()),
            _ => PostKind::MentionWithin(()),
        };
        let followee = self.crowd.companion(author, &mut self.rng);
        match followee.or_else(|| self.other_than(author)) {
            Some(mentioned) => kind.map(|()| mentioned),
            None => PostKind::Plain,
        }
    }

    fn other_than(&mut self, user: u32) -> Option<u32> {
        let others = self.crowd.size().saturating_sub(1);
        if others == 0 {
            return None;
        }
        let drawn = self.rng.random_range(0..others);
        Some(if drawn < user { drawn } else { drawn + 1 })
    }
}

impl Iterator for Workload {
    type Item = Action;

    /// The next action; `None` only if no user is active.
    fn next(&mut self) -> Option<Action> {
        let clock = self.clocks.iter_mut().min_by(|a, b| a.next_s.total_cmp(&b.next_s))?;
        let (verb, due_s) = (clock.verb, clock.next_s);
        clock.next_s += exponential(clock.interval_s, &mut self.rng);
        let rank = self.rng.random::<f64>().powf(clock.tail) * clock.class.len() as f64;
        let user = *self.crowd.users.get(clock.class.start + rank as usize)?;
        let what = self.what(verb, user);
        Some(Action { due: Duration::from_secs_f64(due_s), user, what })
    }
}

/// Creates the clocks of [`HABITS`].
fn habits(users: u32, heavy: bool) -> impl Iterator<Item = Clock> {
    let classes = classes(users);
    HABITS.into_iter().filter_map(move |(class, verb, light_s, heavy_s)| {
        let class = classes.get(class)?.clone();
        let every_s = if heavy { heavy_s } else { light_s };
        let interval_s = every_s / class.len() as f64;
        Some(Clock { verb, class, tail: RATE_TAIL, interval_s, next_s: 0.0 })
    })
}

/// Returns the range of each class in the list of all users.
fn classes(users: u32) -> Vec<Range<usize>> {
    let mut start = 0;
    let ranges = apportion(&CLASSES, users).into_iter().map(|size| {
        let range = start..start + size as usize;
        start = range.end;
        range
    });
    ranges.collect()
}

fn exponential(mean: f64, rng: &mut StdRng) -> f64 {
    // `random` is below 1, so the argument of the logarithm is above 0.
    -(1.0 - rng.random::<f64>()).ln() * mean
}
