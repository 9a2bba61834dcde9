//! Fits of laws by least squares: growth of throughput with threads, and of times with a size.
//!
//! The interval of a parameter is from a bootstrap within each place: of the `n` trials at a place, `n - 1` are drawn
//! with replacement, which gives their mean the right variance even if `n` is small (Rao and Wu: Resampling inference
//! with complex survey data, 1988). The bounds are percentiles of the parameters fitted to the resamples. Student's t
//! with the trials' degrees of freedom determines the percentiles, because the variation of a few trials is itself
//! uncertain (Hesterberg: What teachers should know about the bootstrap, 2015). The bounds show the variation of the
//! trials, not whether the law is right: for that, compare the curve with the measured values.

mod power;
mod scaling;

use rand::SeedableRng as _;
use rand::rngs::StdRng;

use crate::bootstrap::{between, draw};
use crate::describe::{finite, mean, sorted};
use crate::distribution::{normal_below, student_quantile};
use crate::interval::UPPER;
use crate::{Bootstrap, Interval};

pub use power::{PowerLaw, fit_power_law};
pub use scaling::{Amdahl, Scalability, fit_amdahl, fit_scalability};

/// Trials at one place of the lower axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The number of threads, or the size.
    pub x: f64,
    /// The trials at this place; at least 2 values.
    pub trials: Vec<f64>,
}

/// The mean of the trials at a place.
#[derive(Debug, Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
    /// The number of trials.
    weight: f64,
}

/// Fits the parameters of a law to the mean at each place, which gives the same result as a fit to all trials. Then
/// fits them to resamples.
fn fit<const N: usize>(
    measured: &[Measured],
    bootstrap: Bootstrap,
    law: impl Fn(&[Point]) -> Option<[f64; N]>,
) -> Option<[Interval; N]> {
    let point = |of: &Measured, y: f64| Point { x: of.x, y, weight: of.trials.len() as f64 };
    let means: Option<Vec<Point>> = measured
        .iter()
        .map(|of| Some(point(of, mean(finite(&of.trials, 2)?)?)).filter(|_| of.x.is_finite()))
        .collect();
    let estimate = law(&means?)?;
    let (mut rng, mut drawn) = (StdRng::seed_from_u64(bootstrap.seed), Vec::new());
    let mut replicates = vec![Vec::new(); N];
    for _ in 0..bootstrap.resamples {
        let resample = |of: &Measured| {
            draw(&of.trials, of.trials.len() - 1, &mut rng, &mut drawn);
            point(of, mean(&drawn).unwrap_or_default())
        };
        let points: Vec<Point> = measured.iter().map(resample).collect();
        let Some(found) = law(&points) else { continue };
        for (all, one) in replicates.iter_mut().zip(found) {
            all.push(one);
        }
    }
    let mut columns = replicates.iter();
    let degrees: usize = measured.iter().map(|of| of.trials.len() - 1).sum();
    let upper = normal_below(student_quantile(UPPER, degrees as f64));
    let interval = |estimate| between(estimate, &sorted(columns.next()?), [1.0 - upper, upper]);
    let mut complete = true;
    let intervals = estimate.map(interval).map(|interval| {
        complete &= interval.is_some();
        interval.unwrap_or(Interval { estimate: 0.0, low: 0.0, high: 0.0 })
    });
    complete.then_some(intervals)
}

/// Number of different places among the points.
fn places(points: &[Point]) -> usize {
    let mut places: Vec<f64> = points.iter().map(|point| point.x).collect();
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    places.len()
}
