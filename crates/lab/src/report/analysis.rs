//! Medians with intervals, comparisons and verdicts, from the trials of a run.

use std::collections::{BTreeMap, BTreeSet};

use stats::{
    Amdahl, Bootstrap, Calibration, Center, Comparison, Interval, Noise, Scalability, Verdict,
};

use crate::environment::Environment;
use crate::experiment::{EXPERIMENTS, Experiment, Quantity, THREADS};
use crate::parameters::Parameters;
use crate::record::{RawData, Record};
use crate::settings::{Settings, Skipped};
use crate::values::{self, WarmUp};

/// Smallest difference that matters. Values with a smaller difference count as equal.
pub const MARGIN: f64 = 0.05;

/// Parameters of resampling. The seed is fixed, so the same raw data gives the same report.
const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 2_000, seed: 1 };

/// Results of a run.
pub struct Analysis {
    /// Experiments with trials, in their order.
    pub experiments: Vec<ExperimentResult>,
    /// Number of trials that count.
    pub trials: usize,
    /// Number of trials that do not count because their answers were wrong.
    pub void: usize,
    /// Number of trials during which the machine was busy.
    pub marked: usize,
    /// Noise of the machine; `None` with too few trials.
    pub noise: Option<Noise>,
    /// Machines and versions of the trials, without the load of the machines.
    pub environments: Vec<Environment>,
    /// Command that repeats the run.
    pub command: String,
    /// Designs that could not run on this machine.
    pub skipped: Vec<Skipped>,
}

/// Results of an experiment.
pub struct ExperimentResult {
    /// The experiment.
    pub experiment: &'static Experiment,
    /// Command that repeats it.
    pub command: String,
    /// Parameters with the same value in all trials.
    pub constant: Parameters,
    /// Main combination of the varying parameters: the first value of each, and as many threads as cores. It answers
    /// the experiment's question.
    pub main: Parameters,
    /// Trials by parameters, design and quantity.
    pub cells: Vec<CellResult>,
    /// Comparisons of designs: each design with the baseline, and the pairs that the original report compares.
    pub judgements: Vec<Judgement>,
    /// Growth of throughput with threads.
    pub scaling: Vec<Scaling>,
    /// Share of trials with a warm-up, which is not counted, and the largest warm-up as a share of its trial.
    pub warm_up: (f64, f64),
    /// Designs that could not run on this machine.
    pub skipped: Vec<Skipped>,
}

/// Trials of one design with one set of parameters, for one quantity.
pub struct CellResult {
    /// The quantity.
    pub quantity: &'static Quantity,
    /// Name of the design.
    pub design: &'static str,
    /// Parameters that vary within the experiment.
    pub parameters: Parameters,
    /// Values in the order of the trials.
    pub values: Vec<f64>,
    /// Block of each value.
    pub blocks: Vec<u64>,
    /// Median with its interval.
    pub median: Option<Interval>,
    /// Mean with its interval.
    pub mean: Option<Interval>,
}

/// Comparison of two designs.
pub struct Judgement {
    /// The quantity.
    pub quantity: &'static Quantity,
    /// The design.
    pub design: &'static str,
    /// Design with which it is compared.
    pub base: &'static str,
    /// Parameters that vary within the experiment.
    pub parameters: Parameters,
    /// Value of the design divided by that of the other design: the geometric mean over blocks.
    pub ratio: Interval,
    /// Statistical tests.
    pub comparison: Comparison,
    /// p-value of the comparison in pairs, Holm-adjusted over all comparisons of this quantity with these parameters.
    pub p_adjusted: f64,
    /// Verdict, in which "faster" means better.
    pub verdict: Verdict,
}

/// Laws of scaling, fitted to the throughput of a design over threads.
pub struct Scaling {
    /// Name of the design.
    pub design: &'static str,
    /// Parameters that vary within the experiment, without threads.
    pub parameters: Parameters,
    /// Numbers of threads, each with the trials' throughput.
    pub points: Vec<stats::Measured>,
    /// Amdahl's law, if it can be fitted.
    pub amdahl: Option<Amdahl>,
    /// The universal scalability law, if it can be fitted.
    pub scalability: Option<Scalability>,
}

impl Analysis {
    /// Analyzes a run. Ignores trials of experiments that this version does not know.
    #[must_use]
    pub fn of(data: &RawData) -> Self {
        let counted: Vec<&Record> =
            data.records.iter().filter(|record| !record.is_void()).collect();
        let before: Vec<f64> = data.run.calibrations_ns.iter().map(|time| *time as f64).collect();
        let during: Vec<f64> = counted.iter().map(|record| record.calibration_ns as f64).collect();
        let calibration = Calibration::of(&before);
        let is_off = |time: &&f64| calibration.is_some_and(|usual| usual.is_off(**time));
        let of = |experiment: &&'static Experiment| {
            let own = counted.iter().copied().filter(|record| record.experiment == experiment.name);
            let skipped = data.run.skipped.iter().filter(|of| of.experiment == experiment.name);
            let (own, skipped) = (own.collect::<Vec<_>>(), skipped.cloned().collect());
            ExperimentResult::of(experiment, &data.run.settings, &own, skipped)
        };
        Self {
            experiments: EXPERIMENTS.iter().filter_map(of).collect(),
            trials: counted.len(),
            void: data.records.len() - counted.len(),
            marked: during.iter().filter(is_off).count(),
            noise: calibration.and_then(|usual| usual.judge(&during)),
            environments: environments(&counted),
            command: data.run.settings.command(),
            skipped: data.run.skipped.clone(),
        }
    }
}

fn environments(records: &[&Record]) -> Vec<Environment> {
    let mut all: Vec<Environment> = Vec::new();
    for record in records {
        let environment = Environment { load: 0.0, ..record.environment.clone() };
        if !all.contains(&environment) {
            all.push(environment);
        }
    }
    all
}

impl ExperimentResult {
    /// Analyzes an experiment; `None` without trials.
    fn of(
        experiment: &'static Experiment,
        settings: &Settings,
        records: &[&Record],
        skipped: Vec<Skipped>,
    ) -> Option<Self> {
        let first = &records.first()?.parameters;
        let mut constant = Parameters::default();
        for (name, value) in first.iter() {
            if records.iter().all(|record| record.parameters.get(name) == Some(value)) {
                constant.set(name, value);
            }
        }
        let cells = cells(experiment, records, &constant);
        Some(Self {
            experiment,
            command: settings.command_of(experiment),
            main: without(&main_parameters(experiment, settings, records), &constant),
            judgements: judgements(experiment, &cells),
            scaling: scaling(experiment, &cells),
            warm_up: warm_up(records),
            constant,
            cells,
            skipped,
        })
    }

    /// Comparisons with the baseline that answer the question: those of the main quantity, with the main parameters.
    pub fn answers(&self) -> impl Iterator<Item = &Judgement> {
        let quantity = self.experiment.quantities.first().map(|quantity| quantity.name);
        self.judgements.iter().filter(move |judged| {
            judged.base == self.experiment.baseline
                && Some(judged.quantity.name) == quantity
                && judged.parameters == self.main
        })
    }

    /// Combinations of parameters, in order.
    #[must_use]
    pub fn combinations(&self) -> BTreeSet<&Parameters> {
        self.cells.iter().map(|cell| &cell.parameters).collect()
    }
}

/// Parameters without the constant ones.
fn without(parameters: &Parameters, constant: &Parameters) -> Parameters {
    constant.iter().fold(parameters.clone(), |all, (name, _)| all.without(name))
}

/// Main values: the first value of each parameter, and as many threads as cores or the nearest number.
fn main_parameters(
    experiment: &Experiment,
    settings: &Settings,
    records: &[&Record],
) -> Parameters {
    let mut main = Parameters::default();
    for parameter in experiment.parameters {
        settings
            .values_of(parameter)
            .first()
            .iter()
            .for_each(|value| main.set(parameter.name, **value));
    }
    let threads = records.iter().filter_map(|record| {
        let threads = record.parameters.get(THREADS)?;
        Some((threads.abs_diff(record.environment.cores), threads))
    });
    threads.min().into_iter().for_each(|(_, threads)| main.set(THREADS, threads));
    main
}

fn cells(
    experiment: &'static Experiment,
    records: &[&Record],
    constant: &Parameters,
) -> Vec<CellResult> {
    let mut by_cell: BTreeMap<(usize, Parameters, usize), Vec<(u64, f64)>> = BTreeMap::new();
    for record in records {
        let design = experiment.designs.iter().position(|design| design.name == record.design);
        let Some(design) = design else { continue };
        let varying = without(&record.parameters, constant);
        for (index, quantity) in experiment.quantities.iter().enumerate() {
            let key = (index, varying.clone(), design);
            let value = values::value(&record.measured, quantity);
            by_cell.entry(key).or_default().extend(value.map(|value| (record.block, value)));
        }
    }
    let cell = |((quantity, parameters, design), values): (_, Vec<(u64, f64)>)| {
        let (quantity, design): (usize, usize) = (quantity, design);
        let (blocks, values): (Vec<u64>, Vec<f64>) = values.into_iter().unzip();
        Some(CellResult {
            quantity: experiment.quantities.get(quantity)?,
            design: experiment.designs.get(design)?.name,
            parameters,
            median: BOOTSTRAP.bca(&values, Center::Median),
            mean: Interval::of_mean(&values),
            values,
            blocks,
        })
    };
    by_cell.into_iter().filter_map(cell).filter(|cell| !cell.values.is_empty()).collect()
}

/// Values of a design, the name of the other design, and the comparison.
type Compared<'a> = (&'a CellResult, &'static str, Comparison);

/// Compares each design with the baseline, and the pairs that the original report compares, for every quantity and
/// combination of parameters. Each combination is a table. p-values are adjusted within a table: adjusting over all
/// tables would require too many trials, and a reader looks for the answer in one table, [`ExperimentResult::main`].
fn judgements(experiment: &'static Experiment, cells: &[CellResult]) -> Vec<Judgement> {
    let others = experiment.designs.iter().map(|design| design.name);
    let pairs: BTreeSet<(&str, &str)> = others
        .filter(|design| *design != experiment.baseline)
        .map(|design| (design, experiment.baseline))
        .chain(experiment.claims.iter().copied())
        .collect();
    let mut tables: BTreeMap<(usize, &Parameters), Vec<Compared<'_>>> = BTreeMap::new();
    for cell in cells {
        for (_, base) in pairs.iter().filter(|(design, _)| *design == cell.design) {
            let same = |other: &&CellResult| {
                other.design == *base
                    && other.quantity.name == cell.quantity.name
                    && other.parameters == cell.parameters
            };
            let Some(base) = cells.iter().find(same) else { continue };
            if let Some(comparison) = compared_in_blocks(cell.quantity, &cell.pairs(base)) {
                let names = experiment.quantities.iter().map(|quantity| quantity.name);
                let place = names.take_while(|name| *name != cell.quantity.name).count();
                let table = tables.entry((place, &cell.parameters)).or_default();
                table.push((cell, base.design, comparison));
            }
        }
    }
    tables.into_values().flat_map(|table| judged(&table)).collect()
}

/// Verdicts on the comparisons of one table.
fn judged(table: &[Compared<'_>]) -> Vec<Judgement> {
    let comparisons: Vec<Comparison> = table.iter().map(|(.., comparison)| *comparison).collect();
    let judged = stats::verdicts(&comparisons, MARGIN);
    let judgement = |((cell, base, comparison), judged): (&Compared<'_>, stats::Judged)| {
        Some(Judgement {
            quantity: cell.quantity,
            design: cell.design,
            base,
            parameters: cell.parameters.clone(),
            ratio: ratio_of_values(cell.quantity, comparison)?,
            comparison: *comparison,
            p_adjusted: judged.p_adjusted,
            verdict: judged.verdict,
        })
    };
    table.iter().zip(judged).filter_map(judgement).collect()
}

impl CellResult {
    /// Pairs the values of this design with those of the other, for blocks in which both were measured.
    fn pairs(&self, other: &Self) -> Vec<(f64, f64)> {
        let others: BTreeMap<_, _> = other.blocks.iter().zip(&other.values).collect();
        let own = self.blocks.iter().zip(&self.values);
        own.filter_map(|(block, value)| Some((*value, **others.get(block)?))).collect()
    }
}

/// Converts a value to a cost: the inverse, if greater values are better.
fn cost(quantity: &Quantity, value: f64) -> f64 {
    if quantity.more_is_better { 1.0 / value } else { value }
}

/// Compares two independent samples, after conversion to costs.
pub(super) fn compared(quantity: &Quantity, new: &[f64], base: &[f64]) -> Option<Comparison> {
    let costs = |values: &[f64]| -> Vec<f64> {
        values.iter().map(|value| cost(quantity, *value)).collect()
    };
    stats::compare(&costs(new), &costs(base))
}

/// Compares the values of two designs in the same blocks, after conversion to costs.
pub(super) fn compared_in_blocks(quantity: &Quantity, pairs: &[(f64, f64)]) -> Option<Comparison> {
    let costs = pairs.iter().map(|(new, base)| (cost(quantity, *new), cost(quantity, *base)));
    stats::compare_pairs(&costs.collect::<Vec<_>>())
}

/// Converts the ratio of costs to the ratio of values.
pub(super) fn ratio_of_values(quantity: &Quantity, comparison: &Comparison) -> Option<Interval> {
    if quantity.more_is_better { comparison.ratio.inverse() } else { Some(comparison.ratio) }
}

fn scaling(experiment: &Experiment, cells: &[CellResult]) -> Vec<Scaling> {
    let mut series: BTreeMap<(Parameters, &'static str), Vec<stats::Measured>> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.quantity.name == Quantity::THROUGHPUT.name) {
        let Some(threads) = cell.parameters.get(THREADS) else { continue };
        let point = stats::Measured { x: threads as f64, trials: cell.values.clone() };
        series.entry((cell.parameters.without(THREADS), cell.design)).or_default().push(point);
    }
    let place = |design: &str| experiment.designs.iter().position(|other| other.name == design);
    let mut all: Vec<Scaling> = series
        .into_iter()
        .map(|((parameters, design), points)| Scaling {
            amdahl: stats::fit_amdahl(&points, BOOTSTRAP),
            scalability: stats::fit_scalability(&points, BOOTSTRAP),
            design,
            parameters,
            points,
        })
        .collect();
    all.sort_by_key(|scaling| (scaling.parameters.clone(), place(scaling.design)));
    all
}

fn warm_up(records: &[&Record]) -> (f64, f64) {
    let share = |record: &&Record| match values::warm_up(&record.measured) {
        WarmUp::Marks(0) | WarmUp::Unknown => None,
        WarmUp::Marks(marks) => Some(marks as f64 / record.measured.marks_ns.len() as f64),
    };
    let shares: Vec<f64> = records.iter().filter_map(share).collect();
    let most = shares.iter().copied().fold(0.0, f64::max);
    (shares.len() as f64 / records.len() as f64, most)
}
