//! What a population is like beside the tables: how many follows are returned, how clustered they are,
//! and how far communities keep to themselves.

use std::fmt;

use serde::Serialize;

use super::clustering::Sample;
use super::draft::at;
use super::{Making, Population};

/// How many follows are looked at, about, to measure shares of them.
const FOLLOWS_LOOKED_AT: u32 = 500_000;
/// How many people are looked at, at least, to measure the clustering.
const PEOPLE_LOOKED_AT: u32 = 4_000;

/// What was asked for, if anything was, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Aim {
    /// What was asked for.
    pub asked: Option<f64>,
    /// What is measured.
    pub achieved: f64,
}

/// What is measured of a population. Shares of follows are those of every n-th follow, about 500,000 in all,
/// and the clustering is the mean over at least 4,000 people, every n-th by number; of small
/// populations it is all follows and all people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// The share of follows that are returned.
    pub reciprocity: Aim,
    /// The mean local clustering of people with at least two neighbours: of the pairs of those who
    /// follow somebody or are followed by them, the share in which one follows the other. Of more than 128
    /// neighbours, 128 are drawn.
    pub clustering: Aim,
    /// How many communities there are; a graph that was read has none.
    pub communities: u32,
    /// Members of the largest community.
    pub largest_community: u32,
    /// The share of follows between members of the same community.
    pub follows_within_communities: f64,
}

impl Measured {
    pub(crate) fn of(population: &Population, asked: Option<&Making>) -> Measured {
        let (returned, within) = follows(population);
        let members = population.communities.iter().map(|community| community.members);
        Measured {
            reciprocity: Aim { asked: asked.map(|making| making.reciprocity), achieved: returned },
            clustering: Aim {
                asked: asked.map(|making| making.clustering),
                achieved: clustering(population),
            },
            communities: population.communities.len() as u32,
            largest_community: members.max().unwrap_or(0),
            follows_within_communities: within,
        }
    }
}

/// The shares of follows that are returned, and that are within a community.
fn follows(population: &Population) -> (f64, f64) {
    let every = (population.targets.len() as u32 / FOLLOWS_LOOKED_AT).max(1);
    let (mut looked_at, mut returned, mut within) = (0_u32, 0_u32, 0_u32);
    let mut next = 0;
    for (follower, ends) in (0..).zip(population.offsets.windows(2)) {
        let &[_, end] = ends else { unreachable!("windows of two") };
        while next < end {
            let followed = at(&population.targets, next);
            looked_at += 1;
            returned += u32::from(population.follows_back(followed, follower));
            let home = population.community(follower);
            within += u32::from(home.is_some() && home == population.community(followed));
            next += every;
        }
    }
    let share = |part: u32| f64::from(part) / f64::from(looked_at.max(1));
    (share(returned), share(within))
}

fn clustering(population: &Population) -> f64 {
    let mut sample = Sample::of(population.people(), PEOPLE_LOOKED_AT, 0);
    for follower in 0..population.people() {
        for &followed in population.following(follower) {
            sample.hear(follower, followed);
        }
    }
    let (mut sum, mut people) = (0.0, 0);
    for person in 0..population.people() {
        if sample.contains(person)
            && let Some(local) = sample.local(person, |other| population.following(other))
        {
            sum += local;
            people += 1;
        }
    }
    sum / f64::from(people.max(1))
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, aim) in [("reciprocity", self.reciprocity), ("clustering", self.clustering)] {
            write!(f, "{name:>21} ")?;
            match aim.asked {
                Some(asked) => write!(f, "{asked:>11.3} ")?,
                None => write!(f, "{:>11} ", "")?,
            }
            writeln!(f, "{:>10.3}", aim.achieved)?;
        }
        if self.communities > 0 {
            writeln!(
                f,
                "{:>21} {}, the largest of {} users; {:.1} % of follows within them",
                "communities",
                self.communities,
                self.largest_community,
                self.follows_within_communities * 100.0
            )?;
        }
        Ok(())
    }
}
