//! Objectives that a run must meet, such as `p99<50ms,errors<0.1%,lag_p99<1s`.
//!
//! An objective keeps its units, so it is printed as the user wrote it.

mod measured;
mod parse;

use std::cmp::Ordering;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::units;
pub use parse::SloError;

/// The measures of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Measures {
    /// Requests that were due, per second.
    pub asked_per_s: f64,
    /// Requests that were done, per second.
    pub done_per_s: f64,
    /// The share of requests that failed, 0 to 1.
    pub errors_share: f64,
    /// Latencies of the slowest kind of request.
    pub latency: Latency,
    /// Delivery lag: the time from a post's acceptance until it is in a follower's home, if it was sampled.
    pub lag: Option<Lag>,
    /// Faults in checked timelines: posts missing, doubled, out of order or unexpected.
    pub faults: u64,
    /// Whether posts are delivered in the run, so that samples are expected.
    pub delivers: bool,
    /// The 99th percentile of the generator's scheduling delay, in milliseconds.
    pub scheduling_delay_p99_ms: f64,
    /// Reasons why the run is inconclusive; empty if it is conclusive.
    pub inconclusive: Vec<String>,
}

/// Latencies in milliseconds, measured from the due times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Median.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// 99.9th percentile.
    pub p999_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}

/// Delivery lag in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Lag {
    /// Median of the sampled posts.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}

/// Measure that an objective limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    P50,
    P90,
    P99,
    P999,
    Max,
    Errors,
    LagP50,
    LagP99,
    LagMax,
}

impl Subject {
    const ALL: [Subject; 9] = [
        Subject::P50,
        Subject::P90,
        Subject::P99,
        Subject::P999,
        Subject::Max,
        Subject::Errors,
        Subject::LagP50,
        Subject::LagP99,
        Subject::LagMax,
    ];

    fn name(self) -> &'static str {
        match self {
            Subject::P50 => "p50",
            Subject::P90 => "p90",
            Subject::P99 => "p99",
            Subject::P999 => "p99.9",
            Subject::Max => "max",
            Subject::Errors => "errors",
            Subject::LagP50 => "lag_p50",
            Subject::LagP99 => "lag_p99",
            Subject::LagMax => "lag_max",
        }
    }

    fn is_lag(self) -> bool {
        matches!(self, Subject::LagP50 | Subject::LagP99 | Subject::LagMax)
    }

    /// Value in milliseconds or percent; `None` if it was not sampled.
    fn measured(self, measures: &Measures) -> Option<f64> {
        let Measures { latency, lag, .. } = measures;
        match self {
            Subject::P50 => Some(latency.p50_ms),
            Subject::P90 => Some(latency.p90_ms),
            Subject::P99 => Some(latency.p99_ms),
            Subject::P999 => Some(latency.p999_ms),
            Subject::Max => Some(latency.max_ms),
            Subject::Errors => Some(measures.errors_share * 100.0),
            Subject::LagP50 => lag.map(|lag| lag.p50_ms),
            Subject::LagP99 => lag.map(|lag| lag.p99_ms),
            Subject::LagMax => lag.map(|lag| lag.max_ms),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Us,
    Ms,
    S,
    Percent,
}

impl Unit {
    /// All units. A unit that ends like another one comes after it.
    const ALL: [Unit; 4] = [Unit::Us, Unit::Ms, Unit::S, Unit::Percent];

    fn name(self) -> &'static str {
        match self {
            Unit::Us => "us",
            Unit::Ms => "ms",
            Unit::S => "s",
            Unit::Percent => "%",
        }
    }

    /// Size of the unit in milliseconds or percent.
    fn size(self) -> f64 {
        match self {
            Unit::Us => 0.001,
            Unit::Ms | Unit::Percent => 1.0,
            Unit::S => 1_000.0,
        }
    }
}

/// Upper bound of a measure.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Objective {
    subject: Subject,
    /// Bound in `unit`, above 0.
    bound: f64,
    unit: Unit,
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}<{}{}", self.subject.name(), self.bound, self.unit.name())
    }
}

/// Objectives that must all hold: at least one, each with a different measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Slo(Vec<Objective>);

/// Missed objective, as a line for users.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Breach {
    objective: Objective,
    /// Value in milliseconds or percent; `None` without samples.
    measured: Option<f64>,
}

impl Slo {
    /// Returns the objectives that a run missed. If no delivery was sampled, objectives about delivery are missed,
    /// unless the run delivers no posts.
    pub fn check(&self, measures: &Measures) -> Vec<Breach> {
        let breach = |&objective: &Objective| {
            let Objective { subject, bound, unit } = objective;
            let measured = subject.measured(measures);
            let met = match measured {
                // NaN does not meet an objective.
                Some(value) => value.partial_cmp(&(bound * unit.size())) == Some(Ordering::Less),
                None => !measures.delivers,
            };
            (!met).then_some(Breach { objective, measured })
        };
        self.0.iter().filter_map(breach).collect()
    }

    /// Limit of the 99th percentile of latency, in milliseconds, if this is an objective.
    pub fn p99_ms(&self) -> Option<f64> {
        let p99 = self.0.iter().find(|objective| objective.subject == Subject::P99)?;
        Some(p99.bound * p99.unit.size())
    }

    /// Whether there is an objective for failed requests.
    pub fn is_about_errors(&self) -> bool {
        self.0.iter().any(|objective| matches!(objective.subject, Subject::Errors))
    }

    /// Whether an objective needs sampled deliveries.
    pub fn is_about_lag(&self) -> bool {
        self.0.iter().any(|objective| objective.subject.is_lag())
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, objective) in self.0.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            write!(f, "{comma}{objective}")?;
        }
        Ok(())
    }
}

impl Serialize for Slo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Breach { objective: Objective { subject, bound, unit }, measured } = *self;
        let (name, unit_name) = (subject.name(), unit.name());
        let Some(measured) = measured else {
            return write!(f, "{name}: no delivery was seen");
        };
        let measured = units::number(measured / unit.size());
        write!(f, "{name} {measured} {unit_name} >= {bound} {unit_name}")
    }
}

impl Serialize for Breach {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slo(text: &str) -> Slo {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn measures() -> Measures {
        let latency =
            Latency { p50_ms: 2.0, p90_ms: 9.5, p99_ms: 50.0, p999_ms: 81.24, max_ms: 1_420.0 };
        let lag = Some(Lag { p50_ms: 3.0, p99_ms: 999.9, max_ms: 1_000.0 });
        Measures { errors_share: 0.001, latency, lag, delivers: true, ..Measures::default() }
    }

    #[test]
    fn what_is_not_below_its_bound_is_a_breach() {
        let check = |text: &str, expect: &[&str]| {
            let breaches = slo(text).check(&measures());
            let reported: Vec<String> = breaches.iter().map(Breach::to_string).collect();
            assert_eq!(reported, expect, "{text}");
        };
        check("p50<2.1ms,p90<10ms,p99<51ms,p99.9<82ms,max<1.5s,errors<0.2%", &[]);
        check("p99<50ms", &["p99 50.0 ms >= 50 ms"]);
        check("p99.9<80ms,max<1s", &["p99.9 81.2 ms >= 80 ms", "max 1.42 s >= 1 s"]);
        check("p50<1ms,p90<9000us", &["p50 2.00 ms >= 1 ms", "p90 9,500 us >= 9000 us"]);
        check("errors<0.1%", &["errors 0.100 % >= 0.1 %"]);
        check("lag_p50<4ms,lag_p99<1s,lag_max<1s", &["lag_max 1.00 s >= 1 s"]);
    }

    #[test]
    fn a_lag_that_was_not_seen_is_a_breach_where_something_is_delivered() {
        let objectives = slo("p99<1s,lag_p99<1s");
        assert!(objectives.is_about_lag() && !slo("p99<1s,errors<1%").is_about_lag());
        let check = |delivers: bool, expect: &[&str]| {
            let breaches = objectives.check(&Measures { lag: None, delivers, ..measures() });
            let reported: Vec<String> = breaches.iter().map(Breach::to_string).collect();
            assert_eq!(reported, expect);
        };
        check(true, &["lag_p99: no delivery was seen"]);
        check(false, &[]);
    }

    #[test]
    fn what_is_not_a_number_meets_no_objective() {
        let latency = Latency { p99_ms: f64::NAN, ..Latency::default() };
        assert_eq!(slo("p99<1s").check(&Measures { latency, ..measures() }).len(), 1);
    }
}
