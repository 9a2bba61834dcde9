//! Users and their follows: generated from measured tables, or read from a graph.
//!
//! Users are numbers from 0 to `users - 1`. No user follows themselves or another user twice. A population is immutable
//! and depends only on the seed (and on the versions of this crate and of its random generator).

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
mod tastes;
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
pub(crate) use shares::MISSED;
pub use shares::{Share, Shares};
pub(crate) use tastes::Tastes;

/// Maximum number of users of a population, so that follows have 32-bit positions.
pub const PEOPLE_MAX: u32 = 10_000_000;

/// Followees of each user, in ascending order. They are slices of one vector of 32-bit numbers, so 120 million follows
/// take 480 MB.
#[derive(Debug, PartialEq, Eq)]
pub struct Population {
    /// Start of each user's followees in `targets`, and the end of the last one.
    offsets: Vec<u32>,
    targets: Vec<u32>,
    /// Number of each user's community. Empty if there are no communities.
    community_of: Vec<u32>,
    communities: Vec<Community>,
}

impl Population {
    /// Makes a population from the tables in [`table`]. To reach the requested reciprocity, users with more followers
    /// follow more users; celebrities are excepted.
    ///
    /// The tables contradict each other for fewer than about 50,000 users: too few users follow enough others to give
    /// the most followed users the followers of their row. These users then get fewer followers ([`Population::shares`]
    /// returns the achieved shares), and the clustering is higher than requested, because many users follow the same
    /// few ([`Population::measured`]).
    ///
    /// # Panics
    /// If the options are invalid ([`Making::fault`]).
    pub fn made(making: &Making) -> Population {
        making::make(making)
    }

    /// Makes a population of mutual friends. Each user has at most about `each` friends, chosen at random.
    pub fn friends(users: u32, each: u32, seed: u64) -> Population {
        assert!(
            u32::try_from(u64::from(users) * u64::from(each)).is_ok(),
            "{users} users with {each} friends each are more than a population can have"
        );
        friends::deal(users, each, &mut StdRng::seed_from_u64(seed))
    }

    /// Reads a population from an edge list: each line has the numbers of two friends.
    pub fn from_edges(path: &Path) -> Result<Population, GraphError> {
        edges::read(path)
    }

    /// The number of users.
    pub fn people(&self) -> u32 {
        self.offsets.len().saturating_sub(1) as u32
    }

    /// The number of follows.
    pub fn follows(&self) -> u64 {
        self.targets.len() as u64
    }

    /// The users that `user` follows, in ascending order; empty if the user does not exist.
    pub fn following(&self, user: u32) -> &[u32] {
        let Some(&[start, end]) = self.offsets.get(user as usize..).and_then(|o| o.first_chunk())
        else {
            return &[];
        };
        self.targets.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The number of followers of each user.
    pub fn follower_counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.people() as usize];
        for &followed in &self.targets {
            if let Some(count) = counts.get_mut(followed as usize) {
                *count += 1;
            }
        }
        counts
    }

    /// Shares of users in each row of the tables: those requested by the tables, and those achieved.
    pub fn shares(&self) -> Shares {
        Shares::of(self)
    }

    /// Measures reciprocity, clustering and communities. `asked` contains the values requested for a generated
    /// population.
    pub fn measured(&self, asked: Option<&Making>) -> Measured {
        Measured::of(self, asked)
    }

    /// The number of the community of `user`; `None` in a population of friends or from a graph.
    pub fn community(&self, user: u32) -> Option<u32> {
        self.community_of.get(user as usize).copied()
    }

    /// Interests of `user`: some of the [`TOPICS`] of the user's community; empty without a community.
    pub fn interests(&self, user: u32) -> impl Iterator<Item = &'static str> {
        let community = self.community(user).and_then(|at| self.communities.get(at as usize));
        community.into_iter().flat_map(move |community| own_interests(community, user))
    }

    /// Whether `follower` follows `followed`.
    pub(crate) fn follows_back(&self, follower: u32, followed: u32) -> bool {
        self.following(follower).binary_search(&followed).is_ok()
    }

    /// Makes the two users of each pair follow each other. Duplicate pairs count once.
    fn joining(users: u32, pairs: &[(u32, u32)]) -> Population {
        let mut follows: Vec<(u32, u32)> =
            pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
        follows.sort_unstable();
        follows.dedup();
        let mut counts = vec![0; users as usize];
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
