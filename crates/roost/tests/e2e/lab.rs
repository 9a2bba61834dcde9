//! Tests of `roost lab` as users run it, with tiny parameters: raw data, a report, an interruption, and errors.

use std::fs;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;
use testkit::process::{Ended, Process, roost};

use crate::support::skipped;

/// Parameters with which a trial takes milliseconds, or two seconds in the simulator.
const TINY: [&str; 14] = [
    "clients=3",
    "operations=8",
    "buckets=2",
    "keys=3",
    "reads=60",
    "users=100",
    "follows=4",
    "posts=3",
    "requests=30",
    "followers=4",
    "stories=2",
    "friends=4",
    "life=600",
    "rate=2000",
];
/// Number of values in [`TINY`] that belong to the experiment `keys`.
const OF_KEYS: usize = 5;

/// Arguments that set parameters.
fn set(values: &[&'static str]) -> Vec<&'static str> {
    values.iter().flat_map(|value| ["--set", value]).collect()
}

fn lab(arguments: &[&str], more: &[&str]) -> Ended {
    Process::start(&mut roost(["lab"].iter().chain(arguments).chain(more))).ended()
}

fn trials(data: &Path) -> Vec<Value> {
    let text = fs::read_to_string(data.join("trials.ndjson")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_list_names_every_experiment_with_its_designs_and_parameters() {
    let ended = lab(&["list"], &[]);
    assert!(ended.status.success(), "{ended:#?}");
    for part in
        ["\nkeys: ", "    worker ", "    clients         number of clients: 100 (from 1 to 1000)"]
    {
        assert!(ended.out.contains(part), "{part}? {}", ended.out);
    }
}

#[test]
fn every_experiment_runs_in_processes_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (data, text) = (folder.path().join("data"), folder.path().display().to_string() + "/data");
    let run = ["run", "all", "--threads", "1", "--trials", "2", "--out", &text];
    let html = folder.path().join("report.html");
    let launch = ["--set", "load=1", "--set", "seconds=1", "--html", html.to_str().unwrap()];
    let ended = lab(&[&run[..], &launch].concat(), &set(&TINY));
    assert!(ended.status.success(), "{ended:#?}");
    let trials = trials(&data);
    for experiment in lab::EXPERIMENTS {
        let own = trials.iter().filter(|trial| trial["experiment"] == experiment.name);
        let mut designs = 0;
        for design in experiment.designs {
            match (design.absent)() {
                Some(reason) => {
                    skipped(&format!("{} of {}: {reason}", design.name, experiment.name));
                }
                None => designs += 1,
            }
        }
        assert_eq!(own.count(), 2 * designs, "{}", experiment.name);
        assert!(ended.out.contains(experiment.title), "{}", ended.out);
    }
    for trial in &trials {
        assert_eq!(trial["checksum"], trial["expected"], "{trial}");
        let measured = ["wall_ns", "operations", "calibration_ns"].map(|name| trial[name].as_u64());
        assert!(measured.iter().all(|value| value.is_some_and(|value| value > 0)), "{trial}");
        assert!(trial["environment"]["version"].as_str().unwrap().starts_with("roost "));
    }
    // The report depends only on the raw data.
    let again = lab(&["report", &text], &[]);
    assert_eq!(again.out, ended.out);
    let page = fs::read_to_string(&html).unwrap();
    for part in ["<!doctype html>", "</html>", "<svg", "6. Key-value store: ", "--trials 2"] {
        assert!(page.contains(part), "{part}?");
    }
    assert!(!page.contains("<script") && !page.contains("http://") && !page.contains("https://"));
    let compared = lab(&["compare", &text, &text], &[]);
    assert!(compared.status.success() && compared.out.contains("1.00 ["), "{compared:#?}");
    assert!(!compared.out.contains("faster") && !compared.out.contains("slower"), "{compared:#?}");
}

#[test]
fn an_interrupted_run_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let (text, tiny) = (folder.path().display().to_string(), set(&TINY[..OF_KEYS]));
    let designs = "central,sharded,roost";
    let run =
        ["run", "keys", "--threads", "1", "--trials", "20", "--out", &text, "--designs", designs];
    let process = Process::start(roost(["lab"].iter().chain(&run)).args(&tiny));
    assert!(process.logged(" of 60 trials").is_some());
    process.signal(Signal::INT);
    let ended = process.ended();
    assert_eq!(ended.status.code(), Some(1), "{ended:#?}");
    assert!(ended.err.contains("continue with --resume"), "{ended:#?}");
    let before = trials(folder.path());
    assert!((1..60).contains(&before.len()), "{}", before.len());

    let refused = lab(&run, &tiny);
    assert!(refused.err.contains("has trials already"), "{refused:#?}");
    let other = lab(&[&run[..], &["--resume", "--seed", "2"]].concat(), &tiny);
    assert!(other.err.contains("begun with other settings"), "{other:#?}");
    assert_eq!(trials(folder.path()), before);

    let ended = lab(&[&run[..], &["--resume"]].concat(), &tiny);
    assert!(ended.status.success(), "{ended:#?}");
    let after = trials(folder.path());
    assert_eq!((after.len(), &after[..before.len()]), (60, &before[..]));
}

#[test]
fn what_is_not_possible_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let check = |arguments: &[&str], code: i32, message: &str| {
        let ended = lab(&["run", "--out", &data], arguments);
        assert_eq!(ended.status.code(), Some(code), "{ended:#?}");
        assert!(ended.err.contains(message), "{message}? {}", ended.err);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{arguments:?}");
    };
    check(&["kees"], 2, "there is no experiment \"kees\"; there are: ");
    check(&[], 2, "EXPERIMENT");
    check(&["timelines", "--set", "users=0"], 2, "users must be from 2 to 1000000, not 0");
    check(&["keys", "--set", "users=5"], 2, "no chosen experiment has a parameter \"users\"");
    check(&["keys", "--set", "keys=many"], 2, "\"many\" is not a number");
    check(&["keys", "--threads", "100000"], 2, "--threads 100000 is not possible");
    check(&["keys", "--trials", "1"], 2, "--trials must be from 2");
    check(&["keys", "--quick", "--full"], 2, "cannot be used with");
    check(&["keys", "--resume"], 1, "has no trials to resume");
    let ended = lab(&["run", "keys", "--out", "/dev/null/data"], &[]);
    assert!(ended.err.contains("cannot use /dev/null/data"), "{ended:#?}");
    let page = lab(&["run", "keys", "--out", &data, "--html", "/dev/null/page.html"], &[]);
    assert!(page.err.contains("cannot write /dev/null/page.html"), "{page:#?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let ended = lab(&["report", &data], &[]);
    assert!(!ended.status.success() && ended.err.contains("cannot use"), "{ended:#?}");
}

#[test]
fn what_is_not_installed_is_skipped_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let reason = "Erlang is not installed (apt-get install erlang-base)";
    let without_path = |arguments: &[&str]| {
        let mut command = roost(["lab"].iter().chain(arguments));
        Process::start(command.env("PATH", "")).ended()
    };
    let run = ["run", "keys", "--threads", "1", "--trials", "2", "--out", &data, "--designs"];
    let tiny = set(&TINY[..OF_KEYS]);
    let ended = without_path(&[&run[..], &["central,erlang-central"], &tiny].concat());
    assert!(ended.status.success(), "{ended:#?}");
    assert!(
        ended.err.contains(&format!("skipped: erlang-central in keys: {reason}")),
        "{ended:#?}"
    );
    assert!(
        ended.out.contains(&format!("Skipped: erlang-central in keys: {reason}")),
        "{ended:#?}"
    );
    // The report is the same as after the run. It does not depend on programs that are installed when it is printed.
    assert_eq!(lab(&["report", &data], &[]).out, ended.out);
    let list = without_path(&["list"]).out;
    assert!(list.contains(&format!("in Erlang (skipped: {reason})")), "{list}");
    let ended = without_path(&[&run[..], &["erlang-central"], &tiny].concat());
    assert_eq!(ended.status.code(), Some(2), "{ended:#?}");
    assert!(ended.err.contains(reason), "{ended:#?}");
}

#[test]
fn a_design_is_compared_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let run = ["run", "keys", "--threads", "1", "--trials", "2", "--designs", "central,locked"];
    let against = ["--against-itself", "3", "--out", &data];
    let ended = lab(&[&run[..], &against].concat(), &set(&TINY[..OF_KEYS]));
    assert!(ended.status.success(), "{ended:#?}");
    for design in ["central", "locked"] {
        let sentence = format!("{design} of keys against itself, 3 repetitions of 2 blocks: ");
        assert!(ended.out.contains(&sentence), "{ended:#?}");
    }
    assert_eq!(trials(folder.path()).len(), 24);
    assert_eq!(lab(&["report", &data], &[]).out, ended.out);
    let page = folder.path().join("page.html");
    let refused = lab(&["report", &data, "--html", page.to_str().unwrap()], &[]);
    assert!(refused.err.contains("has no page") && !page.exists(), "{refused:#?}");
}
