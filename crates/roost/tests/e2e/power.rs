//! Tests of power losses of a whole process under load: afterwards, exactly the acknowledged changes exist, once and in
//! order, as after `kill -9` in [`crate::crash`].
//!
//! A layer under the server (the crate `powerloss`) records the server's changes of files. The server ends during a
//! random one of these. Then its directory is replaced by a possible state of the disk: all synced data, and a random
//! part of the rest. The ledger is in the process of the test. A consumer of the change feed continues after each loss.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use powerloss::{Accounting, DIRECTORY, Disk, JOURNAL, Journal, Loss, SUPPORTED};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use serde_json::Value;

use crate::change_feed::Consumer;
use crate::crash::{self, Counts, Load, Readers, Round};
use crate::support::http::number;
use crate::support::process::{Process, Server};
use crate::support::skipped;

/// Number of power losses in a test run.
const LOSSES: u64 = 6;
/// Maximum number of power losses on one data directory. It is low, because everything is read after each.
const LOSSES_EACH: u64 = 12;
/// Maximum number of kills on one data directory.
const KILLS_EACH: u64 = 25;
/// Maximum numbers of recorded calls before a loss: the first is usual, the second rare.
const CALLS_MAX: [u64; 2] = [1_500, 8_000];
/// Maximum number of recorded calls before a loss while a server starts.
const CALLS_OF_START: u64 = 120;

#[test]
fn whatever_was_acknowledged_survives_a_power_loss_once_and_in_order() {
    if !SUPPORTED {
        return skipped("power losses: the layer works on Linux on x86-64");
    }
    let seed = crash::seed();
    println!("to repeat: ROOST_TEST_SEED={seed} cargo test -p roost --test e2e power_loss");
    let counts = Machine::new("always", Accounting::Honest, seed).lose_power(LOSSES, &mut print);
    println!("{LOSSES} power losses, {counts:?}");
    assert!(counts.checkpoints > 0, "no checkpoint: the test tests less than it says");
}

#[test]
fn a_server_that_never_syncs_loses_what_it_acknowledged() {
    if !SUPPORTED {
        return skipped("power losses: the layer works on Linux on x86-64");
    }
    // Checkpoints are synced in any case, so a run may lose nothing.
    let is_lost = |seed| {
        let mut machine = Machine::new("never", Accounting::Honest, seed);
        let run = std::panic::AssertUnwindSafe(|| machine.lose_power(LOSSES, &mut print));
        let Err(panic) = std::panic::catch_unwind(run) else { return false };
        // A panic in another step shows no loss: the server did not start, or the layer was not loaded.
        if !machine.compares {
            std::panic::resume_unwind(panic);
        }
        true
    };
    assert!((1..=10).any(is_lost), "no loss was found: the test cannot find any");
}

/// Test that `cargo xtask power` runs. The environment contains the numbers of losses and kills.
#[test]
#[ignore = "takes long; cargo xtask power runs it"]
fn campaign() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let losses = number("ROOST_POWER_LOSSES").unwrap_or(LOSSES);
    let kills = number("ROOST_POWER_KILLS").unwrap_or(10);
    let seed = crash::seed();
    let accounting = match std::env::var("ROOST_POWER_DISK").as_deref() {
        Ok("forgets-files") => Accounting::ForgetsFiles,
        Ok("forgets-directories") => Accounting::ForgetsDirectories,
        _ => Accounting::Honest,
    };
    let mut out: Box<dyn FnMut(&str)> = match std::env::var_os("ROOST_POWER_OUT") {
        Some(path) => {
            let mut file = fs::File::create(path).unwrap();
            Box::new(move |line| writeln!(file, "{line}").unwrap())
        }
        None => Box::new(print),
    };
    let (start, mut rng) = (Instant::now(), StdRng::seed_from_u64(seed));
    out(&format!("seed {seed}, {losses} power losses, {kills} kills, {accounting:?}"));
    let mut total = Counts::default();
    let mut left = losses;
    while left > 0 {
        let now = left.min(LOSSES_EACH);
        let mut machine = Machine::new("always", accounting, rng.random());
        total.add(&machine.lose_power(now, &mut out));
        left -= now;
        println!("{} of {losses} power losses, {:.0?}", losses - left, start.elapsed());
    }
    out(&format!("power losses: {total:?}"));
    let (mut left, mut total) = (kills, Counts::default());
    while left > 0 {
        let (now, seed) = (left.min(KILLS_EACH), rng.random());
        let folder = folder();
        let counts = crash::kills(&folder.path().join("data"), now, seed);
        out(&format!("seed {seed}: {now} kills, {counts:?}"));
        total.add(&counts);
        left -= now;
        println!("{} of {kills} kills, {:.0?}", kills - left, start.elapsed());
    }
    out(&format!("kills: {total:?}"));
    out(&format!("nothing acknowledged was lost; {:.0?}", start.elapsed()));
}

fn print(line: &str) {
    println!("{line}");
}

/// Creates a folder, in memory if there is such a file system, where syncs take no time.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// Machine that loses power: a data directory, its clients and their ledgers.
struct Machine {
    folder: tempfile::TempDir,
    data: PathBuf,
    policy: &'static str,
    accounting: Accounting,
    seed: u64,
    rng: StdRng,
    load: Load,
    feed: Consumer,
    /// Whether the server's data is now being compared with the acknowledged changes.
    compares: bool,
}

/// Recording of a server that starts from the contents of this disk.
struct Recorded {
    disk: Disk,
    journal: Journal,
    command: Command,
}

impl Machine {
    fn new(policy: &'static str, accounting: Accounting, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let folder = folder();
        let data = folder.path().canonicalize().unwrap().join("data");
        fs::create_dir(&data).unwrap();
        let load = Load::new(&mut rng);
        let feed = Consumer::default();
        Self { folder, data, policy, accounting, seed, rng, load, feed, compares: false }
    }

    /// Loses power `losses` times, and compares everything after each loss. Writes a line for each loss to `out`.
    fn lose_power(&mut self, losses: u64, out: &mut dyn FnMut(&str)) -> Counts {
        let mut counts = Counts::default();
        let mut done = 0;
        while done < losses {
            let line = if self.rng.random_bool(0.3) {
                self.while_starting()
            } else {
                self.under_load(&mut counts)
            };
            done += 1;
            out(&format!("seed {}, loss {done}: {line}", self.seed));
        }
        let server = Server::start(&mut self.command());
        self.compares = true;
        self.load.resolve_and_check(&server, Readers::All);
        self.compares = false;
        self.read_feed(&server);
        self.check_feed(&server);
        server.stop();
        let first = crash::first_group_kept(&self.data);
        out(&format!("seed {}: the log begins at group {first}", self.seed));
        counts
    }

    fn under_load(&mut self, counts: &mut Counts) -> String {
        let mut recorded = self.recorded();
        let server = Server::start(&mut recorded.command);
        self.compares = true;
        self.load.resolve_and_check(&server, Readers::Some(&mut self.rng));
        self.compares = false;
        self.read_feed(&server);
        let most = CALLS_MAX[usize::from(self.rng.random_bool(0.1))];
        recorded.journal.die_after(self.rng.random_range(1..=most));
        let acknowledged = self.load.run(&server, Round::until_the_server_ends(&server));
        let unknown = self.load.unknown();
        let checkpoints = crash::checkpoints_in(&server.process.ended().err);
        counts.add(&Counts { acknowledged, unknown, checkpoints });
        let lost = self.forget(recorded);
        format!(
            "under load, {acknowledged} acknowledged, {unknown} unknown, {checkpoints} checkpoints, {lost}"
        )
    }

    fn while_starting(&mut self) -> String {
        let mut recorded = self.recorded();
        recorded.journal.die_after(self.rng.random_range(1..=CALLS_OF_START));
        let process = Process::start(&mut recorded.command);
        let served = process.said("roost serves http://").is_some();
        if served {
            process.signal(Signal::KILL);
        }
        process.ended();
        let lost = self.forget(recorded);
        format!("{}, {lost}", if served { "after a start" } else { "while starting" })
    }

    fn recorded(&self) -> Recorded {
        let journal = Journal::create(&self.folder.path().join("journal")).unwrap();
        let disk = Disk::read(&self.data, self.accounting).unwrap();
        let mut command = self.command();
        command.env("LD_PRELOAD", layer()).env(JOURNAL, journal.path()).env(DIRECTORY, &self.data);
        Recorded { disk, journal, command }
    }

    fn command(&self) -> Command {
        let mut command = crash::server(&self.data, self.policy);
        command.args(["--changes-max", "64MiB"]);
        command
    }

    /// Reads the change feed from where the last read has ended, which must be kept.
    fn read_feed(&mut self, server: &Server) {
        if self.policy == "always" {
            self.feed.read(server.client(), 0, 100);
        }
    }

    /// Checks that what was read of the change feed is still in it, and that all posts are in it once.
    fn check_feed(&self, server: &Server) {
        if self.policy != "always" {
            return;
        }
        let mut again = Consumer { after: "0".to_owned(), changes: Vec::new() };
        again.read(server.client(), 0, 77);
        assert_eq!(again.stored(), self.feed.stored());
        let of = |wanted: &str| {
            let found = again.changes.iter().filter(|change| change["kind"] == wanted);
            found.cloned().collect::<Vec<_>>()
        };
        let id = |change: &Value, name: &str| number(&change[name]);
        let published: Vec<_> =
            of("post_published").iter().map(|change| id(change, "post_id")).collect();
        let known: BTreeSet<_> = published.iter().copied().collect();
        assert_eq!(known.len(), published.len(), "no post twice");
        let deleted: BTreeSet<_> =
            of("user_deleted").iter().map(|change| id(change, "user_id")).collect();
        let mut client = server.client();
        let mut posts = 0;
        for user in of("user_registered").iter().map(|change| id(change, "user_id")) {
            if deleted.contains(&user) {
                continue;
            }
            for post in client.all(&format!("/v1/users/{user}/posts?limit=100")) {
                assert!(known.contains(&id(&post, "id")), "{post} of {user} has no change");
                posts += 1;
            }
        }
        assert!(posts > 0, "the test compares nothing");
    }

    /// Replaces the data directory by data that survives a power loss. Returns a description.
    fn forget(&mut self, recorded: Recorded) -> String {
        let Recorded { mut disk, journal, .. } = recorded;
        assert!(journal.is_loaded(), "the layer was not loaded");
        assert_eq!(journal.unknown_call(), None, "a system call that the layer does not know");
        journal.read(|record| disk.apply(record));
        let loss = match self.rng.random_range(0..10) {
            0 => Loss::Nothing,
            1 => Loss::Everything,
            2..4 => Loss::Before,
            _ => Loss::Parts(self.rng.random_range(0..=1000)),
        };
        disk.lose_power(loss, self.rng.random()).unwrap();
        // A complete file contains the identity of the original, which this copy does not have. An incomplete file must
        // not matter.
        let lock = self.data.join("lock");
        if fs::read(&lock).is_ok_and(|mark| mark.starts_with(b"used ") && mark.ends_with(b"\n")) {
            fs::remove_file(lock).unwrap();
        }
        format!("{} calls, {} not synced, kept {loss:?}", journal.records(), disk.unsynced())
    }
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        self.checkpoints += other.checkpoints;
    }
}

/// Path of the layer's library, which is next to this test's binary.
fn layer() -> PathBuf {
    let path = std::env::current_exe().unwrap().parent().unwrap().join("libpowerloss.so");
    assert!(path.exists(), "{} is missing", path.display());
    path
}
