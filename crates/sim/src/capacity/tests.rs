//! Searches on simulated servers of known capacity.

mod endings;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::slo::Latency;

/// Draws from the standard normal distribution (Box and Muller).
fn normal(rng: &mut StdRng) -> f64 {
    let (radius, angle) = (1.0 - rng.random::<f64>(), rng.random::<f64>());
    (-2.0 * radius.ln()).sqrt() * (angle * std::f64::consts::TAU).cos()
}

/// A server whose answer depends on the repeat (0 in the climb) and the rate.
struct Fake<F> {
    answer: F,
    repeat: Arc<AtomicUsize>,
}

impl<F: FnMut(usize, f64) -> Measures + Send> Trials for Fake<F> {
    async fn run(&mut self, rate_per_s: f64) -> Result<Measures, SimError> {
        Ok((self.answer)(self.repeat.load(Ordering::Relaxed), rate_per_s))
    }
}

fn measures(holds: bool, rate: f64) -> Measures {
    let latency = Latency { p99_ms: if holds { 5.0 } else { 80.0 }, ..Latency::default() };
    Measures { asked_per_s: rate, done_per_s: rate, latency, ..Measures::default() }
}

fn too_much(rate: f64) -> Measures {
    let inconclusive = vec!["the generator was late".to_owned()];
    Measures { inconclusive, ..measures(true, rate) }
}

fn run<T: Trials + Send>(
    trials: &mut T,
    search: &Search,
    report: &mut (dyn FnMut(&Step<'_>) + Send),
) -> Result<Capacity, SimError> {
    let slo = "p99<50ms".parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(find(trials, &slo, search, report))
}

fn search(search: Search, answer: impl FnMut(usize, f64) -> Measures + Send) -> Capacity {
    let repeat = Arc::new(AtomicUsize::new(0));
    let mut fake = Fake { answer, repeat: Arc::clone(&repeat) };
    let mut report = |step: &Step<'_>| {
        if let Step::Tries { repeat: now, .. } = step {
            repeat.store(now.unwrap_or(0), Ordering::Relaxed);
        }
    };
    let found = run(&mut fake, &search, &mut report).unwrap();
    assert!(found.trials.len() <= search.trials().most, "{}", found.trials.len());
    found
}

fn held(found: &Capacity) -> Interval {
    let Finding::Holds { per_s, least_per_s, most_per_s } = found.finding else {
        panic!("{found:#?}");
    };
    assert!(least_per_s <= per_s.estimate && per_s.estimate <= most_per_s);
    assert!(per_s.low <= per_s.estimate && per_s.estimate <= per_s.high);
    per_s
}

#[test]
fn a_sharp_limit_is_found_wherever_it_is() {
    let limits = [1.2, 3.0, 7.77, 499.0, 500.0, 501.0, 999.9, 1_000.1, 54_321.0, 3_000_000.0];
    for limit in limits {
        for start_per_s in [1.0, 500.0, 1e6] {
            for repeats in [2, 5, 10] {
                let options =
                    Search { start_per_s, repeats, rate_per_s_max: 1e7, ..Search::default() };
                let found = search(options, |_, rate| measures(rate < limit, rate));
                let Interval { estimate, low, high } = held(&found);
                assert!((estimate / limit).ln().abs() < 0.05_f64.ln_1p(), "{limit}: {estimate}");
                assert!(low < limit && limit < high, "{limit}: {low} to {high}");
                assert_eq!(found.repeats_per_s.len(), repeats);
            }
        }
    }
}

#[test]
fn a_usual_search_takes_about_the_expected_number_of_trials() {
    for limit in [60.0, 400.0, 600.0, 4_900.0] {
        let found = search(Search::default(), |_, rate| measures(rate < limit, rate));
        let (trials, about) = (found.trials.len(), Search::default().trials().about);
        assert!(trials.abs_diff(about) <= 4, "{limit}: {trials} for about {about}");
    }
    let reported = Search::default().trials().describe(Duration::from_secs(10));
    assert_eq!(reported, "about 29 trials of 10 s each, 5 min; at most 124, 21 min");
}

#[test]
fn some_repeats_start_above_the_limit_and_some_below() {
    let found = search(Search::default(), |_, rate| measures(rate < 1_234.0, rate));
    let first = |repeat| found.trials.iter().find(|trial| trial.repeat == Some(repeat)).unwrap();
    let verdicts: Vec<Verdict> = (1..=5).map(|repeat| first(repeat).verdict).collect();
    let above = verdicts.iter().filter(|verdict| **verdict == Verdict::Fails).count();
    assert!((2..=3).contains(&above), "{verdicts:?}");
}

#[test]
fn a_server_that_fails_at_every_rate_holds_nothing() {
    let found = search(Search::default(), |_, rate| measures(false, rate));
    assert_eq!(found.finding, Finding::Nothing { rate_per_s: 1.0 });
    assert_eq!(found.sentence(), "not even 1.00 requests/s meet p99<50ms");
}

#[test]
fn a_server_that_never_fails_holds_at_least_the_highest_rate() {
    let options = Search { rate_per_s_max: 12_345.0, ..Search::default() };
    let found = search(options, |_, rate| measures(true, rate));
    let why = "the search ends at 12,300 requests/s".to_owned();
    assert_eq!(found.finding, Finding::AtLeast { rate_per_s: 12_345.0, why });
    assert!(found.repeats_per_s.is_empty());
}

#[test]
fn rates_above_the_limit_of_the_generator_are_never_reported() {
    let check = |limit: f64, generator: f64, start_per_s: f64, expect: &str| {
        let options = Search { start_per_s, ..Search::default() };
        let found = search(options, |_, rate| match rate < generator {
            true => measures(rate < limit, rate),
            false => too_much(rate),
        });
        let sentence = found.sentence();
        assert!(sentence.starts_with(expect), "{limit} {generator}: {sentence}");
        if let Finding::AtLeast { rate_per_s, .. } = found.finding {
            assert!(rate_per_s < generator && rate_per_s < limit, "{sentence}");
            assert!(rate_per_s == 0.0 || rate_per_s * 1.05 > generator.min(limit), "{sentence}");
            assert!(sentence.contains("the generator was late"), "{sentence}");
        }
        found
    };
    check(1e9, 9_000.0, 500.0, "holds at least 8,");
    check(1e9, 300.0, 500.0, "holds at least 29");
    check(1e9, 0.5, 500.0, "inconclusive about p99<50ms: at 1.00 requests/s");
    // The server's limit is below the generator's limit, but one doubling exceeds both.
    for limit in [5_000.0, 6_000.0, 7_000.0, 8_000.0] {
        let found = check(limit, 9_000.0, 500.0, "holds ");
        let Interval { low, high, .. } = held(&found);
        assert!(low < limit && limit < high, "{limit}: {low} to {high}");
    }
    // The limits are too close: no rate between them can be tried.
    check(8_950.0, 9_000.0, 500.0, "holds at least 8,");
}

#[test]
fn one_failure_in_the_climb_does_not_end_it() {
    let mut trials = 0;
    let found = search(Search::default(), |_, rate| {
        trials += 1;
        measures(rate < 7_000.0 && ![1, 4].contains(&trials), rate)
    });
    let Interval { low, high, .. } = held(&found);
    assert!(low < 7_000.0 && 7_000.0 < high, "{low} to {high}");
}

#[test]
fn one_slow_generator_trial_does_not_end_the_search() {
    let mut trials = 0;
    let found = search(Search::default(), |_, rate| {
        trials += 1;
        if [2, 9, 15].contains(&trials) { too_much(rate) } else { measures(rate < 2_500.0, rate) }
    });
    let Interval { low, high, .. } = held(&found);
    assert!(low < 2_500.0 && 2_500.0 < high, "{low} to {high}");
}

#[test]
fn a_server_that_does_too_few_requests_fails_whatever_its_latencies() {
    let found = search(Search::default(), |_, rate| {
        let done_per_s = if rate < 2_000.0 { 0.991 * rate } else { 0.989 * rate };
        Measures { done_per_s, ..measures(true, rate) }
    });
    let Interval { low, high, .. } = held(&found);
    assert!(low < 2_000.0 && 2_000.0 < high, "{low} to {high}");
    let failed = found.trials.iter().find(|trial| trial.verdict == Verdict::Fails).unwrap();
    let step = Step::Tried(failed).to_string();
    assert_eq!(step, "trial 3: fails: 1,980 done of 2,000 requests/s");
}

#[test]
fn a_trial_in_which_nothing_was_due_is_inconclusive() {
    let found = search(Search::default(), |_, rate| match rate < 3.0 {
        true => Measures::default(),
        false => measures(false, rate),
    });
    assert!(found.trials.iter().all(|trial| trial.verdict != Verdict::Holds), "{found:#?}");
    let sentence = found.sentence();
    assert!(sentence.starts_with("inconclusive about p99<50ms: at 1"), "{sentence}");
    assert!(sentence.ends_with("nothing was due in the trial: it is too short"), "{sentence}");
}

#[test]
fn a_capacity_that_keeps_moving_is_not_reported() {
    for factor in [0.3_f64, 3.0] {
        let found = search(Search::default(), |repeat, rate| {
            measures(rate < 3_000.0 * factor.powi(repeat as i32), rate)
        });
        assert!(matches!(found.finding, Finding::Unsteady { .. }), "{found:#?}");
        assert!(found.sentence().starts_with("no capacity with p99<50ms can be found"));
    }
}

#[test]
fn invalid_search_options_are_refused() {
    let check = |options: Search, expect: &str| {
        let mut fake = Fake { answer: |_, rate| measures(true, rate), repeat: Arc::default() };
        let error = run(&mut fake, &options, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains(expect), "{options:?}: {error}");
    };
    let usual = Search::default();
    for start_per_s in [0.0, 0.99, 1e7, f64::NAN] {
        check(Search { start_per_s, ..usual }, "starts at 1 to 1000000 requests/s");
    }
    check(Search { rate_per_s_max: f64::INFINITY, ..usual }, "starts at 1 to");
    for repeats in [0, 1, REPEATS_MAX + 1] {
        check(Search { repeats, ..usual }, "2 to 31 repeats");
    }
    for resolution in [0.0, 0.009, 0.11, f64::NAN] {
        check(Search { resolution, ..usual }, "1 to 10 %");
    }
}

struct Broken;

impl Trials for Broken {
    async fn run(&mut self, _: f64) -> Result<Measures, SimError> {
        Err(SimError::Interrupted)
    }
}

#[test]
fn a_search_ends_with_the_error_of_a_trial() {
    let outcome = run(&mut Broken, &Search::default(), &mut |_| {});
    assert!(matches!(outcome, Err(SimError::Interrupted)));
}

#[test]
fn the_result_is_reported_as_a_table_a_sentence_and_json() {
    let found = search(Search::default(), |_, rate| measures(rate < 9_800.0, rate));
    let reported = found.to_string();
    let lines: Vec<&str> = reported.lines().collect();
    assert_eq!(lines.len(), 1 + found.trials.len() + 1);
    assert!(lines[0].contains("requests/s") && lines[0].contains("p99 ms"), "{reported}");
    assert!(lines[1].contains("climb") && lines[1].ends_with("holds"), "{reported}");
    assert!(reported.contains("fails: p99 80.0 ms >= 50 ms"), "{reported}");
    let sentence = lines[lines.len() - 1];
    assert!(sentence.starts_with("holds 9,8") || sentence.starts_with("holds 9,7"), "{sentence}");
    assert!(sentence.contains(", 95 %] with p99<50ms; 5 repeats found 9,"), "{sentence}");

    let json = serde_json::to_value(&found).unwrap();
    assert_eq!((&json["slo"], &json["outcome"]), (&"p99<50ms".into(), &"holds".into()));
    assert!(json["per_s"]["low"].as_f64() < Some(9_800.0), "{json:#}");
    let failed =
        json["trials"].as_array().unwrap().iter().find(|trial| trial["verdict"] == "fails");
    assert_eq!(failed.unwrap()["breaches"][0], "p99 80.0 ms >= 50 ms");
}

#[test]
fn a_rate_is_reported_in_three_digits() {
    let check = |per_s: f64, reported: &str| assert_eq!(text::rate(per_s), reported);
    check(0.0, "0");
    check(3.217, "3.22");
    check(31.23, "31.2");
    check(99.99, "100");
    check(123.4, "123");
    check(9_996.0, "10,000");
    check(9_812.0, "9,810");
    check(1_234_567.0, "1,230,000");
}

/// The results of many searches.
struct Searches {
    /// The share of intervals that contain the true capacity.
    coverage: f64,
    /// The mean difference of the logarithms of the found and the true capacity.
    bias: f64,
    /// Number of searches without an interval.
    others: u32,
}

/// Searches on servers whose capacity is drawn again for each repeat: log-normal with deviation `spread`. Trials
/// succeed at random: the odds of a failure are `(rate / capacity)` to the power of `1 / slope`. With slope 0 there is
/// no randomness.
fn searches(count: u32, repeats: usize, slope: f64, spread: f64) -> Searches {
    let mut rng = StdRng::seed_from_u64(5);
    let (mut covered, mut off, mut others) = (0, 0.0, 0);
    for _ in 0..count {
        let truth = 500.0 * 64_f64.powf(rng.random::<f64>());
        let (mut drawn_for, mut capacity) = (usize::MAX, truth);
        let rng = &mut rng;
        let found = search(Search { repeats, ..Search::default() }, |repeat, rate| {
            if drawn_for != repeat {
                (drawn_for, capacity) = (repeat, truth * (spread * normal(rng)).exp());
            }
            let odds = ((rate / capacity).ln() / slope).exp();
            measures(rng.random::<f64>() < 1.0 / (1.0 + odds), rate)
        });
        if let Finding::Holds { per_s, .. } = found.finding {
            covered += u32::from(per_s.low < truth && truth < per_s.high);
            off += (per_s.estimate / truth).ln();
        } else {
            others += 1;
        }
    }
    let reported = f64::from(count - others);
    Searches { coverage: f64::from(covered) / reported, bias: off / reported, others }
}

#[test]
fn intervals_of_searches_contain_the_true_capacity_at_their_confidence() {
    const SEARCHES: u32 = 2_000;
    // Four standard errors of a share of 95 % in this many searches.
    let error = 4.0 * (0.95 * 0.05 / f64::from(SEARCHES)).sqrt();
    for (slope, spread) in [(0.0, 0.05), (0.01, 0.0), (0.01, 0.05), (0.03, 0.0), (0.03, 0.1)] {
        for repeats in [3, 5, 10] {
            let Searches { coverage, bias, others } = searches(SEARCHES, repeats, slope, spread);
            let case = format!(
                "slope {slope} spread {spread} repeats {repeats}: coverage {coverage:.4}, \
                 bias {:+.2} %, {others} without interval",
                bias * 100.0
            );
            println!("{case}");
            // With a few exact repeats, the error of bisection widens the interval.
            let is_fine = repeats == 3 && slope < 0.03 && spread == 0.0;
            assert!(coverage > 0.95 - error && (is_fine || coverage < 0.95 + error), "{case}");
            assert!(bias.abs() < 0.01 && others <= SEARCHES / 100, "{case}");
        }
    }
}

#[test]
fn intervals_are_slightly_too_narrow_if_results_are_random_over_a_wide_range() {
    for (slope, coverage_min) in [(0.1, 0.91), (0.2, 0.85)] {
        let Searches { coverage, bias, others } = searches(2_000, 5, slope, 0.05);
        let case = format!(
            "slope {slope}: coverage {coverage:.4}, bias {:+.2} %, {others} without",
            bias * 100.0
        );
        println!("{case}");
        assert!(coverage > coverage_min && bias.abs() < 0.04 && others < 60, "{case}");
    }
}

#[test]
fn the_error_of_bisection_is_in_the_interval() {
    let Searches { coverage, bias, others } = searches(2_000, 5, 0.0, 0.0);
    println!("sharp: coverage {coverage:.4}, bias {:+.2} %", bias * 100.0);
    assert!(coverage > 0.95 && bias.abs() < 0.003 && others == 0);
}

proptest! {
    #[test]
    fn a_search_ends_in_time_whatever_the_server_does(
        seed: u64,
        holds in 0.0_f64..1.0,
        unknown in 0.0_f64..0.3,
        start in 1.0_f64..1e5,
        resolution in 0.01_f64..0.1,
    ) {
        let mut rng = StdRng::seed_from_u64(seed);
        let options = Search { start_per_s: start, resolution, ..Search::default() };
        // `search` counts the trials.
        let found = search(options, |_, rate| match rng.random::<f64>() < unknown {
            true => too_much(rate),
            false => measures(rng.random::<f64>() < holds, rate),
        });
        let rates = found.trials.iter().map(|trial| trial.rate_per_s);
        prop_assert!(rates.clone().all(|rate| (FLOOR_PER_S..=options.rate_per_s_max).contains(&rate)));
        if let Finding::AtLeast { rate_per_s, .. } = found.finding {
            let failed = |trial: &Trial| trial.verdict == Verdict::Fails;
            let mut below = found.trials.iter().filter(|trial| trial.rate_per_s <= rate_per_s);
            prop_assert!(!below.any(failed));
        }
    }
}
