//! Comparison of two runs: on two machines, or of two versions.

use std::collections::BTreeMap;

use crate::experiment::EXPERIMENTS;
use crate::parameters::Parameters;
use crate::record::RawData;
use crate::report::analysis::{MARGIN, compared, ratio_of_values};
use crate::report::figures::{interval, probability};
use crate::report::text::{columns, verdict};
use crate::values;

/// Values of the main quantity of each cell.
type Samples<'a> = BTreeMap<(&'a str, &'a str, &'a Parameters), Vec<f64>>;

/// Text table of the cells that both runs have, with a verdict on the second run compared with the first.
#[must_use]
pub fn compare(first: &RawData, second: &RawData) -> String {
    let (old, new) = (samples(first), samples(second));
    let mut found = Vec::new();
    for (key, base) in &old {
        let experiment = EXPERIMENTS.iter().find(|experiment| experiment.name == key.0);
        let quantity = experiment.and_then(|experiment| experiment.quantities.first());
        let (Some(quantity), Some(values)) = (quantity, new.get(key)) else { continue };
        if let Some(comparison) = compared(quantity, values, base) {
            found.push((key, quantity, comparison));
        }
    }
    if found.is_empty() {
        return "The runs have no trials in common: the same experiments with the same parameters, twice or more.\n"
            .to_owned();
    }
    let comparisons: Vec<_> = found.iter().map(|(.., comparison)| *comparison).collect();
    let judged = stats::verdicts(&comparisons, MARGIN);
    let head = ["experiment", "design", "parameters", "quantity", "second / first", "p", "verdict"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for ((key, quantity, comparison), judged) in found.into_iter().zip(judged) {
        let (experiment, design, parameters) = key;
        let ratio = ratio_of_values(quantity, &comparison);
        rows.push(vec![
            (*experiment).to_owned(),
            (*design).to_owned(),
            parameters.to_string(),
            quantity.title.to_owned(),
            ratio.as_ref().map(interval).unwrap_or_default(),
            probability(judged.p_adjusted),
            verdict(quantity, judged.verdict),
        ]);
    }
    columns(&rows)
}

fn samples(data: &RawData) -> Samples<'_> {
    let mut samples = Samples::new();
    for record in data.records.iter().filter(|record| !record.is_void()) {
        samples.entry(record.key()).or_default().extend(values::main(record));
    }
    samples
}
