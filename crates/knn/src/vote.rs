//! The vote of the nearest neighbors.

use std::cmp::Reverse;

use crate::labels::Label;
use crate::nearest::Neighbor;
use crate::samples::Samples;

/// The votes for one label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The label.
    pub label: Label,
    /// Number of neighbors with this label.
    pub votes: u32,
    /// The distance of the nearest neighbor with this label.
    pub nearest: u32,
    /// The sum of the distances of the neighbors with this label.
    pub sum: u32,
}

impl Samples {
    /// Counts the labels of `neighbors`, which [`Samples::nearest`] found. The winner is first.
    ///
    /// The label with more votes wins. In a tie, the label with the nearer nearest neighbor wins, then the one with the
    /// smaller sum of distances, then the one whose name is smaller as a string of bytes.
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
