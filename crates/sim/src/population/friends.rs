//! Random friendships, about the same number for each user.
//!
//! Users are placed in a ring in random order, and neighbors become friends. Each ring adds two friends per user; a
//! ring of which only every second pair become friends adds one. A pair that occurs in two rings counts once, so some
//! users have one or two friends fewer.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::Population;

/// Gives each user about `each` friends.
pub(crate) fn deal(users: u32, each: u32, rng: &mut StdRng) -> Population {
    let mut ring: Vec<u32> = (0..users).collect();
    let mut pairs = Vec::with_capacity(users as usize * each as usize / 2);
    for round in 0..each.div_ceil(2) {
        ring.shuffle(rng);
        let step = if 2 * round + 1 == each { 2 } else { 1 };
        let neighbors = ring.iter().copied().zip(ring.iter().copied().cycle().skip(1));
        pairs.extend(neighbors.step_by(step).filter(|(a, b)| a != b));
    }
    Population::joining(users, &pairs)
}
