//! Two designs measured in the same blocks. What slows a block slows both designs, so it cancels in their ratio.

use crate::describe::{deviation, mean};
use crate::distribution::{binomial_most, student_beyond};
use crate::interval::CONFIDENCE;
use crate::{Comparison, Interval, mann_whitney, welch};

/// The result of [`paired`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    /// The mean of the logarithms of the ratios divided by its standard error.
    pub t: f64,
    /// The probability, if the ratio is 1, of a `t` at least as far from 0.
    pub p: f64,
}

/// Two-sided t test of Student that the geometric mean of ratios is 1 (Student: The probable error of a mean, 1908).
/// Student applied it to the differences of pairs, this function to the logarithms of ratios:
///
/// ```text
/// t = mean(ln ratio) / (deviation(ln ratio) / sqrt(n)),   n - 1 degrees of freedom
/// ```
///
/// If the ratios do not vary, `p` is 1 if they are exactly 1, otherwise 0. `None` if there are fewer than 2 ratios or
/// one is not above 0.
pub fn paired(ratios: &[f64]) -> Option<Paired> {
    let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let (mean, deviation) = (mean(&logarithms)?, deviation(&logarithms)?);
    if deviation == 0.0 {
        let t = if mean == 0.0 { 0.0 } else { mean.signum() * f64::INFINITY };
        return Some(Paired { t, p: if mean == 0.0 { 1.0 } else { 0.0 } });
    }
    let count = logarithms.len() as f64;
    let t = mean / (deviation / count.sqrt());
    Some(Paired { t, p: student_beyond(t, count - 1.0) })
}

/// Compares times, or other costs of which smaller values are better, measured in pairs: each block has one value of
/// the new design and one of the base. The ratio is the geometric mean of the ratios of the blocks, with the interval
/// of [`Interval::of_geometric_mean`]. Verdicts use the p-value of [`paired`].
///
/// The order of the two designs within a block is random. So if the designs are equal, each pair is as likely as its
/// reverse: the logarithms of the ratios are symmetric around 0, whatever the distribution of times and the differences
/// between blocks.
///
/// `None` if there are fewer than 2 pairs, or a value is not above 0 and finite.
pub fn compare_pairs(pairs: &[(f64, f64)]) -> Option<Comparison> {
    let (new, base): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    if new.iter().chain(&base).any(|&value| value <= 0.0) {
        return None;
    }
    let ratios: Vec<f64> = pairs.iter().map(|(new, base)| new / base).collect();
    Some(Comparison {
        ratio: Interval::of_geometric_mean(&ratios)?,
        p: paired(&ratios)?.p,
        welch: welch(&new, &base)?,
        mann_whitney: mann_whitney(&new, &base)?,
    })
}

/// Maximum plausible number of false findings in `tests` tests of equal designs. If each test has a false finding with
/// a probability of 5 %, 95 of 100 such series have at most this number.
pub fn false_findings_most(tests: u64) -> u64 {
    binomial_most(tests, 1.0 - CONFIDENCE, CONFIDENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For 3 degrees of freedom there is a closed form: `p = 1 - 2 / π (x / (1 + x²) + atan(x))`, with `x = t /
    /// sqrt(3)`.
    #[test]
    fn p_is_that_of_the_closed_form() {
        let found = paired(&[1.1, 1.2, 1.05, 1.3]).unwrap();
        assert!((found.t - 3.110_477_584).abs() < 1e-8, "{found:?}");
        assert!((found.p - 0.052_861_845).abs() < 1e-8, "{found:?}");
    }

    #[test]
    fn what_slows_down_a_block_cancels() {
        let slow = [1.0, 7.0, 2.0, 30.0];
        let own = [1.0, 1.01, 0.99, 1.0];
        let pairs = slow.iter().zip(own).map(|(slow, own)| (2.0 * slow * own, *slow));
        let found = compare_pairs(&pairs.collect::<Vec<_>>()).unwrap();
        assert!(found.ratio.contains(2.0) && found.ratio.low > 1.9, "{found:?}");
        assert!(found.p < 0.001 && found.welch.p > 0.1, "{found:?}");
    }

    #[test]
    fn pairs_without_variation_differ_for_certain_or_not_at_all() {
        let same = compare_pairs(&[(3.0, 3.0); 3]).unwrap();
        assert_eq!((same.p, same.ratio.low, same.ratio.high), (1.0, 1.0, 1.0));
        let other = compare_pairs(&[(3.0, 2.0); 3]).unwrap();
        assert!(other.p < 1e-9 && (other.ratio.high - 1.5).abs() < 1e-9, "{other:?}");
    }

    #[test]
    fn what_is_not_defined_is_none() {
        for pairs in [&[][..], &[(1.0, 1.0)], &[(1.0, 0.0), (1.0, 1.0)], &[(f64::NAN, 1.0); 3]] {
            assert_eq!(compare_pairs(pairs), None, "{pairs:?}");
        }
    }

    /// Probabilities of the binomial distribution: 0.952 for at most 4 findings in 40 tests, 0.862 for at most 3.
    #[test]
    fn some_false_findings_are_no_surprise() {
        for (tests, most) in [(20, 3), (40, 4), (1_000, 62)] {
            assert_eq!(false_findings_most(tests), most, "{tests}");
        }
    }
}
