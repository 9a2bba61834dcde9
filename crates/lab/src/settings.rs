//! Settings of a run, as given on the command line. They are stored next to the raw data, so that a run can be
//! continued.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiment::{Combine, DesignInfo, EXPERIMENTS, Experiment, Parameter, THREADS};
use crate::parameters::Parameters;
use crate::threads;

/// Maximum number of trials of each design with the same parameters.
pub const TRIALS_MAX: u64 = 1_000;
/// Minimum number of trials: an interval needs two values.
pub const TRIALS_MIN: u64 = 2;
/// Maximum number of repetitions of a comparison of designs with themselves.
pub const REPEATS_MAX: u64 = 1_000;
/// Suffix of a design's name, for the second trial of the same design in an A/A comparison.
pub(crate) const AGAIN: &str = " again";

/// Scale of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Few values of each parameter and few trials: minutes.
    Quick,
    /// All parameter values of the reports, and as many trials as the pilot determines.
    Full,
}

impl Scale {
    /// Number of trials of each cell in the pilot.
    pub(crate) const fn pilot_trials(self) -> u64 {
        match self {
            Self::Quick => 4,
            Self::Full => 5,
        }
    }

    /// Maximum number of trials of each cell that the pilot may determine.
    pub(crate) const fn trials_max(self) -> u64 {
        match self {
            Self::Quick => 5,
            Self::Full => 10,
        }
    }

    /// Half the wanted width of the interval of a ratio, relative to the ratio.
    pub(crate) const fn half_width(self) -> f64 {
        match self {
            Self::Quick => 0.05,
            Self::Full => 0.03,
        }
    }
}

/// Settings of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Names of experiments, without duplicates.
    pub experiments: Vec<String>,
    /// Scale of the measurements.
    pub scale: Scale,
    /// Names of the designs to compare, instead of all.
    pub designs: Option<Vec<String>>,
    /// Numbers of threads, instead of those of the scale.
    pub threads: Option<Vec<u64>>,
    /// Values of parameters by name, instead of those of the scale.
    pub values: BTreeMap<String, Vec<u64>>,
    /// Number of trials, instead of the number that the pilot determines.
    pub trials: Option<u64>,
    /// Number of repetitions in which each design is compared with itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<u64>,
    /// Seed of the order of trials and of all workloads.
    pub seed: u64,
}

/// Design with a set of parameters. Trials of the same cell are repetitions.
#[derive(Clone)]
pub struct Cell {
    /// The experiment.
    pub experiment: &'static Experiment,
    /// Name of the design, with a suffix in an A/A comparison.
    pub design: String,
    /// All parameters.
    pub parameters: Parameters,
}

/// Selected design that cannot run on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the design.
    pub design: String,
    /// Reason why it cannot run.
    pub reason: String,
}

impl Cell {
    /// Key of the cell: see [`Record::key`](crate::record::Record::key).
    pub(crate) fn key(&self) -> (&str, &str, &Parameters) {
        (self.experiment.name, &self.design, &self.parameters)
    }
}

impl Settings {
    /// Experiments of the run, by number.
    ///
    /// # Errors
    /// If an experiment is unknown, or none is named.
    pub fn experiments(&self) -> Result<Vec<&'static Experiment>, String> {
        let all = EXPERIMENTS.map(|experiment| experiment.name).join(", ");
        for name in &self.experiments {
            if Experiment::named(name).is_none() {
                return Err(format!("there is no experiment {name:?}; there are: {all}, or all"));
            }
        }
        if self.experiments.is_empty() {
            return Err(format!("name an experiment: {all}, or all"));
        }
        let named =
            |experiment: &&Experiment| self.experiments.iter().any(|name| *name == experiment.name);
        Ok(EXPERIMENTS.iter().copied().filter(named).collect())
    }

    /// All cells: each design with each combination of the values.
    ///
    /// # Errors
    /// If an experiment, a parameter or a value is not valid. The error lists the valid ones.
    pub fn cells(&self) -> Result<Vec<Cell>, String> {
        let experiments = self.experiments()?;
        if let Some(trials) = self.trials
            && !(TRIALS_MIN..=TRIALS_MAX).contains(&trials)
        {
            return Err(format!(
                "--trials must be from {TRIALS_MIN} to {TRIALS_MAX}, not {trials}"
            ));
        }
        if let Some(repeats) = self.repeats
            && (self.trials.is_none() || !(1..=REPEATS_MAX).contains(&repeats))
        {
            return Err(format!(
                "--against-itself must be from 1 to {REPEATS_MAX}, not {repeats}, and needs --trials"
            ));
        }
        if self.threads.iter().chain(self.values.values()).any(Vec::is_empty) {
            return Err("a parameter has no values".to_owned());
        }
        self.check_threads()?;
        for name in self.values.keys() {
            let has = |experiment: &&Experiment| {
                experiment.parameters.iter().any(|parameter| parameter.name == name)
            };
            if !experiments.iter().any(has) {
                return Err(format!("no chosen experiment has a parameter {name:?}"));
            }
        }
        let mut cells = Vec::new();
        for experiment in experiments {
            let designs = self.designs_of(experiment)?;
            for parameters in self.combinations(experiment) {
                experiment
                    .validate(&parameters)
                    .map_err(|why| format!("experiment {}: {why}", experiment.name))?;
                let endings: &[&str] = if self.repeats.is_some() { &["", AGAIN] } else { &[""] };
                let names = designs.iter().flat_map(|design| {
                    endings.iter().map(|ending| format!("{}{ending}", design.name))
                });
                let parameters = || parameters.clone();
                cells.extend(names.map(|design| Cell {
                    experiment,
                    design,
                    parameters: parameters(),
                }));
            }
        }
        Ok(cells)
    }

    /// Selected designs that can run here.
    fn designs_of(&self, experiment: &Experiment) -> Result<Vec<&'static DesignInfo>, String> {
        let chosen: Vec<_> = self.chosen(experiment).collect();
        if chosen.is_empty() {
            let all: Vec<_> = experiment.designs.iter().map(|design| design.name).collect();
            let (name, all) = (experiment.name, all.join(", "));
            return Err(format!("experiment {name} has no such design; it has: {all}"));
        }
        let reasons: Vec<&str> = chosen.iter().filter_map(|design| (design.absent)()).collect();
        if reasons.len() == chosen.len() {
            let (name, reasons) = (experiment.name, reasons.join("; "));
            return Err(format!("no chosen design of experiment {name} can run here: {reasons}"));
        }
        Ok(chosen.into_iter().filter(|design| (design.absent)().is_none()).collect())
    }

    fn chosen<'a>(
        &'a self,
        experiment: &Experiment,
    ) -> impl Iterator<Item = &'static DesignInfo> + 'a {
        let chosen = self.designs.as_deref();
        experiment.designs.iter().filter(move |design| {
            chosen.is_none_or(|chosen| chosen.iter().any(|name| name == design.name))
        })
    }

    /// Selected designs that cannot run here.
    ///
    /// # Errors
    /// Those of [`Settings::experiments`].
    pub fn skipped(&self) -> Result<Vec<Skipped>, String> {
        let mut all = Vec::new();
        for experiment in self.experiments()? {
            let reason = |design: &'static DesignInfo| Some((design.name, (design.absent)()?));
            all.extend(self.chosen(experiment).filter_map(reason).map(|(design, reason)| {
                Skipped {
                    experiment: experiment.name.to_owned(),
                    design: design.to_owned(),
                    reason: reason.to_owned(),
                }
            }));
        }
        Ok(all)
    }

    /// Command line that repeats an experiment of the run, with its designs and parameters.
    pub(crate) fn command_of(&self, experiment: &Experiment) -> String {
        let mut settings = self.clone();
        settings.experiments = vec![experiment.name.to_owned()];
        settings.designs = self
            .designs
            .as_ref()
            .map(|_| self.chosen(experiment).map(|design| design.name.to_owned()).collect());
        let has = |name: &str| experiment.parameters.iter().any(|parameter| parameter.name == name);
        settings.values.retain(|name, _| has(name));
        settings.command()
    }

    /// Command line that repeats the run.
    pub(crate) fn command(&self) -> String {
        let list = |values: &[u64]| values.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let mut words = vec![format!("roost lab run {}", self.experiments.join(" "))];
        words.extend((self.scale == Scale::Full).then(|| "--full".to_owned()));
        words.extend(self.designs.as_ref().map(|names| format!("--designs {}", names.join(","))));
        words.extend(self.threads.as_ref().map(|threads| format!("--threads {}", list(threads))));
        words.extend(self.values.iter().map(|(name, of)| format!("--set {name}={}", list(of))));
        words.extend(self.trials.map(|trials| format!("--trials {trials}")));
        words.extend(self.repeats.map(|repeats| format!("--against-itself {repeats}")));
        words.push(format!("--seed {}", self.seed));
        words.join(" ")
    }

    fn check_threads(&self) -> Result<(), String> {
        let (cores, allowed) = (threads::cores(), threads::allowed());
        let wrong = self.threads.iter().flatten().find(|threads| !(1..=allowed).contains(threads));
        match wrong {
            Some(wrong) => Err(format!(
                "--threads {wrong} is not possible: this machine has {cores} cores, so 1 to {allowed} threads are \
                 allowed"
            )),
            None => Ok(()),
        }
    }

    /// Combinations of values to measure.
    fn combinations(&self, experiment: &Experiment) -> Vec<Parameters> {
        let mut values: Vec<(&str, Vec<u64>)> = Vec::new();
        for parameter in experiment.parameters {
            values.push((parameter.name, self.values_of(parameter).to_vec()));
        }
        let threads = self.threads.clone().unwrap_or_else(|| self.threads_of(experiment));
        match experiment.combine {
            Combine::All => all_combinations(values.into_iter().chain([(THREADS, threads)])),
            Combine::OneAtATime => {
                let most_first: Vec<u64> = threads.into_iter().rev().collect();
                one_at_a_time(values.into_iter().chain([(THREADS, most_first)]))
            }
        }
    }

    /// Values of a parameter to measure. The first is the main value.
    pub(crate) fn values_of<'a>(&'a self, parameter: &'a Parameter) -> &'a [u64] {
        let usual = match self.scale {
            Scale::Quick => parameter.quick,
            Scale::Full => parameter.full,
        };
        self.values.get(parameter.name).map_or(usual, Vec::as_slice)
    }

    /// Numbers of threads: 1, 2, 4 and so on, and the maximum. In a quick run, only the maximum, unless the experiment
    /// is about threads.
    fn threads_of(&self, experiment: &Experiment) -> Vec<u64> {
        let most = match self.scale {
            Scale::Quick => threads::cores(),
            Scale::Full => threads::cores() * experiment.threads_per_core,
        };
        if self.scale == Scale::Quick && experiment.threads_per_core == 1 {
            return vec![most];
        }
        let mut numbers: Vec<u64> =
            (0..).map(|power| 1 << power).take_while(|number| *number < most).collect();
        numbers.push(most);
        numbers
    }
}

fn all_combinations<'a>(values: impl Iterator<Item = (&'a str, Vec<u64>)>) -> Vec<Parameters> {
    let mut all = vec![Parameters::default()];
    for (name, values) in values {
        let with = |parameters: &Parameters, value: &u64| parameters.with(name, *value);
        all = all
            .iter()
            .flat_map(|parameters| values.iter().map(|value| with(parameters, value)))
            .collect();
    }
    all
}

/// Combinations: the first values of all parameters; then, for one parameter at a time, each of its other values.
fn one_at_a_time<'a>(values: impl Iterator<Item = (&'a str, Vec<u64>)>) -> Vec<Parameters> {
    let (mut first, mut others) = (Parameters::default(), Vec::new());
    for (name, values) in values {
        if let Some((value, rest)) = values.split_first() {
            first.set(name, *value);
            others.extend(rest.iter().map(|other| (name, *other)));
        }
    }
    let each = others.iter().map(|(name, value)| first.with(name, *value));
    std::iter::once(first.clone()).chain(each).collect()
}
