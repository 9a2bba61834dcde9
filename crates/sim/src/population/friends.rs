//! Friendships made at random, of which everybody has about as many.
//!
//! Everybody has a place in a ring in random order, and neighbours become friends: each ring brings
//! everybody two friends, and one that joins every second pair of neighbours brings one. Who would
//! meet twice are friends once, so that some have a friend or two fewer.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::Population;

/// Deals everybody about `each` friends.
pub(crate) fn deal(people: u32, each: u32, rng: &mut StdRng) -> Population {
    let mut ring: Vec<u32> = (0..people).collect();
    let mut pairs = Vec::with_capacity(people as usize * each as usize / 2);
    for round in 0..each.div_ceil(2) {
        ring.shuffle(rng);
        let step = if 2 * round + 1 == each { 2 } else { 1 };
        let neighbours = ring.iter().copied().zip(ring.iter().copied().cycle().skip(1));
        pairs.extend(neighbours.step_by(step).filter(|(a, b)| a != b));
    }
    Population::joining(people, &pairs)
}
