//! Runs with tiny parameters: their trials, the data of an interrupted run, and the ways in which they end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use lab::record::{RUN_FILE, RawData, Record, TRIALS_FILE};
use lab::trial::Request;
use lab::{End, Environment, Launch, Measured, RunError, Scale, Settings, trial};
use tokio::sync::watch;

/// Launcher that makes trials in threads of this process.
#[derive(Default)]
struct Threads {
    made: Vec<Request>,
    /// Function that changes the measurements for a request.
    change: Option<fn(&Request, &mut Measured)>,
}

impl Launch for Threads {
    async fn trial(&mut self, request: &Request) -> Result<Measured, String> {
        self.made.push(request.clone());
        let request = request.clone();
        let made = request.clone();
        let measured = std::thread::spawn(move || trial::run(&request)).join().unwrap();
        let mut measured = measured.map_err(|error| error.to_string())?;
        if let Some(change) = self.change {
            change(&made, &mut measured);
        }
        Ok(measured)
    }

    fn calibrate(&mut self) -> u64 {
        1_000
    }

    fn environment(&mut self) -> Environment {
        Environment::default()
    }
}

fn tiny() -> Settings {
    let values = [("clients", 3), ("operations", 8), ("buckets", 2), ("keys", 3), ("reads", 60)];
    Settings {
        experiments: vec!["keys".to_owned()],
        scale: Scale::Quick,
        designs: Some(
            ["central", "sharded", "worker", "locked", "roost"].map(str::to_owned).into(),
        ),
        threads: Some(vec![1, 2]),
        values: values.map(|(name, value)| (name.to_owned(), vec![value])).into(),
        trials: Some(3),
        repeats: None,
        seed: 7,
    }
}

/// Makes the run. Cancels it after this number of trials, if given.
fn run(
    settings: &Settings,
    place: (&Path, bool),
    threads: &mut Threads,
    trials: Option<u64>,
) -> Result<End, RunError> {
    let (cancel, cancelled) = watch::channel(false);
    let mut shown = 0;
    let show = |progress: &lab::Progress<'_>| {
        shown += 1;
        assert!(progress.done <= progress.total);
        if Some(shown) == trials {
            cancel.send_replace(true);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(lab::run(settings, place, threads, show, cancelled))
}

fn records(dir: &Path) -> Vec<Record> {
    RawData::read(dir).unwrap().records
}

#[test]
fn a_run_makes_every_trial_once_in_mixed_order() {
    let dir = tempfile::tempdir().unwrap();
    let end = run(&tiny(), (dir.path(), false), &mut Threads::default(), None).unwrap();
    assert_eq!(end, End::Complete);
    let records = records(dir.path());
    let cells: BTreeSet<_> = records.iter().map(Record::key).collect();
    assert_eq!((cells.len(), records.len()), (10, 30));
    for (block, trials) in records.chunks(10).enumerate() {
        assert_eq!(trials.iter().map(Record::key).collect::<BTreeSet<_>>(), cells);
        assert!(trials.iter().all(|trial| trial.block == block as u64));
        assert!(trials.iter().all(|trial| trial.seed == trials[0].seed), "one workload a block");
        assert!(!trials.is_sorted_by_key(|trial| &trial.design), "{block}");
        // Trials that are compared must be adjacent.
        for compared in trials.chunks(5) {
            assert!(compared.iter().all(|trial| trial.parameters == compared[0].parameters));
        }
    }
    assert!(records.iter().map(|record| record.order).eq(0..30));
    assert!(records.iter().all(|record| !record.is_void() && record.measured.operations == 24));
    let seeds: BTreeSet<_> = records.iter().map(|record| record.seed).collect();
    assert_eq!(seeds.len(), 3);
}

#[test]
fn an_interrupted_run_continues_with_the_trials_that_were_next() {
    let whole = tempfile::tempdir().unwrap();
    let mut threads = Threads::default();
    run(&tiny(), (whole.path(), false), &mut threads, None).unwrap();
    let expected = threads.made;

    let dir = tempfile::tempdir().unwrap();
    let mut threads = Threads::default();
    for (resume, trials) in [(false, 7), (true, 1), (true, 15)] {
        let end = run(&tiny(), (dir.path(), resume), &mut threads, Some(trials)).unwrap();
        assert_eq!(end, End::Cancelled);
        // Add an incomplete line, which a process leaves that ends while it writes.
        let file = dir.path().join(TRIALS_FILE);
        fs::write(&file, fs::read_to_string(&file).unwrap() + r#"{"experiment":"ke"#).unwrap();
    }
    assert_eq!(run(&tiny(), (dir.path(), true), &mut threads, None).unwrap(), End::Complete);
    assert_eq!(threads.made, expected);
    assert!(records(dir.path()).iter().map(|record| record.order).eq(0..30));
    let end = run(&tiny(), (dir.path(), true), &mut Threads::default(), None).unwrap();
    assert_eq!((end, records(dir.path()).len()), (End::Complete, 30), "nothing is left");
}

#[test]
fn a_wrong_answer_voids_the_trial_and_fails_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = |request: &Request, measured: &mut Measured| {
        if request.design == "worker" {
            measured.checksum ^= 1;
        }
    };
    let mut threads = Threads { change: Some(wrong), ..Threads::default() };
    let error = run(&tiny(), (dir.path(), false), &mut threads, None).unwrap_err();
    assert!(error.to_string().starts_with("wrong answers: worker in keys"), "{error}");
    let made = records(dir.path());
    assert!(made.last().unwrap().is_void());
    // The void trial does not count, so it is repeated.
    run(&tiny(), (dir.path(), true), &mut Threads::default(), None).unwrap();
    assert_eq!(records(dir.path()).len(), 31);
}

#[test]
fn a_trial_that_fails_ends_the_run_and_says_which() {
    struct Failing;
    impl Launch for Failing {
        async fn trial(&mut self, _: &Request) -> Result<Measured, String> {
            Err("signal 9".to_owned())
        }
        fn calibrate(&mut self) -> u64 {
            1
        }
        fn environment(&mut self) -> Environment {
            Environment::default()
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let (_cancel, cancelled) = watch::channel(false);
    let (settings, place, mut failing) = (tiny(), (dir.path(), false), Failing);
    let run = lab::run(&settings, place, &mut failing, |_| (), cancelled);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let error = runtime.block_on(run).unwrap_err().to_string();
    assert!(error.ends_with("in keys failed: signal 9"), "{error}");
}

/// The pilot determines the number of trials unless it is set. If the ratio of one design varies, all designs get more
/// trials. Blocks in which the machine is slower do not matter.
#[test]
fn the_pilot_decides_the_number_of_trials() {
    let change = |request: &Request, measured: &mut Measured| {
        measured.marks_ns.clear();
        // The seed is that of the block.
        let slow = 1 + request.seed % 10;
        let reads = request.parameters.get("reads").unwrap();
        let varies = request.design == "worker" && reads == 50;
        measured.wall_ns = 1_000_000 * slow * if varies { slow } else { 1 };
    };
    let reads = ("reads".to_owned(), vec![50, 60]);
    let settings = Settings { trials: None, threads: Some(vec![1]), seed: 5, ..tiny() };
    let settings = Settings {
        values: settings.values.clone().into_iter().chain([reads]).collect(),
        ..settings
    };
    let dir = tempfile::tempdir().unwrap();
    let mut threads = Threads { change: Some(change), ..Threads::default() };
    run(&settings, (dir.path(), false), &mut threads, Some(12)).unwrap();
    run(&settings, (dir.path(), true), &mut threads, None).unwrap();
    let mut counts: BTreeMap<(u64, String), u64> = BTreeMap::new();
    for record in records(dir.path()) {
        let reads = record.parameters.get("reads").unwrap();
        *counts.entry((reads, record.design)).or_default() += 1;
    }
    let expected = ["central", "sharded", "worker", "locked", "roost"]
        .into_iter()
        .flat_map(|design| [((50, design.to_owned()), 5), ((60, design.to_owned()), 4)]);
    assert_eq!(counts, expected.collect());
}

#[test]
fn a_design_that_is_compared_with_itself_has_trials_under_two_names() {
    let settings = Settings {
        designs: Some(vec!["central".to_owned()]),
        threads: Some(vec![1]),
        trials: Some(2),
        repeats: Some(3),
        ..tiny()
    };
    let dir = tempfile::tempdir().unwrap();
    run(&settings, (dir.path(), false), &mut Threads::default(), None).unwrap();
    let records = records(dir.path());
    assert_eq!(records.len(), 12);
    for block in records.chunks(2) {
        let designs: BTreeSet<_> = block.iter().map(|record| record.design.as_str()).collect();
        assert_eq!(designs, ["central", "central again"].into());
    }
}

#[test]
fn impossible_settings_are_refused_before_anything_runs() {
    let check = |change: &dyn Fn(&mut Settings), expect: &str| {
        let folder = tempfile::tempdir().unwrap();
        let (mut settings, dir) = (tiny(), folder.path().join("data"));
        change(&mut settings);
        let mut threads = Threads::default();
        let error = run(&settings, (&dir, false), &mut threads, None).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
        assert!(threads.made.is_empty() && !dir.exists(), "{error}");
    };
    let set = |name: &'static str, value: u64| {
        move |settings: &mut Settings| drop(settings.values.insert(name.to_owned(), vec![value]))
    };
    check(&|settings| settings.experiments = vec!["kees".to_owned()], "no experiment \"kees\"");
    check(&|settings| settings.experiments.clear(), "name an experiment");
    check(&|settings| settings.repeats = Some(0), "--against-itself must be from 1 to 1000");
    check(&|settings| settings.threads = Some(vec![1, 0]), "--threads 0 is not possible");
    check(
        &|settings| settings.threads = Some(vec![1_000_000]),
        "--threads 1000000 is not possible",
    );
    check(&|settings| settings.trials = Some(1), "--trials must be from 2");
    check(&|settings| settings.trials = Some(1_000_000), "--trials must be from 2");
    check(&set("clients", 0), "clients must be from 1 to 1000, not 0");
    check(&set("reads", 101), "reads must be from 0 to 100, not 101");
    check(&set("users", 5), "no chosen experiment has a parameter \"users\"");
    check(&set("clients", 7), "7 clients need as many keys; there are 6");
    check(&|settings| settings.designs = Some(vec!["best".to_owned()]), "keys has no such design");
    check(&|settings| settings.threads = Some(Vec::new()), "no values");
    check(&|settings| drop(settings.values.insert("keys".to_owned(), Vec::new())), "no values");
}

#[test]
fn a_directory_that_cannot_be_used_is_an_error() {
    let check = |dir: &Path, settings: &Settings, resume: bool, expect: &str| {
        let mut threads = Threads::default();
        let error = run(settings, (dir, resume), &mut threads, None).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
        assert!(threads.made.is_empty());
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    check(&file.join("below"), &tiny(), false, "cannot use");
    check(folder.path(), &tiny(), true, "has no trials to resume");

    let dir = folder.path().join("data");
    run(&tiny(), (&dir, false), &mut Threads::default(), Some(2)).unwrap();
    check(&dir, &tiny(), false, "has trials already");
    check(&dir, &Settings { seed: 8, ..tiny() }, true, "begun with other settings");
    let lock = fs::File::open(dir.join(TRIALS_FILE)).unwrap();
    lock.lock().unwrap();
    check(&dir, &tiny(), true, "another run writes to");
    drop(lock);

    let trials = fs::read_to_string(dir.join(TRIALS_FILE)).unwrap();
    fs::write(dir.join(TRIALS_FILE), format!("{trials}{{}}\n{trials}")).unwrap();
    check(&dir, &tiny(), true, "line 3 is not a trial");
    let run_file = fs::read_to_string(dir.join(RUN_FILE)).unwrap();
    let later = run_file.replace("\"format\": 1", "\"format\": 2");
    fs::write(dir.join(RUN_FILE), later).unwrap();
    check(&dir, &tiny(), true, "format 2; this version reads format 1");
}
