//! Tests of a data directory with one bit changed, or with one file cut short or missing: it is refused with an error
//! that names the file, or the process ends with an error, or all answers are the same. It never gives a wrong answer,
//! and never panics, hangs or takes all memory.
//!
//! Each case is a copy of a small directory, opened by a child process, because an error while reading ends the
//! process. A child runs cases one after the other until one ends it.

pub(crate) mod cases;
pub(crate) mod subject;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use testkit::files::memory_folder;

use self::cases::cases;
use self::subject::Answers;

/// Number of cases of a test run.
const CASES: usize = 400;
/// Time after which a case counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);
/// Address space of a child, in KiB: only a bug takes more.
const ADDRESSES_KIB: u64 = 4 << 20;
/// Folder with the undamaged directory `whole` and its answers.
const FOLDER: &str = "ROOST_DAMAGE_FOLDER";
/// First case of a child, and number of its cases.
const FROM: &str = "ROOST_DAMAGE_FROM";
/// Maximum number of cases per child.
const CASES_OF_CHILD: usize = 2_000;

#[test]
fn damage_is_refused_or_changes_no_answer() {
    let minutes: Option<f64> =
        std::env::var("ROOST_DAMAGE_MINUTES").ok().map(|text| text.parse().unwrap());
    let folder = memory_folder();
    subject::prepare(folder.path());
    let cases = cases(&folder.path().join("whole"));
    let (start, mut at) = (Instant::now(), 0);
    let mut table: BTreeMap<(&str, &str), BTreeMap<Kind, usize>> = BTreeMap::new();
    let mut wrong = Vec::new();
    let is_over = |at: usize| match minutes {
        Some(minutes) => start.elapsed().as_secs_f64() > minutes * 60.0,
        None => at >= CASES,
    };
    while at < cases.len() && !is_over(at) {
        let most = if minutes.is_some() { CASES_OF_CHILD } else { CASES - at };
        for outcome in run_child(folder.path(), at, most) {
            let case = &cases[at];
            *table
                .entry((case.kind(), case.damage()))
                .or_default()
                .entry(outcome.kind)
                .or_default() += 1;
            let names_no_file = outcome.kind == Kind::Refused && !case.is_named_in(&outcome.text);
            if outcome.kind >= Kind::Panicked || names_no_file {
                wrong.push(format!("{case}: {:?}: {}", outcome.kind, outcome.text));
            }
            at += 1;
        }
    }
    let report = report(&table, at, cases.len());
    println!("{report}\n{}", wrong.join("\n"));
    if let Some(path) = std::env::var_os("ROOST_DAMAGE_OUT") {
        fs::write(path, format!("{report}\n{}\n", wrong.join("\n"))).unwrap();
    }
    assert!(wrong.is_empty(), "{} cases went wrong", wrong.len());
}

/// Outcome of a case; the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The directory was not opened.
    Refused,
    /// The process ended with an error when a row was read.
    Stopped,
    /// Every answer is the same.
    Same,
    /// Only the last group of the log is missing: no later group proves that it was durable.
    LastGroupCut,
    Panicked,
    Hung,
    Wrong,
}

struct Outcome {
    kind: Kind,
    text: String,
}

fn report(
    table: &BTreeMap<(&str, &str), BTreeMap<Kind, usize>>,
    done: usize,
    all: usize,
) -> String {
    let mut lines = vec![
        format!("{done} of {all} cases"),
        "| file | damage | refused | stopped | same | last group cut | panicked | hung | wrong |"
            .into(),
        "|---|---|---|---|---|---|---|---|---|".into(),
    ];
    let kinds = [
        Kind::Refused,
        Kind::Stopped,
        Kind::Same,
        Kind::LastGroupCut,
        Kind::Panicked,
        Kind::Hung,
        Kind::Wrong,
    ];
    for ((file, damage), counts) in table {
        let counts = kinds.map(|kind| counts.get(&kind).copied().unwrap_or(0).to_string());
        lines.push(format!("| {file} | {damage} | {} |", counts.join(" | ")));
    }
    lines.join("\n")
}

/// Runs cases in a child from a given one on until one ends it; returns their outcomes, at least one.
fn run_child(folder: &Path, from: usize, most: usize) -> Vec<Outcome> {
    let mut child = Command::new("sh");
    child.args(["-c", &format!("ulimit -v {ADDRESSES_KIB}; exec \"$@\""), "sh"]);
    child.arg(std::env::current_exe().unwrap()).args([
        "--ignored",
        "--exact",
        "damage::child",
        "--nocapture",
    ]);
    child.env(FOLDER, folder).env(FROM, format!("{from} {most}")).env("RUST_BACKTRACE", "0");
    child.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let (lines, received) = mpsc::channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    let mut err = child.stderr.take().unwrap();
    let errors = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        err.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    std::thread::spawn(move || {
        out.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)).ok();
    });
    let mut outcomes = Vec::new();
    let mut done = false;
    let hung = loop {
        match received.recv_timeout(PATIENCE) {
            Ok(line) => match line.split_once("outcome ") {
                Some((_, "end")) => done = true,
                Some((_, outcome)) => outcomes.push(Outcome::parse(outcome)),
                None => {}
            },
            Err(mpsc::RecvTimeoutError::Disconnected) => break false,
            Err(mpsc::RecvTimeoutError::Timeout) => break true,
        }
    };
    child.kill().ok();
    child.wait().unwrap();
    if done {
        return outcomes;
    }
    let errors = errors.join().unwrap();
    let last = errors.lines().rev().filter(|line| !line.contains("RUST_BACKTRACE")).take(3);
    let last = last.collect::<Vec<_>>().join(" / ");
    let kind = if hung {
        Kind::Hung
    } else if errors.contains("; stopping") {
        Kind::Stopped
    } else {
        Kind::Panicked
    };
    outcomes.push(Outcome { kind, text: last });
    outcomes
}

impl Outcome {
    fn parse(line: &str) -> Self {
        let (kind, text) = line.split_once(' ').unwrap_or((line, ""));
        let kind = match kind {
            "refused" => Kind::Refused,
            "same" => Kind::Same,
            "cut" => Kind::LastGroupCut,
            "panicked" => Kind::Panicked,
            "stopped" => Kind::Stopped,
            "wrong" => Kind::Wrong,
            _ => panic!("no outcome: {line}"),
        };
        Self { kind, text: text.to_owned() }
    }
}

/// Runs cases in a separate process, and prints the outcome of each.
#[test]
#[ignore = "started by the other test"]
fn child() {
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    let numbers = std::env::var(FROM).unwrap();
    let (from, most) = numbers.split_once(' ').unwrap();
    let (from, most): (usize, usize) = (from.parse().unwrap(), most.parse().unwrap());
    let whole = folder.join("whole");
    let answers = Answers::read(&folder);
    let data = folder.join(format!("case-{}", std::process::id()));
    for case in cases(&whole).into_iter().skip(from).take(most) {
        fs::remove_dir_all(&data).ok();
        copy(&whole, &data);
        case.apply(&data);
        println!("outcome {}", outcome(&data, &answers));
    }
    fs::remove_dir_all(&data).ok();
    println!("outcome end");
}

/// Opens the directory and reads everything.
fn outcome(data: &Path, answers: &Answers) -> String {
    let read = std::panic::catch_unwind(|| subject::read_all(data));
    match read {
        Err(payload) if payload.is::<node::Unreadable>() => "stopped a damaged row".into(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            format!("panicked {}", text.unwrap_or_default().replace('\n', " "))
        }
        Ok(Err(error)) => format!("refused {}", with_sources(&error)).replace('\n', " "),
        Ok(Ok(read)) if read == answers.all => "same".into(),
        Ok(Ok(read)) if read == answers.without_last_group => "cut".into(),
        Ok(Ok(read)) => format!("wrong {}", answers.difference(&read)),
    }
}

fn with_sources(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", with_sources(source)),
        None => error.to_string(),
    }
}

/// Copies a data directory without its lock: the lock's copy would be refused.
fn copy(from: &Path, to: &Path) {
    testkit::files::copy(from, to);
    drop(fs::remove_file(to.join("lock")));
}
