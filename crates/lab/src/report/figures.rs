//! Formatting of numbers.

use charts::units;
use stats::Interval;

/// Formats a number with three significant digits.
pub(crate) fn figure(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || size >= 0.01 {
        return units::number(value);
    }
    let digits = 2.0 - size.log10().floor();
    format!("{value:.*}", digits.min(9.0) as usize)
}

/// Formats an estimate with its interval.
pub(crate) fn interval(interval: &Interval) -> String {
    let Interval { estimate, low, high } = interval;
    format!("{} [{}, {}]", figure(*estimate), figure(*low), figure(*high))
}

/// Formats a probability. A small one is replaced by a bound.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_three_digits_that_matter() {
        for (value, expect) in [
            (0.0, "0"),
            (-2.345, "-2.35"),
            (0.012_345, "0.012"),
            (0.000_123_4, "0.000123"),
            (-0.001_26, "-0.00126"),
            (1e-12, "0.000000000"),
            (123_456.7, "123,457"),
        ] {
            assert_eq!(figure(value), expect, "{value}");
        }
    }
}
