//! The density of a sample, for violin plots.

use crate::describe::{deviation, finite, quantile};

/// Estimated density of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Density {
    /// The standard deviation of the kernel, in the unit of the values.
    pub bandwidth: f64,
    /// Values in ascending order, from the minimum to the maximum of the sample, each with the density there. The
    /// integral of the density over all numbers is 1.
    pub points: Vec<(f64, f64)>,
}

/// The density at `points` equidistant values, with a Gaussian kernel and Silverman's rule (Density estimation, 1986,
/// section 3.4.2; R's `bw.nrd0`):
///
/// ```text
/// density(x) = 1 / (n h) Σ φ((x - x_i) / h),   h = 0.9 min(deviation, quartiles' distance / 1.34) / n^0.2
/// ```
///
/// The values are within the range of the sample, so that a plot shows no value that was not measured. `None` if the
/// sample has fewer than 2 values or all are equal, or if `points` is below 2.
pub fn density(sample: &[f64], points: usize) -> Option<Density> {
    let sample = finite(sample, 2)?;
    let [least, lower, upper, most] =
        [0.0, 0.25, 0.75, 1.0].map(|share| quantile(sample, share).unwrap_or_default());
    let (deviation, apart) = (deviation(sample)?, (upper - lower) / 1.34);
    // If more than half of the values are equal, the distance of the quartiles may be 0.
    let spread = if apart > 0.0 { deviation.min(apart) } else { deviation };
    let count = sample.len() as f64;
    let bandwidth = 0.9 * spread * count.powf(-0.2);
    if bandwidth <= 0.0 || points < 2 {
        return None;
    }
    let scale = 1.0 / (count * bandwidth * std::f64::consts::TAU.sqrt());
    let kernel = |x: f64, value: f64| (-0.5 * ((x - value) / bandwidth).powi(2)).exp();
    let at = |x: f64| scale * sample.iter().map(|&value| kernel(x, value)).sum::<f64>();
    let step = (most - least) / (points - 1) as f64;
    let points = (0..points).map(|point| least + step * point as f64).map(|x| (x, at(x))).collect();
    Some(Density { bandwidth, points })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_defined_is_none() {
        assert_eq!(density(&[1.0], 9), None);
        assert_eq!(density(&[2.0; 9], 9), None);
        assert_eq!(density(&[1.0, 2.0], 1), None);
        assert_eq!(density(&[1.0, f64::NAN], 9), None);
    }

    #[test]
    fn many_equal_values_have_a_density() {
        let found = density(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0], 11).unwrap();
        assert!(found.bandwidth > 0.0 && found.points[0].1 > found.points[10].1, "{found:?}");
    }

    proptest! {
        #[test]
        fn a_density_spans_the_sample_and_is_at_most_one_in_all(
            sample in proptest::collection::vec(0.0..1e3, 3..40),
        ) {
            let Some(Density { points, .. }) = density(&sample, 400) else { return Ok(()) };
            let least = sample.iter().copied().fold(f64::INFINITY, f64::min);
            let most = sample.iter().copied().fold(0.0, f64::max);
            prop_assert_eq!(points[0].0, least);
            prop_assert!((points[399].0 - most).abs() < 1e-6);
            let area: f64 =
                points.windows(2).map(|two| (two[1].0 - two[0].0) * (two[0].1 + two[1].1) / 2.0).sum();
            prop_assert!(area > 0.0 && area < 1.02, "{}", area);
        }
    }
}
