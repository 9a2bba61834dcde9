//! What an experiment is: a question, designs, parameters, and a function that makes one trial.

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

/// The name of the parameter that every experiment has: worker threads of the runtime.
pub const THREADS: &str = "threads";

/// An experiment.
pub struct Experiment {
    /// The name on the command line.
    pub name: &'static str,
    /// The number in the list of the reports' experiments.
    pub number: &'static str,
    /// One line.
    pub title: &'static str,
    /// What it answers.
    pub question: &'static str,
    /// How the workload is driven.
    pub setup: &'static str,
    /// What is known of the original report.
    pub original: &'static str,
    /// What the original suggests: pairs of designs, the better one first.
    pub claims: &'static [(&'static str, &'static str)],
    /// The design that the others are compared with.
    pub baseline: &'static str,
    /// The designs.
    pub designs: &'static [DesignInfo],
    /// The parameters besides [`THREADS`].
    pub parameters: &'static [Parameter],
    /// Which combinations of their values are measured.
    pub combine: Combine,
    /// A full run uses up to this many threads for each core: more than 1 if the experiment is about threads.
    pub threads_per_core: u64,
    /// What is compared, the most important first.
    pub quantities: &'static [Quantity],
    /// Whether parameters that are each within their range go together.
    pub(crate) check: fn(&Parameters) -> Result<(), String>,
    /// The checksum of the right answers, from a plain model.
    pub(crate) expected: fn(&Parameters, u64) -> u64,
    /// Makes a trial of a design, with a seed.
    pub(crate) run: fn(&str, &Parameters, u64) -> Result<Measured, TrialError>,
}

/// A design that takes part in an experiment.
pub struct DesignInfo {
    /// The name in tables.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Why it cannot run on this machine: then it is skipped.
    pub absent: fn() -> Option<&'static str>,
}

impl DesignInfo {
    /// One that can run everywhere.
    pub(crate) const fn new(name: &'static str, about: &'static str) -> Self {
        Self { name, about, absent: || None }
    }
}

/// A parameter of an experiment.
pub struct Parameter {
    /// The name for `--set`.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// What is allowed.
    pub range: RangeInclusive<u64>,
    /// Its values in a quick run; see [`Combine`].
    pub quick: &'static [u64],
    /// Its values in a full run.
    pub full: &'static [u64],
}

/// Which combinations of values are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// All.
    All,
    /// Those in which at most one parameter, or the number of threads, has another than its first value; the number of
    /// threads is otherwise the last one.
    OneAtATime,
}

/// Something that is compared between designs.
pub struct Quantity {
    /// The name in [`Measured::quantities`], or of one that every trial has: see the constants.
    pub name: &'static str,
    /// What a reader calls it.
    pub title: &'static str,
    /// The unit.
    pub unit: &'static str,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// What is said of the better and of the worse of two designs.
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
    /// Processor time of an operation, over the whole trial.
    pub const CPU: Self = Self {
        name: "cpu",
        title: "Processor time",
        unit: "µs per operation",
        more_is_better: false,
        words: NEED,
    };
    /// The time that half of the requests take at most.
    pub const P50: Self = Self {
        name: "p50_us",
        title: "Median latency",
        unit: "µs",
        more_is_better: false,
        words: SPEED,
    };
    /// The time that 99 of 100 requests take at most.
    pub const P99: Self = Self {
        name: "p99_us",
        title: "99th percentile of the latency",
        unit: "µs",
        more_is_better: false,
        words: SPEED,
    };
    /// Growth of the process while the users, their follows and posts were made.
    pub const MEMORY: Self = Self {
        name: "memory_per_user_bytes",
        title: "Memory per user",
        unit: "bytes",
        more_is_better: false,
        words: NEED,
    };
    /// Reads that had the post that was accepted before.
    pub const FRESH: Self = Self {
        name: "fresh_percent",
        title: "Fresh reads",
        unit: "% of reads",
        more_is_better: true,
        words: ["fresher", "staler"],
    };
    /// Reads that lacked a post that was accepted before.
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
    /// [`Quantity::DELIVERY`] for each follower.
    pub const DELIVERY_EACH: Self = Self {
        name: "delivery_per_follower_us",
        title: "Time for each follower",
        unit: "µs",
        more_is_better: false,
        words: SPEED,
    };
}

impl Experiment {
    /// The experiment of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        EXPERIMENTS.iter().copied().find(|experiment| experiment.name == name)
    }

    /// The design of this name.
    #[must_use]
    pub fn design(&self, name: &str) -> Option<&'static DesignInfo> {
        self.designs.iter().find(|design| design.name == name)
    }

    /// Checks the parameters of a trial.
    ///
    /// # Errors
    /// Says which is missing, unknown or out of range.
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
