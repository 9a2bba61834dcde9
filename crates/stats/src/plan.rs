//! The number of trials that an experiment needs.

use crate::describe::{finite, mean, variance};
use crate::distribution::student_quantile;
use crate::interval::UPPER;

/// Number of trials, including those of the pilot, after which each bound of the interval of the mean is at most
/// `half_width` away from the mean, as a share of the mean: 0.02 is ± 2 %. The result is at least the number of trials
/// of the pilot.
///
/// The rule is Stein's two-stage rule (A two-sample test for a linear hypothesis whose power is independent of the
/// variance, 1945), with the deviation, mean and degrees of freedom of the pilot:
///
/// ```text
/// n = max(n_pilot, ceil((t * deviation / (half_width * mean))²))
/// ```
///
/// If the values are normal, 95 of 100 such experiments find the mean to within that width. The `t` of the pilot
/// accounts for the uncertainty of its deviation, so a short pilot requires many trials.
///
/// `None` if there are fewer than 2 values, the mean is 0, or `half_width` is not above 0.
pub fn trials_for(pilot: &[f64], half_width: f64) -> Option<usize> {
    let pilot = finite(pilot, 2)?;
    let width = half_width * mean(pilot)?.abs();
    if width <= 0.0 || !width.is_finite() {
        return None;
    }
    let t = student_quantile(UPPER, (pilot.len() - 1) as f64);
    let needed = (t * t * variance(pilot)? / (width * width)).ceil();
    Some(pilot.len().max(needed as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noisy_pilot_asks_for_more_trials() {
        // The deviation is sqrt(2.5) and the mean 100, so n is (2.776445 * sqrt(2.5) / width)².
        let pilot = [98.0, 99.0, 100.0, 101.0, 102.0];
        for (half_width, expect) in [(0.05, 5), (0.02, 5), (0.01, 20), (0.001, 1_928)] {
            assert_eq!(trials_for(&pilot, half_width), Some(expect), "{half_width}");
        }
        assert_eq!(trials_for(&[7.0, 7.0], 0.01), Some(2));
    }

    #[test]
    fn what_is_not_defined_is_none() {
        assert_eq!(trials_for(&[1.0], 0.01), None);
        assert_eq!(trials_for(&[-1.0, 1.0], 0.01), None);
        for half_width in [0.0, f64::NAN, f64::INFINITY, -0.01] {
            assert_eq!(trials_for(&[1.0, 2.0], half_width), None, "{half_width}");
        }
    }
}
