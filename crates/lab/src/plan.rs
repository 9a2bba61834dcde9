//! Selection and order of trials. They depend only on the settings and the measurements so far, so an interrupted run
//! continues with the trial that was next.
//!
//! Trials are made in blocks. A block has one trial of each cell, all with the same workload. Trials that are compared
//! (designs with the same parameters) form a group. They are adjacent, in random order, and the groups are in random
//! order too. A temporary disturbance of the machine thus affects all designs alike, and hardly changes a ratio within
//! a block. The first blocks are the pilot. After it, the number of trials of each group is decided once.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};

use crate::record::Record;
use crate::settings::{Cell, Settings};
use crate::values;

/// Cells of a run, and the rules of their repetition.
pub(crate) struct Plan {
    cells: Vec<Cell>,
    settings: Settings,
}

/// Trial to make.
pub(crate) struct Planned<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) block: u64,
    pub(crate) seed: u64,
}

impl Plan {
    /// Creates the plan of a run.
    ///
    /// # Errors
    /// Those of [`Settings::cells`].
    pub(crate) fn new(settings: &Settings) -> Result<Self, String> {
        Ok(Self { cells: settings.cells()?, settings: settings.clone() })
    }

    /// Remaining trials, in order. Trials after the pilot are included only when the pilot is complete. `records` are
    /// the finished trials.
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
        let first = self.settings.trials.unwrap_or(self.settings.scale.pilot_trials())
            * self.settings.repeats.unwrap_or(1);
        let all = blocks(0, first, &vec![first; self.cells.len()]);
        if !all.is_empty() || self.settings.trials.is_some() {
            return all;
        }
        let trials = self.after_pilot(records);
        let most = trials.iter().copied().max().unwrap_or(0);
        blocks(first, most, &trials)
    }

    /// Finished trials that count, each as cell and block.
    fn made(&self, records: &[Record]) -> BTreeSet<(usize, u64)> {
        let places: BTreeMap<_, _> =
            self.cells.iter().enumerate().map(|(at, cell)| (cell.key(), at)).collect();
        let counted = records.iter().filter(|record| !record.is_void());
        let place = |record: &Record| Some((*places.get(&record.key())?, record.block));
        counted.filter_map(place).collect()
    }

    /// Number of trials of each cell, according to the pilot. It is equal within a group.
    fn after_pilot(&self, records: &[Record]) -> Vec<u64> {
        let mut pilot: BTreeMap<_, BTreeMap<u64, f64>> = BTreeMap::new();
        let blocks = self.settings.scale.pilot_trials();
        let counts = |record: &&Record| record.block < blocks && !record.is_void();
        for record in records.iter().filter(counts) {
            let of_cell = pilot.entry(record.key()).or_default();
            of_cell.extend(values::main(record).map(|value| (record.block, value)));
        }
        let samples = |group: &[Cell]| {
            let of = |cell: &Cell| pilot.get(&cell.key()).cloned().unwrap_or_default();
            let base = group.iter().find(|cell| cell.design == cell.experiment.baseline).map(of);
            let others = group.iter().filter(|cell| cell.design != cell.experiment.baseline);
            match base.filter(|_| group.len() > 1) {
                Some(base) => others.map(|cell| ratios(&of(cell), &base)).collect::<Vec<_>>(),
                None => group.iter().map(|cell| of(cell).into_values().collect()).collect(),
            }
        };
        let needed = |group: &[Cell]| {
            let each = samples(group).into_iter().map(|sample| self.needed(&sample));
            vec![each.max().unwrap_or(0); group.len()]
        };
        self.groups().flat_map(needed).collect()
    }

    /// Number of trials, including the pilot, after which the mean has an interval of the wanted width. `sample` is the
    /// pilot.
    fn needed(&self, sample: &[f64]) -> u64 {
        let scale = self.settings.scale;
        // If the values differ too much for any feasible number, use the maximum.
        stats::trials_for(sample, scale.half_width())
            .map_or(scale.trials_max(), |needed| needed as u64)
            .clamp(scale.pilot_trials(), scale.trials_max())
    }

    /// Groups of cells that differ only in their design.
    fn groups(&self) -> impl Iterator<Item = &[Cell]> {
        self.cells
            .chunk_by(|a, b| a.experiment.name == b.experiment.name && a.parameters == b.parameters)
    }

    /// Order of the cells in a block, and the seed of its workloads.
    fn block(&self, block: u64) -> (Vec<usize>, u64) {
        let mut random = StdRng::seed_from_u64(self.settings.seed ^ block.rotate_left(40));
        let mut first = 0;
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for group in self.groups() {
            groups.push((first..first + group.len()).collect());
            first += group.len();
        }
        groups.shuffle(&mut random);
        groups.iter_mut().for_each(|group| group.shuffle(&mut random));
        (groups.concat(), random.next_u64())
    }
}

/// Values of a design, divided by those of the baseline in the same blocks.
fn ratios(new: &BTreeMap<u64, f64>, base: &BTreeMap<u64, f64>) -> Vec<f64> {
    new.iter().filter_map(|(block, value)| Some(value / base.get(block)?)).collect()
}
