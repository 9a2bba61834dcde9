//! Follows between users.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::index::sample;

/// Users and their followers. Users have numbers from 0.
pub(super) struct Network {
    /// Followers of each user, in ascending order.
    followers: Vec<Vec<u32>>,
}

impl Network {
    /// Makes every user follow `follows` random other users. There must be more users than follows.
    pub(super) fn random(users: u32, follows: u32, seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let mut followers = vec![Vec::new(); users as usize];
        for user in 0..users {
            // Choose the difference between the numbers, so that nobody follows themselves.
            for step in sample(&mut random, users as usize - 1, follows as usize) {
                let other = (user as usize + 1 + step) % users as usize;
                if let Some(followers) = followers.get_mut(other) {
                    followers.push(user);
                }
            }
        }
        Self { followers }
    }

    /// Makes the users 1 to `followers_of_first` follow user 0. There are no other follows.
    pub(super) fn star(users: u32, followers_of_first: u32) -> Self {
        let mut followers = vec![Vec::new(); users as usize];
        if let Some(first) = followers.first_mut() {
            first.extend(1..=followers_of_first);
        }
        Self { followers }
    }

    pub(super) fn users(&self) -> u32 {
        self.followers.len() as u32
    }

    /// Followers of a user in ascending order.
    pub(super) fn followers(&self, user: u32) -> &[u32] {
        self.followers.get(user as usize).map_or(&[], Vec::as_slice)
    }

    /// Users whose posts are in each user's timeline: followed users and the user, in ascending order.
    pub(super) fn sources(&self) -> Vec<Vec<u32>> {
        let mut sources: Vec<Vec<u32>> = (0..self.users()).map(|user| vec![user]).collect();
        for user in 0..self.users() {
            for follower in self.followers(user) {
                if let Some(sources) = sources.get_mut(*follower as usize) {
                    sources.push(user);
                }
            }
        }
        sources.iter_mut().for_each(|sources| sources.sort_unstable());
        sources
    }
}
