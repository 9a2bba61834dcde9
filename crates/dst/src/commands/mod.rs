//! Random commands. Most are ordinary; some are at or just beyond a limit that a run can reach.

mod accounts;
mod crowd;
mod feed;
mod filters;
mod keys;
mod lists;
mod media;
mod notices;
mod polls;

use ::feed::accounts::AccountDone;
use ::feed::media::MediaDone;
use ::feed::schedule::ScheduleDone;
use ::feed::{Done, Outcome};

use testkit::Random;

/// Generator of commands.
pub(crate) struct Generator {
    pub(crate) random: Random,
    /// Number of handles in use. If it is small, names conflict; if it is large, lists fill pages.
    users: u64,
    keys: u64,
    /// Weights of the kinds of commands. In a run, some kinds are frequent and some never occur.
    feed_weights: [u64; feed::KINDS],
    key_weights: [u64; keys::KINDS],
    /// Whether one user writes most posts and mutes most threads, and thus has long lists.
    is_one_loud: bool,
    /// Average number of commands per extreme command, which is at a limit.
    extreme: u64,
    posts: Vec<u64>,
    scheduled: Vec<u64>,
    /// Latest time in a reply, in milliseconds since 1970.
    known_ms: u64,
    lists: Vec<u64>,
    filters: Vec<u64>,
    /// Ids of keywords and posts of filters.
    filter_parts: Vec<u64>,
    media: Vec<u64>,
    stories: Vec<u64>,
    samples: Vec<u64>,
    apps: Vec<u64>,
    grants: Vec<u64>,
    /// Counter for versions and for digests of idempotency keys.
    nonce: u64,
}

/// Maximum number of known ids of each kind. Above it, a new id replaces a random known one.
const KNOWN_MAX: usize = 200;

impl Generator {
    pub(crate) fn new(mut random: Random) -> Self {
        fn weights<const N: usize>(random: &mut Random) -> [u64; N] {
            std::array::from_fn(|_| if random.once_in(5) { 0 } else { 1 << random.below(6) })
        }
        let mut feed_weights = weights(&mut random);
        // All other commands need users and posts, so make these possible.
        feed_weights[0] = feed_weights[0].max(1);
        feed_weights[4] = feed_weights[4].max(1);
        let mut key_weights = weights(&mut random);
        key_weights[0] = key_weights[0].max(1);
        Self {
            users: match random.once_in(8) {
                true => random.between(crowd::CROWD, 160),
                false => random.between(2, 40),
            },
            keys: 1 << random.between(1, 9),
            feed_weights,
            key_weights,
            is_one_loud: random.once_in(4),
            extreme: *random.pick(&[30, 300, 3_000]),
            posts: Vec::new(),
            scheduled: Vec::new(),
            known_ms: 0,
            lists: Vec::new(),
            filters: Vec::new(),
            filter_parts: Vec::new(),
            media: Vec::new(),
            stories: Vec::new(),
            samples: Vec::new(),
            apps: Vec::new(),
            grants: Vec::new(),
            nonce: 0,
            random,
        }
    }

    fn nonce(&mut self) -> u64 {
        self.nonce += 1;
        self.nonce
    }

    fn is_extreme(&mut self) -> bool {
        self.random.once_in(self.extreme)
    }

    /// Records the ids that a command created.
    pub(crate) fn note(&mut self, outcome: Outcome) {
        let (known, id) = match outcome {
            Ok(Done::Posted(id)) => (&mut self.posts, id.0),
            Ok(Done::Schedule(ScheduleDone::Saved(id))) => (&mut self.scheduled, id.0),
            Ok(Done::Media(MediaDone::Added(media))) => (&mut self.media, media.0),
            Ok(Done::FilterSaved(filter)) => (&mut self.filters, filter.0),
            Ok(Done::FilterPartSaved(part)) => (&mut self.filter_parts, part.0),
            Ok(Done::ListSaved(list)) => (&mut self.lists, list.0),
            Ok(Done::StoryPosted { story, .. }) => (&mut self.stories, story.0),
            Ok(Done::SampleAdded { sample }) => (&mut self.samples, sample.0),
            Ok(Done::Account(AccountDone::AppRegistered(app))) => (&mut self.apps, app.0),
            Ok(Done::Account(AccountDone::Granted(grant))) => (&mut self.grants, grant.0),
            _ => return,
        };
        self.known_ms = self.known_ms.max(::feed::Stamp(id).unix_ms());
        if known.len() < KNOWN_MAX {
            known.push(id);
        } else {
            let at = self.random.index(KNOWN_MAX);
            known[at] = id;
        }
    }
}
