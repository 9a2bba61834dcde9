//! Counts, on simulated trials, the shares of intervals that contain the true value and of tests that find a false
//! difference. `--nocapture` prints all shares. `cargo xtask nightly` runs five times as many repetitions, with
//! narrower bounds.

use std::ops::RangeInclusive;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use stats::{
    Bootstrap, Center, Comparison, Interval, Measured, Verdict, WarmUp, compare, compare_pairs,
    fit_amdahl, fit_power_law, fit_scalability, mean, ratio_of_means, trials_for, verdicts,
    warm_up,
};

/// Draws from the standard normal distribution (Box and Muller).
fn normal(rng: &mut StdRng) -> f64 {
    let (radius, angle) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
    (-2.0 * radius.ln()).sqrt() * (angle * std::f64::consts::TAU).cos()
}

fn normals(count: usize, mean: f64, deviation: f64, rng: &mut StdRng) -> Vec<f64> {
    (0..count).map(|_| mean + deviation * normal(rng)).collect()
}

/// Skewed values, as times are, with a median of 1.
fn skewed(count: usize, rng: &mut StdRng) -> Vec<f64> {
    (0..count).map(|_| (0.7 * normal(rng)).exp()).collect()
}

/// Number of repetitions in this run: `nightly` in `cargo xtask nightly`, otherwise a fifth.
fn repetitions(nightly: u32) -> u32 {
    if std::env::var_os("ROOST_NIGHTLY").is_some() { nightly } else { nightly / 5 }
}

/// Tolerance: three standard errors of a share counted in this many runs. In the nightly run it is 0, because the
/// bounds were measured with its number of repetitions.
fn error(share: f64, runs: u32) -> f64 {
    if std::env::var_os("ROOST_NIGHTLY").is_some() {
        return 0.0;
    }
    3.0 * (share * (1.0 - share) / f64::from(runs)).sqrt()
}

/// Runs `holds` many times, counts how often each of its conditions is true, and compares each share with the expected
/// range. `runs` is the number of runs in `cargo xtask nightly`.
fn count<const N: usize>(
    name: &str,
    runs: u32,
    expect: [RangeInclusive<f64>; N],
    mut holds: impl FnMut(&mut StdRng) -> [bool; N],
) -> [f64; N] {
    let runs = repetitions(runs);
    let mut rng = StdRng::seed_from_u64(11);
    let mut counts = [0_u32; N];
    for _ in 0..runs {
        for (count, holds) in counts.iter_mut().zip(holds(&mut rng)) {
            *count += u32::from(holds);
        }
    }
    let shares = counts.map(|count| f64::from(count) / f64::from(runs));
    println!("{name}: {shares:.3?}");
    for (share, expect) in shares.iter().zip(expect) {
        let (low, high) = (*expect.start(), *expect.end());
        let expect = low - error(low, runs)..=high + error(high, runs);
        assert!(expect.contains(share), "{name}: {shares:?}, {share} is not in {expect:?}");
    }
    shares
}

fn bootstrap(rng: &mut StdRng, resamples: u32) -> Bootstrap {
    Bootstrap { resamples, seed: rng.random() }
}

#[test]
fn students_intervals_hold_at_their_confidence() {
    for trials in [2, 3, 5, 10, 100] {
        // The range is 95 % plus or minus four standard errors of this number of runs.
        let expect = 0.9413..=0.9587;
        count(&format!("student {trials}"), 10_000, [expect.clone(), expect], |rng| {
            let plain = Interval::of_mean(&normals(trials, 7.0, 2.0, rng)).unwrap();
            let rates: Vec<f64> = (0..trials).map(|_| 900.0 * normal(rng).exp()).collect();
            let factors = Interval::of_geometric_mean(&rates).unwrap();
            [plain.contains(7.0), factors.contains(900.0)]
        });
    }
}

/// Checks the figures in the documentation of `bootstrap`.
#[test]
fn bootstrap_intervals_are_too_narrow_only_with_few_trials() {
    let median = || 0.92..=0.96;
    for (trials, of_mean) in
        [(5, 0.80..=0.86), (10, 0.88..=0.92), (20, 0.90..=0.94), (40, 0.92..=0.95)]
    {
        let expect = [of_mean.clone(), of_mean, median(), median(), median()];
        count(&format!("bootstrap {trials}"), 1_500, expect, |rng| {
            let sample = normals(trials, 7.0, 2.0, rng);
            let (bootstrap, skewed) = (bootstrap(rng, 600), skewed(trials, rng));
            let holds = |found: Option<Interval>, value| found.unwrap().contains(value);
            [
                holds(bootstrap.percentile(&sample, Center::Mean), 7.0),
                holds(bootstrap.bca(&sample, Center::Mean), 7.0),
                holds(bootstrap.percentile(&sample, Center::Median), 7.0),
                holds(bootstrap.bca(&sample, Center::Median), 7.0),
                holds(bootstrap.bca(&skewed, Center::Median), 1.0),
            ]
        });
    }
}

/// BCa corrects part of the error of percentile intervals on skewed values with a known mean.
#[test]
fn bca_holds_more_often_than_percentiles_where_values_are_skewed() {
    let mean = (0.7_f64 * 0.7 / 2.0).exp();
    let (mut rng, mut held) = (StdRng::seed_from_u64(3), [0_u32; 2]);
    let runs = repetitions(2_000);
    for _ in 0..runs {
        let (sample, bootstrap) = (skewed(15, &mut rng), bootstrap(&mut rng, 600));
        let both =
            [bootstrap.percentile(&sample, Center::Mean), bootstrap.bca(&sample, Center::Mean)];
        for (held, found) in held.iter_mut().zip(both) {
            *held += u32::from(found.unwrap().contains(mean));
        }
    }
    println!("skewed, percentile and bca: {held:?} of {runs}");
    assert!(held[1] > held[0] + runs / 200, "{held:?}");
}

#[test]
fn intervals_of_ratios_hold_at_their_confidence() {
    let fieller = || 0.94..=0.985;
    for (trials, resampled) in [(5, 0.86..=0.93), (10, 0.91..=0.95), (20, 0.92..=0.965)] {
        let expect = [fieller(), fieller(), resampled.clone(), resampled];
        count(&format!("ratio {trials}"), 1_500, expect, |rng| {
            let mut nested = |mean: f64| -> Vec<Vec<f64>> {
                let trials = normals(trials, mean, mean * 0.1, rng);
                trials.into_iter().map(|of| normals(8, of, mean * 0.1, rng)).collect()
            };
            let (new, base) = (nested(12.0), nested(10.0));
            let means =
                |of: &[Vec<f64>]| of.iter().map(|one| mean(one).unwrap()).collect::<Vec<_>>();
            let (a, b) = (normals(trials, 12.0, 1.0, rng), normals(trials + 2, 10.0, 1.5, rng));
            let bootstrap = bootstrap(rng, 400);
            let holds = |found: Option<Interval>| found.unwrap().contains(1.2);
            [
                holds(ratio_of_means(&a, &b)),
                holds(ratio_of_means(&means(&new), &means(&base))),
                holds(bootstrap.ratio(&a, &b, Center::Mean)),
                holds(bootstrap.ratio_of_nested_means(&new, &base)),
            ]
        });
    }
}

/// Times of two equal designs.
fn same(kind: usize, trials: usize, rng: &mut StdRng) -> [Vec<f64>; 2] {
    [(), ()].map(|()| match kind {
        0 => normals(trials, 100.0, 5.0, rng),
        1 => skewed(trials, rng),
        // A quiet machine has occasional stalls.
        _ => (0..trials)
            .map(|_| 100.0 + normal(rng) + if rng.random_bool(0.1) { 40.0 } else { 0.0 })
            .collect(),
    })
}

/// Trials of two designs in the same blocks. A slow block slows both designs.
fn in_blocks(kind: usize, trials: usize, ratio: f64, rng: &mut StdRng) -> Vec<(f64, f64)> {
    let [new, base] = same(kind, trials, rng);
    let pair = |(new, base): (f64, f64)| {
        let slow = (0.4 * normal(rng)).exp();
        (ratio * new * slow, base * slow)
    };
    new.into_iter().zip(base).map(pair).collect()
}

fn unpaired(pairs: &[(f64, f64)]) -> Option<Comparison> {
    let (new, base): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    compare(&new, &base)
}

fn any_differs(table: &[Comparison]) -> bool {
    let differs = |verdict| matches!(verdict, Verdict::Faster | Verdict::Slower);
    verdicts(table, 0.05).iter().any(|judged| differs(judged.verdict))
}

/// Counts false findings of single comparisons and of tables of six, for independent trials and for pairs. With 20,000
/// repetitions each, the highest share for independent trials is 4.6 % (table, 30 normal trials); with fewer trials,
/// shares are lower.
#[test]
fn equal_designs_differ_in_at_most_one_of_twenty_experiments() {
    const RUNS: u32 = 1_000;
    // For normal logarithms, the test of pairs is exact: its share is 5 %, not less.
    const PAIR_RUNS: u32 = 10_000;
    // The share of a single case may exceed 5 % by three standard errors, the mean of all cases may not.
    let most = |runs: u32| 0.05 + 3.0 * (0.05 * 0.95 / f64::from(runs)).sqrt();
    let (mut all, mut all_pairs) = (Vec::new(), Vec::new());
    for (kind, name) in ["normal", "skewed", "stalls"].iter().enumerate() {
        for trials in [3, 5, 10, 30] {
            let name = format!("A/A {name} {trials}");
            all.extend(count(&name, RUNS, [0.0..=most(RUNS), 0.0..=most(RUNS)], |rng| {
                // The result is `None` if the base varies so much that its mean could be 0.
                let mut compared = || {
                    let [new, base] = same(kind, trials, rng);
                    compare(&new, &base)
                };
                let alone: Vec<_> = compared().into_iter().collect();
                let table: Vec<_> = (0..6).filter_map(|_| compared()).collect();
                [any_differs(&alone), any_differs(&table)]
            }));
            let expect = [0.0..=most(PAIR_RUNS), 0.0..=most(PAIR_RUNS)];
            all_pairs.extend(count(&format!("{name} in blocks"), PAIR_RUNS, expect, |rng| {
                let mut compared = || compare_pairs(&in_blocks(kind, trials, 1.0, rng)).unwrap();
                let alone = [compared()];
                let table: Vec<_> = (0..6).map(|_| compared()).collect();
                [any_differs(&alone), any_differs(&table)]
            }));
        }
    }
    let most = |shares: &[f64], runs| 0.05 + error(0.05, shares.len() as u32 * repetitions(runs));
    assert!(mean(&all).unwrap() <= most(&all, RUNS), "{all:?}");
    // The share is 5 % for normal trials, and less for others.
    assert!(mean(&all_pairs).unwrap() <= most(&all_pairs, PAIR_RUNS), "{all_pairs:?}");
}

/// The interval of pairs contains the true value. If blocks differ, it is narrower than that of independent samples.
#[test]
fn intervals_of_pairs_hold_and_are_narrower_if_blocks_differ() {
    for trials in [4, 5, 10, 20] {
        let expect = 0.9395..=0.9605;
        count(&format!("pairs {trials}"), 5_000, [expect, 0.93..=1.0, 0.9..=1.0], |rng| {
            let holds = |pairs: &[(f64, f64)]| compare_pairs(pairs).unwrap().ratio.contains(1.2);
            let plain: Vec<(f64, f64)> = (0..trials)
                .map(|_| {
                    let slow = (0.4 * normal(rng)).exp();
                    (1.2 * slow * (0.1 * normal(rng)).exp(), slow * (0.1 * normal(rng)).exp())
                })
                .collect();
            let width = |found: Comparison| found.ratio.high - found.ratio.low;
            let narrower = unpaired(&plain)
                .is_none_or(|unpaired| width(compare_pairs(&plain).unwrap()) < width(unpaired));
            [holds(&plain), holds(&in_blocks(2, trials, 1.2, rng)), narrower]
        });
    }
}

#[test]
fn a_real_difference_is_found_and_a_small_one_is_excluded() {
    count("power", 500, [0.99..=1.0, 0.99..=1.0, 0.9..=1.0], |rng| {
        let mut verdict = |mean: f64| {
            let (new, base) = (normals(20, mean, 2.0, rng), normals(20, 100.0, 2.0, rng));
            verdicts(&[compare(&new, &base).unwrap()], 0.05)[0].verdict
        };
        [
            verdict(95.0) == Verdict::Faster,
            verdict(105.0) == Verdict::Slower,
            matches!(verdict(100.0), Verdict::NoDifferenceLargerThan(most) if most <= 0.05),
        ]
    });
}

#[test]
fn as_many_trials_as_the_pilot_asks_for_are_enough() {
    for pilot in [4, 8, 15] {
        count(&format!("pilot of {pilot}"), 2_000, [0.94..=1.0], |rng| {
            let mut times = normals(pilot, 100.0, 4.0, rng);
            let needed = trials_for(&times, 0.02).unwrap();
            times.extend(normals(needed - pilot, 100.0, 4.0, rng));
            [(mean(&times).unwrap() / 100.0 - 1.0).abs() <= 0.02]
        });
    }
}

#[test]
fn what_does_not_warm_up_loses_little() {
    for (values, lost_max) in [(50, 0.15), (100, 0.10), (200, 0.05), (1_000, 0.01)] {
        let mut lost = 0.0;
        count(&format!("steady {values}"), 2_000, [0.98..=1.0], |rng| {
            let found = warm_up(&normals(values, 10.0, 1.0, rng));
            if let WarmUp::Ends { at } = found {
                lost += at as f64 / values as f64 / f64::from(repetitions(2_000));
            }
            [found != WarmUp::NeverSteady]
        });
        println!("steady {values}: {lost:.3} left out");
        assert!(lost <= lost_max, "{values}: {lost}");
    }
}

#[test]
fn intervals_of_fitted_parameters_hold_about_at_their_confidence() {
    const THREADS: [f64; 5] = [1.0, 2.0, 4.0, 8.0, 16.0];
    for (trials, least) in [(3, 0.85), (5, 0.88), (10, 0.90)] {
        let expect = [(); 6].map(|()| least..=0.985);
        count(&format!("fits {trials}"), 500, expect, |rng| {
            let mut at = |law: &dyn Fn(f64) -> f64| -> Vec<Measured> {
                let place = |&x: &f64| {
                    let y = law(x);
                    Measured { x, trials: normals(trials, y, 0.04 * y, rng) }
                };
                THREADS.iter().map(place).collect()
            };
            let amdahl = at(&|n| 100.0 * n / (1.0 + 0.1 * (n - 1.0)));
            let usl = at(&|n| 100.0 * n / (1.0 + 0.1 * (n - 1.0) + 0.005 * n * (n - 1.0)));
            let power = at(&|n| 3.0 * n.powf(0.7));
            let bootstrap = bootstrap(rng, 300);
            let amdahl = fit_amdahl(&amdahl, bootstrap).unwrap();
            let usl = fit_scalability(&usl, bootstrap).unwrap();
            let power = fit_power_law(&power, bootstrap).unwrap();
            [
                amdahl.single.contains(100.0),
                amdahl.serial.contains(0.1),
                usl.contention.contains(0.1),
                usl.coherency.contains(0.005),
                power.factor.contains(3.0),
                power.exponent.contains(0.7),
            ]
        });
    }
}
