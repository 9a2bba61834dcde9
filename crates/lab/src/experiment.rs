//! Description of an experiment: a question, designs, parameters, and a function that runs one trial.

use std::ops::RangeInclusive;

use crate::measured::Measured;
use crate::parameters::Parameters;
use crate::trial::TrialError;
use crate::{feed, keys, recognizer, simulator, stories, threads};

/// All experiments, by number.
pub static EXPERIMENTS: [&Experiment; 12] = [
    &feed::USERS_PER_ACTOR,
    &feed::TIMELINES,
    &feed::PROFILES,
    &feed::SENDS,
    &feed::BROADCAST,
    &stories::EXPERIMENT,
    &keys::EXPERIMENT,
    &recognizer::LATENCY,
    &recognizer::THROUGHPUT,
    &simulator::EXPERIMENT,
    &feed::CELEBRITY,
    &feed::STALENESS,
];

/// Name of the parameter for the number of worker threads of the runtime. Every experiment has it.
pub const THREADS: &str = "threads";

/// An experiment.
pub struct Experiment {
    /// Name on the command line.
    pub name: &'static str,
    /// Number of the experiment in the list of experiments.
    pub number: &'static str,
    /// Title, one line.
    pub title: &'static str,
    /// Question that the experiment answers.
    pub question: &'static str,
    /// Description of the workload.
    pub setup: &'static str,
    /// Known results of the original report.
    pub original: &'static str,
    /// Expectations of the original report: pairs of designs, the better design first.
    pub claims: &'static [(&'static str, &'static str)],
    /// Design with which the others are compared.
    pub baseline: &'static str,
    /// Compared designs.
    pub designs: &'static [DesignInfo],
    /// Parameters besides [`THREADS`].
    pub parameters: &'static [Parameter],
    /// Combinations of the parameters' values to measure.
    pub combine: Combine,
    /// Maximum number of threads per core in a full run. It is more than 1 if the experiment is about threads.
    pub threads_per_core: u64,
    /// Compared quantities, most important first.
    pub quantities: &'static [Quantity],
    /// Checks whether parameters are valid together. Each is already known to be within its range.
    pub(crate) check: fn(&Parameters) -> Result<(), String>,
    /// Computes the checksum of the right answers, with a plain model and a seed.
    pub(crate) expected: fn(&Parameters, u64) -> u64,
    /// Runs a trial of a design, with a seed.
    pub(crate) run: fn(&str, &Parameters, u64) -> Result<Measured, TrialError>,
}

/// Design of an experiment.
pub struct DesignInfo {
    /// Name in tables.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Returns the reason if this machine cannot run the design; it is then skipped.
    pub absent: fn() -> Option<&'static str>,
}

impl DesignInfo {
    /// Describes a design that runs on every machine.
    pub(crate) const fn new(name: &'static str, about: &'static str) -> Self {
        Self { name, about, absent: || None }
    }
}

/// Parameter of an experiment.
pub struct Parameter {
    /// Name for `--set`.
    pub name: &'static str,
    /// Description.
    pub about: &'static str,
    /// Allowed values.
    pub range: RangeInclusive<u64>,
    /// Values in a quick run; see [`Combine`].
    pub quick: &'static [u64],
    /// Values in a full run.
    pub full: &'static [u64],
}

/// Combinations of values to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// All combinations.
    All,
    /// One combination of main values (the first value of each parameter, and the last number of threads), and all
    /// combinations in which one of them is replaced.
    OneAtATime,
}

/// Quantity that is compared between designs.
pub struct Quantity {
    /// Name: that of [`Quantity::THROUGHPUT`] or [`Quantity::CPU`], which are computed, or else a key in
    /// [`Measured::quantities`].
    pub name: &'static str,
    /// Title for readers.
    pub title: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Whether greater values are better.
    pub more_is_better: bool,
    /// Words for the better and the worse of two designs.
    pub words: [&'static str; 2],
}

const SPEED: [&str; 2] = ["faster", "slower"];
const NEED: [&str; 2] = ["needs less", "needs more"];

impl Quantity {
    /// Operations per second after the warm-up.
    pub const THROUGHPUT: Self = Self {
        name: "throughput",
        title: "Throughput",
        unit: "operations per second",
        more_is_better: true,
        words: SPEED,
    };
    /// Processor time per operation, over the whole trial.
    pub const CPU: Self = Self {
        name: "cpu",
        title: "Processor time",
        unit: "µs per operation",
        more_is_better: false,
        words: NEED,
    };
    /// Median time of requests.
    pub const P50: Self = Self {
        name: "p50_us",
        title: "Median latency",
        unit: "µs",
        more_is_better: false,
        words: SPEED,
    };
    /// 99th percentile of the time of requests.
    pub const P99: Self = Self {
        name: "p99_us",
        title: "99th percentile of the latency",
        unit: "µs",
        more_is_better: false,
        words: SPEED,
    };
    /// Memory of the process that was added while the users, their follows and posts were created.
    pub const MEMORY: Self = Self {
        name: "memory_per_user_bytes",
        title: "Memory per user",
        unit: "bytes",
        more_is_better: false,
        words: NEED,
    };
    /// Percentage of reads that contained the post accepted before.
    pub const FRESH: Self = Self {
        name: "fresh_percent",
        title: "Fresh reads",
        unit: "% of reads",
        more_is_better: true,
        words: ["fresher", "staler"],
    };
    /// Percentage of reads that lacked a post accepted before.
    pub const STALE: Self = Self {
        name: "stale_percent",
        title: "Stale reads",
        unit: "% of reads",
        more_is_better: false,
        words: ["fresher", "staler"],
    };
    /// Time from sending a post until it is in every timeline.
    pub const DELIVERY: Self = Self {
        name: "delivery_us",
        title: "Time until the last follower has a post",
        unit: "µs",
        more_is_better: false,
        words: SPEED,
    };
    /// Value of [`Quantity::DELIVERY`] per follower.
    pub const DELIVERY_EACH: Self = Self {
        name: "delivery_per_follower_us",
        title: "Time for each follower",
        unit: "µs",
        more_is_better: false,
        words: SPEED,
    };
}

impl Experiment {
    /// Experiment of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        EXPERIMENTS.iter().copied().find(|experiment| experiment.name == name)
    }

    /// Design of this name.
    #[must_use]
    pub fn design(&self, name: &str) -> Option<&'static DesignInfo> {
        self.designs.iter().find(|design| design.name == name)
    }

    /// Checks the parameters of a trial.
    ///
    /// # Errors
    /// An error that names the missing, unknown or invalid parameter.
    pub fn validate(&self, parameters: &Parameters) -> Result<(), String> {
        for (name, value) in parameters.iter() {
            let range = match self.parameters.iter().find(|parameter| parameter.name == name) {
                Some(parameter) => parameter.range.clone(),
                None if name == THREADS => 1..=threads::allowed(),
                None => return Err(format!("experiment {} has no parameter {name}", self.name)),
            };
            if !range.contains(&value) {
                let (from, to) = range.into_inner();
                return Err(format!("{name} must be from {from} to {to}, not {value}"));
            }
        }
        let names = self.parameters.iter().map(|parameter| parameter.name).chain([THREADS]);
        for name in names {
            if parameters.get(name).is_none() {
                return Err(format!("experiment {} needs the parameter {name}", self.name));
            }
        }
        (self.check)(parameters)
    }
}
