//! Users with planted interests, their history as an import, and the candidates of readers.

use std::io::{self, BufWriter, Write};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::figures::Figures;
use super::history::{HISTORY, History, LIVE, Post, Reaction};
use super::{BEST, PLACES, RANDOM};
use crate::population::{Making, Population, Tastes};
use crate::texts;

/// Minimum and maximum number of users. A server builds the view of ranked feeds from the newest 65,536 posts.
pub const USERS: (u32, u32) = (100, 20_000);
/// Maximum number of readers.
const READERS_MAX: usize = 200;
/// Minimum number of users whom a reader follows.
const READER_FOLLOWS: usize = 3;
/// 2024-01-01, from which ids count milliseconds, in milliseconds since 1970.
const EPOCH_MS: u64 = 1_704_067_200_000;
/// Number of ids in a millisecond.
const IDS_IN_MS: u64 = 1 << 22;
/// Time before the history at which users registered who are not new.
const REGISTERED_BEFORE_MS: u64 = 30 * 86_400_000;

/// Users, their history and their readers. Depends only on the options and on the time of the end.
#[derive(Debug)]
pub struct World {
    pub(super) population: Population,
    pub(super) tastes: Tastes,
    pub(super) history: History,
    readers: Vec<u32>,
    pub(super) seed: u64,
    /// Time of the beginning, in milliseconds since 1970.
    start_ms: u64,
}

/// Whether a reaction is sent to the running server.
fn is_live(reaction: &Reaction) -> bool {
    reaction.at_ms >= (HISTORY - LIVE).as_millis() as u64
}

impl World {
    /// Makes a world. `end_ms` is the end of its history, in milliseconds since 1970.
    ///
    /// # Panics
    /// If the options are invalid ([`Making::fault`]).
    pub fn new(making: &Making, end_ms: u64) -> World {
        let seed = making.seed;
        let population = Population::made(making);
        let tastes = Tastes::planted(&population, seed);
        let mut readers: Vec<u32> = (0..population.people())
            .filter(|user| population.following(*user).len() >= READER_FOLLOWS)
            .collect();
        readers.shuffle(&mut StdRng::seed_from_u64(seed));
        readers.truncate(READERS_MAX.min(population.people() as usize / 4));
        readers.sort_unstable();
        let history = History::new(&population, &tastes, &readers, seed);
        let start_ms = end_ms.saturating_sub(HISTORY.as_millis() as u64);
        World { population, tastes, history, readers, seed, start_ms }
    }

    /// All users and their follows.
    pub fn population(&self) -> &Population {
        &self.population
    }

    /// Users who read the feeds: some of those who follow at least three users and did not register lately.
    pub fn readers(&self) -> &[u32] {
        &self.readers
    }

    /// Describes the world in a line.
    pub fn describe(&self) -> String {
        let History { posts, is_new, .. } = &self.history;
        let reactions: usize = posts.iter().map(|post| post.reactions.len()).sum();
        let new = is_new.iter().filter(|is_new| **is_new).count();
        format!(
            "seed {}: {} users ({new} new), {} follows, {} posts, {reactions} favourites, {} readers",
            self.seed,
            self.population.people(),
            self.population.follows(),
            posts.len(),
            self.readers.len()
        )
    }

    /// Writes the users, follows, posts and reactions as lines of `roost import`, without the reactions of the last
    /// twelve hours. `friends` are the friendships of the users, if they have any.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn write_import(&self, out: impl Write, friends: Option<&Population>) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        writeln!(out, r#"{{"export":{{"format":1}}}}"#)?;
        let half_ms = HISTORY.as_millis() as u64 / 2;
        for (user, is_new) in (0..).zip(&self.history.is_new) {
            let (handle, name) =
                (texts::handle(self.seed, user), texts::display_name(self.seed, user));
            let at_ms = match is_new {
                true => self.start_ms + half_ms,
                false => self.start_ms - REGISTERED_BEFORE_MS,
            };
            writeln!(
                out,
                r#"{{"user":{{"handle":"{handle}","name":"{name}","registered":{at_ms}}}}}"#
            )?;
        }
        let relations = [("follow", Some(&self.population)), ("friends", friends)];
        for (kind, population) in relations {
            let Some(population) = population else { continue };
            for user in 0..population.people() {
                let users = serde_json::to_string(population.following(user))?;
                writeln!(
                    out,
                    r#"{{"relation":{{"kind":"{kind}","user":{user},"users":{users}}}}}"#
                )?;
            }
        }
        let mut rng = StdRng::seed_from_u64(self.seed);
        // Ids in the same millisecond differ by a number, which is higher for reactions than for all posts.
        let mut last = self.history.posts.len() as u64;
        for (number, post) in self.history.posts.iter().enumerate() {
            let (author, id, text) = (post.author, self.id(number as u32), post.text(&mut rng));
            writeln!(out, r#"{{"post":{{"author":{author},"id":"{id}","text":"{text}"}}}}"#)?;
            for reaction in post.reactions.iter().filter(|reaction| !is_live(reaction)) {
                let kinds = ["favourite", "boost"].into_iter();
                for kind in kinds.take(1 + usize::from(reaction.is_boost)) {
                    let (user, id) = (reaction.user, self.id_at(reaction.at_ms, last));
                    last += 1;
                    writeln!(
                        out,
                        r#"{{"reaction":{{"user":{user},"kind":"{kind}","id":"{id}"}}}}"#
                    )?;
                }
            }
        }
        writeln!(out, r#"{{"end":{{}}}}"#)?;
        out.flush()
    }

    /// Reactions of the last twelve hours, in order of time: user, id of the post, and whether it is boosted too. A
    /// server enters posts in the lists of interest groups when users who are in a group react, so these reactions come
    /// when it has found groups.
    pub(super) fn live(&self) -> Vec<(u32, u64, bool)> {
        let mut live: Vec<_> = (0..)
            .zip(&self.history.posts)
            .flat_map(|(number, post)| post.reactions.iter().map(move |it| (it.at_ms, it, number)))
            .filter(|(_, reaction, _)| is_live(reaction))
            .collect();
        live.sort_by_key(|(at_ms, reaction, number)| (*at_ms, reaction.user, *number));
        live.into_iter().map(|(_, it, number)| (it.user, self.id(number), it.is_boost)).collect()
    }

    fn id_at(&self, at_ms: u64, number: u64) -> u64 {
        (self.start_ms + at_ms - EPOCH_MS) * IDS_IN_MS + number % IDS_IN_MS
    }

    /// Id of a post by its number.
    pub(super) fn id(&self, number: u32) -> u64 {
        let at_ms = self.history.posts.get(number as usize).map_or(0, |post| post.at_ms);
        self.id_at(at_ms, number.into())
    }

    /// Number of a post by its id; `None` if the world has no such post.
    fn number(&self, id: u64) -> Option<u32> {
        let number = u32::try_from(id % IDS_IN_MS).ok()?;
        let exists = (number as usize) < self.history.posts.len();
        (exists && self.id(number) == id).then_some(number)
    }

    /// Whether a post is a candidate for the reader at this place: of another user, and not seen yet.
    fn is_candidate(&self, reader: usize, number: u32, post: &Post) -> bool {
        let has_seen =
            self.history.seen.get(reader).is_some_and(|seen| seen.binary_search(&number).is_ok());
        self.readers.get(reader).is_some_and(|user| *user != post.author) && !has_seen
    }

    /// Returns the candidates among posts with these ids, in their order.
    pub(super) fn candidates_of(&self, reader: usize, ids: &[u64]) -> Vec<u32> {
        let numbers = ids.iter().filter_map(|id| self.number(*id));
        let posts = numbers.filter_map(|at| Some((at, self.history.posts.get(at as usize)?)));
        posts.filter(|(at, post)| self.is_candidate(reader, *at, post)).map(|(at, _)| at).collect()
    }

    /// Candidates of a reader, with the probability that the reader likes each.
    fn candidates(&self, reader: usize) -> Vec<(u32, f64)> {
        let user = self.readers.get(reader).copied().unwrap_or_default();
        let posts = (0..).zip(&self.history.posts);
        posts
            .filter(|(number, post)| self.is_candidate(reader, *number, post))
            .map(|(number, post)| (number, self.tastes.chance(user, post.topic, post.quality)))
            .collect()
    }

    /// Figures of a feed. `shown` has the first posts of the feed for each reader, by number.
    pub(super) fn figures(&self, shown: &[Vec<u32>]) -> Figures {
        let mut figures = Figures::builder();
        for post in &self.history.posts {
            figures.add_author(post.author, self.is_new(post.author));
        }
        for (reader, (user, shown)) in self.readers.iter().zip(shown).enumerate() {
            let likes = |number: u32, chance: f64| self.tastes.likes(*user, number, chance);
            let candidates = self.candidates(reader);
            let liked = candidates.iter().filter(|(number, chance)| likes(*number, *chance));
            let places = shown.iter().filter_map(|number| {
                let post = self.history.posts.get(*number as usize)?;
                let chance = self.tastes.chance(*user, post.topic, post.quality);
                let is_followed = self.population.follows_back(*user, post.author);
                Some((post.author, likes(*number, chance), is_followed))
            });
            figures.add_reader(liked.count(), &places.collect::<Vec<_>>());
        }
        figures.finish()
    }

    fn is_new(&self, user: u32) -> bool {
        self.history.is_new.get(user as usize).copied().unwrap_or_default()
    }

    /// Names and figures of the two rankings that the simulator makes of all candidates.
    pub(super) fn bounds(&self) -> [(&'static str, Figures); 2] {
        let (mut random, mut best) = (Vec::new(), Vec::new());
        for reader in 0..self.readers.len() {
            let mut candidates = self.candidates(reader);
            candidates.shuffle(&mut StdRng::seed_from_u64(self.seed ^ (reader as u64) << 20));
            let first = |from: &[(u32, f64)]| from.iter().take(PLACES).map(|(at, _)| *at).collect();
            random.push(first(&candidates));
            candidates.sort_by(|a, b| b.1.total_cmp(&a.1));
            best.push(first(&candidates));
        }
        [(RANDOM, self.figures(&random)), (BEST, self.figures(&best))]
    }
}
