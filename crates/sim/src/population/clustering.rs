//! The local clustering of a sample of users.
//!
//! Two users are neighbors if one follows the other. The local clustering of a user with `k >= 2` neighbors is the
//! share of the `k * (k - 1) / 2` pairs of neighbors who are neighbors of each other. The clustering of a population is
//! the mean over all such users. It is estimated from a sample: every n-th user by number.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::draft::{at, set};

/// Maximum number of neighbors of a user to compare, which bounds the cost per user. If there are more, this number is
/// drawn at random; on average, the share of pairs among them is the same.
const NEIGHBORS_MAX: usize = 128;

/// Followers of sampled users, for measuring their local clustering.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Difference between the numbers of two consecutive sampled users.
    every: u32,
    /// Followers of each sampled user, by index in the sample.
    followers: Vec<Vec<u32>>,
    /// Number of the last query (`question`) in which each user was a neighbor.
    asked: Vec<u32>,
    question: u32,
    rng: StdRng,
}

impl Sample {
    /// Samples at least `size` of `users` users, or all of them.
    pub(crate) fn of(users: u32, size: u32, seed: u64) -> Sample {
        let every = (users / size).max(1);
        Sample {
            every,
            followers: vec![Vec::new(); users.div_ceil(every) as usize],
            asked: vec![0; users as usize],
            question: 0,
            rng: StdRng::seed_from_u64(seed),
        }
    }

    pub(crate) fn contains(&self, user: u32) -> bool {
        user.is_multiple_of(self.every)
    }

    /// Adds a follow. Each follow must be added only once.
    pub(crate) fn add(&mut self, follower: u32, followed: u32) {
        if self.contains(followed)
            && let Some(followers) = self.followers.get_mut((followed / self.every) as usize)
        {
            followers.push(follower);
        }
    }

    /// Local clustering of a user in the sample; `None` with fewer than two neighbors. Removes the user's stored
    /// followers.
    pub(crate) fn local<'a>(
        &mut self,
        user: u32,
        following: impl Fn(u32) -> &'a [u32],
    ) -> Option<f64> {
        let followers = self.followers.get_mut((user / self.every) as usize)?;
        let mut neighbors = std::mem::take(followers);
        neighbors.extend(following(user));
        neighbors.sort_unstable();
        neighbors.dedup();
        if neighbors.len() > NEIGHBORS_MAX {
            let (drawn, _) = neighbors.partial_shuffle(&mut self.rng, NEIGHBORS_MAX);
            neighbors = drawn.to_vec();
        }
        let count = neighbors.len();
        (count >= 2)
            .then(|| self.joined(&neighbors, following) as f64 / (count * (count - 1) / 2) as f64)
    }

    /// The number of pairs of these users who are neighbors.
    fn joined<'a>(&mut self, users: &[u32], following: impl Fn(u32) -> &'a [u32]) -> usize {
        self.question += 1;
        for &user in users {
            set(&mut self.asked, user, self.question);
        }
        let mut pairs = Vec::new();
        for &one in users {
            let others = following(one).iter().copied();
            let others = others.filter(|&other| at(&self.asked, other) == self.question);
            pairs.extend(others.map(|other| (one.min(other), one.max(other))));
        }
        pairs.sort_unstable();
        pairs.dedup();
        pairs.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn local_of_all(follows: &[Vec<u32>]) -> Vec<Option<f64>> {
        let users = follows.len() as u32;
        let mut sample = Sample::of(users, users.max(1), 1);
        let following = |user: u32| follows[user as usize].as_slice();
        for follower in 0..users {
            following(follower).iter().for_each(|&followed| sample.add(follower, followed));
        }
        (0..users).map(|user| sample.local(user, following)).collect()
    }

    /// Local clustering, computed pair by pair from the definition.
    fn plainly(follows: &[Vec<u32>]) -> Vec<Option<f64>> {
        let joined = |a: usize, b: usize| {
            follows[a].contains(&(b as u32)) || follows[b].contains(&(a as u32))
        };
        let users = 0..follows.len();
        let local = |user: usize| {
            let neighbors: Vec<usize> =
                users.clone().filter(|&other| other != user && joined(user, other)).collect();
            let pairs = neighbors
                .iter()
                .enumerate()
                .flat_map(|(at, &a)| neighbors.iter().skip(at + 1).map(move |&b| (a, b)));
            let all = pairs.clone().count();
            (all > 0).then(|| pairs.filter(|&(a, b)| joined(a, b)).count() as f64 / all as f64)
        };
        users.clone().map(local).collect()
    }

    #[test]
    fn known_graphs_have_their_known_clustering() {
        let check = |follows: &[&[u32]], expect: &[Option<f64>]| {
            let follows: Vec<Vec<u32>> = follows.iter().map(|list| list.to_vec()).collect();
            assert_eq!(local_of_all(&follows), expect, "{follows:?}");
        };
        check(&[], &[]);
        check(&[&[1], &[0]], &[None, None]);
        check(&[&[1], &[2], &[0]], &[Some(1.0), Some(1.0), Some(1.0)]);
        check(&[&[1, 2, 3], &[], &[], &[]], &[Some(0.0), None, None, None]);
        check(&[&[1, 2], &[0, 2], &[0, 3], &[]], &[Some(1.0), Some(1.0), Some(1.0 / 3.0), None]);
    }

    #[test]
    fn the_clustering_of_many_neighbors_is_estimated_from_some() {
        // Each user follows all users with higher numbers, except that odd users do not follow odd ones.
        let follows: Vec<Vec<u32>> = (0..400_u32)
            .map(|a| (a + 1..400).filter(|b| a % 2 == 0 || b % 2 == 0).collect())
            .collect();
        let reported = local_of_all(&follows);
        for (reported, exact) in reported.into_iter().zip(plainly(&follows)).step_by(37) {
            let (Some(reported), Some(exact)) = (reported, exact) else {
                panic!("all have neighbors")
            };
            assert!((reported - exact).abs() < 0.1, "{reported} of {exact}");
        }
    }

    proptest! {
        #[test]
        fn the_local_clustering_is_that_of_the_definition(
            follows in (1_usize..14).prop_flat_map(|users| {
                let follows = prop::collection::vec(0.0..1.0_f64, users * users);
                follows.prop_map(move |chances| {
                    let list = |a: usize| (0..users).filter(move |&b| b != a)
                        .filter(|&b| chances[a * users + b] < 0.3).map(|b| b as u32).collect();
                    (0..users).map(list).collect::<Vec<Vec<u32>>>()
                })
            })
        ) {
            prop_assert_eq!(local_of_all(&follows), plainly(&follows));
        }
    }
}
