//! Random faults under load, run by `cargo xtask cluster`. There is one fault at a time, each for some seconds. At the
//! end, every node is compared with the ledgers of the clients.
//!
//! The command sets `ROOST_CLUSTER_SECONDS`, `ROOST_TEST_SEED`, and `ROOST_CLUSTER_OUT`, which is a folder for the
//! data.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use testkit::http::number;
use testkit::nats::NatsServers;
use testkit::{PATIENCE, Random, skipped};

use super::World;
use super::ledger::{Counted, Ledger, Nodes, Pause, Writer, count, reach, upload};
use super::links::Links;
use super::pictures::{log_in, read};

/// Number of nodes, and number of NATS servers.
const NODES: usize = 3;
const WRITERS: usize = 6;
const COUNTERS: usize = 2;
/// Size of the last server's disk, in bytes.
const DISK_BYTES: usize = 1 << 30;
/// Time after a fault during which a pause is still attributed to the fault.
const AFTER: Duration = Duration::from_secs(3);
/// Number of posts of a home timeline that are compared.
const HOME: usize = 100;

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    KillNode,
    KillServer,
    StopNode,
    StopServer,
    CutLink,
    CutNode,
    SlowNode,
    FullDisk,
    StepClock,
}

const FAULTS: [Fault; 9] = [
    Fault::KillNode,
    Fault::KillServer,
    Fault::StopNode,
    Fault::StopServer,
    Fault::CutLink,
    Fault::CutNode,
    Fault::SlowNode,
    Fault::FullDisk,
    Fault::StepClock,
];

/// A fault that happened.
struct Happened {
    fault: Fault,
    /// Name of the affected node or server, and details.
    what: String,
    from: Duration,
    to: Duration,
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

#[test]
#[ignore = "takes minutes: cargo xtask cluster"]
fn campaign() {
    let length = Duration::from_secs(setting("ROOST_CLUSTER_SECONDS").unwrap_or(120));
    let seed = setting("ROOST_TEST_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let out = std::env::var_os("ROOST_CLUSTER_OUT").map(PathBuf::from);
    let settings = "max_payload: 8MB\n";
    let Some(servers) = NatsServers::with_small_disk(NODES, settings, DISK_BYTES) else { return };
    let links = Links::new(NODES, &servers);
    let mut world = World::with(servers, links, true, NODES);
    let mut random = Random::new(seed);
    println!("seed {seed}, {} s", length.as_secs());
    let users = users(&world);
    let nodes = Nodes {
        http: Mutex::new(world.addresses()),
        redis: Mutex::new(world.redis_addresses()),
        done: AtomicBool::new(false),
        begin: Instant::now(),
    };
    let token = log_in(&world, 0, "painter");
    let (faults, ledgers, counters, pictures) = std::thread::scope(|scope| {
        let (nodes, users, token) = (&nodes, &users, &token);
        let painter = scope.spawn(move || upload(nodes, 0, token));
        let writers: Vec<_> = (0..WRITERS)
            .map(|at| {
                let writer = Writer::new(nodes, at, users.writers[at], random.fork());
                scope.spawn(move || writer.run(users.reader))
            })
            .collect();
        let counters: Vec<_> = (0..COUNTERS)
            .map(|at| scope.spawn(move || count(nodes, at, &format!("counter{at}"))))
            .collect();
        let ends = Ends(&nodes.done);
        let faults = break_things(&mut world, nodes, length, &mut random);
        drop(ends);
        let ledgers: Vec<Ledger> = writers.into_iter().map(|one| one.join().unwrap()).collect();
        let counters: Vec<Counted> = counters.into_iter().map(|one| one.join().unwrap()).collect();
        (faults, ledgers, counters, painter.join().unwrap())
    });
    let took = nodes.begin.elapsed();
    compare(&world, &users, &ledgers, &counters);
    compare_pictures(&world, &pictures);
    let (position, digest) = world.same_digests();
    let mut report = format!(
        "seed {seed}; {} s with {} faults; {WRITERS} HTTP clients, {COUNTERS} Redis clients\n",
        took.as_secs(),
        faults.len()
    );
    describe(&ledgers, &counters, &faults, &mut report);
    writeln!(report, "{} pictures were acknowledged and are on all nodes", pictures.len()).unwrap();
    writeln!(report, "all nodes at position {position} have the digest {digest}").unwrap();
    println!("{report}");
    if let Some(out) = out {
        write_data(&out, &report, &faults, &ledgers);
    }
}

/// Makes the clients end on drop, also after a panic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Users {
    writers: Vec<u64>,
    /// User who follows all writers. The writers follow this user at times.
    reader: u64,
}

fn users(world: &World) -> Users {
    let mut client = world.client(0);
    let writers: Vec<u64> =
        (0..WRITERS).map(|at| client.register(&format!("writer{at}")).into()).collect();
    let reader = client.register("reader");
    writers.iter().for_each(|writer| client.follow(reader, *writer as u32));
    Users { writers, reader: reader.into() }
}

/// Waits for the duration of a fault.
fn rest(time: Duration) {
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        std::thread::park_timeout(left);
    }
}

fn break_things(
    world: &mut World,
    nodes: &Nodes,
    length: Duration,
    random: &mut Random,
) -> Vec<Happened> {
    let mut faults: Vec<Happened> = Vec::new();
    let possible: Vec<Fault> = FAULTS
        .into_iter()
        .filter(|fault| match fault {
            Fault::CutLink | Fault::CutNode | Fault::SlowNode => world.links.is_some(),
            Fault::FullDisk => world.servers.on_small_disk("fill").is_some(),
            Fault::StepClock => world.has_clocks(),
            _ => true,
        })
        .collect();
    let mut left = Vec::new();
    rest(Duration::from_secs(3));
    while nodes.begin.elapsed() < length {
        if left.is_empty() {
            // Each kind of fault occurs once before any occurs again, in random order.
            left.clone_from(&possible);
        }
        let fault = left.swap_remove(random.index(left.len()));
        let from = nodes.begin.elapsed();
        let what = one_fault(world, nodes, fault, random);
        let to = nodes.begin.elapsed();
        println!("{:>6.1} to {:>6.1} s  {fault:?} {what}", from.as_secs_f64(), to.as_secs_f64());
        faults.push(Happened { fault, what, from, to });
        world.check_alive();
        world.wait_until_ready();
        rest(Duration::from_millis(random.between(2_000, 4_000)));
    }
    faults
}

/// Causes one fault for some seconds. Returns its description.
fn one_fault(world: &mut World, nodes: &Nodes, fault: Fault, random: &mut Random) -> String {
    let (at, seconds) = (random.index(NODES), random.between(1, 10));
    let time = Duration::from_secs(seconds);
    match fault {
        Fault::KillNode => {
            world.kill(at);
            rest(time);
            world.restart(at);
            *nodes.http.lock().unwrap() = world.addresses();
            *nodes.redis.lock().unwrap() = world.redis_addresses();
            format!("node {at}")
        }
        Fault::KillServer => {
            world.servers.kill(at);
            rest(time);
            world.servers.restart(at);
            format!("server {at}")
        }
        Fault::StopNode | Fault::StopServer => {
            let time = Duration::from_secs(random.between(1, 30));
            let signal = |signal| match fault {
                Fault::StopNode => world.signal(at, signal),
                _ => world.servers.signal(at, signal),
            };
            signal(Signal::STOP);
            rest(time);
            signal(Signal::CONT);
            format!("{at}")
        }
        Fault::CutLink | Fault::CutNode | Fault::SlowNode => {
            let links = world.links.as_mut().unwrap();
            let what = match fault {
                Fault::CutLink => {
                    let server = random.index(NODES);
                    links.cut(at, Some(server));
                    format!("node {at} to server {server}")
                }
                Fault::CutNode => {
                    links.cut(at, None);
                    format!("node {at}")
                }
                _ => {
                    let by_ms = random.between(10, 400);
                    links.slow_down(at, by_ms);
                    format!("node {at} by {by_ms} ms")
                }
            };
            rest(time);
            world.links.as_mut().unwrap().heal();
            what
        }
        Fault::FullDisk => {
            let file = world.servers.on_small_disk("fill").unwrap();
            let mut fill = std::fs::File::create(&file).unwrap();
            while fill.write_all(&[0; 1 << 20]).is_ok() {}
            // Close the file, because the space of an open file is not freed.
            drop(fill);
            rest(time);
            std::fs::remove_file(&file).unwrap();
            // When its disk was full, JetStream has stopped on this server. It works again after a restart.
            world.servers.kill(NODES - 1);
            world.servers.restart(NODES - 1);
            format!("server {}", NODES - 1)
        }
        Fault::StepClock => {
            let step = *random.pick(&["+2s", "-2s", "+1h", "-1h", "+40h", "-40h"]);
            world.set_clock(at, step);
            rest(time);
            world.set_clock(at, "+0");
            format!("node {at} by {step}")
        }
    }
}

/// Checks that every node has every acknowledged picture, with the same bytes.
fn compare_pictures(world: &World, pictures: &[(String, u8)]) {
    let mut colors = BTreeMap::new();
    for (path, color) in pictures {
        for node in 0..NODES {
            let bytes = read(world.client(node), path);
            let expected = colors.entry(*color).or_insert_with(|| bytes.clone());
            assert!(bytes == *expected, "node {node}: {path}");
        }
    }
}

/// Compares every node with the ledgers of the clients.
fn compare(world: &World, users: &Users, ledgers: &[Ledger], counters: &[Counted]) {
    let last = ledgers.iter().map(|ledger| ledger.position).max().unwrap();
    let mut values = Vec::new();
    for node in 0..NODES {
        let mut client = world.client(node);
        reach(&mut client, last);
        let mut posts = Vec::new();
        for ledger in ledgers {
            let mut found = client.all(&format!("/v1/users/{}/posts", ledger.user));
            found.reverse();
            let text = |post: &Value| post["text"].as_str().unwrap().to_owned();
            ledger.check(&found.iter().map(text).collect::<Vec<_>>());
            posts.extend(found.iter().map(|post| number(&post["id"])));
            let path = format!("/v1/users/{}/following", ledger.user);
            let follows = client.all(&path).iter().any(|user| number(&user["id"]) == users.reader);
            assert_eq!(follows, ledger.follows, "node {node}: {path}");
        }
        // A home timeline contains the newest posts of the followed users.
        posts.sort_unstable_by(|one, other| other.cmp(one));
        posts.truncate(HOME);
        let path = format!("/v1/users/{}/timeline?limit={HOME}", users.reader);
        let home = client.get(&path).expect(200).json();
        let home: Vec<u64> =
            home["items"].as_array().unwrap().iter().map(|post| number(&post["id"])).collect();
        assert_eq!(home, posts, "node {node}: the home is the newest posts of all writers");
        for (at, counted) in counters.iter().enumerate() {
            let reply = world.redis(node).line(&format!("GET counter{at}"));
            let value: i64 = String::from_utf8(reply.bytes()).unwrap().parse().unwrap();
            let most = counted.acknowledged + counted.possible;
            assert!((counted.acknowledged..=most).contains(&value), "{value}: {counted:?}");
            values.push((at, value));
        }
    }
    values.sort_unstable();
    values.dedup();
    assert_eq!(values.len(), counters.len(), "all nodes have the same counters: {values:?}");
}

/// The fault that began while a change waited, or else one that was in progress; `None` if there was none.
fn during(faults: &[Happened], pause: Pause) -> Option<Fault> {
    let waited = pause.at..=pause.at + pause.took;
    let began = faults.iter().find(|one| waited.contains(&one.from));
    let met = |one: &&Happened| *waited.end() >= one.from && *waited.start() <= one.to + AFTER;
    began.or_else(|| faults.iter().find(met)).map(|one| one.fault)
}

fn describe(ledgers: &[Ledger], counters: &[Counted], faults: &[Happened], report: &mut String) {
    let counts = ledgers
        .iter()
        .map(Ledger::counts)
        .fold([0; 3], |sum, one| [sum[0] + one[0], sum[1] + one[1], sum[2] + one[2]]);
    let [acknowledged, refused, possible] = counts;
    writeln!(
        report,
        "posts: {acknowledged} acknowledged, each there once on all nodes, in order; {refused} refused and absent; \
         {possible} without an answer"
    )
    .unwrap();
    writeln!(report, "counters of Redis clients, within their bounds: {counters:?}").unwrap();
    let mut pauses: BTreeMap<Option<Fault>, Vec<Duration>> = BTreeMap::new();
    for pause in ledgers.iter().flat_map(|ledger| &ledger.pauses) {
        pauses.entry(during(faults, *pause)).or_default().push(pause.took);
    }
    writeln!(report, "time of a change with its retries, in ms, by the fault at that time:")
        .unwrap();
    writeln!(report, "fault       times  changes    p50    p99  p99.9    max  over 2 s").unwrap();
    for (fault, mut took) in pauses {
        took.sort_unstable();
        let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize].as_millis();
        let name = fault.map_or("none".into(), |fault| format!("{fault:?}"));
        let times = faults.iter().filter(|one| Some(one.fault) == fault).count();
        let over = took.iter().filter(|took| **took > Duration::from_secs(2)).count();
        writeln!(
            report,
            "{name:<11} {times:>5} {:>8} {:>6} {:>6} {:>6} {:>6} {over:>9}",
            took.len(),
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0)
        )
        .unwrap();
    }
}

fn write_data(out: &std::path::Path, report: &str, faults: &[Happened], ledgers: &[Ledger]) {
    std::fs::create_dir_all(out).unwrap();
    std::fs::write(out.join("summary.txt"), report).unwrap();
    let mut lines = String::from("from_s,to_s,fault,what\n");
    for Happened { fault, what, from, to } in faults {
        let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
        writeln!(lines, "{from:.3},{to:.3},{fault:?},{what}").unwrap();
    }
    std::fs::write(out.join("faults.csv"), lines).unwrap();
    // Write only pauses that a user might notice, because all pauses would be megabytes.
    let mut lines = String::from("at_s,took_ms,fault\n");
    let mut pauses: Vec<Pause> = ledgers.iter().flat_map(|ledger| ledger.pauses.clone()).collect();
    pauses.sort_unstable_by_key(|pause| pause.at);
    for pause in pauses.into_iter().filter(|pause| pause.took >= Duration::from_millis(200)) {
        let fault = during(faults, pause).map_or("none".into(), |fault| format!("{fault:?}"));
        let (at, took) = (pause.at.as_secs_f64(), pause.took.as_millis());
        writeln!(lines, "{at:.3},{took},{fault}").unwrap();
    }
    std::fs::write(out.join("pauses.csv"), lines).unwrap();
}

impl World {
    /// Panics if a node has ended unexpectedly.
    fn check_alive(&mut self) {
        for (at, node) in self.nodes.iter_mut().enumerate() {
            let node = node.as_mut().unwrap();
            if !node.process.runs() {
                let ended = self.nodes[at].take().unwrap().process.ended();
                panic!("node {at} has ended: {}\n{}", ended.status, ended.err);
            }
        }
    }

    /// Waits until every node reports that it is ready.
    fn wait_until_ready(&self) {
        let start = Instant::now();
        for node in 0..self.nodes.len() {
            let mut client = self.client(node);
            while client.get("/readyz").status != 200 {
                assert!(start.elapsed() < 2 * PATIENCE, "node {node} becomes ready");
                rest(Duration::from_millis(50));
            }
        }
    }

    fn signal(&self, node: usize, signal: Signal) {
        self.nodes[node].as_ref().unwrap().process.signal(signal);
    }

    fn has_clocks(&self) -> bool {
        let is_there = self.clocks.len() == self.nodes.len();
        if !is_there {
            skipped("clocks that are wrong");
        }
        is_there
    }

    fn set_clock(&self, node: usize, time: &str) {
        self.clocks[node].set(time);
    }
}
