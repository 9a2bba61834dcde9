//! Generation of a population in steps: counts from the tables, communities, a plan, the assignment of follows, and
//! user numbers.

use std::ops::Range;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::communities::{self, Community};
use super::deal;
use super::degrees;
use super::draft::{Draft, at, offsets, set};
use super::plan::Plan;
use super::{PEOPLE_MAX, Population};

/// The options of a population.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Making {
    /// Number of users, at most [`PEOPLE_MAX`].
    pub people: u32,
    /// The seed of counts and follows.
    pub seed: u64,
    /// Share of all follows that are returned, within [`Making::RECIPROCITY`]. On Twitter, users follow each other in
    /// 22.1 % of the pairs with any follow (Kwak, Lee, Park, Moon: What is Twitter, a social network or a news media?
    /// WWW 2010); this is 36 % of the follows. The tables do not allow so many, so the default is lower.
    pub reciprocity: f64,
    /// Mean local clustering, ignoring the direction of follows, within [`Making::CLUSTERING`]. The default can be
    /// reached with 100,000 to 1,000,000 users. Without circles, the tables give about as much with 100,000 users, and
    /// more with fewer.
    pub clustering: f64,
}

impl Default for Making {
    fn default() -> Making {
        Making { people: 10_000, seed: 1, reciprocity: 0.22, clustering: 0.12 }
    }
}

impl Making {
    /// Options for this number of users, with the defaults for the rest.
    pub fn of(people: u32, seed: u64) -> Making {
        Making { people, seed, ..Making::default() }
    }

    /// Minimum and maximum reciprocity. Above it, users who follow most would follow almost only each other.
    pub const RECIPROCITY: (f64, f64) = (0.0, 0.3);
    /// Minimum and maximum clustering. Above it, there would be too few follows without celebrities, all of them in
    /// circles.
    pub const CLUSTERING: (f64, f64) = (0.0, 0.2);

    /// Error message if an option is invalid.
    pub fn fault(&self) -> Option<String> {
        let outside = |(least, most): (f64, f64), value: f64| !(least..=most).contains(&value);
        let report = |what: &str, (least, most): (f64, f64), value: f64| {
            Some(format!("{what} can be from {least} to {most}, not {value}"))
        };
        if self.people > PEOPLE_MAX {
            return Some(format!("a population has at most {PEOPLE_MAX} users"));
        }
        if outside(Making::RECIPROCITY, self.reciprocity) {
            return report("reciprocity", Making::RECIPROCITY, self.reciprocity);
        }
        if outside(Making::CLUSTERING, self.clustering) {
            return report("clustering", Making::CLUSTERING, self.clustering);
        }
        None
    }
}

/// Makes the population; the options must be valid.
pub(crate) fn make(making: &Making) -> Population {
    assert_eq!(making.fault(), None, "a population that can be made");
    let mut rng = StdRng::seed_from_u64(making.seed);
    let degrees = degrees::fitted(making.people);
    let communities = communities::made(making.people, &mut rng);
    let mut end = 0;
    let places: Vec<Range<u32>> = communities
        .iter()
        .map(|community| {
            let start = end;
            end += community.members;
            start..end
        })
        .collect();
    let followers = degrees.followers;
    let plan = Plan::new(followers, &degrees.following, &places, making.reciprocity, &mut rng);
    drop(degrees.following);
    let draft = deal::deal(plan, &places, making.clustering, &mut rng);
    number(&draft, &places, communities, &mut rng)
}

/// Gives each user a random number, so that the members of a community have scattered numbers, as if users had
/// registered in random order.
fn number(
    draft: &Draft,
    places: &[Range<u32>],
    communities: Vec<Community>,
    rng: &mut StdRng,
) -> Population {
    let mut place_of: Vec<u32> = (0..draft.places()).collect();
    place_of.shuffle(rng);
    let mut user_in = vec![0; place_of.len()];
    for (user, &place) in (0..).zip(&place_of) {
        set(&mut user_in, place, user);
    }
    let count = |&place: &u32| draft.following(place).len() as u32;
    let offsets = offsets(&place_of.iter().map(count).collect::<Vec<u32>>());
    let mut targets = Vec::with_capacity(offsets.last().map_or(0, |&end| end as usize));
    for &place in &place_of {
        let start = targets.len();
        targets.extend(draft.following(place).iter().map(|&followed| at(&user_in, followed)));
        targets.get_mut(start..).unwrap_or_default().sort_unstable();
    }
    let mut community_of = vec![0; place_of.len()];
    for (community, places) in (0..).zip(places) {
        for place in places.clone() {
            set(&mut community_of, at(&user_in, place), community);
        }
    }
    Population { offsets, targets, community_of, communities }
}
