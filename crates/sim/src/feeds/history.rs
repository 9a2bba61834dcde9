//! Two days of posts, favourites and boosts of users with planted interests.
//!
//! Users come at the hours of a day. In each session they see the newest posts of the users whom they follow, and some
//! posts of others: half of these have a topic that they like, half any. Among those of others, posts with more
//! favourites are seen more often. They favourite what they like, and boost some of it. The parameters are assumptions.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::population::{Population, TOPICS, Tastes};
use crate::texts;
use crate::workload::{PostKind, Tempo};

/// Length of the history.
pub(super) const HISTORY: Duration = Duration::from_hours(48);
/// Time before the end since which reactions are not imported, but sent to the running server.
pub(super) const LIVE: Duration = Duration::from_hours(12);
const DAY: Duration = Duration::from_hours(24);
/// Time before the end since which readers were away.
const AWAY: Duration = Duration::from_hours(6);
/// Average number of posts and of sessions of a user in the whole time. Some users are much more active than others.
const POSTS: f64 = 3.0;
const SESSIONS: f64 = 6.0;
/// Maximum number of posts and of sessions of a user.
const POSTS_MAX: f64 = 60.0;
const SESSIONS_MAX: f64 = 30.0;
/// Share of posts about a topic that is not drawn from the author's taste, and share of posts with a hashtag of the
/// topic.
const OFF_TOPIC: f64 = 0.15;
const TAGGED: f64 = 0.4;
/// Number of posts that a user sees in a session: of followed users, and of others.
const SEEN_AT_HOME: usize = 20;
const SEEN_ELSEWHERE: usize = 6;
/// Number of newest posts among which a post of others is found, and number of draws of which the post with the most
/// favourites is seen.
pub(super) const NEWEST: usize = 400;
pub(super) const DRAWS: usize = 4;
/// Share of favourited posts that are boosted too.
const BOOSTED: f64 = 0.1;
/// Share of users with few followers who registered during the second day, and the maximum number of their followers.
const NEW: f64 = 0.15;
const NEW_FOLLOWERS_MAX: u32 = 10;

/// A post.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Post {
    pub(super) author: u32,
    /// Time since the beginning.
    pub(super) at_ms: u64,
    pub(super) topic: u8,
    pub(super) is_tagged: bool,
    /// Quality, from 0 to 1, which all users notice alike.
    pub(super) quality: f64,
    pub(super) reactions: Vec<Reaction>,
}

impl Post {
    /// Returns a text for the post. It contains no character that JSON would escape.
    pub(super) fn text(&self, rng: &mut StdRng) -> String {
        let text = texts::post_text(rng, PostKind::Plain);
        match TOPICS.get(self.topic as usize).filter(|_| self.is_tagged) {
            Some(tag) => format!("{text} #{tag}"),
            None => text,
        }
    }
}

/// A favourite, or a favourite and a boost.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reaction {
    pub(super) user: u32,
    pub(super) at_ms: u64,
    pub(super) is_boost: bool,
}

/// Posts in order of time. A post is named by its index.
#[derive(Debug, PartialEq)]
pub(super) struct History {
    pub(super) posts: Vec<Post>,
    /// Users who registered during the second day.
    pub(super) is_new: Vec<bool>,
    /// Posts that each reader has seen, in ascending order.
    pub(super) seen: Vec<Vec<u32>>,
}

/// Session of a user.
struct Session {
    at_ms: u64,
    user: u32,
    /// Time of the user's session before.
    since_ms: u64,
}

/// Posts so far, while the history is made.
struct Lists {
    of_author: Vec<Vec<u32>>,
    of_topic: Vec<Vec<u32>>,
}

impl History {
    /// Makes the history. `readers` are in ascending order.
    pub(super) fn new(
        population: &Population,
        tastes: &Tastes,
        readers: &[u32],
        seed: u64,
    ) -> Self {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x0048_1570);
        let day = Tempo::new(1.0, Some(DAY));
        let followers = population.follower_counts();
        let is_new: Vec<bool> = (0..)
            .zip(followers)
            .map(|(user, count)| {
                let may_be = count <= NEW_FOLLOWERS_MAX && readers.binary_search(&user).is_err();
                rng.random::<f64>() < NEW && may_be
            })
            .collect();
        let (mut posts, mut sessions) = (Vec::new(), Vec::new());
        for (user, is_new) in (0..).zip(&is_new) {
            let from = if *is_new { 0.5 } else { 0.0 };
            let activity = activity(&mut rng);
            let times = |mean: f64, max: f64, rng: &mut StdRng| {
                let count = (mean * (1.0 - from) + rng.random::<f64>()).min(max) as usize;
                let mut times: Vec<u64> = (0..count)
                    .map(|_| {
                        day.at(HISTORY.mul_f64(rng.random_range(from..1.0))).as_millis() as u64
                    })
                    .collect();
                times.sort_unstable();
                times
            };
            for at_ms in times(POSTS * activity, POSTS_MAX, &mut rng) {
                posts.push(post(user, at_ms, tastes, &mut rng));
            }
            let is_reader = readers.binary_search(&user).is_ok();
            let end_ms =
                (HISTORY - if is_reader { AWAY } else { Duration::ZERO }).as_millis() as u64;
            let mut since_ms = 0;
            for at_ms in times(SESSIONS * activity.sqrt(), SESSIONS_MAX, &mut rng) {
                if at_ms < end_ms {
                    sessions.push(Session { at_ms, user, since_ms });
                    since_ms = at_ms;
                }
            }
        }
        posts.sort_by_key(|post| (post.at_ms, post.author));
        sessions.sort_by_key(|session| (session.at_ms, session.user));
        let seen = vec![Vec::new(); readers.len()];
        let mut history = History { posts, is_new, seen };
        history.live(population, tastes, readers, &sessions, &mut rng);
        history
    }

    /// Lets users see posts and react, in order of time.
    fn live(
        &mut self,
        population: &Population,
        tastes: &Tastes,
        readers: &[u32],
        sessions: &[Session],
        rng: &mut StdRng,
    ) {
        let users = population.people() as usize;
        let mut lists =
            Lists { of_author: vec![Vec::new(); users], of_topic: vec![Vec::new(); TOPICS.len()] };
        let mut next = 0;
        for session in sessions {
            while let Some(post) = self.posts.get(next).filter(|post| post.at_ms < session.at_ms) {
                lists.add(next as u32, post);
                next += 1;
            }
            let mut seen = self.home(population, &lists, session);
            for elsewhere in 0..SEEN_ELSEWHERE {
                let topic = (elsewhere % 2 == 0).then(|| tastes.draw(session.user, rng));
                let found = match topic {
                    Some(topic) => lists.of_topic.get(topic as usize).map_or(&[][..], |all| all),
                    None => &[],
                };
                let found = match topic {
                    Some(_) => self.drawn(found.len(), |at| found.get(at).copied(), rng),
                    None => self.drawn(next, |at| Some(at as u32), rng),
                };
                seen.extend(found);
            }
            seen.sort_unstable();
            seen.dedup();
            for number in &seen {
                self.look(*number, session, tastes, rng);
            }
            if let Ok(reader) = readers.binary_search(&session.user)
                && let Some(all) = self.seen.get_mut(reader)
            {
                all.extend(seen);
            }
        }
        for seen in &mut self.seen {
            seen.sort_unstable();
            seen.dedup();
        }
    }

    /// The newest posts of followed users since the session before.
    fn home(&self, population: &Population, lists: &Lists, session: &Session) -> Vec<u32> {
        let mut home: Vec<u32> = Vec::new();
        for followed in population.following(session.user) {
            let posts = lists.of_author.get(*followed as usize).map_or(&[][..], Vec::as_slice);
            let is_later = |number: &&u32| {
                self.posts.get(**number as usize).is_some_and(|post| post.at_ms >= session.since_ms)
            };
            home.extend(posts.iter().rev().take(SEEN_AT_HOME).take_while(is_later));
        }
        home.sort_unstable_by(|a, b| b.cmp(a));
        home.truncate(SEEN_AT_HOME);
        home
    }

    /// Draws a few of the newest posts of a list, and returns the one with the most favourites.
    fn drawn(
        &self,
        count: usize,
        at: impl Fn(usize) -> Option<u32>,
        rng: &mut StdRng,
    ) -> Option<u32> {
        let from = count.saturating_sub(NEWEST);
        let mut best = None;
        for _ in 0..DRAWS.min(count) {
            let place = rng.random_range(from as u64..count as u64) as usize;
            let found = at(place).and_then(|number| {
                Some((self.posts.get(number as usize)?.reactions.len(), number))
            });
            best = best.max(found);
        }
        best.map(|(_, number)| number)
    }

    /// Lets a user see a post, for the first time or again.
    fn look(&mut self, number: u32, session: &Session, tastes: &Tastes, rng: &mut StdRng) {
        let Some(post) = self.posts.get_mut(number as usize) else { return };
        let user = session.user;
        let likes = tastes.likes(user, number, tastes.chance(user, post.topic, post.quality));
        if likes && post.author != user && !post.reactions.iter().any(|other| other.user == user) {
            let is_boost = rng.random::<f64>() < BOOSTED;
            post.reactions.push(Reaction { user, at_ms: session.at_ms, is_boost });
        }
    }
}

impl Lists {
    fn add(&mut self, number: u32, post: &Post) {
        if let Some(list) = self.of_author.get_mut(post.author as usize) {
            list.push(number);
        }
        // Users find posts of a topic by its hashtag.
        if post.is_tagged
            && let Some(list) = self.of_topic.get_mut(post.topic as usize)
        {
            list.push(number);
        }
    }
}

/// Draws the activity of a user as a multiple of the average: the exponential of a normal number, with mean 1.
fn activity(rng: &mut StdRng) -> f64 {
    // The sum of twelve numbers from 0 to 1 minus 6 is about normal with deviation 1.
    let normal = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    libm::exp(normal - 0.5)
}

/// Draws a post of an author.
pub(super) fn post(author: u32, at_ms: u64, tastes: &Tastes, rng: &mut StdRng) -> Post {
    let topic = match rng.random::<f64>() < OFF_TOPIC {
        true => rng.random_range(0..TOPICS.len() as u32) as u8,
        false => tastes.draw(author, rng),
    };
    let is_tagged = rng.random::<f64>() < TAGGED;
    Post { author, at_ms, topic, is_tagged, quality: rng.random(), reactions: Vec::new() }
}
