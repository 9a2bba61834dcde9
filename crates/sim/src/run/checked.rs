//! Users that the consistency checker observes: some readers, and all authors whose posts belong in the readers' home
//! timelines.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::index;

use super::lock;
use crate::Population;

/// Maximum number of readers. The home timeline of each is checked at the end of a run.
const READERS: usize = 200;
/// Maximum number of followees of a reader, so that the number of checked authors stays bounded.
const FOLLOWING_MAX: usize = 500;

/// Readers and the authors they follow.
#[derive(Debug, Default)]
pub(crate) struct CheckedReaders {
    readers: Vec<Reader>,
    /// For each author, the readers (as indexes of `readers`) in whose homes the author's posts belong.
    of: HashMap<u32, Vec<usize>>,
    /// Authors of a failed request, whose post may or may not exist.
    in_doubt: Mutex<HashSet<u32>>,
}

#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) user: u32,
    /// Followees in ascending order.
    following: Vec<u32>,
}

impl Reader {
    /// Whether a post by `author` that replies to `reply_to` belongs in this reader's home: posts by the reader and by
    /// followees do, except replies to strangers.
    pub(crate) fn sees(&self, author: u32, reply_to: Option<u32>) -> bool {
        let knows = |user: u32| user == self.user || self.following.binary_search(&user).is_ok();
        knows(author) && (author == self.user || reply_to.is_none_or(knows))
    }

    /// Authors whose posts may be in this reader's home timeline.
    pub(crate) fn authors(&self) -> impl Iterator<Item = u32> {
        let oneself = self.following.binary_search(&self.user).is_err().then_some(self.user);
        self.following.iter().copied().chain(oneself)
    }
}

impl CheckedReaders {
    /// Chooses some users with followees; the same seed chooses the same users.
    pub(crate) fn among(population: &Population, seed: u64) -> CheckedReaders {
        let mut rng = StdRng::seed_from_u64(seed);
        let users = population.people() as usize;
        let mut checked = CheckedReaders::default();
        // At least a fifth of users follow no one, so draw more than needed.
        for user in index::sample(&mut rng, users, users.min(READERS * 4)) {
            let user = user as u32;
            let following = population.following(user).to_vec();
            if following.is_empty() || following.len() > FOLLOWING_MAX {
                continue;
            }
            let reader = Reader { user, following };
            for author in reader.authors() {
                checked.of.entry(author).or_default().push(checked.readers.len());
            }
            checked.readers.push(reader);
            if checked.readers.len() == READERS {
                break;
            }
        }
        checked
    }

    pub(crate) fn is_author(&self, user: u32) -> bool {
        self.of.contains_key(&user)
    }

    /// Records a failed request of this author.
    pub(crate) fn doubt(&self, author: u32) {
        lock(&self.in_doubt).insert(author);
    }

    pub(crate) fn doubted(&self) -> HashSet<u32> {
        lock(&self.in_doubt).clone()
    }

    pub(crate) fn readers(&self) -> &[Reader] {
        &self.readers
    }

    /// Readers in whose home timelines this post belongs.
    pub(crate) fn readers_of(&self, author: u32, reply_to: Option<u32>) -> Vec<&Reader> {
        let places = self.of.get(&author).map_or(&[][..], Vec::as_slice);
        let readers = places.iter().filter_map(|place| self.readers.get(*place));
        readers.filter(|reader| reader.sees(author, reply_to)).collect()
    }
}
