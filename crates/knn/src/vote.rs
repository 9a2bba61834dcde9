//! The vote of the nearest neighbors.

use std::cmp::Reverse;

use crate::labels::Label;
use crate::nearest::Neighbor;
use crate::samples::Samples;

/// The result of one label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The label.
    pub label: Label,
    /// Number of neighbors with this label.
    pub votes: u32,
    /// The distance of the nearest of these neighbors.
    pub nearest: u32,
    /// The sum of their distances.
    pub sum: u32,
}

impl Samples {
    /// Counts the labels of `neighbors` found by [`Samples::nearest`]. The winner is first.
    ///
    /// More votes win. A tie goes to the label whose nearest neighbor is nearer, then to the smaller sum of distances,
    /// then to the label that is smaller as a string of bytes.
    #[must_use]
    pub fn vote(&self, neighbors: &[Neighbor]) -> Vec<Tally> {
        let mut tallies: Vec<Tally> = Vec::new();
        for Neighbor { label, distance, .. } in neighbors {
            match tallies.iter_mut().find(|tally| tally.label == *label) {
                Some(tally) => {
                    tally.votes += 1;
                    tally.nearest = tally.nearest.min(*distance);
                    tally.sum += distance;
                }
                None => {
                    let (nearest, sum) = (*distance, *distance);
                    tallies.push(Tally { label: *label, votes: 1, nearest, sum });
                }
            }
        }
        tallies.sort_by_key(|tally| {
            (Reverse(tally.votes), tally.nearest, tally.sum, self.name(tally.label))
        });
        tallies
    }
}
