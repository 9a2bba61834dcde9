//! Runner: makes the planned trials one after the other, and records each immediately.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::environment::Environment;
use crate::measured::Measured;
use crate::plan::{Plan, Planned};
use crate::record::{DataError, Journal, Record, Run};
use crate::settings::Settings;
use crate::trial::Request;

/// Number of calibrations before the first trial.
const CALIBRATIONS: usize = 10;

/// Maker of trials. In a run, each trial has its own process.
pub trait Launch {
    /// Makes a trial. The trial ends if the future is dropped.
    fn trial(&mut self, request: &Request) -> impl Future<Output = Result<Measured, String>>;

    /// Time of the calibration loop, in nanoseconds.
    fn calibrate(&mut self) -> u64;

    /// Machine and version of the trials.
    fn environment(&mut self) -> Environment;
}

/// Progress of a run.
pub struct Progress<'a> {
    /// Last finished trial.
    pub record: &'a Record,
    /// Number of trials that count.
    pub done: u64,
    /// Number of trials of the run, as far as known. The pilot may increase it.
    pub total: u64,
    /// Estimated time until all trials are made.
    pub left: Duration,
}

/// Ending of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All trials are made.
    Complete,
    /// The run was cancelled. Its measurements are stored, and it can be resumed.
    Cancelled,
}

/// Error that ended a run early. The measurements are stored.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The settings are not valid.
    #[error("{0}")]
    Settings(String),
    /// Raw data cannot be read or written.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A trial ended without a result.
    #[error("a trial of {design} in {experiment} failed: {why}")]
    Trial {
        /// Name of the experiment.
        experiment: String,
        /// Name of the design.
        design: String,
        /// Cause.
        why: String,
    },
    /// A design gave wrong answers.
    #[error(
        "wrong answers: {design} in {experiment} with {parameters}, seed {seed}; the trial is void"
    )]
    WrongAnswers {
        /// Name of the experiment.
        experiment: String,
        /// Name of the design.
        design: String,
        /// Parameters as text.
        parameters: String,
        /// Seed of the workload.
        seed: u64,
    },
}

/// Makes the trials of a run, and writes raw data to a directory. With `resume`, continues the directory's run. Calls
/// `show` after every trial. Ends when `cancelled` becomes true or its sender is dropped.
///
/// # Errors
/// [`RunError`]. Invalid settings and an unwritable directory are reported before the first trial.
pub async fn run(
    settings: &Settings,
    (dir, resume): (&Path, bool),
    launch: &mut impl Launch,
    mut show: impl FnMut(&Progress<'_>),
    mut cancelled: watch::Receiver<bool>,
) -> Result<End, RunError> {
    let plan = Plan::new(settings).map_err(RunError::Settings)?;
    let (mut journal, mut records) = if resume {
        let (journal, data) = Journal::resume(dir, settings)?;
        (journal, data.records)
    } else {
        let journal = Journal::create(dir)?;
        let calibrations = (0..CALIBRATIONS).map(|_| launch.calibrate()).collect();
        let skipped = settings.skipped().map_err(RunError::Settings)?;
        journal.begin(&Run::new(settings.clone(), calibrations, skipped))?;
        (journal, Vec::new())
    };
    let mut pace = Pace::default();
    loop {
        let remaining = plan.remaining(&records);
        if remaining.is_empty() {
            return Ok(End::Complete);
        }
        let mut left = remaining.as_slice();
        while let Some((planned, rest)) = left.split_first() {
            left = rest;
            let start = Instant::now();
            let order = records.len() as u64;
            let record = tokio::select! {
                biased;
                _ = cancelled.wait_for(|cancelled| *cancelled) => return Ok(End::Cancelled),
                record = trial(planned, order, launch) => record?,
            };
            journal.add(&record)?;
            if record.is_void() {
                return Err(wrong_answers(&record));
            }
            pace.add(planned, start.elapsed());
            records.push(record);
            if let Some(record) = records.last() {
                let done = records.iter().filter(|record| !record.is_void()).count() as u64;
                let (total, left) = (done + left.len() as u64, pace.estimate(left));
                show(&Progress { record, done, total, left });
            }
        }
    }
}

async fn trial(
    planned: &Planned<'_>,
    order: u64,
    launch: &mut impl Launch,
) -> Result<Record, RunError> {
    let (cell, seed) = (planned.cell, planned.seed);
    let (experiment, design) = (cell.experiment.name.to_owned(), cell.design.clone());
    let parameters = cell.parameters.clone();
    let request = Request { experiment, design, parameters, seed };
    let calibration_ns = launch.calibrate();
    let environment = launch.environment();
    let measured = launch.trial(&request).await;
    let Request { experiment, design, parameters, seed } = request;
    let measured = match measured {
        Ok(measured) => measured,
        Err(why) => return Err(RunError::Trial { experiment, design, why }),
    };
    Ok(Record {
        expected: (cell.experiment.expected)(&parameters, seed),
        experiment,
        design,
        parameters,
        block: planned.block,
        order,
        seed,
        calibration_ns,
        measured,
        environment,
    })
}

fn wrong_answers(record: &Record) -> RunError {
    RunError::WrongAnswers {
        experiment: record.experiment.clone(),
        design: record.design.clone(),
        parameters: record.parameters.to_string(),
        seed: record.seed,
    }
}

/// Durations of trials so far, by experiment and design.
#[derive(Default)]
struct Pace {
    taken: HashMap<(&'static str, String), (Duration, u32)>,
    all: (Duration, u32),
}

impl Pace {
    fn add(&mut self, planned: &Planned<'_>, took: Duration) {
        let cell = planned.cell;
        let of_design = self.taken.entry((cell.experiment.name, cell.design.clone())).or_default();
        for sum in [of_design, &mut self.all] {
            *sum = (sum.0 + took, sum.1 + 1);
        }
    }

    /// Expected time of these trials: the mean time of trials of the same design, or of all trials.
    fn estimate(&self, trials: &[Planned<'_>]) -> Duration {
        let mean = |trial: &Planned<'_>| {
            let key = (trial.cell.experiment.name, trial.cell.design.clone());
            let (sum, count) = self.taken.get(&key).copied().unwrap_or(self.all);
            sum / count.max(1)
        };
        trials.iter().map(mean).sum()
    }
}
