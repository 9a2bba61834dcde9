//! Compares results on textbook samples with those of R: `reference.R` prints `reference.txt`.

use stats::{
    Bootstrap, Center, Interval, Measured, density, deviation, fit_amdahl, fit_power_law,
    fit_scalability, holm, mann_whitney, mean, median, quantile, variance, welch,
};

const SLEEP_1: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
const SLEEP_2: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
const SKEWED: [f64; 15] =
    [1.1, 1.3, 1.2, 1.0, 1.4, 1.9, 2.7, 1.2, 1.1, 5.2, 1.6, 1.3, 1.8, 1.2, 3.1];

/// Compares values with a line of R's output; `precision` is relative.
fn check(name: &str, found: &[f64], precision: f64) {
    let lines = include_str!("../reference.txt").lines();
    let (_, line) =
        lines.filter_map(|line| line.split_once(':')).find(|(n, _)| *n == name).unwrap();
    let expect: Vec<f64> = line.split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert_eq!(found.len(), expect.len(), "{name}");
    for (found, expect) in found.iter().zip(expect) {
        let error = (found - expect).abs();
        assert!(error <= precision * expect.abs().max(1e-6), "{name}: {found} and not {expect}");
    }
}

#[test]
fn samples_are_described_as_in_r() {
    let of = |f: fn(&[f64]) -> Option<f64>| f(&SLEEP_1).unwrap();
    check("describe", &[of(mean), of(median), of(variance), of(deviation)], 1e-9);
    let shares = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0];
    check("quantiles", &shares.map(|share| quantile(&SLEEP_1, share).unwrap()), 1e-9);
    let Interval { low, high, .. } = Interval::of_mean(&SLEEP_1).unwrap();
    check("interval", &[low, high], 1e-9);
}

#[test]
fn tests_give_the_p_of_r() {
    let found = welch(&SLEEP_1, &SLEEP_2).unwrap();
    check("welch", &[found.t, found.degrees, found.p], 1e-9);

    let found = mann_whitney(&SLEEP_1, &SLEEP_2).unwrap();
    check("mann-whitney with ties", &[found.u, found.p], 1e-9);
    assert!(!found.exact);
    let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    let found = mann_whitney(&term, &[1.15, 0.88, 0.90, 0.74, 1.21]).unwrap();
    check("mann-whitney exact", &[found.u, found.p], 1e-9);
    assert!(found.exact);
    let many: Vec<f64> = (1..=60).map(|i| f64::from(i * 37 % 101)).collect();
    let more: Vec<f64> = (1..=55).map(|i| f64::from(i * 53 % 97) + 10.5).collect();
    let found = mann_whitney(&many, &more).unwrap();
    check("mann-whitney large", &[found.u, found.p], 1e-9);
    assert!(!found.exact);

    check("holm", &holm(&[0.01, 0.02, 0.03, 0.005, 0.5, 0.04]), 1e-9);
}

#[test]
fn densities_are_those_of_r() {
    let found = density(&SLEEP_1, 5).unwrap();
    check("bandwidth", &[found.bandwidth], 1e-9);
    check("density", &found.points.iter().map(|(_, density)| *density).collect::<Vec<_>>(), 1e-9);
}

/// Repeats each value, because the functions need at least two trials per place.
fn measured<const N: usize>(x: [f64; N], y: [f64; N]) -> Vec<Measured> {
    x.into_iter().zip(y).map(|(x, y)| Measured { x, trials: vec![y, y] }).collect()
}

#[test]
fn fits_find_the_parameters_of_r() {
    let bootstrap = Bootstrap { resamples: 10, seed: 1 };
    let ray_tracer = measured(
        [1.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0, 32.0, 48.0, 64.0],
        [20.0, 78.0, 130.0, 170.0, 190.0, 200.0, 210.0, 230.0, 260.0, 280.0, 310.0],
    );
    let amdahl = fit_amdahl(&ray_tracer, bootstrap).unwrap();
    check("ray tracer, amdahl", &[amdahl.single, amdahl.serial].map(|of| of.estimate), 1e-6);
    let bounded = fit_scalability(&ray_tracer, bootstrap).unwrap();
    let of = [bounded.single, bounded.contention, bounded.coherency].map(|of| of.estimate);
    check("ray tracer, scalability within bounds", &of, 1e-6);
    assert_eq!(bounded.peak(), None);

    let sdm91 = measured(
        [1.0, 18.0, 36.0, 72.0, 108.0, 144.0, 216.0],
        [64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2],
    );
    let found = fit_scalability(&sdm91, bootstrap).unwrap();
    let of = [found.single, found.contention, found.coherency].map(|of| of.estimate);
    check("sdm91, scalability", &of, 1e-5);
    assert!((found.peak().unwrap() - 96.5).abs() < 0.1, "{:?}", found.peak());
    assert!((found.at(72.0) - 1853.2).abs() < 0.05 * 1853.2, "{}", found.at(72.0));

    let power = measured([1.0, 10.0, 100.0, 1_000.0], [2.1, 6.5, 19.0, 66.0]);
    let found = fit_power_law(&power, bootstrap).unwrap();
    check("power law", &[found.factor.estimate.ln(), found.exponent.estimate], 1e-9);
}

/// Both programs resample at random, so their bounds agree only to about 2 %.
#[test]
fn bootstrap_intervals_are_those_of_r() {
    let bootstrap = Bootstrap { resamples: 50_000, seed: 7 };
    let Interval { low, high, .. } = bootstrap.percentile(&SKEWED, Center::Mean).unwrap();
    let Interval { low: bca_low, high: bca_high, .. } =
        bootstrap.bca(&SKEWED, Center::Mean).unwrap();
    let one_line = |bounds: [f64; 4]| check("bootstrap", &bounds, 0.02);
    one_line([low, high, bca_low, bca_high]);
}
