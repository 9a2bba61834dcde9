//! Power laws: a straight line on logarithmic axes.

use super::{Measured, Point, fit, places};
use crate::{Bootstrap, Interval};

/// The law `y = factor * x^exponent`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerLaw {
    /// The value of `y` where `x` is 1.
    pub factor: Interval,
    /// The exponent: 0 is constant growth, 1 linear, 2 quadratic.
    pub exponent: Interval,
}

impl PowerLaw {
    /// The value at `x`, which is above 0.
    pub fn at(&self, x: f64) -> f64 {
        self.factor.estimate * x.powf(self.exponent.estimate)
    }
}

/// Fits a power law by least squares of the logarithms, so that errors are relative:
///
/// ```text
/// exponent = Σ (u - mean u) (v - mean v) / Σ (u - mean u)²,   u = ln x, v = ln y
/// ```
///
/// Use the fit for measured growth, where the experiment chooses x. The exponent of a distribution must be estimated in
/// another way (Clauset, Shalizi, Newman: Power-law distributions in empirical data, 2009).
///
/// `None` if there are fewer than 2 different places, a place has fewer than 2 trials, a value is not above 0, or there
/// are no resamples.
pub fn fit_power_law(measured: &[Measured], bootstrap: Bootstrap) -> Option<PowerLaw> {
    let logarithms = |of: &Measured| Measured {
        x: of.x.ln(),
        trials: of.trials.iter().map(|value| value.ln()).collect(),
    };
    let measured: Vec<Measured> = measured.iter().map(logarithms).collect();
    let [level, exponent] = fit(&measured, bootstrap, line)?;
    let Interval { estimate, low, high } = level;
    let factor = Interval { estimate: estimate.exp(), low: low.exp(), high: high.exp() };
    Some(PowerLaw { factor, exponent })
}

/// Intercept and slope of the least-squares line.
fn line(points: &[Point]) -> Option<[f64; 2]> {
    if places(points) < 2 {
        return None;
    }
    let weight: f64 = points.iter().map(|point| point.weight).sum();
    let average =
        |of: fn(&Point) -> f64| points.iter().map(|p| p.weight * of(p)).sum::<f64>() / weight;
    let (x, y) = (average(|point| point.x), average(|point| point.y));
    let across: f64 = points.iter().map(|p| p.weight * (p.x - x) * (p.y - y)).sum();
    let slope = across / points.iter().map(|p| p.weight * (p.x - x).powi(2)).sum::<f64>();
    Some([y - slope * x, slope])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(places: &[f64], law: impl Fn(f64) -> f64) -> Vec<Measured> {
        let trials = |&x: &f64| Measured { x, trials: vec![law(x) * 0.99, law(x), law(x) / 0.99] };
        places.iter().map(trials).collect()
    }

    proptest! {
        #[test]
        fn a_law_is_found_again(factor in 1e-3..1e3_f64, exponent in -2.0..3.0_f64) {
            let measured = at(&[1.0, 10.0, 100.0, 1e4], |x: f64| factor * x.powf(exponent));
            let bootstrap = Bootstrap { resamples: 100, seed: 1 };
            let found = fit_power_law(&measured, bootstrap).unwrap();
            prop_assert!((found.exponent.estimate - exponent).abs() < 1e-9, "{:?}", found);
            prop_assert!((found.factor.estimate / factor - 1.0).abs() < 1e-9, "{:?}", found);
            prop_assert!((found.at(50.0) / (factor * 50_f64.powf(exponent)) - 1.0).abs() < 1e-9);
            prop_assert!(found.exponent.low < exponent && exponent < found.exponent.high);
        }
    }

    #[test]
    fn what_is_not_defined_is_none() {
        let bootstrap = Bootstrap { resamples: 100, seed: 1 };
        let fit = |measured: &[Measured]| fit_power_law(measured, bootstrap);
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&at(&[3.0], |x| x)), None);
        assert_eq!(fit(&at(&[3.0, 3.0], |x| x)), None);
        assert_eq!(fit(&at(&[0.0, 3.0], |x| x + 1.0)), None);
        assert_eq!(fit(&at(&[1.0, 3.0], |x| x - 1.0)), None);
        let mut single = at(&[1.0, 3.0], |x| x);
        single[0].trials.truncate(1);
        assert_eq!(fit(&single), None);
        let never = Bootstrap { resamples: 0, seed: 1 };
        assert_eq!(fit_power_law(&at(&[1.0, 3.0], |x| x), never), None);
    }
}
