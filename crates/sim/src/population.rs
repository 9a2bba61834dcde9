//! Who there is and who follows whom: made from the measured tables, or read from a graph.
//!
//! People are numbers from 0 to `people - 1`. Nobody follows themselves and nobody follows anybody
//! twice. A population never changes; it is made from a seed alone, and the same seed makes the
//! same population (with the same version of this crate and of the random generator under it).

mod clustering;
mod communities;
mod deal;
mod degrees;
mod draft;
mod edges;
mod friends;
mod making;
mod measured;
mod plan;
mod shares;
mod steer;
pub mod table;
mod urn;

use std::path::Path;

use rand::SeedableRng;
use rand::rngs::StdRng;

pub use communities::TOPICS;
use communities::{Community, own_interests};
pub(crate) use degrees::apportion;
use draft::offsets;
pub use edges::GraphError;
pub use making::Making;
pub use measured::{Aim, Measured};
pub use shares::{Share, Shares};

/// The most people a population may have: their follows still fit 32-bit positions.
pub const PEOPLE_MAX: u32 = 10_000_000;

/// Everybody's followees, in rising order: one slice a person of one vector of 32-bit numbers, so
/// that 120 million follows take 480 MB.
#[derive(Debug, PartialEq, Eq)]
pub struct Population {
    /// By person: where in `targets` their followees begin; one more at the end.
    offsets: Vec<u32>,
    targets: Vec<u32>,
    /// By person: the number of their community. Empty if there are no communities.
    community_of: Vec<u32>,
    communities: Vec<Community>,
}

impl Population {
    /// Makes a population after the tables in [`table`]. Whoever has more followers follows more
    /// people, as far as it takes for enough follows to be returned; celebrities do not.
    ///
    /// With fewer than some 50,000 people the tables contradict themselves: there are too few who
    /// follow enough others to give the most followed as many followers as their row wants. These
    /// then get fewer; [`Population::shares`] says how close it came. Clustering is then more than asked
    /// for, because so many follow the same few: see [`Population::measured`].
    ///
    /// # Panics
    /// If there is a fault ([`Making::fault`]).
    pub fn made(making: &Making) -> Population {
        making::make(making)
    }

    /// Makes a population of `people` people in which everybody follows about `each` others at
    /// random, who follow them back: friends. Nobody has more, but for one person if both numbers
    /// are odd.
    pub fn friends(people: u32, each: u32, seed: u64) -> Population {
        assert!(
            u32::try_from(u64::from(people) * u64::from(each)).is_ok(),
            "{people} users with {each} friends each are more than a population can have"
        );
        friends::deal(people, each, &mut StdRng::seed_from_u64(seed))
    }

    /// Reads a population from an edge list: two numbers a line, each line a mutual friendship.
    pub fn from_edges(path: &Path) -> Result<Population, GraphError> {
        edges::read(path)
    }

    /// The number of people.
    pub fn people(&self) -> u32 {
        self.offsets.len().saturating_sub(1) as u32
    }

    /// The number of follows, each of one person by one other.
    pub fn follows(&self) -> u64 {
        self.targets.len() as u64
    }

    /// The people that `person` follows, in rising order; nobody if there is no such person.
    pub fn following(&self, person: u32) -> &[u32] {
        let Some(&[start, end]) = self.offsets.get(person as usize..).and_then(|o| o.first_chunk())
        else {
            return &[];
        };
        self.targets.get(start as usize..end as usize).unwrap_or_default()
    }

    /// By person, the number of their followers.
    pub fn follower_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.people() as usize];
        for &followed in &self.targets {
            if let Some(count) = counts.get_mut(followed as usize) {
                *count += 1;
            }
        }
        counts
    }

    /// The shares of people in each row of the tables, against those the tables ask for.
    pub fn shares(&self) -> Shares {
        Shares::of(self)
    }

    /// What else is measured of it, beside what was asked for if it was made so.
    pub fn measured(&self, asked: Option<&Making>) -> Measured {
        Measured::of(self, asked)
    }

    /// The number of the community that `person` belongs to; none in a population of friends or from
    /// a graph.
    pub fn community(&self, person: u32) -> Option<u32> {
        self.community_of.get(person as usize).copied()
    }

    /// What `person` is interested in: some of the [`TOPICS`] that their community is. Nothing if they
    /// have no community.
    pub fn interests(&self, person: u32) -> impl Iterator<Item = &'static str> {
        let community = self.community(person).and_then(|at| self.communities.get(at as usize));
        community.into_iter().flat_map(move |community| own_interests(community, person))
    }

    /// Whether `follower` follows `followed`.
    pub(crate) fn follows_back(&self, follower: u32, followed: u32) -> bool {
        self.following(follower).binary_search(&followed).is_ok()
    }

    /// Everybody follows those they are paired with and is followed by them; a pair that is there
    /// twice counts once.
    fn joining(people: u32, pairs: &[(u32, u32)]) -> Population {
        let mut follows: Vec<(u32, u32)> =
            pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
        follows.sort_unstable();
        follows.dedup();
        let mut counts = vec![0; people as usize];
        for &(follower, _) in &follows {
            if let Some(count) = counts.get_mut(follower as usize) {
                *count += 1;
            }
        }
        Population {
            offsets: offsets(&counts),
            targets: follows.into_iter().map(|(_, followed)| followed).collect(),
            community_of: Vec::new(),
            communities: Vec::new(),
        }
    }
}
