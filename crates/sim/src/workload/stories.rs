//! Friends post stories and read each other's.
//!
//! Each user keeps the same number of live stories: each story is posted again when it expires, at a fixed offset
//! within each TTL. Reads are at exponential intervals, and all users are equally active.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::{Action, What, exponential};
use crate::Population;

/// Maximum number of requests per second that post stories. If more stories are due, a request posts several, so that
/// the generator leaves the machine's processors to the server.
const REQUESTS_PER_SECOND_MAX: f64 = 500.0;
/// Number of reads of a friend's stories per read of a stories home.
const STORY_READS_PER_HOME: f64 = 0.5;

/// The load with stories.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoryLoad {
    /// Approximate number of friends of each user, at least 1.
    pub friends: u32,
    /// Number of live stories of each user, at least 1.
    pub stories: u32,
    /// TTL of a story, in seconds, at least 1.
    pub life_s: u32,
    /// Total number of reads of story homes per second. Stories of one friend are read half as often.
    pub homes_per_second: u32,
}

impl StoryLoad {
    /// Total reads of the stories of one friend per second.
    pub(crate) fn story_reads_per_second(&self) -> f64 {
        f64::from(self.homes_per_second) * STORY_READS_PER_HOME
    }
}

/// The schedule of posts of stories.
#[derive(Debug)]
pub(crate) struct StorySchedule {
    life_s: u32,
    /// Groups in order of time.
    groups: Vec<Group>,
    stories: u64,
    group_stories_max: u32,
}

/// Stories of users with consecutive numbers, one of each.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// First due time, within the first TTL of the run. The story is due again after each TTL.
    first_due: Duration,
    /// First of these users.
    user: u32,
    stories: u32,
}

impl StorySchedule {
    /// Schedules the stories of `users` users.
    pub(crate) fn new(users: u32, story_load: &StoryLoad, seed: u64) -> StorySchedule {
        let mut rng = StdRng::seed_from_u64(seed);
        let stories = u64::from(users) * u64::from(story_load.stories);
        let per_second = stories as f64 / f64::from(story_load.life_s);
        let group = (per_second / REQUESTS_PER_SECOND_MAX).ceil().max(1.0) as u32;
        let life = f64::from(story_load.life_s);
        let mut groups = Vec::new();
        for _ in 0..story_load.stories {
            for user in (0..users).step_by(group as usize) {
                let first_due = Duration::from_secs_f64(rng.random::<f64>() * life);
                groups.push(Group { first_due, user, stories: group.min(users - user) });
            }
        }
        groups.sort_by_key(|group| group.first_due);
        StorySchedule {
            life_s: story_load.life_s,
            groups,
            stories,
            group_stories_max: group.min(users),
        }
    }

    /// Number of live stories.
    pub(crate) fn stories(&self) -> u64 {
        self.stories
    }

    /// Due story posts per second.
    pub(crate) fn per_second(&self) -> f64 {
        self.stories as f64 / f64::from(self.life_s)
    }

    /// Maximum number of stories per request.
    pub(crate) fn per_request(&self) -> u32 {
        self.group_stories_max
    }

    /// Stories to post before the start, so that all stories are live then: the user, and a TTL in seconds that ends
    /// when the story is first due (rounded up).
    pub(crate) fn initial(&self) -> impl Iterator<Item = (u32, u64)> {
        self.groups.iter().flat_map(|group| {
            let left_s = (group.first_due.as_secs() + 1).min(self.life_s.into());
            (group.user..group.user + group.stories).map(move |user| (user, left_s))
        })
    }
}

/// Returns posts of all stories, each repeated when the story expires.
pub(crate) fn post_stories(
    schedule: Arc<StorySchedule>,
    seed: u64,
) -> impl Iterator<Item = Action> {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut life, mut at) = (Duration::ZERO, 0);
    std::iter::from_fn(move || {
        if at == schedule.groups.len() {
            at = 0;
            life += Duration::from_secs(schedule.life_s.into());
        }
        let Group { first_due, user, stories } = *schedule.groups.get(at)?;
        at += 1;
        let what = What::PostStories { stories, life_s: schedule.life_s, text_seed: rng.random() };
        Some(Action { due: life + first_due, user, what })
    })
}

/// Reads of story homes.
pub(crate) fn read_homes(users: u32, per_second: f64, seed: u64) -> impl Iterator<Item = Action> {
    at_random_times(users, per_second, seed, |_, _| What::ReadStoriesHome)
}

/// Reads of the stories of one friend.
pub(crate) fn read_friends(
    friends: Arc<Population>,
    per_second: f64,
    seed: u64,
) -> impl Iterator<Item = Action> {
    at_random_times(friends.people(), per_second, seed, move |reader, rng| {
        // A user without friends reads their own stories.
        What::ReadStories(friends.following(reader).choose(rng).copied().unwrap_or(reader))
    })
}

pub(super) fn at_random_times(
    users: u32,
    per_second: f64,
    seed: u64,
    mut what: impl FnMut(u32, &mut StdRng) -> What,
) -> impl Iterator<Item = Action> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut due_s = 0.0;
    std::iter::from_fn(move || {
        if per_second <= 0.0 {
            return None;
        }
        due_s += exponential(1.0 / per_second, &mut rng);
        let user = rng.random_range(0..users);
        let what = what(user, &mut rng);
        Some(Action { due: Duration::from_secs_f64(due_s), user, what })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn schedule(users: u32, stories: u32, life_s: u32) -> Arc<StorySchedule> {
        let story_load = StoryLoad { friends: 2, stories, life_s, homes_per_second: 0 };
        Arc::new(StorySchedule::new(users, &story_load, 3))
    }

    fn posted_before(schedule: &Arc<StorySchedule>, end_s: u64) -> Vec<Action> {
        let end = Duration::from_secs(end_s);
        post_stories(Arc::clone(schedule), 5).take_while(|action| action.due < end).collect()
    }

    #[test]
    fn every_story_is_posted_once_in_each_life() {
        let check = |users, stories, life_s: u32, per_request| {
            let schedule = schedule(users, stories, life_s);
            assert_eq!(schedule.per_request(), per_request, "{users} x {stories} / {life_s} s");
            let actions = posted_before(&schedule, u64::from(life_s) * 3);
            assert!(actions.is_sorted_by_key(|action| action.due));
            let mut by_user_and_life = HashMap::new();
            for Action { due, user, what } in actions {
                let What::PostStories { stories, life_s: posted_s, .. } = what else {
                    panic!("nothing else is posted: {what:?}");
                };
                assert!(posted_s == life_s && (1..=per_request).contains(&stories));
                for user in user..user + stories {
                    let life = due.as_secs() / u64::from(life_s);
                    *by_user_and_life.entry((user, life)).or_insert(0) += 1;
                }
            }
            assert_eq!(by_user_and_life.len(), users as usize * 3);
            assert!(by_user_and_life.values().all(|&posted| posted == stories));
        };
        check(1, 1, 1, 1);
        check(50, 10, 7, 1);
        check(500, 10, 1, 10);
        check(510, 10, 1, 11);
        // A request never has more stories than there are users.
        check(3, 1_000, 1, 3);
    }

    #[test]
    fn stories_at_the_start_live_until_they_are_posted_again() {
        let schedule = schedule(40, 5, 9);
        let initial: Vec<(u32, u64)> = schedule.initial().collect();
        assert_eq!(initial.len() as u64, schedule.stories());
        let posted = posted_before(&schedule, 9);
        for ((user, left_s), action) in initial.into_iter().zip(&posted) {
            assert_eq!(user, action.user);
            assert_eq!(left_s, action.due.as_secs() + 1);
        }
        assert!(posted.iter().any(|action| action.due.as_secs() == 8), "lives end all the time");
    }

    #[test]
    fn reads_have_the_requested_rate_and_are_of_friends() {
        let friends = Arc::new(Population::friends(200, 4, 1));
        let in_1_000_s = |actions: &mut dyn Iterator<Item = Action>| -> Vec<Action> {
            actions.take_while(|action| action.due.as_secs() < 1_000).collect()
        };
        let homes = in_1_000_s(&mut read_homes(200, 20.0, 1));
        let reads = in_1_000_s(&mut read_friends(Arc::clone(&friends), 10.0, 2));
        for (actions, expected) in [(&homes, 20_000.0_f64), (&reads, 10_000.0)] {
            let off = (actions.len() as f64 - expected).abs();
            assert!(off < 4.5 * expected.sqrt(), "{} for {expected}", actions.len());
            let mut readers: Vec<u32> = actions.iter().map(|action| action.user).collect();
            readers.sort_unstable();
            readers.dedup();
            assert_eq!(readers.len(), 200);
        }
        for Action { user, what, .. } in reads {
            let What::ReadStories(friend) = what else { panic!("{what:?}") };
            assert!(friends.following(user).contains(&friend));
        }
        assert_eq!(read_homes(200, 0.0, 1).next(), None);
    }
}
