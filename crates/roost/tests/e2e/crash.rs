//! Tests of `kill -9` at random moments under load: afterwards, exactly the acknowledged changes exist, once and in
//! order.
//!
//! In a round, each worker changes its own users, until the round's number of changes is acknowledged. The worker with
//! the last of these acknowledgements kills the server. So each other worker has at most one change with an unknown
//! outcome. After the restart, reads determine these outcomes, and everything is compared with a plain list of all
//! changes. The overlay is tiny, so that checkpoints are frequent, and many texts are long, so that the log fills
//! segments and is cut.

mod batch;
mod check;
mod kept;
mod pipeline;
mod samples;
mod worker;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::process::{Process, Server, serve};
pub(crate) use check::Readers;
use check::check_everything;
use pipeline::Pipeline;
use worker::Worker;

/// Number of kills under load. There are also kills of servers that are starting.
const KILLS: u64 = 27;
const WORKERS: u32 = 6;
const PIPELINES: u32 = 2;
/// Maximum number of acknowledgements in a round.
const ACKS_MAX: u64 = 2_000;
const POLICIES: [&str; 3] = ["always", "never", "interval"];

/// Condition that ends a round.
pub(crate) struct Round {
    /// Number of acknowledgements at which the round ends.
    at: u64,
    acks: AtomicU64,
    /// Server to kill at the end; `None` to kill none.
    victim: Option<Pid>,
}

impl Round {
    fn until(at: u64, victim: Option<Pid>) -> Self {
        Self { at, acks: AtomicU64::new(0), victim }
    }

    /// Returns a round that ends when the server has ended.
    pub(crate) fn until_the_server_ends(server: &Server) -> Self {
        Self::until(u64::MAX, Some(server.process.id()))
    }

    /// Counts an acknowledged change. Returns whether the round has ended. A round with a server to kill does not end
    /// here, but when the server no longer answers.
    pub(crate) fn acknowledged(&self) -> bool {
        let acks = self.acks.fetch_add(1, Ordering::Relaxed) + 1;
        match self.victim {
            Some(victim) if acks == self.at => kill_process(victim, Signal::KILL).unwrap(),
            Some(_) => {}
            None => return acks >= self.at,
        }
        false
    }
}

/// Users registered so far, with their handles. The workers share it.
pub(crate) type Directory = Mutex<Vec<(u32, String)>>;

/// All clients of a server (over HTTP, in batches and over Redis), with their ledgers.
pub(crate) struct Load {
    workers: Vec<Worker>,
    pipelines: Vec<Pipeline>,
    directory: Directory,
}

impl Load {
    pub(crate) fn new(rng: &mut StdRng) -> Self {
        Self {
            workers: (0..WORKERS).map(|number| Worker::new(number, rng.random())).collect(),
            pipelines: (0..PIPELINES).map(|number| Pipeline::new(number, rng.random())).collect(),
            directory: Directory::default(),
        }
    }

    /// Runs all clients until the round has ended. Returns the number of acknowledgements.
    pub(crate) fn run(&mut self, server: &Server, round: Round) -> u64 {
        let redis = redis_address(server);
        std::thread::scope(|scope| {
            for worker in &mut self.workers {
                let (client, round, directory) = (server.client(), &round, &self.directory);
                scope.spawn(move || worker.work(client, directory, round));
            }
            for pipeline in &mut self.pipelines {
                let round = &round;
                scope.spawn(move || pipeline.work(redis, round));
            }
        });
        round.acks.into_inner()
    }

    /// Number of clients that have changes with an unknown outcome.
    pub(crate) fn unknown(&self) -> usize {
        let workers = self.workers.iter().filter(|worker| worker.is_waiting()).count();
        workers + self.pipelines.iter().filter(|pipeline| pipeline.is_waiting()).count()
    }

    /// Determines the unknown outcomes after a restart, and then compares everything.
    pub(crate) fn resolve_and_check(&mut self, server: &Server, readers: Readers<'_>) {
        let mut client = server.client();
        for worker in &mut self.workers {
            worker.resolve(&mut client, &self.directory);
        }
        for pipeline in &mut self.pipelines {
            pipeline.resolve(redis_address(server));
        }
        self.check(server, readers);
    }

    fn check(&self, server: &Server, readers: Readers<'_>) {
        check_everything(server, &self.workers, readers);
        for pipeline in &self.pipelines {
            pipeline.check(redis_address(server));
        }
    }
}

fn redis_address(server: &Server) -> SocketAddr {
    server.process.said("roost serves redis://").unwrap().parse().unwrap()
}

/// Totals over a number of rounds.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) acknowledged: u64,
    pub(crate) unknown: usize,
    pub(crate) checkpoints: u64,
}

#[test]
fn whatever_was_acknowledged_survives_kill_9_once_and_in_order() {
    let seed = seed();
    println!("to repeat: ROOST_TEST_SEED={seed} cargo test -p roost --test e2e kill_9");
    let data = tempfile::tempdir().unwrap();
    let counts = kills(data.path(), KILLS, seed);
    println!("{KILLS} kills, {counts:?}");
    let checkpoints = counts.checkpoints;
    assert!(
        checkpoints > KILLS,
        "only {checkpoints} checkpoints: the test tests less than it says"
    );
    assert!(first_group_kept(data.path()) > 1, "the log was never cut");
}

/// Kills a server `kills` times, and compares everything after each kill. The directory `data` is empty before.
pub(crate) fn kills(data: &Path, kills: u64, seed: u64) -> Counts {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut load = Load::new(&mut rng);
    let mut counts = Counts::default();
    let mut server = Server::start(&mut command(data, 0));
    for round in 1..=kills {
        let at = rng.random_range(1..=ACKS_MAX);
        let kill = Round::until(at, Some(server.process.id()));
        counts.acknowledged += load.run(&server, kill);
        counts.unknown += load.unknown();
        counts.checkpoints += checkpoints_in(&server.process.ended().err);
        if rng.random_bool(0.5) {
            kill_while_starting(data, round, &mut rng);
        }
        server = Server::start(&mut command(data, round));
        load.resolve_and_check(&server, Readers::Some(&mut rng));
    }
    counts.checkpoints += checkpoints_in(&server.stop().err);

    // Do not kill the server again, so that this compares cached timelines instead of newly gathered ones.
    let server = Server::start(&mut command(data, 0));
    load.check(&server, Readers::All);
    load.run(&server, Round::until(ACKS_MAX, None));
    load.check(&server, Readers::All);
    counts
}

/// The seed from the environment, or a new one.
pub(crate) fn seed() -> u64 {
    match std::env::var("ROOST_TEST_SEED") {
        Ok(seed) => seed.parse().expect("a seed is a number"),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64,
    }
}

fn command(data: &Path, round: u64) -> Command {
    server(data, POLICIES[(round % POLICIES.len() as u64) as usize])
}

/// Command of a server with this durability and frequent checkpoints.
pub(crate) fn server(data: &Path, policy: &str) -> Command {
    let more = ["--open", "--overlay-memory", "64KiB", "--durability", policy];
    let mut command = serve(data, &more);
    command.args(["--redis-listen", "127.0.0.1:0", "--erase-within", "10s"]);
    command.args(["--fsync-interval", "20ms"]).env("ROOST_LOG", "info,node=debug");
    command
}

/// Kills a server while it recovers, or just after.
fn kill_while_starting(data: &Path, round: u64, rng: &mut StdRng) {
    let process = Process::start(&mut command(data, round));
    if rng.random_bool(0.5) {
        let recovered = process.logged("recovered");
        assert!(recovered.is_some(), "{:#?}", process.ended());
    }
    process.signal(Signal::KILL);
    process.ended();
}

pub(crate) fn checkpoints_in(log: &str) -> u64 {
    log.lines().filter(|line| line.contains(r#""message":"checkpoint""#)).count() as u64
}

/// Number of the oldest group in the log, which is in the name of the first file.
pub(crate) fn first_group_kept(data: &Path) -> u64 {
    let files = std::fs::read_dir(data.join("log")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let first = names.filter_map(|name| name.strip_suffix(".log")?.parse().ok()).min();
    first.expect("the log has a segment")
}
