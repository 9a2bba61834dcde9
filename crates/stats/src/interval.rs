//! Intervals, and intervals of means by Student's t.
//!
//! If trials are independent, have the same distribution and are about normal, 95 of 100 intervals contain the true
//! mean; the tests count this. An interval shows the variation between trials, not an error that all share: a slow
//! machine is slow in every trial.

use crate::describe::{mean, variance};
use crate::distribution::student_quantile;

/// The share of intervals that contain the true value.
pub const CONFIDENCE: f64 = 0.95;
/// The confidence in percent.
pub const CONFIDENCE_PERCENT: u32 = 95;
/// The share of a distribution that is below the upper bound.
pub(crate) const UPPER: f64 = f64::midpoint(1.0, CONFIDENCE);

/// An estimate and its bounds, with a confidence of [`CONFIDENCE`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate from the sample.
    pub estimate: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Interval {
    /// The mean of a sample, with the bounds `mean ± t * deviation / sqrt(n)`. `t` is the 97.5 % quantile of Student's
    /// t with `n - 1` degrees of freedom (Student: The probable error of a mean, 1908). `None` if there are fewer than
    /// 2 values.
    pub fn of_mean(sample: &[f64]) -> Option<Interval> {
        let (mean, half) = (mean(sample)?, half_width(sample)?);
        Some(Interval { estimate: mean, low: mean - half, high: mean + half })
    }

    /// The geometric mean of values above 0, computed by [`Interval::of_mean`] of their logarithms. The logarithms
    /// should have a symmetric distribution, as those of rates and times do. `None` if there are fewer than 2 values or
    /// one is not above 0.
    pub fn of_geometric_mean(sample: &[f64]) -> Option<Interval> {
        let logarithms: Vec<f64> = sample.iter().map(|value| value.ln()).collect();
        let Interval { estimate, low, high } = Interval::of_mean(&logarithms)?;
        Some(Interval { estimate: estimate.exp(), low: low.exp(), high: high.exp() })
    }

    /// Whether a value is within the bounds.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Half the distance between the bounds, as a share of the estimate: 0.02 is ± 2 %.
    pub fn half_width_relative(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.estimate.abs()
    }

    /// The interval of the inverse of a ratio. `None` if a bound is not above 0.
    pub fn inverse(&self) -> Option<Interval> {
        let Interval { estimate, low, high } = *self;
        (low > 0.0).then(|| Interval { estimate: 1.0 / estimate, low: 1.0 / high, high: 1.0 / low })
    }
}

/// The distance between the mean and each bound.
pub(crate) fn half_width(sample: &[f64]) -> Option<f64> {
    let (variance, count) = (variance(sample)?, sample.len() as f64);
    Some(student_quantile(UPPER, count - 1.0) * (variance / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_that_of_the_textbook() {
        // The mean is 3 and the deviation sqrt(2.5), so each bound is 2.776445 * sqrt(2.5 / 5) away.
        let Interval { estimate, low, high } =
            Interval::of_mean(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(estimate, 3.0);
        let half = 1.963_243;
        assert!((high - estimate - half).abs() < 1e-5 && (estimate - low - half).abs() < 1e-5);

        let Interval { estimate, low, high } =
            Interval::of_geometric_mean(&[10.0, 1_000.0]).unwrap();
        assert!((estimate - 100.0).abs() < 1e-9);
        assert!((estimate / low / (high / estimate) - 1.0).abs() < 1e-9, "even in factors");
    }

    #[test]
    fn an_interval_needs_two_values() {
        assert_eq!(Interval::of_mean(&[]), None);
        assert_eq!(Interval::of_mean(&[1.0]), None);
        assert_eq!(Interval::of_mean(&[1.0, f64::NAN]), None);
        assert_eq!(Interval::of_geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(Interval::of_geometric_mean(&[1.0, -1.0]), None);
        assert!(Interval::of_mean(&vec![1.0; 1_000]).is_some());
    }

    #[test]
    fn the_inverse_of_a_ratio_has_inverse_bounds() {
        let ratio = Interval { estimate: 0.5, low: 0.4, high: 0.8 };
        assert_eq!(ratio.inverse(), Some(Interval { estimate: 2.0, low: 1.25, high: 2.5 }));
        assert_eq!(Interval { low: 0.0, ..ratio }.inverse(), None);
        assert!((ratio.half_width_relative() - 0.4).abs() < 1e-9);
        assert!(ratio.contains(0.4) && !ratio.contains(0.81));
    }
}
