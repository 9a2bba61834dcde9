//! Planted interests: a hidden taste of each user, and whether a user would like a post.
//!
//! A server sees only what users do. A simulation that knows the taste can count how many posts of a ranking its reader
//! would like. The parameters are assumptions: they are not from measurements of a network.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Population, TOPICS};

/// Weight of each interest of a user, as a multiple of the weight of the one before.
const NEXT_WEIGHT: f64 = 0.6;
/// Weight of the interest that does not come from the community. The first one of the community has weight 1.
const OWN_WEIGHT: f64 = 0.4;
/// Probability that a user likes the best post about their first interest, and about a topic without interest.
const LIKED_MAX: f64 = 0.6;
const LIKED_ANYWAY: f64 = 0.02;

/// Tastes of all users. A taste is a distribution over topics, which are indices of [`TOPICS`].
#[derive(Debug, PartialEq)]
pub(crate) struct Tastes {
    /// Topics of each user with their shares, the largest first; the shares add up to 1.
    of: Vec<Vec<(u8, f64)>>,
    seed: u64,
}

impl Tastes {
    /// Plants the tastes: the interests of the user's community that the user has, and one other topic.
    pub(crate) fn planted(population: &Population, seed: u64) -> Tastes {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x7a57_e500);
        let of = (0..population.people()).map(|user| taste(population, user, &mut rng)).collect();
        Tastes { of, seed }
    }

    /// Topics of a user with their shares.
    pub(crate) fn of(&self, user: u32) -> &[(u8, f64)] {
        self.of.get(user as usize).map_or(&[], Vec::as_slice)
    }

    /// Draws a topic from the taste of a user.
    pub(crate) fn draw(&self, user: u32, rng: &mut StdRng) -> u8 {
        let mut point: f64 = rng.random();
        let taste = self.of(user);
        for &(topic, share) in taste {
            point -= share;
            if point < 0.0 {
                return topic;
            }
        }
        taste.first().map_or(0, |&(topic, _)| topic)
    }

    /// Probability that the user likes a post about `topic` of this quality, from 0 to 1.
    pub(crate) fn chance(&self, user: u32, topic: u8, quality: f64) -> f64 {
        let taste = self.of(user);
        let first = taste.first().map_or(1.0, |&(_, share)| share);
        let found = taste.iter().find(|&&(other, _)| other == topic);
        let interest = found.map_or(0.0, |&(_, share)| share / first);
        (LIKED_ANYWAY + (LIKED_MAX - LIKED_ANYWAY) * interest) * quality
    }

    /// Whether the user would like the post with this number, if they saw it. Always the same for a user and a post.
    pub(crate) fn likes(&self, user: u32, post: u32, chance: f64) -> bool {
        let pair = u64::from(user) << 32 | u64::from(post);
        StdRng::seed_from_u64(self.seed.rotate_left(32) ^ pair).random::<f64>() < chance
    }
}

fn taste(population: &Population, user: u32, rng: &mut StdRng) -> Vec<(u8, f64)> {
    let number = |name: &str| TOPICS.iter().position(|topic| *topic == name).unwrap_or(0) as u8;
    let mut weights = Vec::new();
    let mut weight = 1.0;
    for interest in population.interests(user) {
        weights.push((number(interest), weight));
        weight *= NEXT_WEIGHT;
    }
    let own = rng.random_range(0..TOPICS.len() as u32) as u8;
    if !weights.iter().any(|&(topic, _)| topic == own) {
        weights.push((own, OWN_WEIGHT));
    }
    weights.sort_by(|a, b| b.1.total_cmp(&a.1));
    let sum: f64 = weights.iter().map(|&(_, weight)| weight).sum();
    weights.into_iter().map(|(topic, weight)| (topic, weight / sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::population::Making;

    #[test]
    fn a_taste_is_a_distribution_that_depends_on_the_seed_alone() {
        let population = Population::made(&Making::of(500, 3));
        let tastes = Tastes::planted(&population, 3);
        assert_eq!(tastes, Tastes::planted(&population, 3));
        assert_ne!(tastes, Tastes::planted(&population, 4));
        for user in 0..500 {
            let taste = tastes.of(user);
            assert!((taste.iter().map(|&(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
            assert!(taste.is_sorted_by(|a, b| a.1 >= b.1), "{taste:?}");
            assert!((1..=6).contains(&taste.len()), "{taste:?}");
            let has = |name: &str| taste.iter().any(|&(topic, _)| TOPICS[topic as usize] == name);
            assert!(population.interests(user).all(has), "{taste:?}");
        }
    }

    #[test]
    fn users_like_posts_as_often_as_their_taste_says() {
        let tastes = Tastes { of: vec![vec![(4, 0.5), (7, 0.25)]], seed: 1 };
        for (topic, quality, chance) in
            [(4, 1.0, 0.6), (7, 1.0, 0.31), (9, 1.0, 0.02), (4, 0.5, 0.3), (4, 0.0, 0.0)]
        {
            let found = tastes.chance(0, topic, quality);
            assert!((found - chance).abs() < 1e-9, "{topic}: {found}");
            let liked = (0..4_000).filter(|post| tastes.likes(0, *post, found)).count() as f64;
            assert!((liked / 4_000.0 - chance).abs() < 0.03, "{topic}: {liked}");
        }
        let mut rng = StdRng::seed_from_u64(1);
        let drawn = (0..4_000).filter(|_| tastes.draw(0, &mut rng) == 7).count();
        assert!((900..1_100).contains(&drawn), "{drawn}");
    }
}
