//! A search as text: a line per step, then a table and a sentence.

use std::fmt;

use serde::Serializer;
use serde::ser::SerializeStruct as _;
use stats::{CONFIDENCE_PERCENT, Interval};

use super::{Capacity, Finding, Trial, Verdict};
use crate::units;

/// A step of a search. `Display` formats it as one line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step<'a> {
    /// A trial begins.
    Tries {
        /// Number of the trial, from 1.
        number: usize,
        /// The repeat it belongs to, from 1; `None` in the search for the first bracket.
        repeat: Option<usize>,
        /// The rate, in requests per second.
        rate_per_s: f64,
    },
    /// A trial has ended.
    Tried(&'a Trial),
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Tries { number, rate_per_s, .. } => {
                write!(f, "trial {number}: {} requests/s", rate(*rate_per_s))
            }
            Step::Tried(trial) => write!(f, "trial {}: {}", trial.number, trial.why()),
        }
    }
}

impl Trial {
    /// The verdict and its reason.
    pub fn why(&self) -> String {
        let measures = &self.measures;
        match self.verdict {
            Verdict::Holds => "holds".to_owned(),
            Verdict::Unknown => format!("inconclusive: {}", measures.inconclusive.join("; ")),
            Verdict::Fails if measures.faults > 0 => {
                format!("fails: {} faults in timelines", units::count(measures.faults))
            }
            Verdict::Fails if self.breaches.is_empty() => {
                let (done, asked) = (rate(measures.done_per_s), rate(measures.asked_per_s));
                format!("fails: {done} done of {asked} requests/s")
            }
            Verdict::Fails => {
                let breaches: Vec<String> = self.breaches.iter().map(ToString::to_string).collect();
                format!("fails: {}", breaches.join(", "))
            }
        }
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>5}  {:<7}{:>12}{:>12}{:>10}{:>10}  ",
            "trial", "repeat", "requests/s", "done/s", "p99 ms", "errors %"
        )?;
        for trial in &self.trials {
            let Trial { number, repeat, rate_per_s, measures, .. } = trial;
            let repeat = repeat.map_or_else(|| "climb".to_owned(), |repeat| repeat.to_string());
            let (asked, done) = (rate(*rate_per_s), rate(measures.done_per_s));
            write!(f, "{number:>5}  {repeat:<7}{asked:>12}{done:>12}")?;
            let (p99_ms, errors) = (measures.latency.p99_ms, measures.errors_share * 100.0);
            writeln!(f, "{p99_ms:>10.2}{errors:>10.3}  {}", trial.why())?;
        }
        writeln!(f, "{}", self.sentence())
    }
}

impl Capacity {
    /// The result as a sentence.
    pub fn sentence(&self) -> String {
        let slo = &self.slo;
        match &self.finding {
            Finding::Holds { per_s: Interval { estimate, low, high }, least_per_s, most_per_s } => {
                let (low, high, repeats) = (rate(*low), rate(*high), self.repeats_per_s.len());
                format!(
                    "holds {} requests/s [{low} to {high}, {CONFIDENCE_PERCENT} %] with {slo}; \
                     {repeats} repeats found {} to {}",
                    rate(*estimate),
                    rate(*least_per_s),
                    rate(*most_per_s)
                )
            }
            Finding::AtLeast { rate_per_s, why } if *rate_per_s > 0.0 => {
                format!("holds at least {} requests/s with {slo}: {why}", rate(*rate_per_s))
            }
            Finding::AtLeast { why, .. } => {
                format!("inconclusive about {slo}: {why}")
            }
            Finding::Nothing { rate_per_s } => {
                format!("not even {} requests/s meet {slo}", rate(*rate_per_s))
            }
            Finding::Unsteady { rate_per_s } => format!(
                "no capacity with {slo} can be found: the limit moved by more than half during the \
                 search, last beyond {} requests/s",
                rate(*rate_per_s)
            ),
        }
    }
}

/// The interval of a mean in JSON.
pub(crate) fn mean_and_bounds<S: Serializer>(
    of: &Interval,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut fields = serializer.serialize_struct("Interval", 3)?;
    fields.serialize_field("mean", &of.estimate)?;
    fields.serialize_field("low", &of.low)?;
    fields.serialize_field("high", &of.high)?;
    fields.end()
}

/// A rate rounded to three significant digits: 9,800 or 3.20.
pub(crate) fn rate(per_s: f64) -> String {
    if per_s < 100.0 {
        return units::number(per_s);
    }
    let step = 10_f64.powi(per_s.log10().floor() as i32 - 2);
    units::count(((per_s / step).round() * step) as u64)
}
