//! Figures of a cluster of three NATS servers and three nodes on this machine, run by `cargo xtask cluster --figures`.
//!
//! All processes share the processors of the machine with the clients. So each figure is compared with a control in the
//! same run, or is processor time.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use commitlog::{Applied, ClusterId, NodeId, Position};
use jetlog::{JetLog, JetLogOptions};
use serde_json::json;
use testkit::PATIENCE;
use testkit::http::{Client, number};
use testkit::proc::processor_seconds;
use testkit::process::Server;

use super::World;

const CONNECTIONS: usize = 64;
/// Duration of the phase of posting.
const POSTING: Duration = Duration::from_secs(10);
/// Number of posts by a client that posts alone.
const ALONE: usize = 500;
/// Number of users whose homes are read. Each follows all others.
const USERS: usize = 50;
const POSTS_EACH: usize = 10;
/// Number of rounds of reads. Each round reads from a node and from a standalone server.
const ROUNDS: usize = 7;
/// Number of reads per round. It is high, because the processor time of a process is counted in hundredths of a second.
const READS: usize = 40_000;
/// Number of batches of posts.
const BATCHES: usize = 40;
const BATCH_LINES: usize = 5_000;

#[test]
#[ignore = "measures: cargo xtask cluster --figures"]
fn figures() {
    let Some(world) = World::start(3) else { return };
    let mut report = String::new();
    post_by_many(&world, &mut report);
    post_alone(&world, &mut report);
    read_homes(&world, &mut report);
    read_on_more_and_more_nodes(&world, &mut report);
    apply_posts_of_others(&world, &mut report);
    println!("{report}");
    if let Some(out) = std::env::var_os("ROOST_CLUSTER_OUT").map(PathBuf::from) {
        std::fs::create_dir_all(&out).unwrap();
        std::fs::write(out.join("figures.txt"), report).unwrap();
    }
}

/// Formats these percentiles of the times, in milliseconds.
fn percentiles(times: &mut [Duration], of: &[usize]) -> String {
    times.sort_unstable();
    let at = |hundredth: usize| times[(times.len() - 1) * hundredth / 100].as_secs_f64() * 1e3;
    of.iter().map(|of| format!("p{of} {:.1} ms", at(*of))).collect::<Vec<_>>().join(", ")
}

fn post_by_many(world: &World, report: &mut String) {
    let users: Vec<u32> =
        (0..CONNECTIONS).map(|at| world.client(0).register(&format!("many{at}"))).collect();
    let (begin, used) = (Barrier::new(CONNECTIONS), processors(world));
    let start = Instant::now();
    let mut times: Vec<Duration> = std::thread::scope(|scope| {
        let clients: Vec<_> = users
            .iter()
            .enumerate()
            .map(|(at, user)| {
                let (mut client, begin) = (world.client(at % world.nodes.len()), &begin);
                let body = json!({"text": "what everybody posts, as often as they can"});
                scope.spawn(move || {
                    let path = format!("/v1/users/{user}/posts");
                    wait_for_user(&mut client, *user);
                    let (mut times, _) = (Vec::new(), begin.wait());
                    let end = Instant::now() + POSTING;
                    while Instant::now() < end {
                        let start = Instant::now();
                        client.post(&path, &body).expect(201);
                        times.push(start.elapsed());
                    }
                    times
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let (took, used) = (start.elapsed().as_secs_f64(), processors(world) - used);
    let rate = times.len() as f64 / POSTING.as_secs_f64();
    let found = percentiles(&mut times, &[50, 99]);
    writeln!(
        report,
        "{CONNECTIONS} connections over {} nodes: {rate:.0} posts per second, {found}; the nodes used {:.2} processors together, \
         {:.0} us for a post",
        world.nodes.len(),
        used / took,
        used / times.len() as f64 * 1e6
    )
    .unwrap();
}

/// Waits until a node has a user who was registered on another node.
fn wait_for_user(client: &mut Client, user: u32) {
    let start = Instant::now();
    while client.get(&format!("/v1/users/{user}")).status != 200 {
        assert!(start.elapsed() < PATIENCE, "the user arrives");
    }
}

/// Processor time of all nodes, in seconds.
fn processors(world: &World) -> f64 {
    world.nodes.iter().flatten().map(seconds).sum()
}

fn seconds(server: &Server) -> f64 {
    processor_seconds(server.process.id().as_raw_nonzero().get() as u32).unwrap()
}

/// Alternates between a post through a node, and an append of a group of the same length to the log without a node.
fn post_alone(world: &World, report: &mut String) {
    let stream = "control".to_owned();
    let options = JetLogOptions { stream, ..JetLogOptions::new(&world.servers.urls()) };
    JetLog::create(&options, ClusterId(9), Position(0)).unwrap();
    let mut log = JetLog::open(&options, (ClusterId(9), NodeId(9)), Applied::default()).unwrap();
    log.begin(1);
    let mut client = world.client(0);
    let user = client.register("alone");
    let path = format!("/v1/users/{user}/posts");
    let (mut posts, mut groups) = (Vec::new(), Vec::new());
    for number in 0..ALONE {
        let start = Instant::now();
        client
            .post(&path, &json!({"text": format!("post {number} of a client alone")}))
            .expect(201);
        posts.push(start.elapsed());
        let start = Instant::now();
        log.append(&[7; 64], 0).unwrap();
        while log.next(PATIENCE).unwrap().is_none_or(|group| !group.is_own) {}
        groups.push(start.elapsed());
    }
    let of = [50, 99];
    let found = [percentiles(&mut posts, &of), percentiles(&mut groups, &of)];
    let ratio = posts[ALONE / 2].as_secs_f64() / groups[ALONE / 2].as_secs_f64();
    writeln!(
        report,
        "one client alone: a post {}; a group through the log alone {}; ratio of medians {ratio:.2}",
        found[0], found[1]
    )
    .unwrap();
}

/// Creates the same users, follows and posts on every node or server for which it is called.
fn fill(client: &mut Client) -> Vec<u32> {
    let users: Vec<u32> = (0..USERS).map(|at| client.register(&format!("home{at}"))).collect();
    for user in &users {
        users.iter().filter(|other| *other != user).for_each(|other| client.follow(*user, *other));
        for number in 0..POSTS_EACH {
            client.publish(*user, &format!("post {number} of a user whose posts are read at home"));
        }
    }
    users
}

fn read_homes(world: &World, report: &mut String) {
    let single = Server::open(&world.data(20), &[]);
    let node = world.nodes[0].as_ref().unwrap();
    let mut both = [node, &single].map(|server| {
        let mut client = server.client();
        let users = fill(&mut client);
        (server, client, users)
    });
    let mut used = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for ((server, client, users), used) in both.iter_mut().zip(&mut used) {
            let before = seconds(server);
            for read in 0..READS {
                let path = format!("/v1/users/{}/timeline?limit=20", users[read % USERS]);
                client.get(&path).expect(200);
            }
            used.push((seconds(server) - before) / READS as f64 * 1e6);
        }
    }
    let mut ratios: Vec<f64> = used[0].iter().zip(&used[1]).map(|(node, own)| node / own).collect();
    let [node, own] = used.map(median);
    let ratio = median(std::mem::take(&mut ratios));
    writeln!(
        report,
        "processor time of a read of a home: {node:.1} us on a node of three, {own:.1} us on a server of its own; median ratio \
         of {ROUNDS} rounds {ratio:.3}"
    )
    .unwrap();
}

/// Reads homes on one node, then on two, then on three at the same time.
fn read_on_more_and_more_nodes(world: &World, report: &mut String) {
    let mut client = world.client(0);
    let mut known =
        |handle: String| number(&client.get(&format!("/v1/users/@{handle}")).json()["id"]);
    let users: Vec<u64> = (0..USERS).map(|at| known(format!("home{at}"))).collect();
    let mut used = vec![Vec::new(); world.nodes.len()];
    for _ in 0..ROUNDS {
        for (nodes, used) in (1..).zip(&mut used) {
            let before = processors(world);
            std::thread::scope(|scope| {
                for node in 0..nodes {
                    let (mut client, users) = (world.client(node), &users);
                    scope.spawn(move || {
                        for read in 0..READS {
                            let path =
                                format!("/v1/users/{}/timeline?limit=20", users[read % USERS]);
                            client.get(&path).expect(200);
                        }
                    });
                }
            });
            used.push((processors(world) - before) / (nodes * READS) as f64 * 1e6);
        }
    }
    let used: Vec<String> = used.into_iter().map(|used| format!("{:.1}", median(used))).collect();
    let used = used.join(", ");
    writeln!(report, "the same on 1, 2 and 3 nodes at the same time: {used} us for each read")
        .unwrap();
}

/// Measures the cost of posts for nodes that only apply them, and for the node that received them in batches.
fn apply_posts_of_others(world: &World, report: &mut String) {
    let mut client = world.client(0);
    let user = client.register("batches");
    let text = "what a batch posts, again and again, to nobody who follows";
    let lines = vec![json!({"op": "post", "user": user, "text": text}); BATCH_LINES];
    let (profile, mut other) = (format!("/v1/users/{user}"), world.client(1));
    let mut posts = 0;
    let mut used = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let nodes = [0, 1].map(|node| world.nodes[node].as_ref().unwrap());
        let before = nodes.map(seconds);
        for _ in 0..BATCHES {
            client.batch(&lines);
        }
        posts += BATCHES * BATCH_LINES;
        let start = Instant::now();
        while other.get(&profile).json()["post_count"] != posts {
            assert!(start.elapsed() < PATIENCE, "the posts arrive");
            std::thread::sleep(Duration::from_millis(5));
        }
        let each = 1e6 / (BATCHES * BATCH_LINES) as f64;
        for ((node, before), used) in nodes.into_iter().zip(before).zip(&mut used) {
            used.push((seconds(node) - before) * each);
        }
    }
    let [own, other] = used.map(median);
    writeln!(
        report,
        "processor time of a post in batches of {BATCH_LINES}: {own:.1} us on the node that gets it, {other:.1} us on another one"
    )
    .unwrap();
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
