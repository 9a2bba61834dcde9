//! Comparison of two designs by their times, and its verdict.

use crate::interval::CONFIDENCE;
use crate::{Interval, MannWhitney, Welch, holm, mann_whitney, ratio_of_means, welch};

/// Comparison of the times of two designs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The time of the new design divided by the time of the base; below 1, the new design is faster.
    pub ratio: Interval,
    /// The p-value for verdicts: that of the test of pairs if the trials were paired, otherwise that of Welch's test.
    pub p: f64,
    /// Welch's test of the means.
    pub welch: Welch,
    /// The test of Mann and Whitney, which is insensitive to outliers. If its result contradicts Welch's test, look at
    /// the values.
    pub mann_whitney: MannWhitney,
}

/// Compares times, or other costs of which smaller values are better. `None` if a side has fewer than 2 values, a value
/// is not above 0, or the base varies so much that its mean could be 0.
pub fn compare(new: &[f64], base: &[f64]) -> Option<Comparison> {
    if new.iter().chain(base).any(|&value| value <= 0.0) {
        return None;
    }
    let welch = welch(new, base)?;
    Some(Comparison {
        ratio: ratio_of_means(new, base)?,
        p: welch.p,
        welch,
        mann_whitney: mann_whitney(new, base)?,
    })
}

/// Verdict of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The new design takes less time.
    Faster,
    /// The new design takes more time.
    Slower,
    /// A difference in either direction is at most this share: 0.03 is 3 %.
    NoDifferenceLargerThan(f64),
    /// Inconclusive: a difference that matters is neither shown nor excluded. More trials are needed.
    CannotTell,
}

impl Verdict {
    /// The verdict on a ratio of times. `p_adjusted` is the p-value of the test, adjusted for the number of tests.
    /// `margin` is the smallest difference that matters: 0.05 is 5 %.
    ///
    /// - If `p_adjusted` is below 0.05 and the interval is below 1: faster; above 1: slower.
    /// - Otherwise, if the interval is within `1 / (1 + margin)` to `1 + margin`: no difference larger than the bound
    ///   that is farther from 1. This is Schuirmann's method of two one-sided tests (1987), made stricter by the use of
    ///   the 95 % interval instead of the 90 % interval.
    /// - Otherwise: inconclusive.
    pub fn of(ratio: &Interval, p_adjusted: f64, margin: f64) -> Verdict {
        let Interval { low, high, .. } = *ratio;
        let is_significant = p_adjusted < 1.0 - CONFIDENCE;
        if is_significant && high < 1.0 {
            return Verdict::Faster;
        }
        if is_significant && low > 1.0 {
            return Verdict::Slower;
        }
        let farthest = if low > 0.0 { (high - 1.0).max(1.0 / low - 1.0) } else { f64::INFINITY };
        if farthest <= margin {
            Verdict::NoDifferenceLargerThan(farthest.max(0.0))
        } else {
            Verdict::CannotTell
        }
    }
}

/// Verdict with its p-value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The p-value of the comparison, adjusted by Holm's method for the number of comparisons in the table.
    pub p_adjusted: f64,
    /// The verdict.
    pub verdict: Verdict,
}

/// Judges all comparisons of a table together. The probability that the whole table has any false "faster" or "slower"
/// is at most 5 %. The results are in the order of the table.
pub fn verdicts(table: &[Comparison], margin: f64) -> Vec<Judged> {
    let p: Vec<f64> = table.iter().map(|comparison| comparison.p).collect();
    let judge = |(comparison, p_adjusted): (&Comparison, f64)| {
        let verdict = Verdict::of(&comparison.ratio, p_adjusted, margin);
        Judged { p_adjusted, verdict }
    };
    table.iter().zip(holm(&p)).map(judge).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn verdicts_follow_from_interval_p_and_margin() {
        let check = |(low, high): (f64, f64), p: f64, expect: Verdict| {
            let ratio = Interval { estimate: f64::midpoint(low, high), low, high };
            let found = Verdict::of(&ratio, p, 0.05);
            match (found, expect) {
                (Verdict::NoDifferenceLargerThan(a), Verdict::NoDifferenceLargerThan(b)) => {
                    assert!((a - b).abs() < 1e-9, "{low} {high} {p}: {found:?}");
                }
                _ => assert_eq!(found, expect, "{low} {high} {p}"),
            }
        };
        check((0.80, 0.90), 0.001, Verdict::Faster);
        check((1.10, 1.20), 0.001, Verdict::Slower);
        check((0.99, 0.995), 0.001, Verdict::Faster);
        // After the correction for many tests, the difference is not significant.
        check((0.80, 0.90), 0.06, Verdict::CannotTell);
        check((0.97, 0.99), 0.06, Verdict::NoDifferenceLargerThan(1.0 / 0.97 - 1.0));
        check((0.98, 1.03), 0.7, Verdict::NoDifferenceLargerThan(0.03));
        check((1.0 / 1.04, 1.01), 0.7, Verdict::NoDifferenceLargerThan(0.04));
        check((0.94, 1.03), 0.7, Verdict::CannotTell);
        check((0.98, 1.06), 0.7, Verdict::CannotTell);
        check((-0.10, 1.02), 0.7, Verdict::CannotTell);
        check((1.0, 1.0), 1.0, Verdict::NoDifferenceLargerThan(0.0));
    }

    #[test]
    fn a_table_is_judged_as_a_whole() {
        // Welch's p-value is 0.0184 for each comparison. Alone it would be significant, but not as one of three.
        let (new, base) = ([9.2, 9.6, 9.5, 9.1, 10.1], [10.0, 10.1, 10.4, 9.9, 10.3]);
        let one = compare(&new, &base).unwrap();
        assert!((0.0167..0.025).contains(&one.welch.p), "{one:?}");
        let alone = verdicts(&[one], 0.05);
        assert_eq!(alone[0].verdict, Verdict::Faster);
        for Judged { p_adjusted, verdict } in verdicts(&[one; 3], 0.05) {
            assert!((p_adjusted - 3.0 * one.welch.p).abs() < 1e-12);
            assert_eq!(verdict, Verdict::CannotTell);
        }
    }

    #[test]
    fn times_are_above_zero() {
        assert_eq!(compare(&[1.0, 0.0], &[1.0, 2.0]), None);
        assert_eq!(compare(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(compare(&[1.0, f64::NAN], &[1.0, 2.0]), None);
    }

    proptest! {
        #[test]
        fn exchanged_designs_get_opposite_verdicts(
            new in proptest::collection::vec(95.0..105.0, 3..12),
            base in proptest::collection::vec(95.0..110.0, 3..12),
        ) {
            let judge = |new: &[f64], base: &[f64]| {
                let Comparison { ratio, welch, .. } = compare(new, base).unwrap();
                Verdict::of(&ratio, welch.p, 0.05)
            };
            let opposite = match judge(&base, &new) {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                same => same,
            };
            match (judge(&new, &base), opposite) {
                (Verdict::NoDifferenceLargerThan(a), Verdict::NoDifferenceLargerThan(b)) => {
                    prop_assert!((a - b).abs() < 1e-9);
                }
                (one, other) => prop_assert_eq!(one, other),
            }
        }
    }
}
