//! Properties of a population that are not in the tables: reciprocity, clustering, and the share of follows within
//! communities.

use std::fmt;

use serde::Serialize;

use super::clustering::Sample;
use super::draft::at;
use super::{Making, Population};

/// Approximate number of sampled follows.
const FOLLOWS_LOOKED_AT: u32 = 500_000;
/// Minimum number of sampled users for the clustering.
const USERS_SAMPLED: u32 = 4_000;

/// A requested value, if any, and the achieved value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Aim {
    /// The requested value, if any.
    pub asked: Option<f64>,
    /// The measured value.
    pub achieved: f64,
}

/// Measured properties of a population. Shares of follows are measured on about 500,000 follows (every n-th), and the
/// clustering on at least 4,000 users (every n-th by number). In small populations, all follows and all users are
/// measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// The share of follows that are returned.
    pub reciprocity: Aim,
    /// The mean local clustering of users with at least two neighbors (followers or followees): the share of pairs of
    /// neighbors in which one follows the other. If there are more than 128 neighbors, 128 are drawn.
    pub clustering: Aim,
    /// Number of communities; 0 for a graph from a file.
    pub communities: u32,
    /// Number of members of the largest community.
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

/// Returns the share of returned follows, and the share of follows within a community.
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
    let mut sample = Sample::of(population.people(), USERS_SAMPLED, 0);
    for follower in 0..population.people() {
        for &followed in population.following(follower) {
            sample.add(follower, followed);
        }
    }
    let (mut sum, mut users) = (0.0, 0);
    for user in 0..population.people() {
        if sample.contains(user)
            && let Some(local) = sample.local(user, |other| population.following(other))
        {
            sum += local;
            users += 1;
        }
    }
    sum / f64::from(users.max(1))
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
