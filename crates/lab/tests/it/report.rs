//! Reports of raw data with known verdicts.

use lab::record::{RawData, Record, Run};
use lab::report::{self, Analysis};
use lab::{Environment, Measured, Parameters, Scale, Settings, Skipped};
use stats::Verdict;

/// Small differences between trials, the same for all designs.
const NOISE: [f64; 8] = [0.0, 1.0, -1.0, 0.5, -0.5, 0.8, -0.8, 0.2];

/// Record of ten operations, and their time in milliseconds.
fn record(design: &str, threads: u64, block: usize, time_ms: f64) -> Record {
    let mut parameters = Parameters::default();
    for (name, value) in [
        ("threads", threads),
        ("clients", 4),
        ("operations", 5),
        ("buckets", 2),
        ("keys", 3),
        ("reads", 50),
    ] {
        parameters.set(name, value);
    }
    let wall_ns = (time_ms * 1e6) as u64;
    Record {
        experiment: "keys".to_owned(),
        design: design.to_owned(),
        parameters,
        block: block as u64,
        order: 0,
        seed: 1,
        expected: 7,
        calibration_ns: 1_000 + block as u64,
        measured: Measured {
            wall_ns,
            cpu_ns: 1,
            operations: 10,
            checksum: 7,
            ..Measured::default()
        },
        environment: Environment { processor: "<b>fast</b>".to_owned(), ..Environment::default() },
    }
}

fn data(times: &[(&str, u64, f64)]) -> RawData {
    data_in_blocks(times, 0.0)
}

/// Data of blocks that differ from each other, by `blocks_differ` per unit of noise.
fn data_in_blocks(times: &[(&str, u64, f64)], blocks_differ: f64) -> RawData {
    let settings = Settings {
        experiments: vec!["keys".to_owned()],
        scale: Scale::Quick,
        designs: None,
        threads: None,
        values: [("reads".to_owned(), vec![50])].into(),
        trials: Some(8),
        repeats: None,
        seed: 3,
    };
    let trials = |(design, threads, mean): &(&str, u64, f64)| {
        let (design, threads, mean) = ((*design).to_owned(), *threads, *mean);
        // Each design has its own noise, and each block its own delay.
        let of_design = design.len() + threads as usize;
        let trial = move |(block, noise): (usize, &f64)| {
            let slow = 1.0 + blocks_differ * NOISE[(3 * block) % NOISE.len()];
            record(&design, threads, block, mean * slow * (1.0 + noise / 100.0))
        };
        NOISE
            .iter()
            .cycle()
            .skip(of_design)
            .take(NOISE.len())
            .enumerate()
            .map(trial)
            .collect::<Vec<_>>()
    };
    let records = times.iter().flat_map(trials).collect();
    RawData { run: Run::new(settings, vec![1_000; 10], Vec::new()), records }
}

#[test]
fn designs_are_judged_by_their_times_in_the_same_blocks() {
    let times =
        [("central", 1, 10.0), ("sharded", 1, 10.0), ("worker", 1, 5.0), ("locked", 1, 20.0)];
    let data = data_in_blocks(&times, 0.3);
    let analysis = Analysis::of(&data);
    let [experiment] = &analysis.experiments[..] else { panic!("one experiment") };
    let judged = |design: &str, base: &str| {
        let of = |judgement: &&report::Judgement| {
            (judgement.design, judgement.base, judgement.quantity.name)
                == (design, base, "throughput")
        };
        experiment.judgements.iter().find(of).unwrap()
    };
    let faster = judged("worker", "central");
    assert_eq!(faster.verdict, Verdict::Faster);
    assert!(faster.ratio.contains(2.0) && faster.ratio.low > 1.9, "{:?}", faster.ratio);
    let slower = judged("locked", "central");
    assert_eq!(slower.verdict, Verdict::Slower);
    assert!(slower.ratio.contains(0.5), "{:?}", slower.ratio);
    let same = judged("sharded", "central").verdict;
    assert!(matches!(same, Verdict::NoDifferenceLargerThan(bound) if bound < 0.02), "{same:?}");

    let text = report::text(&analysis);
    for part in [
        "Verdict: Throughput, compared with central (all). Faster: worker (2.0",
        "Slower: locked (0.5",
        "No difference larger than 5 %: sharded (",
        "Throughput of worker against central, all: faster. 2.00 [",
        "Throughput of locked against central, all: slower. 0.5",
        "Throughput of sharded against central, all: no difference larger than ",
        "sharded against central: faster in 0 of 1 cases, slower in 0, no difference larger than 5 % in 1",
        "worker against sharded: faster in 1 of 1 cases",
        "The machine was quiet",
    ] {
        assert!(text.contains(part), "{part}? {text}");
    }
}

/// The p-values of the answer are not adjusted for the other parameters, which would require too many trials.
#[test]
fn the_answer_does_not_depend_on_how_many_other_parameters_are_measured() {
    let few = [("central", 1, 10.0), ("worker", 1, 9.8)];
    let others = (2..=20).map(|threads| (("central", threads, 1.0), ("worker", threads, 1.0)));
    let many: Vec<_> = few.into_iter().chain(others.flat_map(|(a, b)| [a, b])).collect();
    let answers = |times: &[(&str, u64, f64)]| {
        let analysis = Analysis::of(&data(times));
        let answers = analysis.experiments[0].answers();
        answers.map(|judged| (judged.design, judged.p_adjusted, judged.verdict)).collect::<Vec<_>>()
    };
    assert_eq!(answers(&few), answers(&many));
    assert_eq!(answers(&few)[0].2, Verdict::Faster, "{:?}", answers(&few));
}

#[test]
fn a_design_against_itself_is_judged_in_repetitions() {
    let check = |again: f64, expect: &str| {
        let mut data = data(&[("central", 1, 10.0), ("central again", 1, again)]);
        data.run.settings.trials = Some(4);
        data.run.settings.repeats = Some(2);
        let text = report::against_itself(&data);
        assert!(text.contains(expect), "{expect}? {text}");
        assert!(text.contains("--trials 4 --against-itself 2"), "{text}");
    };
    check(
        10.0,
        "central of keys against itself, 2 repetitions of 4 blocks: a difference in 0 (0.0 %)",
    );
    check(20.0, "a difference in 2 (100.0 %)");
}

#[test]
fn an_experiment_is_repeated_with_the_options_of_its_run_that_concern_it() {
    let mut data = data(&[("central", 1, 10.0), ("worker", 1, 9.0)]);
    let settings = &mut data.run.settings;
    settings.experiments.push("timelines".to_owned());
    settings.designs =
        Some(["central", "worker", "roost", "materialized"].map(str::to_owned).to_vec());
    settings.threads = Some(vec![1, 2]);
    settings.values.insert("followers".to_owned(), vec![7]);
    let of_run = "roost lab run keys timelines --designs central,worker,roost,materialized --threads 1,2 \
                  --set followers=7 --set reads=50 --trials 8 --seed 3";
    let of_keys = "roost lab run keys --designs central,worker,roost --threads 1,2 --set reads=50 --trials 8 --seed 3";
    let analysis = Analysis::of(&data);
    let (text, page) = (report::text(&analysis), report::page(&analysis));
    assert!(text.contains(&format!("Repeat with: {of_keys}\n")), "{text}");
    for command in [of_run, of_keys] {
        assert!(page.contains(&format!("<code>{command}</code>")), "{page}");
    }
    assert!(!page.contains("<code>roost lab run keys</code>"), "without options");
}

#[test]
fn what_was_skipped_is_reported_with_its_reason() {
    let mut data = data(&[("central", 1, 10.0), ("worker", 1, 10.0)]);
    data.run.skipped = vec![Skipped {
        experiment: "keys".to_owned(),
        design: "erlang-worker".to_owned(),
        reason: "no <erl>".to_owned(),
    }];
    let analysis = Analysis::of(&data);
    let text = report::text(&analysis);
    assert!(text.contains("\nSkipped: erlang-worker in keys: no <erl>\n"), "{text}");
    assert!(text.contains("(skipped: no <erl>)") && text.contains("(not measured)"), "{text}");
    let page = report::page(&analysis);
    assert!(page.contains("erlang-worker in keys: no &lt;erl&gt;"), "{page}");
}

#[test]
fn trials_with_wrong_answers_do_not_count_and_those_of_a_busy_machine_are_marked() {
    let mut data = data(&[("central", 1, 10.0), ("worker", 1, 10.0)]);
    let mut wrong = record("worker", 1, 9, 0.001);
    wrong.measured.checksum = 8;
    data.records.push(wrong);
    data.records[3].calibration_ns = 5_000;
    let analysis = Analysis::of(&data);
    assert_eq!((analysis.trials, analysis.void, analysis.marked), (16, 1, 1));
    let values = analysis.experiments[0].cells.iter().map(|cell| cell.values.len());
    assert!(values.max() == Some(8));
    assert!(
        report::text(&analysis).contains("16 trials; 1 void because of wrong answers; 1 marked")
    );
}

#[test]
fn scaling_is_fitted_over_threads() {
    let times: Vec<_> = [1, 2, 4, 8]
        .map(|threads| ("worker", threads, 10.0 * (0.2 + 0.8 / threads as f64)))
        .into_iter()
        .collect();
    let analysis = Analysis::of(&data(&times));
    let [scaling] = &analysis.experiments[0].scaling[..] else { panic!("one design") };
    let serial = scaling.amdahl.as_ref().unwrap().serial;
    assert!(serial.contains(0.2) && serial.high - serial.low < 0.1, "{serial:?}");
    assert_eq!(
        scaling.points.iter().map(|point| point.x).collect::<Vec<_>>(),
        [1.0, 2.0, 4.0, 8.0]
    );
}

#[test]
fn a_page_has_plots_and_tables_and_text_from_outside_is_escaped() {
    let times = [("central", 1, 10.0), ("central", 2, 9.0), ("worker", 1, 9.0), ("worker", 2, 5.0)];
    let data = data(&times);
    let page = report::page(&Analysis::of(&data));
    for part in [
        "&lt;b&gt;fast&lt;/b&gt;",
        "Speed-up over threads",
        "roost lab run keys --set reads=50 --trials 8 --seed 3",
        "Verdict: </strong>",
    ] {
        assert!(page.contains(part), "{part}?");
    }
    assert!(page.matches("<svg").count() >= 5 && !page.contains("<b>fast"));
    assert_eq!(page, report::page(&Analysis::of(&data)), "the same data make the same page");
}

#[test]
fn two_runs_are_compared_cell_by_cell() {
    let old = data(&[("central", 1, 10.0), ("worker", 1, 10.0), ("locked", 1, 1.0)]);
    let new = data(&[("central", 1, 10.0), ("worker", 1, 8.0), ("worker", 2, 8.0)]);
    let text = report::compare(&old, &new);
    let row = |design: &str| text.lines().find(|line| line.contains(design)).unwrap_or_default();
    assert!(row("worker").ends_with("faster") && row("worker").contains("1.25 ["), "{text}");
    assert!(row("central").contains("no difference larger than"), "{text}");
    assert_eq!(text.lines().count(), 3, "only what both have: {text}");
    assert!(report::compare(&old, &data(&[])).starts_with("The runs have no trials in common"));
}
