//! `kill -9` at random moments under load: afterwards exactly the acknowledged changes exist, once and
//! in order.
//!
//! A round: workers change things, each its own users, until the round's number of
//! acknowledgements is reached, at which the worker that received it kills the server. So every
//! other worker has at most one change with an unknown outcome. After the restart these are
//! resolved by reading, and everything is compared with a simple list of all changes. The
//! overlay is kept tiny, so that checkpoints are under way all the time, and many texts are long, so
//! that the log goes from segment to segment and is cut.

mod check;
mod kept;
mod samples;
mod worker;

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::process::{Process, Server, serve};
use check::{Readers, check_everything};
use worker::Worker;

/// Kills under load. Further ones hit servers that are starting.
const KILLS: u64 = 27;
const WORKERS: u32 = 6;
/// Most acknowledgements before a kill.
const ACKS_MAX: u64 = 1_000;
const POLICIES: [&str; 3] = ["always", "never", "interval"];

/// The end of a round.
pub(crate) struct Round {
    /// At this number of acknowledgements.
    at: u64,
    acks: AtomicU64,
    /// The server to be killed then, if any.
    victim: Option<Pid>,
}

impl Round {
    fn until(at: u64, victim: Option<Pid>) -> Self {
        Self { at, acks: AtomicU64::new(0), victim }
    }

    /// To be called after every acknowledged change; returns whether the round is over. A round with a
    /// kill is over when the server no longer answers.
    pub(crate) fn acknowledged(&self) -> bool {
        let acks = self.acks.fetch_add(1, Ordering::Relaxed) + 1;
        match self.victim {
            Some(victim) if acks == self.at => kill_process(victim, Signal::KILL).unwrap(),
            Some(_) => {}
            None => return acks >= self.at,
        }
        false
    }

    /// Lets the workers work until it is over; gives the acknowledgements.
    fn run(self, server: &Server, workers: &mut [Worker], directory: &Directory) -> u64 {
        std::thread::scope(|scope| {
            for worker in workers {
                let (client, round) = (server.client(), &self);
                scope.spawn(move || worker.work(client, directory, round));
            }
        });
        self.acks.into_inner()
    }
}

/// What the workers share: all users registered so far, with their handles.
pub(crate) type Directory = Mutex<Vec<(u32, String)>>;

#[test]
fn whatever_was_acknowledged_survives_kill_9_once_and_in_order() {
    let seed = seed();
    println!("to repeat: ROOST_TEST_SEED={seed} cargo test -p roost --test e2e kill_9");
    let mut rng = StdRng::seed_from_u64(seed);
    let directory = Directory::default();
    let mut workers: Vec<Worker> =
        (0..WORKERS).map(|number| Worker::new(number, rng.random())).collect();
    let data = tempfile::tempdir().unwrap();
    let mut checkpoints = 0;
    let (mut acks, mut unknown) = (0, 0);

    let mut server = Server::start(&mut command(data.path(), 0));
    for round in 1..=KILLS {
        let at = rng.random_range(1..=ACKS_MAX);
        let kill = Round::until(at, Some(server.process.id()));
        acks += kill.run(&server, &mut workers, &directory);
        unknown += workers.iter().filter(|worker| worker.is_waiting()).count();
        checkpoints += checkpoints_in(&server.process.ended().err);
        if rng.random_bool(0.5) {
            kill_while_starting(data.path(), round, &mut rng);
        }
        server = Server::start(&mut command(data.path(), round));
        let mut client = server.client();
        for worker in &mut workers {
            worker.resolve(&mut client, &directory);
        }
        check_everything(&server, &workers, Readers::Some(&mut rng));
    }
    checkpoints += checkpoints_in(&server.stop().err);

    // In the end without a kill, so that timelines are read that were kept, not gathered.
    let server = Server::start(&mut command(data.path(), 0));
    check_everything(&server, &workers, Readers::All);
    Round::until(ACKS_MAX, None).run(&server, &mut workers, &directory);
    check_everything(&server, &workers, Readers::All);

    println!(
        "{KILLS} kills, {acks} acknowledged, {unknown} without an answer, {checkpoints} checkpoints"
    );
    assert!(
        checkpoints > KILLS,
        "only {checkpoints} checkpoints: the test tests less than it says"
    );
    assert!(first_group_kept(data.path()) > 1, "the log was never cut");
}

/// The seed from the environment, or a new one.
fn seed() -> u64 {
    match std::env::var("ROOST_TEST_SEED") {
        Ok(seed) => seed.parse().expect("a seed is a number"),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64,
    }
}

fn command(data: &Path, round: u64) -> Command {
    let policy = POLICIES[(round % POLICIES.len() as u64) as usize];
    let more = ["--open", "--overlay-memory", "64KiB", "--durability", policy];
    let mut command = serve(data, &more);
    command.args(["--fsync-interval", "20ms"]).env("ROOST_LOG", "info,node=debug");
    command
}

/// Kills a server that is recovering, or has just recovered.
fn kill_while_starting(data: &Path, round: u64, rng: &mut StdRng) {
    let process = Process::start(&mut command(data, round));
    if rng.random_bool(0.5) {
        let recovered = process.logged("recovered");
        assert!(recovered.is_some(), "{:#?}", process.ended());
    }
    process.signal(Signal::KILL);
    process.ended();
}

fn checkpoints_in(log: &str) -> u64 {
    log.lines().filter(|line| line.contains(r#""message":"checkpoint""#)).count() as u64
}

/// The number of the oldest group in the log, which is the name of its first file.
fn first_group_kept(data: &Path) -> u64 {
    let files = std::fs::read_dir(data.join("log")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let first = names.filter_map(|name| name.strip_suffix(".log")?.parse().ok()).min();
    first.expect("the log has a segment")
}
