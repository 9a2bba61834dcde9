//! Who follows whom, once it is settled how many followers and followees everybody has.
//!
//! A configuration model: each person is in a pool as often as they are to have followers, and
//! people take at random from the pool as many as they follow. Whoever follows most takes first;
//! a draw that would be a double or oneself is put back and drawn again. So the hard part, finding
//! thousands of different people for one follower, is done while the pool is full, and at the end,
//! with few left in the pool, people need only a few each.
//!
//! The pool becomes the result: what is drawn is swapped to its front, and each person's share of
//! it is one slice. 12 million follows take 48 MB while they are dealt and after.

use std::cmp::Reverse;
use std::ops::Range;

use rand::rngs::StdRng;
use rand::{Rng, RngExt};

/// After so many refused draws in a row the pool holds hardly anybody new for this person, who
/// then follows fewer than asked for.
const REFUSED_DRAWS_MAX: u32 = 64;

/// Everybody's followees, as slices of one vector.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Dealt {
    /// By person: where in `targets` their followees are.
    pub(crate) spans: Vec<Range<u32>>,
    pub(crate) targets: Vec<u32>,
}

impl Dealt {
    /// Everybody follows those they are paired with and is followed by them; a pair that is there
    /// twice counts once.
    pub(crate) fn joining(people: u32, pairs: &[(u32, u32)]) -> Dealt {
        let mut follows: Vec<(u32, u32)> =
            pairs.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
        follows.sort_unstable();
        follows.dedup();
        let mut start = 0;
        let spans = (0..people).map(|person| {
            let end = follows.partition_point(|&(follower, _)| follower <= person) as u32;
            std::mem::replace(&mut start, end)..end
        });
        let spans = spans.collect();
        Dealt { spans, targets: follows.into_iter().map(|(_, followed)| followed).collect() }
    }
}

/// Deals follows so that person `p` follows `following[p]` people and is followed by
/// `followers[p]`, or by fewer where the pool ran out of people new to the last followers.
pub(crate) fn deal(followers: &[u32], following: &[u32], rng: &mut StdRng) -> Dealt {
    let mut pool = pool_of(followers);
    let mut order: Vec<u32> = (0..following.len() as u32).collect();
    let wanted = |person: u32| following.get(person as usize).copied().unwrap_or(0);
    order.sort_by_key(|&person| Reverse(wanted(person)));

    let mut spans = vec![0..0; following.len()];
    // By person: the last follower they were dealt to. One stamp tells doubles and oneself.
    let mut dealt_to = vec![u32::MAX; followers.len()];
    let mut next = 0;
    for person in order {
        if let Some(own) = dealt_to.get_mut(person as usize) {
            *own = person;
        }
        let start = next;
        for _ in 0..wanted(person) {
            if !draw(&mut pool, next, person, &mut dealt_to, rng) {
                break;
            }
            next += 1;
        }
        if let Some(span) = spans.get_mut(person as usize) {
            *span = start as u32..next as u32;
        }
    }
    pool.truncate(next);
    Dealt { spans, targets: pool }
}

fn pool_of(followers: &[u32]) -> Vec<u32> {
    let size: usize = followers.iter().map(|&count| count as usize).sum();
    assert!(u32::try_from(size).is_ok(), "{size} follows are more than a population may have");
    let mut pool = Vec::with_capacity(size);
    for (person, &count) in (0..).zip(followers) {
        pool.resize(pool.len() + count as usize, person);
    }
    pool
}

/// Swaps somebody whom `follower` does not follow yet from the rest of the pool to place `next`.
fn draw(
    pool: &mut [u32],
    next: usize,
    follower: u32,
    dealt_to: &mut [u32],
    rng: &mut impl Rng,
) -> bool {
    if next >= pool.len() {
        return false;
    }
    for _ in 0..REFUSED_DRAWS_MAX {
        let at = rng.random_range(next as u32..pool.len() as u32) as usize;
        let Some(&drawn) = pool.get(at) else { return false };
        let Some(stamp) = dealt_to.get_mut(drawn as usize) else { return false };
        if *stamp != follower {
            *stamp = follower;
            pool.swap(next, at);
            return true;
        }
    }
    false
}
