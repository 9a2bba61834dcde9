//! Search for the capacity of a server: the highest rate of requests at which it meets an objective.
//!
//! A trial drives the server at one rate in an open loop, and meets the objective or does not. Near the limit the
//! result is random, so the capacity is defined as the rate at which half of the trials meet the objective. The search
//! doubles the rate until a rate fails twice; this gives a bracket. Then it measures the capacity repeatedly: each
//! repeat bisects its own bracket, on a logarithmic scale, until the bracket is narrow. The brackets of the repeats are
//! shifted against each other, for two reasons:
//!
//! - Each repeat tries different rates. The error of bisection thus varies between repeats like other errors, and is
//!   included in the interval.
//! - Some repeats approach the limit from above and some from below. A server that still recovers from an overload or
//!   has cold caches thus does not determine the result alone.
//!
//! Tests count how often the interval contains the true capacity, on simulated servers with random results and with
//! five repeats. The share of such intervals depends on the rate at which one tenth of the trials still meet the
//! objective: it is 95 % if this rate is 7 % above the capacity, 94 % if it is 25 % above, and 88 % if it is 55 %
//! above.
//!
//! If the generator was too slow in a trial, the trial is inconclusive, and the search continues below that rate. If
//! the limit is not found there, the result is "at least".
//!
//! The state is the list of trials; brackets are derived from it.

mod climb;
mod repeat;
mod simulated;
pub(crate) mod text;

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::Serialize;
use stats::Interval;

use crate::SimError;
use crate::slo::{Breach, Measures, Slo};
pub use simulated::SimulatedTrials;
pub use text::Step;

/// The lowest rate that is tried, in requests per second.
pub const FLOOR_PER_S: f64 = 1.0;
/// Maximum number of repeats. More repeats hardly make the interval narrower.
pub const REPEATS_MAX: usize = 31;
/// Minimum share of the due requests that a server must complete.
const DONE_SHARE_MIN: f64 = 0.99;

/// Maximum number of repetitions of trials in which the generator was too slow, perhaps for a temporary reason.
const AGAIN_MAX: usize = 3;

/// Drives the server at one rate.
pub trait Trials {
    /// Drives the server with `rate_per_s` requests per second and returns the measurements.
    ///
    /// # Errors
    /// If nothing could be measured, or the run was cancelled; the search ends with this error.
    fn run(&mut self, rate_per_s: f64) -> impl Future<Output = Result<Measures, SimError>> + Send;
}

/// The options of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Search {
    /// The first rate tried, in requests per second.
    pub start_per_s: f64,
    /// The highest rate tried, in requests per second.
    pub rate_per_s_max: f64,
    /// Number of measurements of the capacity, 2 to [`REPEATS_MAX`].
    pub repeats: usize,
    /// Width at which a repeat ends its bisection, as a share of the rate: 0.01 to 0.1 (10 %).
    pub resolution: f64,
}

impl Default for Search {
    /// Five repeats with a resolution of 5 %, from 500 to at most a million requests per second.
    fn default() -> Search {
        Search { start_per_s: 500.0, rate_per_s_max: 1e6, repeats: 5, resolution: 0.05 }
    }
}

impl Search {
    fn check(&self) -> Result<(), SimError> {
        let bad = |problem: String| Err(SimError::BadOption(problem));
        let Search { start_per_s, rate_per_s_max, repeats, resolution } = *self;
        if !(FLOOR_PER_S..=rate_per_s_max).contains(&start_per_s) || !rate_per_s_max.is_finite() {
            return bad(format!("a search starts at 1 to {rate_per_s_max} requests/s"));
        }
        if !(2..=REPEATS_MAX).contains(&repeats) {
            return bad(format!("an interval needs 2 to {REPEATS_MAX} repeats, not {repeats}"));
        }
        if !(0.01..=0.1).contains(&resolution) {
            return bad(format!("the resolution of rates is 1 to 10 %, not {resolution}"));
        }
        Ok(())
    }

    /// Expected number of trials if the capacity is within a factor of ten of the start, and their maximum number.
    pub fn trials(&self) -> TrialCount {
        // The climb takes about four doublings, and tries the last rate twice.
        let climb = 6;
        TrialCount {
            // Every second repeat also tries one end of its bracket.
            about: climb + self.repeats * self.halvings() + self.repeats.div_ceil(2),
            most: climb::trials_max(self) + self.repeats * repeat::trials_max(self) + AGAIN_MAX,
        }
    }

    /// Number of bisections that narrow a factor of two to the resolution.
    fn halvings(&self) -> usize {
        (2.0_f64.ln() / self.resolution.ln_1p()).log2().ceil() as usize
    }
}

/// The number of trials of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TrialCount {
    /// The expected number.
    pub about: usize,
    /// The maximum.
    pub most: usize,
}

impl TrialCount {
    /// Formats the number of trials of this length and their duration in one line.
    pub fn describe(&self, trial: Duration) -> String {
        let minutes = |trials: usize| (trial.as_secs_f64() * trials as f64 / 60.0).ceil();
        let (about, most) = (minutes(self.about), minutes(self.most));
        format!(
            "about {} trials of {} s each, {about:.0} min; at most {}, {most:.0} min",
            self.about,
            trial.as_secs_f64(),
            self.most
        )
    }
}

/// The result of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The objective was met.
    Holds,
    /// The objective was not met.
    Fails,
    /// The generator was too slow: the trial is inconclusive.
    Unknown,
}

/// Trial at one rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// Number of the trial, from 1.
    pub number: usize,
    /// The repeat it belongs to, from 1; `None` in the search for the first bracket.
    pub repeat: Option<usize>,
    /// The requested rate, in requests per second.
    pub rate_per_s: f64,
    /// Result of the trial.
    pub verdict: Verdict,
    /// Objectives that were not met.
    pub breaches: Vec<Breach>,
    /// The measurements.
    pub measures: Measures,
}

impl Trial {
    fn judged(
        number: usize,
        repeat: Option<usize>,
        rate: f64,
        mut measures: Measures,
        slo: &Slo,
    ) -> Trial {
        if measures.asked_per_s <= 0.0 {
            measures.inconclusive.push("nothing was due in the trial: it is too short".to_owned());
        }
        let breaches = slo.check(&measures);
        let verdict = if !measures.inconclusive.is_empty() {
            Verdict::Unknown
        } else if breaches.is_empty() && measures.faults == 0 && !falls_behind(&measures) {
            Verdict::Holds
        } else {
            Verdict::Fails
        };
        Trial { number, repeat, rate_per_s: rate, verdict, breaches, measures }
    }
}

/// Whether the server completed fewer than `DONE_SHARE_MIN` of the due requests. Latencies do not always show this: if
/// the queue of the server grows in a short run, only few requests are slow.
fn falls_behind(measures: &Measures) -> bool {
    measures.done_per_s < DONE_SHARE_MIN * measures.asked_per_s
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Finding {
    /// The objective is met up to this rate.
    ///
    /// The interval is Student's t on the logarithms of the repeats: it covers the mean of very many repeats with this
    /// server, machine and load at the time of the search. It says nothing about another time or machine, or a server
    /// with more data. At the rate itself, about half of the trials meet the objective.
    Holds {
        /// The geometric mean of the repeats with its interval, in requests per second.
        #[serde(serialize_with = "text::mean_and_bounds")]
        per_s: Interval,
        /// The lowest of the repeats, in requests per second.
        least_per_s: f64,
        /// The highest of the repeats, in requests per second.
        most_per_s: f64,
    },
    /// The objective is met at this rate; higher rates could not be measured.
    AtLeast {
        /// The highest rate that met the objective without a failure at or below it, in requests per second; 0 if there
        /// is none.
        rate_per_s: f64,
        /// Reason why the search ended.
        why: String,
    },
    /// The objective is not met at the lowest rate.
    Nothing {
        /// The lowest rate, in requests per second.
        rate_per_s: f64,
    },
    /// The results of the repeats differ too much for a meaningful mean.
    Unsteady {
        /// The last rate tried in the repeat that did not find the limit, in requests per second.
        rate_per_s: f64,
    },
}

/// The result of a search with all its trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capacity {
    /// The objective.
    pub slo: Slo,
    /// The result.
    #[serde(flatten)]
    pub finding: Finding,
    /// The capacity as each finished repeat found it, in requests per second.
    pub repeats_per_s: Vec<f64>,
    /// All trials in their order.
    pub trials: Vec<Trial>,
}

/// Searches for the highest rate at which `slo` is met, and passes each step to `report`.
///
/// # Errors
/// If an option of the search is invalid, or a trial fails. A search that is interrupted returns its trials so far.
pub async fn find(
    trials: &mut (impl Trials + Send),
    slo: &Slo,
    search: &Search,
    report: &mut (dyn FnMut(&Step<'_>) + Send),
) -> Result<Capacity, SimError> {
    search.check()?;
    let ceiling = Ceiling { per_s: search.rate_per_s_max, unheard: None };
    let (again, done) = (AGAIN_MAX, Vec::new());
    let mut hunt = Hunt { trials, slo, search, report, ceiling, repeat: None, again, done };
    let mut repeats_per_s = Vec::new();
    let finding = match hunt.find(&mut repeats_per_s).await {
        Ok(finding) | Err(Stop::Found(finding)) => finding,
        Err(Stop::Failed(SimError::Interrupted)) if !hunt.done.is_empty() => {
            hunt.at_least("the search was cut short".to_owned())
        }
        Err(Stop::Failed(error)) => return Err(error),
    };
    Ok(Capacity { slo: slo.clone(), finding, repeats_per_s, trials: hunt.done })
}

/// Upper limit of the rates.
#[derive(Debug)]
struct Ceiling {
    per_s: f64,
    /// Reason why the generator could not reach this rate; `None` if the rate is the configured maximum.
    unheard: Option<String>,
}

impl Ceiling {
    /// Whether this rate must not be tried, or not again.
    fn is_over(&self, rate: f64) -> bool {
        rate > self.per_s || (self.unheard.is_some() && rate >= self.per_s)
    }
}

/// Known rates around the limit.
#[derive(Debug, Clone, Copy)]
struct Bracket {
    low: f64,
    high: f64,
}

impl Bracket {
    fn middle(self) -> f64 {
        (self.low * self.high).sqrt()
    }
}

/// Reason why a search ends before its last repeat.
#[derive(Debug)]
enum Stop {
    /// The result is known already.
    Found(Finding),
    Failed(SimError),
}

impl From<SimError> for Stop {
    fn from(error: SimError) -> Stop {
        Stop::Failed(error)
    }
}

/// A running search.
struct Hunt<'a, T> {
    trials: &'a mut T,
    slo: &'a Slo,
    search: &'a Search,
    report: &'a mut (dyn FnMut(&Step<'_>) + Send),
    ceiling: Ceiling,
    repeat: Option<usize>,
    /// Number of repetitions that are left for trials in which the generator was too slow.
    again: usize,
    done: Vec<Trial>,
}

impl<T: Trials + Send> Hunt<'_, T> {
    async fn find(&mut self, repeats_per_s: &mut Vec<f64>) -> Result<Finding, Stop> {
        let climbed = self.climb().await?;
        let width = climbed.high / climbed.low;
        let mut found = climbed.middle();
        for repeat in 0..self.search.repeats {
            self.repeat = Some(repeat + 1);
            found = self.measure(repeat, found, width).await?;
            repeats_per_s.push(found);
        }
        let Some(per_s) = Interval::of_geometric_mean(repeats_per_s) else {
            unreachable!("the number of repeats was checked");
        };
        let least_per_s = repeats_per_s.iter().copied().fold(f64::INFINITY, f64::min);
        let most_per_s = repeats_per_s.iter().copied().fold(0.0, f64::max);
        Ok(Finding::Holds { per_s, least_per_s, most_per_s })
    }

    /// Tries a rate, unless it is above the ceiling or the generator was too slow at it before.
    async fn attempt(&mut self, rate: f64) -> Result<Verdict, SimError> {
        if self.ceiling.is_over(rate) {
            return Ok(Verdict::Unknown);
        }
        let mut verdict = self.run(rate).await?;
        if verdict == Verdict::Unknown && self.again > 0 {
            self.again -= 1;
            verdict = self.run(rate).await?;
        }
        if verdict == Verdict::Unknown {
            let why = self.done.last().map(|trial| trial.measures.inconclusive.join("; "));
            self.ceiling = Ceiling { per_s: rate, unheard: why };
        }
        Ok(verdict)
    }

    async fn run(&mut self, rate: f64) -> Result<Verdict, SimError> {
        let (number, repeat) = (self.done.len() + 1, self.repeat);
        (self.report)(&Step::Tries { number, repeat, rate_per_s: rate });
        let measures = self.trials.run(rate).await?;
        let trial = Trial::judged(number, repeat, rate, measures, self.slo);
        let verdict = trial.verdict;
        (self.report)(&Step::Tried(&trial));
        self.done.push(trial);
        Ok(verdict)
    }

    /// The result if higher rates cannot be tried.
    fn at_most_tried(&self) -> Finding {
        let Ceiling { per_s, unheard } = &self.ceiling;
        self.at_least(match unheard {
            Some(why) => format!("at {} requests/s {why}", text::rate(*per_s)),
            None => format!("the search ends at {} requests/s", text::rate(*per_s)),
        })
    }

    /// The result "at least": the highest rate that met the objective without a failure below it, and the reason why no
    /// more is known.
    fn at_least(&self, why: String) -> Finding {
        let of = |verdict| self.done.iter().filter(move |trial| trial.verdict == verdict);
        let failed = of(Verdict::Fails).map(|trial| trial.rate_per_s).fold(f64::INFINITY, f64::min);
        let held = of(Verdict::Holds).map(|trial| trial.rate_per_s);
        let rate_per_s = held.filter(|rate| *rate < failed).fold(0.0, f64::max);
        Finding::AtLeast { rate_per_s, why }
    }
}
