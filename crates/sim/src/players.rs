//! The users of a loaded simulation, and their actions over time.

use std::sync::Arc;

use crate::Population;
use crate::options::Drive;
use crate::run::{CheckedReaders, Kind};
use crate::scenario::{Scenario, Stories};
use crate::workload::{
    Crowd, Drawings, KEYS_PER_SECOND, KeyLoad, Load, Merged, Tempo, Workload, flash, operate,
    post_stories, read_friends, read_homes, recognize,
};

/// Parts of the scenario that are needed after loading. The follows are dropped: those of a million users take half a
/// gigabyte.
#[derive(Debug)]
pub(crate) struct Players {
    users: u32,
    crowd: Option<(Arc<Crowd>, Load)>,
    stories: Option<Stories>,
    drawings: Option<Drawings>,
    keys: Option<KeyLoad>,
    /// User with the most followers, and the followers.
    celebrity: Option<(u32, Vec<u32>)>,
    /// The readers whose home timelines are checked.
    pub(crate) checked: Option<Arc<CheckedReaders>>,
    seed: u64,
}

/// Finds the user with the most followers, and the followers.
fn celebrity(follows: &Population) -> Option<(u32, Vec<u32>)> {
    let counts = follows.follower_counts();
    let (user, _) = (0..).zip(counts).max_by_key(|&(_, count)| count)?;
    let follow = |other: &u32| follows.follows_back(*other, user);
    Some((user, (0..follows.people()).filter(follow).collect()))
}

impl Players {
    /// Takes the parts of a scenario that are needed after loading.
    pub(crate) fn of(scenario: &Scenario) -> Players {
        let seed = scenario.seed;
        let feed = scenario.feed.as_ref();
        Players {
            users: scenario.users,
            crowd: feed.map(|feed| (Arc::new(Crowd::new(&feed.follows, seed)), feed.load)),
            stories: scenario.stories.clone(),
            drawings: scenario.drawings.clone(),
            keys: scenario.keys,
            celebrity: feed.and_then(|feed| celebrity(&feed.follows)),
            checked: feed.map(|feed| Arc::new(CheckedReaders::among(&feed.follows, seed))),
            seed,
        }
    }

    /// Kinds of requests that the users send.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let feed = self.crowd.iter().flat_map(|(_, load)| match load {
            Load::Light | Load::Heavy => Kind::FEED,
            Load::Deathstar => Kind::DEATHSTAR,
        });
        let stories = self.stories.iter().flat_map(|_| Kind::STORIES);
        let drawings = self.drawings.iter().flat_map(|_| Kind::DRAWINGS);
        let keys = self.keys.iter().flat_map(|keys| keys.ycsb.verbs()).map(Kind::Key);
        feed.chain(stories).chain(drawings).chain(keys).collect()
    }

    /// Average number of actions per second at the default rates.
    fn per_second(&self) -> f64 {
        let feed = self
            .crowd
            .as_ref()
            .map(|(crowd, load)| Workload::new(Arc::clone(crowd), *load, self.seed).per_second());
        let stories = self.stories.as_ref().map(|Stories { schedule, story_load, .. }| {
            let schedule = schedule.per_second() / f64::from(schedule.per_request());
            schedule + f64::from(story_load.homes_per_second) + story_load.story_reads_per_second()
        });
        let drawings = self.drawings.as_ref().map(|drawings| f64::from(drawings.per_second));
        let keys = self.keys.map(|_| KEYS_PER_SECOND);
        [feed, stories, drawings, keys].into_iter().flatten().sum()
    }

    /// The factor by which the default rates are multiplied.
    pub(crate) fn speed(&self, drive: &Drive) -> f64 {
        drive.rate.map_or(1.0, |rate| rate / self.per_second())
    }

    /// All actions, in order of time. Another value of `turn` gives another sequence with the same distribution.
    pub(crate) fn actions(&self, drive: &Drive, turn: u64) -> Merged {
        // Adjacent seeds give independent sequences.
        let seed =
            |part: u64| self.seed.wrapping_add(turn.wrapping_mul(0x1_0000)).wrapping_add(part);
        let mut merged = Merged::new();
        let factor = self.speed(drive);
        let mut add = |actions: Box<dyn Iterator<Item = _> + Send>| {
            merged.add(Tempo::new(factor, drive.day).apply(actions));
        };
        if let Some((crowd, load)) = &self.crowd {
            add(Box::new(Workload::new(Arc::clone(crowd), *load, seed(0))));
        }
        if let Some(Stories { friends, schedule, story_load }) = &self.stories {
            add(Box::new(post_stories(Arc::clone(schedule), seed(1))));
            let per_second = story_load.homes_per_second.into();
            add(Box::new(read_homes(self.users, per_second, seed(2))));
            let per_second = story_load.story_reads_per_second();
            add(Box::new(read_friends(Arc::clone(friends), per_second, seed(3))));
        }
        if let Some(drawings) = &self.drawings {
            add(Box::new(recognize(drawings.per_second, seed(4))));
        }
        if let Some(keys) = self.keys {
            // Use the final rate: a key may be read only some time after its insert.
            let operations = operate(keys, KEYS_PER_SECOND * factor, turn, seed(6));
            merged.add(Tempo::new(1.0, drive.day).apply(operations));
        }
        if let (Some(at), Some((user, followers))) = (drive.flash, &self.celebrity) {
            merged.add(flash(at, *user, followers, seed(5)));
        }
        merged
    }
}
