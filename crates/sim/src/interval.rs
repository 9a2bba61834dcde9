//! Confidence intervals of the mean of a few repeats, by Student's t.
//!
//! If repeats are independent, identically distributed and about normal, 95 of 100 intervals contain
//! the true mean. The tests count this. An interval shows the variation between repeats, not an error
//! that all of them share: a machine that is slow today is slow in every repeat.

use serde::Serialize;

/// The share of intervals that contain the true mean, in percent.
pub const CONFIDENCE_PERCENT: u32 = 95;

/// The 97.5 % points of Student's t, for 1 to 30 degrees of freedom. A table needs no library; a test
/// checks each value by integrating the density.
const T_97_5: [f64; 30] = [
    12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157,
    2.228139, 2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922,
    2.093024, 2.085963, 2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831,
    2.048407, 2.045230, 2.042272,
];

/// Maximum number of samples of an interval.
pub const SAMPLES_MAX: usize = T_97_5.len() + 1;

/// A mean and its bounds with a confidence of [`CONFIDENCE_PERCENT`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The mean of the samples.
    pub mean: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Interval {
    /// The arithmetic mean of samples with a symmetric distribution; `None` unless there are 2 to
    /// [`SAMPLES_MAX`].
    pub fn of(samples: &[f64]) -> Option<Interval> {
        let t = T_97_5.get(samples.len().checked_sub(2)?)?;
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let half = t * (squares / (count - 1.0) / count).sqrt();
        Some(Interval { mean, low: mean - half, high: mean + half })
    }

    /// The geometric mean of samples above 0 whose logarithms have a symmetric distribution, as with
    /// rates and times; `None` unless there are 2 to [`SAMPLES_MAX`].
    pub fn of_factors(samples: &[f64]) -> Option<Interval> {
        let logarithms: Vec<f64> = samples.iter().map(|sample| sample.ln()).collect();
        let Interval { mean, low, high } = Interval::of(&logarithms)?;
        Some(Interval { mean: mean.exp(), low: low.exp(), high: high.exp() })
    }
}

/// A draw from the standard normal distribution (Box and Muller).
#[cfg(test)]
pub(crate) fn normal(rng: &mut rand::rngs::StdRng) -> f64 {
    use rand::RngExt as _;

    let (radius, angle) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
    (-2.0 * radius.ln()).sqrt() * (angle * std::f64::consts::TAU).cos()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    /// The density of Student's t, up to the factor that does not depend on `x`.
    fn density(degrees: f64, x: f64) -> f64 {
        (1.0 + x * x / degrees).powf(-(degrees + 1.0) / 2.0)
    }

    /// The integral of the density from 0 to `tan(angle)`, by Simpson's rule in the angle, in which
    /// the whole half line is finite.
    fn integral(degrees: f64, angle: f64) -> f64 {
        let steps = 20_000;
        let width = angle / f64::from(steps);
        let at = |step: i32| {
            let angle = f64::from(step) * width;
            density(degrees, angle.tan()) / angle.cos().powi(2)
        };
        let weight = |step| if step % 2 == 1 { 4.0 } else { 2.0 };
        let inner: f64 = (1..steps).map(|step| weight(step) * at(step)).sum();
        (at(0) + inner + at(steps)) * width / 3.0
    }

    #[test]
    fn the_table_has_the_97_5_percent_points_of_students_t() {
        for (degrees, t) in (1_u32..).zip(T_97_5) {
            let degrees = f64::from(degrees);
            // Just short of a right angle, where the tangent is still finite.
            let half = integral(degrees, std::f64::consts::FRAC_PI_2 - 1e-9);
            let below = 0.5 + 0.5 * integral(degrees, t.atan()) / half;
            assert!((below - 0.975).abs() < 1e-6, "{degrees}: {below}");
        }
    }

    #[test]
    fn an_interval_is_that_of_the_textbook() {
        // Mean 3, deviation sqrt(2.5), so 2.776445 * sqrt(2.5 / 5) on each side.
        let Interval { mean, low, high } = Interval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(mean, 3.0);
        assert!((high - mean - 1.963_243).abs() < 1e-5 && (mean - low - 1.963_243).abs() < 1e-5);

        let Interval { mean, low, high } = Interval::of_factors(&[10.0, 1_000.0]).unwrap();
        assert!((mean - 100.0).abs() < 1e-9);
        assert!((mean / low / (high / mean) - 1.0).abs() < 1e-9, "even in factors");

        for samples in [0, 1, SAMPLES_MAX + 1] {
            assert_eq!(Interval::of(&vec![1.0; samples]), None, "{samples}");
        }
        assert!(Interval::of(&vec![1.0; SAMPLES_MAX]).is_some());
    }

    /// The share of `experiments` whose interval contains the true mean.
    fn coverage(experiments: u32, mut holds: impl FnMut(&mut StdRng) -> bool) -> f64 {
        let mut rng = StdRng::seed_from_u64(11);
        let held = (0..experiments).filter(|_| holds(&mut rng)).count();
        held as f64 / f64::from(experiments)
    }

    #[test]
    fn intervals_contain_the_true_mean_at_their_confidence() {
        const EXPERIMENTS: u32 = 10_000;
        // Four standard errors of a share of 95 % counted so often.
        let error = 4.0 * (0.95 * 0.05 / f64::from(EXPERIMENTS)).sqrt();
        for samples in [3, 5, 10] {
            let plain = coverage(EXPERIMENTS, |rng| {
                let drawn: Vec<f64> = (0..samples).map(|_| 7.0 + 2.0 * normal(rng)).collect();
                let Interval { low, high, .. } = Interval::of(&drawn).unwrap();
                low < 7.0 && 7.0 < high
            });
            let factors = coverage(EXPERIMENTS, |rng| {
                let drawn: Vec<f64> = (0..samples).map(|_| 900.0 * normal(rng).exp()).collect();
                let Interval { low, high, .. } = Interval::of_factors(&drawn).unwrap();
                low < 900.0 && 900.0 < high
            });
            println!("{samples} samples: normal {plain:.4}, by factors {factors:.4}");
            for share in [plain, factors] {
                assert!((share - 0.95).abs() < error, "{samples} samples: {share}");
            }
        }
    }
}
