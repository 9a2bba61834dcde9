//! Deterministic simulation tests (DST) of the whole node below its protocols: `cargo xtask dst`.
//!
//! A seed determines everything in a run: the commands, the order in which the parts of the node run, the clock, the
//! disk and the crashes. Replies and reads of the node are compared with a model. The first difference ends the run and
//! prints the seed, which repeats the run. `docs/testing.md` describes what the simulator can find.
//!
//! Read `run`, `schedule`, `commands/mod.rs`, `pending`, `model/mod.rs`, `check`, then `end`. The crate `sim` is
//! something else: it loads a running server over HTTP.
//!
//! **Invariant:** the simulated node is the production node. `node/src/node/simulation.rs` calls the same functions as
//! the threads of the node.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a panic is how a failure is reported"
)]

mod bugs;
mod check;
mod commands;
mod end;
mod events;
mod history;
mod model;
mod pending;
mod run;
mod schedule;
mod start;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use allocator as _;
use clap::Parser;

use crate::run::Tally;

/// Seeds that once failed, one per line.
const REGRESSIONS: &str = include_str!("../regressions.txt");

/// Simulate the node with faults until a check fails or the time is up.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run only this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Begin with this seed (default: random).
    #[arg(long, conflicts_with = "seed")]
    from: Option<u64>,
    /// Duration of the run, in seconds.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Stop after this number of commands, instead of a duration
    #[arg(long, conflicts_with = "seed")]
    commands: Option<u64>,
    /// Run only the seeds that once failed.
    #[arg(long, conflicts_with = "seed")]
    regressions: bool,
    /// Search for seeded bugs whose names contain this text, one after the other, each for --seconds
    #[arg(long, num_args = 0..=1, default_missing_value = "", conflicts_with = "seed")]
    bugs: Option<String>,
    /// Number of threads, each with a different seed (default: the number of processors).
    #[arg(long)]
    threads: Option<usize>,
}

/// State shared by all threads.
struct Campaign {
    next: AtomicU64,
    sum: Mutex<Tally>,
    failed: AtomicBool,
    start: Instant,
    end: Duration,
    commands_max: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    store::panic_when_fatal();
    node::seeded::panic_at_some_stamps();
    // `simulate` prints the report of a failure, because it knows the seed.
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("\n{panic}");
    }));
    if let Some(part) = &arguments.bugs {
        return bugs::find_all(part, arguments.seconds);
    }
    if let Some(bug) = bugs::switched_on() {
        println!("with the bug {bug}");
    }
    if arguments.regressions {
        return run_regressions();
    }
    if let Some(seed) = arguments.seed {
        let tally = simulate(seed);
        tally.iter().for_each(|tally| println!("seed {seed}: {tally:?}"));
        return exit_code(tally.is_some());
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let from = arguments.from.unwrap_or_else(random_seed);
    println!("seeds from {from}");
    let campaign = Campaign {
        next: AtomicU64::new(from),
        sum: Mutex::default(),
        failed: AtomicBool::new(false),
        start: Instant::now(),
        end: match arguments.commands {
            Some(_) => Duration::MAX,
            None => Duration::from_secs(arguments.seconds),
        },
        commands_max: arguments.commands.unwrap_or(u64::MAX),
    };
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.unwrap_or(processors) {
            scope.spawn(|| campaign.work());
        }
    });
    campaign.report(from)
}

impl Campaign {
    fn work(&self) {
        while !self.failed.load(Ordering::Relaxed) && self.start.elapsed() < self.end {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(tally) = simulate(seed) else {
                self.failed.store(true, Ordering::Relaxed);
                return;
            };
            let mut sum = self.sum.lock().unwrap();
            sum.commands += tally.commands;
            sum.crashes += tally.crashes;
            sum.starts += tally.starts;
            sum.checks += tally.checks;
            if sum.commands >= self.commands_max {
                return;
            }
        }
    }

    fn report(&self, from: u64) -> ExitCode {
        let sum = *self.sum.lock().unwrap();
        let seconds = self.start.elapsed().as_secs_f64();
        println!(
            "{} seeds, {} commands, {} crashes, {} starts, {} checks in {seconds:.1} s: {:.0} \
             commands per second",
            self.next.load(Ordering::Relaxed) - from,
            sum.commands,
            sum.crashes,
            sum.starts,
            sum.checks,
            sum.commands as f64 / seconds
        );
        exit_code(!self.failed.load(Ordering::Relaxed))
    }
}

/// Runs a seed. Reports its failure, if any.
fn simulate(seed: u64) -> Option<Tally> {
    events::clear();
    let done = catch_unwind(AssertUnwindSafe(|| schedule::run(seed)));
    if done.is_err() {
        eprintln!("\nthe last steps:\n{}", events::lines());
        eprintln!("repeat it with: cargo xtask dst --seed {seed}");
    }
    done.ok()
}

/// Runs the seeds of the file, without and with their bug. Without the bug, each seed must succeed; with it, this or a
/// following seed must find it.
fn run_regressions() -> ExitCode {
    let mut sound = true;
    for line in REGRESSIONS.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let mut words = line.splitn(3, ' ');
        let (seed, bug) = (words.next().unwrap().parse().unwrap(), words.next().unwrap());
        println!("{line}");
        sound &= simulate(seed).is_some();
        if bugs::ARE_BUILT && !bugs::is_found_from(bug, seed) {
            eprintln!("{bug} is not found any more");
            sound = false;
        }
    }
    exit_code(sound)
}

fn exit_code(sound: bool) -> ExitCode {
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn random_seed() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one("a seed") >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_run() {
        for seed in [1, 2, 3] {
            let (one, other) = (schedule::run(seed), schedule::run(seed));
            assert_eq!(one, other, "seed {seed}");
            assert!(one.commands > 0);
        }
        assert_ne!(schedule::run(4).digest, schedule::run(5).digest);
    }

    #[test]
    fn every_regression_is_a_seed_and_a_seeded_bug() {
        for line in REGRESSIONS.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ');
            assert!(words.next().unwrap().parse::<u64>().is_ok(), "{line}");
            assert!(bugs::is_known(words.next().unwrap()), "{line}");
        }
    }
}
