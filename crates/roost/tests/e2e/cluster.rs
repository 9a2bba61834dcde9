//! Tests of a cluster from end to end: three processes of `nats-server` and three of `roost`, which are killed under
//! load.

mod diverged;
mod faults;
mod figures;
mod ledger;
mod links;
mod panics;
mod pictures;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use commitlog::{Applied, ClusterId, NodeId};
use jetlog::{JetLog, JetLogOptions};
use serde_json::json;
use tempfile::TempDir;
use testkit::PATIENCE;
use testkit::http::Client;
use testkit::machine::WrongClock;
use testkit::nats::{NatsServers, nats, program};
use testkit::process::{Ended, Process, Server, roost, run, serve};
use testkit::redis::Redis;

use self::links::Links;
use crate::change_feed::{Consumer, place};

/// Text of a post at which the rules of the nodes panic, in a debug build.
const PANIC: &str = "the rule of this post panics";

/// Number of writers. Each writes as a different user.
const WRITERS: usize = 3;

struct World {
    servers: NatsServers,
    /// Links between the nodes and the servers; `None` if they cannot be cut.
    links: Option<Links>,
    /// Clocks of the nodes; empty if they cannot be set.
    clocks: Vec<WrongClock>,
    folder: TempDir,
    nodes: Vec<Option<Server>>,
}

impl World {
    /// Starts three servers, and a cluster of `nodes` nodes, created as an operator does. If nats-server is missing,
    /// reports a skipped test and returns `None`.
    fn start(nodes: usize) -> Option<Self> {
        let servers = NatsServers::start(3, "max_payload: 8MB\n")?;
        Some(Self::with(servers, None, false, nodes))
    }

    /// Creates a cluster of `nodes` nodes on these servers. The nodes reach the servers over `links`, if there are any.
    /// If `clocks` is set and libfaketime is installed, the clocks of the nodes can be set.
    fn with(servers: NatsServers, links: Option<Links>, clocks: bool, nodes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = |node| WrongClock::new(folder.path().join(format!("clock-{node}")));
        let clocks = (0..nodes).filter(|_| clocks).map_while(clock).collect();
        let mut world = Self { servers, links, clocks, folder, nodes: Vec::new() };
        let (first, urls) = (world.data(0), world.servers.urls());
        let start = Instant::now();
        // The servers may still be electing a leader.
        loop {
            let made =
                run(["cluster", "init", "--experimental", "--data", text(&first), "--nats", &urls]);
            if made.status.success() {
                break;
            }
            assert!(start.elapsed() < PATIENCE, "{made:#?}");
        }
        world.nodes.push(None);
        world.restart(0);
        for node in 1..nodes {
            let joined = world.join(node);
            assert!(joined.status.success(), "{joined:#?}");
            world.nodes.push(None);
            world.restart(node);
        }
        world
    }

    fn data(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("node-{node}"))
    }

    fn join(&self, node: usize) -> Ended {
        let (data, urls) = (self.data(node), self.servers.urls());
        let from = format!("http://{}", self.address(0));
        run(["cluster", "join", "--server", &from, "--data", text(&data), "--nats", &urls])
    }

    fn command(&self, node: usize) -> Command {
        let urls = self.links.as_ref().map_or(self.servers.urls(), |links| links.urls(node));
        let mut command = serve(&self.data(node), &["--nats", &urls, "--changes-max", "64MiB"]);
        command.args(["--open", "--password-grant", "--redis-listen", "127.0.0.1:0"]);
        command.env("ROOST_TEST_PANIC", PANIC);
        if let Some(clock) = self.clocks.get(node) {
            clock.give(&mut command);
        }
        command
    }

    fn restart(&mut self, node: usize) {
        self.nodes[node] = Some(Server::start(&mut self.command(node)));
    }

    fn kill(&mut self, node: usize) {
        drop(self.nodes[node].take().unwrap().kill());
    }

    fn stop(&mut self, node: usize) {
        drop(self.nodes[node].take().unwrap().stop());
    }

    fn address(&self, node: usize) -> SocketAddr {
        self.nodes[node].as_ref().unwrap().address
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().flatten().map(|node| node.address).collect()
    }

    fn redis_addresses(&self) -> Vec<SocketAddr> {
        let address = |node: &Server| node.process.said("roost serves redis://").unwrap();
        self.nodes.iter().flatten().map(|node| address(node).parse().unwrap()).collect()
    }

    fn redis(&self, node: usize) -> Redis {
        Redis::new(self.redis_addresses()[node])
    }

    /// Waits until all nodes have the same position and digest. Returns the position and the digest.
    fn same_digests(&self) -> (u64, String) {
        let start = Instant::now();
        loop {
            let states = self.nodes.iter().flatten().map(|node| {
                let status = node.client().get("/v1/cluster").expect(200).json();
                (
                    status["position"].as_u64().unwrap(),
                    status["digest"].as_str().unwrap().to_owned(),
                )
            });
            let mut states: Vec<(u64, String)> = states.collect();
            let found = states.clone();
            states.dedup();
            if let [state] = states.as_slice() {
                return state.clone();
            }
            assert!(start.elapsed() < PATIENCE, "all nodes reach one position: {found:?}");
        }
    }

    /// Compares the change feeds of all nodes from the latest beginning on; returns the number of changes.
    fn same_changes(&self) -> usize {
        let feeds: Vec<_> = (0..self.nodes.len())
            .map(|node| {
                let mut consumer = Consumer::default();
                consumer.read(self.client(node), 0, 100);
                consumer.stored()
            })
            .collect();
        let begun = feeds.iter().filter_map(|feed| feed.first().map(place)).max().unwrap();
        let mut feeds = feeds
            .iter()
            .map(|feed| feed.iter().filter(|change| place(change) >= begun).collect::<Vec<_>>());
        let first = feeds.next().unwrap();
        assert!(feeds.all(|feed| feed == first), "the nodes have the same changes");
        first.len()
    }

    fn client(&self, node: usize) -> Client {
        Client::new(self.address(node), None)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Repeats a change until a node acknowledges it. Returns its position.
fn insist(
    addresses: &Mutex<Vec<SocketAddr>>,
    first: usize,
    path: &str,
    key: &str,
    body: &serde_json::Value,
) -> u64 {
    let start = Instant::now();
    for attempt in first.. {
        assert!(start.elapsed() < PATIENCE, "{path} {key} is acknowledged in time");
        let all = addresses.lock().unwrap().clone();
        let mut client = Client::new(all[attempt % all.len()], None);
        let headers = [("Idempotency-Key", key)];
        match client.try_post(path, &headers, body) {
            Ok(answer) if matches!(answer.status, 200 | 201) => {
                return answer.header("roost-position").unwrap().parse().unwrap();
            }
            Ok(answer) => {
                // The node may not yet have the user, who was registered on another node.
                assert!(matches!(answer.status, 503 | 404), "{} {}", answer.status, answer.text());
                assert!(answer.status == 404 || answer.header("retry-after").is_some());
            }
            // The node was killed.
            Err(_) => {}
        }
    }
    unreachable!("attempts do not end")
}

/// Waits until the node has reached position `after`. Returns the texts of all posts of a user, oldest first.
fn texts(client: &mut Client, user: u64, after: u64) -> Vec<String> {
    let start = Instant::now();
    let (path, after) = (format!("/v1/users/{user}"), after.to_string());
    while client.send("GET", &path, &[("Roost-After", &after)], b"").unwrap().status == 503 {
        assert!(start.elapsed() < PATIENCE, "the node catches up");
    }
    let posts = client.all(&format!("/v1/users/{user}/posts"));
    let mut texts: Vec<String> =
        posts.iter().map(|post| post["text"].as_str().unwrap().to_owned()).collect();
    texts.reverse();
    texts
}

/// Each acknowledged change takes effect once, on all nodes, even if processes are killed.
#[test]
fn nothing_is_lost_or_doubled_while_nodes_and_servers_are_killed() {
    let Some(mut world) = World::start(3) else { return };
    let addresses = Mutex::new(world.addresses());
    let (done, acknowledged) = (AtomicBool::new(false), AtomicUsize::new(0));
    let users: Vec<u64> = (0..WRITERS)
        .map(|writer| {
            let mut client = world.client(writer % world.nodes.len());
            u64::from(client.register(&format!("writer{writer}")))
        })
        .collect();
    let write = |writer: usize| {
        let (mut written, mut position) = (Vec::new(), 0);
        while !done.load(Ordering::Relaxed) {
            let post = format!("{writer}-{}", written.len());
            let path = format!("/v1/users/{}/posts", users[writer]);
            let first = writer + written.len();
            let at = insist(&addresses, first, &path, &post, &json!({"text": post}));
            position = position.max(at);
            written.push(post);
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        (written, position)
    };
    let write = &write;
    let written: Vec<(Vec<String>, u64)> = std::thread::scope(|scope| {
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        let start = Instant::now();
        let wait = |count: usize| {
            let wanted = acknowledged.load(Ordering::Relaxed) + count;
            while acknowledged.load(Ordering::Relaxed) < wanted {
                assert!(start.elapsed() < 4 * PATIENCE, "writing goes on");
                std::thread::yield_now();
            }
        };
        wait(100);
        for round in 0..3 {
            world.kill(round);
            *addresses.lock().unwrap() = world.addresses();
            wait(100);
            world.servers.kill(round);
            wait(100);
            world.restart(round);
            *addresses.lock().unwrap() = world.addresses();
            world.servers.restart(round);
            wait(100);
        }
        // Make enough changes for several digests of each node. A node whose digest differed would stop.
        wait(4_000);
        done.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let last = written.iter().map(|(_, position)| *position).max().unwrap();
    for node in 0..3 {
        let mut client = world.client(node);
        for (writer, (expected, _)) in written.iter().enumerate() {
            let found = texts(&mut client, users[writer], last);
            assert!(found == *expected, "node {node}: {found:?}\n{expected:?}");
        }
    }
    // All nodes have counted the same groups, and have the same rows and the same change feed.
    world.same_digests();
    assert!(world.same_changes() > 4_000);
}

#[test]
fn without_servers_changes_get_503_and_reads_go_on() {
    let Some(mut world) = World::start(1) else { return };
    let mut client = world.client(0);
    let user = client.register("anna");
    client.publish(user, "before");
    (0..3).for_each(|server| world.servers.kill(server));
    let path = format!("/v1/users/{user}/posts");
    let key = [("Idempotency-Key", "during")];
    let answer = client.try_post(&path, &key, &json!({"text": "during"})).unwrap();
    answer.assert_error(503, "unconfirmed", "the first");
    assert!(answer.header("retry-after").is_some());
    let start = Instant::now();
    loop {
        let answer = client.post(&path, &json!({"text": "never"}));
        if answer.status == 503 && answer.json()["error"] == "log_unavailable" {
            assert!(answer.header("retry-after").is_some());
            break;
        }
        assert!(answer.status == 503 && start.elapsed() < PATIENCE, "{}", answer.text());
    }
    assert_eq!(texts(&mut client, user.into(), 0), ["before"]);
    let status = client.get("/v1/cluster").expect(200).json();
    assert_eq!(status["accepts_changes"], false, "{status}");
    let after = (status["position"].as_u64().unwrap() + 1).to_string();
    let lagging = client.send("GET", &path, &[("Roost-After", &after)], b"").unwrap();
    lagging.assert_error(503, "lagging", "a position in the future");
    (0..3).for_each(|server| world.servers.restart(server));
    let start = Instant::now();
    while client.try_post(&path, &key, &json!({"text": "during"})).unwrap().status != 201 {
        assert!(start.elapsed() < PATIENCE, "changes are made again");
    }
    let found = texts(&mut client, user.into(), 0);
    assert_eq!(found.iter().filter(|text| *text == "during").count(), 1, "{found:?}");
}

#[test]
fn what_cannot_be_applied_stops_the_node_with_the_position() {
    let Some(mut world) = World::start(1) else { return };
    world.client(0).register("anna");
    let options = JetLogOptions::new(&world.servers.urls());
    let cluster = JetLog::cluster(&options).unwrap();
    let mut log = JetLog::open(&options, (cluster, NodeId(7)), Applied::default()).unwrap();
    log.begin(1);
    log.append(&[0xff; 9], 0).unwrap();
    let position = loop {
        let group = log.next(PATIENCE).unwrap().unwrap();
        if group.is_own {
            break group.position.0;
        }
    };
    let ended = world.nodes[0].take().unwrap().process.ended();
    assert!(!ended.status.success());
    let expected = format!("group {position} of the log cannot be read");
    assert!(ended.err.contains(&expected), "{}", ended.err);
    let again = Process::start(&mut world.command(0)).ended();
    assert_eq!(again.status.code(), Some(1), "{again:#?}");
    assert!(again.err.contains(&expected), "{}", again.err);
    // Nothing that the node acknowledged is lost.
    let gone = run(["cluster", "leave", "--data", text(&world.data(0))]);
    assert!(gone.status.success(), "{gone:#?}");
    let alone = Server::open(&world.data(0), &[]);
    assert_eq!(alone.client().get("/v1/users/@anna").expect(200).json()["handle"], "anna");
}

#[test]
fn whoever_has_no_key_does_not_wait_for_a_position() {
    let Some(mut world) = World::start(1) else { return };
    world.stop(0);
    let key = "a-key-of-this-test";
    let mut command = serve(&world.data(0), &["--nats", &world.servers.urls()]);
    world.nodes[0] = Some(Server::start(command.env("ROOST_KEY", key)));
    let after = [("Roost-After", "1000000")];
    let get = |key: Option<&str>, path| {
        let mut client = Client::new(world.address(0), key.map(str::to_owned));
        client.send("GET", path, &after, b"").unwrap()
    };
    get(None, "/v1/users").assert_error(401, "unauthorized", "no key");
    assert_eq!(get(None, "/healthz").status, 200);
    get(Some(key), "/v1/users").assert_error(503, "lagging", "a position in the future");
    get(None, "/v1/nothing").assert_error(401, "unauthorized", "no such path");
}

/// Each mistake causes an error with advice before anything is served.
#[test]
fn wrong_starts_say_what_to_do() {
    let Some(mut world) = World::start(1) else { return };
    let urls = world.servers.urls();
    let (data, other) = (world.data(0), world.data(9));
    let twice = run(["cluster", "init", "--experimental", "--data", text(&other), "--nats", &urls]);
    assert!(twice.status.code() == Some(1) && twice.err.contains("in use"), "{twice:#?}");
    let existing =
        run(["cluster", "init", "--experimental", "--data", text(&data), "--nats", &urls]);
    assert!(existing.err.contains("another process uses"), "{existing:#?}");
    world.client(0).register("anna");
    world.stop(0);
    let refused = |data: &Path, log: &[&str], code: i32| {
        let ended = Process::start(serve(data, log).arg("--open")).ended();
        assert_eq!(ended.status.code(), Some(code), "{ended:#?}");
        assert!(!ended.out.contains("roost serves"), "{ended:#?}");
        ended.err
    };
    for (data, log, expected) in [
        (&data, &[][..], "roost serve --nats nats://HOST:4222"),
        (&data, &["--nats", "http://a:1"], "write nats://HOST:4222"),
        (&data, &["--nats", "nats://127.0.0.1:1"], "no NATS server can be reached at 127.0.0.1:1"),
        (&data, &["--nats", &urls, "--archive", "x"], "roost backup"),
        (&data, &["--nats", &urls, "--nats-creds", "/nowhere"], "cannot read /nowhere"),
        (&other, &["--nats", &urls], "belongs to no cluster: make a new cluster with"),
    ] {
        // The exit code is 1 only if another attempt with the same settings may succeed, because servers are
        // unavailable.
        let code = if expected.starts_with("no NATS server") { 1 } else { 2 };
        let error = refused(data, log, code);
        assert!(error.contains(expected), "{log:?}: {error}");
    }
    // This is another cluster on the same servers.
    let mark = data.join("cluster");
    let own = std::fs::read_to_string(&mark).unwrap();
    std::fs::write(&mark, format!("{}\n", ClusterId(7))).unwrap();
    let foreign = refused(&data, &["--nats", &urls], 1);
    assert!(foreign.contains("belongs to cluster") && foreign.contains(own.trim()), "{foreign}");
    std::fs::write(&mark, own).unwrap();
    // A node that was killed must first read the log, unless the loss is accepted.
    world.restart(0);
    world.kill(0);
    let killed = run(["cluster", "leave", "--data", text(&data)]);
    assert!(killed.status.code() == Some(1) && killed.err.contains("--accept-loss"), "{killed:#?}");
    world.restart(0);
    world.stop(0);
    // The stream has the same name, but another product created it.
    let url = world.servers.url(0);
    if nats(&url, ["stream", "rm", "roost", "--force"]).is_some() {
        let add = ["stream", "add", "roost", "--subjects=orders", "--replicas=3", "--defaults"];
        assert!(nats(&url, add).is_some());
        let foreign = refused(&data, &["--nats", &urls], 1);
        assert!(foreign.contains("was not made for roost: use another name"), "{foreign}");
    }
    let gone = run(["cluster", "leave", "--data", text(&data)]);
    assert!(gone.status.success(), "{gone:#?}");
    let alone = Server::open(&data, &[]);
    assert_eq!(alone.client().get("/v1/users/@anna").expect(200).json()["handle"], "anna");
    alone.client().get("/v1/cluster").assert_error(404, "no_cluster", "it has left");
}

/// Only one of a directory and its copy can serve. The error of the other has advice.
#[test]
fn two_processes_as_one_node_do_not_both_serve() {
    let Some(mut world) = World::start(1) else { return };
    let user = world.client(0).register("anna");
    world.stop(0);
    let copy = world.data(7);
    let copied = Command::new("cp").arg("-r").arg(world.data(0)).arg(&copy).status().unwrap();
    assert!(copied.success());
    world.restart(0);
    let urls = world.servers.urls();
    let other = Server::start(serve(&copy, &["--nats", &urls]).arg("--open"));
    other.client().publish(user, "hello");
    let ended = world.nodes[0].take().unwrap().process.ended();
    assert!(!ended.status.success());
    let expected = "each node needs its own data directory";
    assert!(ended.err.contains("another process writes as this node"), "{}", ended.err);
    assert!(ended.err.contains(expected), "{}", ended.err);
    assert_eq!(texts(&mut other.client(), user.into(), 0), ["hello"]);
}

#[test]
fn wrong_credentials_are_refused_and_the_directory_belongs_to_no_cluster() {
    let settings = "authorization { user: roost, password: right }\n";
    let Some(servers) = NatsServers::start(1, settings) else { return };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for credentials in ["", "roost:wrong@"] {
        let log = servers.url(0).replace("nats://", &format!("nats://{credentials}"));
        // A password on the command line is refused.
        let mut init = roost(["cluster", "init", "--experimental", "--data", text(&data)]);
        let init = Process::start(init.env("ROOST_NATS", &log)).ended();
        assert_eq!(init.status.code(), Some(1), "{init:#?}");
        assert!(init.err.contains("refuse the credentials, or require some"), "{}", init.err);
        assert!(init.err.contains("check the credentials file"), "{}", init.err);
        assert!(!init.err.contains("wrong"), "{}", init.err);
    }
    drop(Server::open(&data, &[]));
}

/// A new user starts a cluster with one command, or reads what is missing.
#[test]
fn a_demo_of_a_cluster_ends_with_all_nodes_compared() {
    let Some(program) = program("nats-server") else { return };
    let arguments = ["demo", "--cluster", "--listen", "127.0.0.1:0", "--duration", "3s"];
    let shown = run(arguments.into_iter().chain(["--nats-server", text(&program)]));
    assert_eq!(shown.status.code(), Some(0), "{shown:#?}");
    let compared = shown.out.lines().last().unwrap();
    assert!(compared.ends_with("acknowledged posts is on all three nodes, once."), "{compared}");
    assert!(!compared.starts_with("Each of 0 "), "{compared}");
    let mut without = roost(arguments);
    let missing = Process::start(without.env("PATH", "").env("HOME", "/nowhere")).ended();
    assert_eq!(missing.status.code(), Some(1), "{missing:#?}");
    assert!(missing.err.contains("go install github.com/nats-io/nats-server"), "{missing:#?}");
}

/// A backup of a running node contains everything that was acknowledged, and can be restored as a standalone server.
#[test]
fn a_backup_of_a_node_has_all_that_was_acknowledged() {
    let Some(world) = World::start(1) else { return };
    let mut client = world.client(0);
    let user = client.register("anna");
    client.publish(user, "hello");
    let (url, file) = (format!("http://{}", world.address(0)), world.folder.path().join("b"));
    let made = run(["backup", "--server", &url, "--out", text(&file)]);
    assert!(made.status.success(), "{made:#?}");
    let restored = run(["restore", text(&file), "--data", text(&world.data(8))]);
    assert!(restored.status.success(), "{restored:#?}");
    let server = Server::open(&world.data(8), &[]);
    assert_eq!(texts(&mut server.client(), user.into(), 0), ["hello"]);
    assert_eq!(server.client().register("ben"), user + 1);
}
