//! Ratios: of two measurements, of the means of two samples, and the mean of ratios.

use crate::Interval;
use crate::describe::{finite, mean};
use crate::interval::half_width;

/// One measurement divided by another of the same unit; above 0 and finite.
///
/// `Ratio` is a type because only ratios may be summarized by a geometric mean. That mean does not depend on which of
/// the two systems is the base (Fleming and Wallace: How not to lie with statistics, 1986).
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Ratio(f64);

impl Ratio {
    /// Divides `new` by `base`. `None` if one of them is not above 0, or the result is not finite.
    pub fn of(new: f64, base: f64) -> Option<Ratio> {
        let ratio = new / base;
        (new > 0.0 && base > 0.0 && ratio.is_finite() && ratio > 0.0).then_some(Ratio(ratio))
    }

    /// The ratio as a number.
    pub fn value(self) -> f64 {
        self.0
    }

    /// The ratio of the base to the new measurement.
    #[must_use]
    pub fn inverse(self) -> Ratio {
        Ratio(1.0 / self.0)
    }
}

/// The n-th root of the product of n ratios. `None` without ratios.
pub fn geometric_mean(ratios: &[Ratio]) -> Option<Ratio> {
    let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.0.ln()).collect();
    Some(Ratio(mean(&logarithms)?.exp()))
}

/// The ratio of the means of two independent samples, with its interval by Fieller's theorem (1954), as Kalibera and
/// Jones (2013) use it.
///
/// With the half-widths `h` of the intervals of both means ([`Interval::of_mean`]), the interval contains all `r` with
/// `(new - r * base)² <= h_new² + r² * h_base²`:
///
/// ```text
/// (new * base ± sqrt(new² h_base² + base² h_new² - h_new² h_base²)) / (base² - h_base²)
/// ```
///
/// If a trial is a process with many iterations, use the mean of its iterations as its value: the values then reflect
/// the variation within and between processes.
///
/// `None` if a sample has fewer than 2 values, or if the interval of the base contains 0.
pub fn ratio_of_means(new: &[f64], base: &[f64]) -> Option<Interval> {
    let (new, base) = (finite(new, 2)?, finite(base, 2)?);
    let ((new, h_new), (base, h_base)) =
        ((mean(new)?, half_width(new)?), (mean(base)?, half_width(base)?));
    let divisor = base * base - h_base * h_base;
    if divisor <= 0.0 {
        return None;
    }
    let root = (new * new * h_base * h_base + h_new * h_new * divisor).sqrt();
    let bound = |root: f64| (new * base + root) / divisor;
    Some(Interval { estimate: new / base, low: bound(-root), high: bound(root) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ratio(value: f64) -> Ratio {
        Ratio::of(value, 1.0).unwrap()
    }

    #[test]
    fn ratios_are_above_zero() {
        for (new, base) in [(0.0, 1.0), (1.0, 0.0), (-1.0, -1.0), (f64::NAN, 1.0), (1e300, 1e-300)]
        {
            assert_eq!(Ratio::of(new, base), None, "{new} / {base}");
        }
        assert_eq!(geometric_mean(&[]), None);
    }

    /// An example after Fleming and Wallace: a system that is twice as fast at one task and half as fast at another is
    /// equally fast, whichever system is the base.
    #[test]
    fn a_geometric_mean_does_not_depend_on_the_base() {
        let mean = geometric_mean(&[ratio(0.5), ratio(2.0)]).unwrap();
        assert!((mean.value() - 1.0).abs() < 1e-12);
    }

    /// The mean of the base is 1, but the lower bound of its interval is below 0.
    #[test]
    fn an_interval_that_would_contain_infinity_is_none() {
        assert_eq!(ratio_of_means(&[9.0, 11.0], &[-1.0, 3.0]), None);
        assert_eq!(ratio_of_means(&[9.0], &[1.0, 3.0]), None);
        assert_eq!(ratio_of_means(&[9.0, 9.0], &[1.0, f64::NAN]), None);
    }

    #[test]
    fn without_variation_the_interval_is_the_ratio() {
        let found = ratio_of_means(&[3.0, 3.0, 3.0], &[2.0, 2.0]).unwrap();
        assert_eq!(found, Interval { estimate: 1.5, low: 1.5, high: 1.5 });
    }

    /// Checks the definition: at the bounds, both sides of the inequality are equal.
    #[test]
    fn bounds_satisfy_fiellers_equation() {
        let (new, base) = ([9.0, 10.0, 11.5, 10.2], [19.0, 21.0, 20.5]);
        let found = ratio_of_means(&new, &base).unwrap();
        let [h_new, h_base] = [half_width(&new).unwrap(), half_width(&base).unwrap()];
        let (new, base) = (mean(&new).unwrap(), mean(&base).unwrap());
        for r in [found.low, found.high] {
            let (left, right) = ((new - r * base).powi(2), h_new.powi(2) + (r * h_base).powi(2));
            assert!((left - right).abs() < 1e-9, "{r}: {left} and {right}");
        }
        assert!(found.low < found.estimate && found.estimate < found.high);
    }

    proptest! {
        #[test]
        fn the_mean_of_inverses_is_the_inverse(values in proptest::collection::vec(1e-3..1e3, 1..20)) {
            let ratios: Vec<Ratio> = values.iter().map(|&value| ratio(value)).collect();
            let inverses: Vec<Ratio> = ratios.iter().map(|ratio| ratio.inverse()).collect();
            let (mean, inverse) =
                (geometric_mean(&ratios).unwrap(), geometric_mean(&inverses).unwrap());
            prop_assert!((mean.value() * inverse.value() - 1.0).abs() < 1e-9);
        }

        #[test]
        fn the_unit_does_not_matter(
            new in proptest::collection::vec(90.0..110.0, 2..12),
            base in proptest::collection::vec(90.0..110.0, 4..12),
            unit in 1e-6..1e6,
        ) {
            let scale = |sample: &[f64]| sample.iter().map(|value| value * unit).collect::<Vec<_>>();
            let one = ratio_of_means(&new, &base).unwrap();
            let other = ratio_of_means(&scale(&new), &scale(&base)).unwrap();
            for (a, b) in [(one.low, other.low), (one.estimate, other.estimate), (one.high, other.high)] {
                prop_assert!((a - b).abs() < 1e-9 * a.abs().max(1.0), "{} {}", a, b);
            }
        }
    }
}
