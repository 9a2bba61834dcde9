//! Who there is and who follows whom: made from the measured tables, or read from a graph.
//!
//! People are numbers from 0 to `people - 1`. Nobody follows themselves and nobody follows anybody
//! twice. A population never changes; it is made from a seed alone, and the same seed makes the
//! same population (with the same version of this crate and of the random generator under it).

mod deal;
mod degrees;
mod edges;
mod friends;
mod shares;
pub mod table;

use std::ops::Range;
use std::path::Path;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use deal::Dealt;
pub(crate) use degrees::apportion;
pub use edges::GraphError;
pub use shares::{Share, Shares};

/// The most people a population may have: their follows still fit 32-bit positions.
pub const PEOPLE_MAX: u32 = 10_000_000;

/// Everybody's followees: one slice a person of one vector of 32-bit numbers, so that 12 million
/// follows take 48 MB.
#[derive(Debug, PartialEq, Eq)]
pub struct Population {
    spans: Vec<Range<u32>>,
    targets: Vec<u32>,
}

impl Population {
    /// Makes a population of `people` people (at most [`PEOPLE_MAX`]) after the tables in
    /// [`table`]. How many followers somebody has says nothing about how many they follow.
    ///
    /// With fewer than some 50,000 people the tables contradict themselves: there are too few who
    /// follow enough others to give the most followed as many followers as their row wants. These
    /// then get fewer; [`Population::shares`] tells how near it came.
    pub fn made(people: u32, seed: u64) -> Population {
        assert!(people <= PEOPLE_MAX, "a population has at most {PEOPLE_MAX} people");
        let mut rng = StdRng::seed_from_u64(seed);
        let mut degrees = degrees::fitted(people);
        degrees.followers.shuffle(&mut rng);
        degrees.following.shuffle(&mut rng);
        deal::deal(&degrees.followers, &degrees.following, &mut rng).into()
    }

    /// Makes a population of `people` people in which everybody follows about `each` others at
    /// random, who follow them back: friends. Nobody has more, but for one person if both numbers
    /// are odd.
    pub fn friends(people: u32, each: u32, seed: u64) -> Population {
        assert!(
            u32::try_from(u64::from(people) * u64::from(each)).is_ok(),
            "{people} people with {each} friends each are more than a population may have"
        );
        friends::deal(people, each, &mut StdRng::seed_from_u64(seed)).into()
    }

    /// Reads a population from an edge list: two numbers a line, each line a mutual friendship.
    pub fn from_edges(path: &Path) -> Result<Population, GraphError> {
        Ok(edges::read(path)?.into())
    }

    /// The number of people.
    pub fn people(&self) -> u32 {
        self.spans.len() as u32
    }

    /// The number of follows, each of one person by one other.
    pub fn follows(&self) -> u64 {
        self.targets.len() as u64
    }

    /// The people that `person` follows, in no order; nobody if there is no such person.
    pub fn following(&self, person: u32) -> &[u32] {
        let span = self.spans.get(person as usize).cloned().unwrap_or_default();
        self.targets.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// By person, the number of their followers.
    pub fn follower_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.spans.len()];
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
}

impl From<Dealt> for Population {
    fn from(dealt: Dealt) -> Population {
        Population { spans: dealt.spans, targets: dealt.targets }
    }
}
