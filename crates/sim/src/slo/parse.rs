//! Parses objectives. An error lists valid values.

use std::str::FromStr;

use thiserror::Error;

use super::{Objective, Slo, Subject, Unit};

/// Error of parsing objectives.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SloError {
    /// The text has no objective.
    #[error("no objective; one looks like p99<50ms, several like p99<50ms,errors<0.1%")]
    Empty,
    /// A part is not a comparison.
    #[error("{0:?} is not an objective; one looks like p99<50ms, with < as the only comparison")]
    NoComparison(String),
    /// No measure has this name.
    #[error(
        "unknown measure {0:?}; the measures are p50, p90, p99, p99.9, max, errors, lag_p50, lag_p99 and \
         lag_max"
    )]
    UnknownName(String),
    /// The bound is not a number above 0.
    #[error("the bound of {name} must be a number above 0, such as {example}, not {bound:?}")]
    BadNumber {
        /// Name of the measure.
        name: &'static str,
        /// Example of a valid bound.
        example: &'static str,
        /// Given bound.
        bound: String,
    },
    /// The bound has no unit, or the unit of another measure.
    #[error("the bound of {name} needs a unit: {units}, not {bound:?}")]
    BadUnit {
        /// Name of the measure.
        name: &'static str,
        /// Valid units.
        units: &'static str,
        /// Given bound.
        bound: String,
    },
    /// The bound of a share is above 100 %.
    #[error("errors are a share of requests: at most 100 %, not {0:?}")]
    TooMany(String),
    /// Two objectives have the same measure.
    #[error("{0} is set twice")]
    Twice(&'static str),
}

impl FromStr for Slo {
    type Err = SloError;

    fn from_str(text: &str) -> Result<Slo, SloError> {
        if text.trim().is_empty() {
            return Err(SloError::Empty);
        }
        let mut objectives: Vec<Objective> = Vec::new();
        for part in text.split(',') {
            let objective: Objective = part.trim().parse()?;
            if objectives.iter().any(|known| known.subject == objective.subject) {
                return Err(SloError::Twice(objective.subject.name()));
            }
            objectives.push(objective);
        }
        Ok(Slo(objectives))
    }
}

impl FromStr for Objective {
    type Err = SloError;

    fn from_str(part: &str) -> Result<Objective, SloError> {
        let no_comparison = || SloError::NoComparison(part.to_owned());
        let (name, bound) = part.split_once('<').ok_or_else(no_comparison)?;
        let (name, bound) = (name.trim_end(), bound.trim_start());
        if bound.is_empty() || bound.starts_with('=') {
            return Err(no_comparison());
        }
        let subject = Subject::ALL.into_iter().find(|subject| subject.name() == name);
        let subject = subject.ok_or_else(|| SloError::UnknownName(name.to_owned()))?;
        parse_bound(subject, bound)
    }
}

fn parse_bound(subject: Subject, text: &str) -> Result<Objective, SloError> {
    let (name, bound) = (subject.name(), text.to_owned());
    let is_share = subject == Subject::Errors;
    let units = if is_share { "%" } else { "us, ms or s" };
    let mut with_unit = Unit::ALL.into_iter().filter(|unit| (*unit == Unit::Percent) == is_share);
    let found = with_unit.find_map(|unit| Some((unit, text.strip_suffix(unit.name())?)));
    let Some((unit, number)) = found else {
        return Err(SloError::BadUnit { name, units, bound });
    };
    let number = number.trim_end();
    // Accept only digits and a point: `parse` alone would also accept `inf`, `1e9` and signs.
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = number.parse().ok().filter(|value: &f64| is_plain && *value > 0.0);
    let Some(value) = value.filter(|value| value.is_finite()) else {
        let example = if is_share { "0.1%" } else { "50ms" };
        return Err(SloError::BadNumber { name, example, bound });
    };
    if is_share && value > 100.0 {
        return Err(SloError::TooMany(bound));
    }
    Ok(Objective { subject, bound: value, unit })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slo(text: &str) -> Slo {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn objectives_are_reported_as_they_were_given() {
        let check = |text: &str, reported: &str| assert_eq!(slo(text).to_string(), reported);
        check("p99<50ms,errors<0.1%,lag_p99<1s", "p99<50ms,errors<0.1%,lag_p99<1s");
        check(" p99.9 < 1.50 s , max<900us ", "p99.9<1.5s,max<900us");
        check("errors<100%", "errors<100%");
        check("lag_p50<.5s,lag_max<2s,p50<1ms,p90<2ms", "lag_p50<0.5s,lag_max<2s,p50<1ms,p90<2ms");
    }

    #[test]
    fn invalid_objectives_are_reported_with_valid_ones() {
        let check = |text: &str, parts: &[&str]| {
            let error = text.parse::<Slo>().expect_err(text).to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{text:?}: {error}");
        };
        check("", &["no objective", "p99<50ms"]);
        check("  ", &["no objective"]);
        check("p99", &["\"p99\" is not an objective", "p99<50ms"]);
        check("p99<", &["is not an objective"]);
        check("p99<50ms,", &["\"\" is not an objective"]);
        check("p99>50ms", &["\"p99>50ms\"", "the only comparison"]);
        check("p99<=50ms", &["\"p99<=50ms\"", "the only comparison"]);
        check("p95<50ms", &["unknown measure \"p95\"", "p90", "lag_max"]);
        check("P99<50ms", &["unknown measure"]);
        check("p99<50", &["p99", "us, ms or s", "\"50\""]);
        check("p99<50%", &["us, ms or s"]);
        check("p99<5m", &["us, ms or s"]);
        check("errors<1ms", &["errors", "unit: %"]);
        check("errors<0.1", &["unit: %"]);
        check("errors<101%", &["at most 100 %"]);
        for number in ["0", "-1", "+1", "inf", "nan", "1e3", "1.2.3", "", ".", "1 0"] {
            check(&format!("p99<{number}ms"), &["above 0, such as 50ms"]);
        }
        check(&format!("p99<{}ms", "9".repeat(400)), &["above 0"]);
        check("p99<50ms,p99<1s", &["p99 is set twice"]);
    }

    proptest! {
        #[test]
        fn objectives_are_read_back_as_they_were_given(
            bounds in prop::collection::vec((0.001_f64..1e9, 0..3_usize), 9),
            taken in prop::collection::vec(any::<bool>(), 9),
            spaces in "[ ]{0,2}",
        ) {
            let parts = Subject::ALL.iter().zip(bounds).zip(taken);
            let parts: Vec<Objective> = parts
                .filter(|(_, taken)| *taken)
                .map(|((&subject, (bound, unit)), _)| match subject {
                    Subject::Errors => {
                        Objective { subject, bound: bound / 1e7, unit: Unit::Percent }
                    }
                    _ => Objective { subject, bound, unit: Unit::ALL[unit] },
                })
                .collect();
            prop_assume!(!parts.is_empty());
            let given = Slo(parts);
            let reported = given.to_string();
            prop_assert_eq!(&reported.parse::<Slo>().unwrap(), &given);
            let spread = reported.replace('<', &format!("{spaces}<{spaces}"));
            let spread = spread.replace(',', &format!("{spaces},{spaces}"));
            prop_assert_eq!(&spread.parse::<Slo>().unwrap(), &given);
        }

        #[test]
        fn no_text_causes_a_panic(text in "[p9<,%ms.0 laerros_max=]{0,20}") {
            if let Ok(read) = text.parse::<Slo>() {
                prop_assert_eq!(read.to_string().parse::<Slo>().unwrap(), read);
            }
        }
    }
}
