//! Random draws of users, weighted by the number of draws that each has left.
//!
//! The counts are consecutive segments of a line, and a draw is a random point on it. If the point is in the used part
//! of a segment, another point is drawn; when half of the line is used, the line is built again. An urn thus needs a
//! few numbers per user instead of one per follow, and stays in the CPU cache.

use std::ops::Range;

use rand::RngExt;
use rand::rngs::StdRng;

use super::draft::{at, take_one};

/// Number of consecutive unsuitable users after which a draw fails.
const REFUSED_DRAWS_MAX: u32 = 64;

/// Users to draw from. Callers pass the remaining counts with every call.
#[derive(Debug)]
pub(crate) struct Urn {
    users: Vec<u32>,
    /// End of each user's segment of the line, by index in `users`.
    ends: Vec<u32>,
    /// Index of the user at the first point of each part of `1 << shift` points.
    guide: Vec<u32>,
    shift: u32,
    /// Number of draws left.
    left: u32,
}

impl Urn {
    /// Creates an urn of the users in `places` who have draws left.
    pub(crate) fn of(counts: &[u32], places: Range<u32>) -> Urn {
        let users: Vec<u32> = places.filter(|&place| at(counts, place) > 0).collect();
        let mut urn = Urn { users, ends: Vec::new(), guide: Vec::new(), shift: 0, left: 0 };
        urn.lay(counts);
        urn
    }

    /// Builds the line of the remaining draws.
    fn lay(&mut self, counts: &[u32]) {
        self.users.retain(|&user| at(counts, user) > 0);
        self.ends.clear();
        self.guide.clear();
        let mut end = 0;
        self.ends.extend(self.users.iter().map(|&user| {
            end += at(counts, user);
            end
        }));
        self.left = end;
        self.shift = (end / (self.users.len() as u32).max(1)).max(1).ilog2();
        for (index, &end) in (0..).zip(&self.ends) {
            let parts = ((end - 1) >> self.shift) + 1;
            self.guide.resize(parts as usize, index);
        }
    }

    /// Draws a user for whom `suits` is true, and decrements the user's count. `None` if no user is left, or if too
    /// many consecutive users were unsuitable.
    pub(crate) fn draw(
        &mut self,
        counts: &mut [u32],
        rng: &mut StdRng,
        suits: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let mut refused = 0;
        while self.left > 0 && refused < REFUSED_DRAWS_MAX {
            if self.left < self.ends.last().copied().unwrap_or(0) / 2 {
                self.lay(counts);
            }
            let (user, rank) = self.point(rng);
            if rank >= at(counts, user) {
                continue;
            }
            if suits(user) {
                take_one(counts, user);
                self.left -= 1;
                return Some(user);
            }
            refused += 1;
        }
        None
    }

    /// Draws a point on the line. Returns its user, and its offset in the user's segment.
    fn point(&self, rng: &mut StdRng) -> (u32, u32) {
        let point = rng.random_range(0..self.ends.last().copied().unwrap_or(1));
        let mut index = at(&self.guide, point >> self.shift);
        while at(&self.ends, index) <= point {
            index += 1;
        }
        let start = if index == 0 { 0 } else { at(&self.ends, index - 1) };
        (at(&self.users, index), point - start)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn each_user_is_drawn_as_often_as_their_count() {
        for counts in [vec![], vec![0], vec![7], vec![3, 0, 1_000, 1, 20], vec![1; 300]] {
            let mut rng = StdRng::seed_from_u64(1);
            let (mut left, mut drawn) = (counts.clone(), vec![0; counts.len()]);
            let mut urn = Urn::of(&left, 0..left.len() as u32);
            while let Some(user) = urn.draw(&mut left, &mut rng, |_| true) {
                drawn[user as usize] += 1;
            }
            assert_eq!(drawn, counts);
            assert!(left.iter().all(|&count| count == 0));
        }
    }

    #[test]
    fn a_refused_user_is_never_drawn() {
        let (mut left, mut rng) = (vec![9, 30, 9], StdRng::seed_from_u64(2));
        let mut urn = Urn::of(&left, 0..3);
        let drawn: Vec<u32> =
            std::iter::from_fn(|| urn.draw(&mut left, &mut rng, |user| user == 1)).collect();
        assert_eq!(drawn, [1; 30]);
        assert_eq!(left, [9, 0, 9]);
    }

    #[test]
    fn the_probability_of_a_user_is_proportional_to_the_remaining_count() {
        let mut first = [0_u32; 3];
        for seed in 0..3_000 {
            let (mut left, mut rng) = (vec![10, 60, 30], StdRng::seed_from_u64(seed));
            let drawn = Urn::of(&left, 0..3).draw(&mut left, &mut rng, |_| true).unwrap();
            first[drawn as usize] += 1;
        }
        for (count, expect) in first.into_iter().zip([300, 1_800, 900]) {
            assert!(count.abs_diff(expect) < 120, "{first:?}");
        }
    }
}
