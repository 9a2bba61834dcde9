//! How many of a person's neighbours are neighbours of each other, for a sample of people.
//!
//! Whoever follows somebody or is followed by them is their neighbour. The local clustering of a
//! person with `k >= 2` neighbours is the share of the `k * (k - 1) / 2` pairs of neighbours who are
//! neighbours themselves. The clustering of a population is its mean over all such people, and is
//! estimated as the mean over those of the sample: everybody at equal distances by number.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::draft::{at, set};

/// Of more neighbours than this, so many are drawn at random. The share of pairs among them is the
/// same on average, and the cost of one person is bounded.
const NEIGHBOURS_MAX: usize = 128;

/// People whose followers are gathered, to measure their local clustering.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Every so many people one is in the sample.
    every: u32,
    /// By place in the sample: who follows them.
    followers: Vec<Vec<u32>>,
    /// By person: the last question in which they were a neighbour.
    asked: Vec<u32>,
    question: u32,
    rng: StdRng,
}

impl Sample {
    /// At least `size` of `people` people, or all of them.
    pub(crate) fn of(people: u32, size: u32, seed: u64) -> Sample {
        let every = (people / size).max(1);
        Sample {
            every,
            followers: vec![Vec::new(); people.div_ceil(every) as usize],
            asked: vec![0; people as usize],
            question: 0,
            rng: StdRng::seed_from_u64(seed),
        }
    }

    pub(crate) fn contains(&self, person: u32) -> bool {
        person.is_multiple_of(self.every)
    }

    /// Hears of a follow; each must be reported once.
    pub(crate) fn hear(&mut self, follower: u32, followed: u32) {
        if self.contains(followed)
            && let Some(followers) = self.followers.get_mut((followed / self.every) as usize)
        {
            followers.push(follower);
        }
    }

    /// The local clustering of somebody in the sample; nothing if they have fewer than two
    /// neighbours. Their followers are forgotten with it.
    pub(crate) fn local<'a>(
        &mut self,
        person: u32,
        following: impl Fn(u32) -> &'a [u32],
    ) -> Option<f64> {
        let followers = self.followers.get_mut((person / self.every) as usize)?;
        let mut neighbours = std::mem::take(followers);
        neighbours.extend(following(person));
        neighbours.sort_unstable();
        neighbours.dedup();
        if neighbours.len() > NEIGHBOURS_MAX {
            let (drawn, _) = neighbours.partial_shuffle(&mut self.rng, NEIGHBOURS_MAX);
            neighbours = drawn.to_vec();
        }
        let count = neighbours.len();
        (count >= 2)
            .then(|| self.joined(&neighbours, following) as f64 / (count * (count - 1) / 2) as f64)
    }

    /// How many pairs of these people are neighbours.
    fn joined<'a>(&mut self, people: &[u32], following: impl Fn(u32) -> &'a [u32]) -> usize {
        self.question += 1;
        for &person in people {
            set(&mut self.asked, person, self.question);
        }
        let mut pairs = Vec::new();
        for &one in people {
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
        let people = follows.len() as u32;
        let mut sample = Sample::of(people, people.max(1), 1);
        let following = |person: u32| follows[person as usize].as_slice();
        for follower in 0..people {
            following(follower).iter().for_each(|&followed| sample.hear(follower, followed));
        }
        (0..people).map(|person| sample.local(person, following)).collect()
    }

    /// Pair by pair, from the definition.
    fn plainly(follows: &[Vec<u32>]) -> Vec<Option<f64>> {
        let joined = |a: usize, b: usize| {
            follows[a].contains(&(b as u32)) || follows[b].contains(&(a as u32))
        };
        let people = 0..follows.len();
        let local = |person: usize| {
            let neighbours: Vec<usize> =
                people.clone().filter(|&other| other != person && joined(person, other)).collect();
            let pairs = neighbours
                .iter()
                .enumerate()
                .flat_map(|(at, &a)| neighbours.iter().skip(at + 1).map(move |&b| (a, b)));
            let all = pairs.clone().count();
            (all > 0).then(|| pairs.filter(|&(a, b)| joined(a, b)).count() as f64 / all as f64)
        };
        people.clone().map(local).collect()
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
    fn the_clustering_of_many_neighbours_is_estimated_from_some() {
        // Everybody follows everybody after them but for odd people among each other.
        let follows: Vec<Vec<u32>> = (0..400_u32)
            .map(|a| (a + 1..400).filter(|b| a % 2 == 0 || b % 2 == 0).collect())
            .collect();
        let reported = local_of_all(&follows);
        for (reported, exact) in reported.into_iter().zip(plainly(&follows)).step_by(37) {
            let (Some(reported), Some(exact)) = (reported, exact) else {
                panic!("all have neighbours")
            };
            assert!((reported - exact).abs() < 0.1, "{reported} of {exact}");
        }
    }

    proptest! {
        #[test]
        fn the_local_clustering_is_that_of_the_definition(
            follows in (1_usize..14).prop_flat_map(|people| {
                let follows = prop::collection::vec(0.0..1.0_f64, people * people);
                follows.prop_map(move |chances| {
                    let list = |a: usize| (0..people).filter(move |&b| b != a)
                        .filter(|&b| chances[a * people + b] < 0.3).map(|b| b as u32).collect();
                    (0..people).map(list).collect::<Vec<Vec<u32>>>()
                })
            })
        ) {
            prop_assert_eq!(local_of_all(&follows), plainly(&follows));
        }
    }
}
