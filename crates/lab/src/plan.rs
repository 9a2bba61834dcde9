//! Which trials are made, and in what order: a function of the settings and of what was measured so far. So a run that
//! was interrupted continues with the trial that was next.
//!
//! Trials are made in blocks. A block has one trial of each cell, in random order, and all with the same workload: so
//! what disturbs the machine for a while disturbs all designs alike. The first blocks are the pilot. Then the number of
//! trials of each cell is decided once, from the pilot.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};

use crate::record::Record;
use crate::settings::{Cell, Settings};
use crate::values;

/// The cells of a run, and how they are repeated.
pub(crate) struct Plan {
    cells: Vec<Cell>,
    settings: Settings,
}

/// A trial that is to be made.
pub(crate) struct Planned<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) block: u64,
    pub(crate) seed: u64,
}

impl Plan {
    /// # Errors
    /// As [`Settings::cells`].
    pub(crate) fn new(settings: &Settings) -> Result<Self, String> {
        Ok(Self { cells: settings.cells()?, settings: settings.clone() })
    }

    /// The trials that are still to be made, in order; those after the pilot only once the pilot is complete. `records`
    /// are those that were made.
    pub(crate) fn remaining(&self, records: &[Record]) -> Vec<Planned<'_>> {
        let made = self.made(records);
        let blocks = |from: u64, to: u64, trials: &[u64]| -> Vec<Planned<'_>> {
            let planned = |block| {
                let (order, seed) = self.block(block);
                let is_due = |cell: &usize| {
                    trials.get(*cell).is_some_and(|trials| block < *trials)
                        && !made.contains(&(*cell, block))
                };
                let cells =
                    order.into_iter().filter(is_due).filter_map(|cell| self.cells.get(cell));
                cells.map(move |cell| Planned { cell, block, seed }).collect::<Vec<_>>()
            };
            (from..to).flat_map(planned).collect()
        };
        let first = self.settings.trials.unwrap_or(self.settings.scale.pilot_trials());
        let all = blocks(0, first, &vec![first; self.cells.len()]);
        if !all.is_empty() || self.settings.trials.is_some() {
            return all;
        }
        let trials = self.after_pilot(records);
        let most = trials.iter().copied().max().unwrap_or(0);
        blocks(first, most, &trials)
    }

    /// The cells of which a trial counts, each with its block.
    fn made(&self, records: &[Record]) -> BTreeSet<(usize, u64)> {
        let places: BTreeMap<_, _> =
            self.cells.iter().enumerate().map(|(at, cell)| (cell.key(), at)).collect();
        let counted = records.iter().filter(|record| !record.is_void());
        let place = |record: &Record| Some((*places.get(&record.key())?, record.block));
        counted.filter_map(place).collect()
    }

    /// Number of trials of each cell.
    fn after_pilot(&self, records: &[Record]) -> Vec<u64> {
        let scale = self.settings.scale;
        let mut pilot: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for record in records.iter().filter(|record| record.block < scale.pilot_trials()) {
            pilot.entry(record.key()).or_default().extend(values::main(record));
        }
        let needed = |cell: &Cell| {
            let values = pilot.get(&cell.key()).map_or(&[][..], Vec::as_slice);
            let needed = stats::trials_for(values, scale.half_width());
            // Undefined: the values differ by so much that no number that can be made is enough.
            needed
                .map_or(scale.trials_max(), |needed| needed as u64)
                .clamp(scale.pilot_trials(), scale.trials_max())
        };
        self.cells.iter().map(needed).collect()
    }

    /// The order of the cells in a block, and the seed of its workloads.
    fn block(&self, block: u64) -> (Vec<usize>, u64) {
        let mut random = StdRng::seed_from_u64(self.settings.seed ^ block.rotate_left(40));
        let mut order: Vec<usize> = (0..self.cells.len()).collect();
        order.shuffle(&mut random);
        (order, random.next_u64())
    }
}
