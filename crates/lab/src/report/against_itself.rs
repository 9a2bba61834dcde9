//! Comparisons of designs with themselves (A/A): how often the method finds a difference although there is none.

use std::collections::BTreeMap;

use stats::{Comparison, Verdict};

use crate::experiment::{Experiment, Quantity};
use crate::parameters::Parameters;
use crate::record::{RawData, Record};
use crate::report::Analysis;
use crate::report::analysis::{MARGIN, compared, compared_in_blocks};
use crate::report::text::{line, machine};
use crate::settings::AGAIN;
use crate::values;

/// Values of two trials of the same design, for each block of a repetition. `None` if a trial has no value.
type Pairs = BTreeMap<u64, [Option<f64>; 2]>;

/// Results of a design.
#[derive(Default)]
struct Found {
    repeats: u64,
    /// Number of repetitions with the verdict "faster" or "slower": if trials are compared in pairs, and if they are
    /// compared as independent samples.
    differ: [u64; 2],
    /// Widths of the intervals of ratios, in each of these two ways, as shares, by quantity; infinite if undefined.
    widths: BTreeMap<&'static str, [Vec<f64>; 2]>,
}

/// Report of a run that compares designs with themselves.
#[must_use]
pub fn against_itself(data: &RawData) -> String {
    let mut out = String::new();
    machine(&Analysis::of(data), &mut out);
    let settings = &data.run.settings;
    let (trials, repeats) = (settings.trials.unwrap_or(1), settings.repeats.unwrap_or(1));
    for experiment in settings.experiments().unwrap_or_default() {
        for design in experiment.designs {
            let own: Vec<&Record> = data
                .records
                .iter()
                .filter(|record| !record.is_void() && record.experiment == experiment.name)
                .filter(|record| record.design.trim_end_matches(AGAIN) == design.name)
                .collect();
            let mut found = Found::default();
            for repeat in 0..repeats {
                let blocks = repeat * trials..(repeat + 1) * trials;
                let of = own.iter().copied().filter(|record| blocks.contains(&record.block));
                found.add(experiment, &of.collect::<Vec<_>>());
            }
            if found.repeats > 0 {
                let subject = format!("{} of {}", design.name, experiment.name);
                line(&mut out, &found.sentences(&subject, trials));
            }
        }
    }
    line(&mut out, &format!("Repeat with: {}", settings.command()));
    out
}

impl Found {
    /// Judges a repetition. As in a report, all quantities and parameters are in one table.
    fn add(&mut self, experiment: &Experiment, records: &[&Record]) {
        let mut tables: [Vec<Comparison>; 2] = Default::default();
        for quantity in experiment.quantities {
            for pairs in pairs(records, quantity).values() {
                let both: Vec<(f64, f64)> =
                    pairs.values().filter_map(|[new, base]| Some(((*new)?, (*base)?))).collect();
                let (new, base): (Vec<f64>, Vec<f64>) = both.iter().copied().unzip();
                let all = [compared_in_blocks(quantity, &both), compared(quantity, &new, &base)];
                let widths = self.widths.entry(quantity.title).or_default();
                for ((table, widths), comparison) in tables.iter_mut().zip(widths).zip(all) {
                    let width = comparison.map(|comparison| comparison.ratio.half_width_relative());
                    widths.push(width.unwrap_or(f64::INFINITY));
                    table.extend(comparison);
                }
            }
        }
        if tables.iter().all(Vec::is_empty) {
            return;
        }
        self.repeats += 1;
        for (table, differ) in tables.iter().zip(&mut self.differ) {
            let is_found = |verdict| matches!(verdict, Verdict::Faster | Verdict::Slower);
            let judged = stats::verdicts(table, MARGIN);
            *differ += u64::from(judged.iter().any(|judged| is_found(judged.verdict)));
        }
    }

    fn sentences(&self, subject: &str, trials: u64) -> String {
        let Self { repeats, differ: [paired, independent], widths } = self;
        let share = 100.0 * *paired as f64 / *repeats as f64;
        let most = stats::false_findings_most(*repeats);
        let mut text = format!(
            "{subject} against itself, {repeats} repetitions of {trials} blocks: a difference in {paired} ({share:.1} \
             %); 5 % are expected, and up to {most} are plausible. As independent samples: in {independent}."
        );
        for (quantity, [pairs, samples]) in widths {
            let narrower = pairs.iter().zip(samples).filter(|(one, other)| one < other).count();
            let [one, other] = [middle(pairs), middle(samples)].map(|width| 100.0 * width);
            text.push_str(&format!(
                "\n{quantity}: half the interval of a ratio is {one:.1} % with pairs and {other:.1} % as independent \
                 samples, by the median; with pairs it is narrower in {narrower} of {}.",
                pairs.len()
            ));
        }
        text
    }
}

/// Median of values, some of which may be infinite; 0 if there are none.
fn middle(widths: &[f64]) -> f64 {
    let mut sorted = widths.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// Values of a quantity by parameters.
fn pairs<'a>(records: &[&'a Record], quantity: &Quantity) -> BTreeMap<&'a Parameters, Pairs> {
    let mut pairs: BTreeMap<&Parameters, Pairs> = BTreeMap::new();
    for record in records {
        let pair = pairs.entry(&record.parameters).or_default().entry(record.block).or_default();
        let place = usize::from(record.design.ends_with(AGAIN));
        if let Some(of_design) = pair.get_mut(place) {
            *of_design = values::value(&record.measured, quantity);
        }
    }
    pairs
}
