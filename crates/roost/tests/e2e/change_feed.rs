//! Change feed across `kill -9` under load: a consumer that only stores its position gets every acknowledged change
//! once, in order, and what it has read never changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::crash::seed;
use crate::support::http::{Client, number};
use crate::support::process::{Process, Server, serve};
use crate::support::world::ids;

/// Number of rounds, each of which ends with a kill of the server.
pub(crate) const KILLS: u64 = 9;
pub(crate) const WRITERS: u32 = 3;
/// Maximum number of acknowledgements before a kill.
pub(crate) const ACKS_MAX: u64 = 300;
const POLICIES: [&str; 3] = ["always", "never", "interval"];

/// A server with a feed that takes checkpoints all the time.
pub(crate) fn command(data: &Path, round: u64) -> Command {
    let policy = POLICIES[(round % POLICIES.len() as u64) as usize];
    let more = ["--open", "--changes-max", "64MiB", "--overlay-memory", "64KiB"];
    let mut command = serve(data, &more);
    command.args(["--durability", policy, "--fsync-interval", "20ms"]);
    command
}

/// Load during which processes are killed.
pub(crate) struct Round {
    acks: AtomicU64,
    /// Each process to kill, with the number of acknowledgements at which it is killed.
    victims: Vec<(u64, Pid)>,
}

impl Round {
    pub(crate) fn killing(victims: Vec<(u64, Pid)>) -> Self {
        Self { acks: AtomicU64::new(0), victims }
    }

    fn acknowledged(&self) {
        let acks = self.acks.fetch_add(1, Ordering::Relaxed) + 1;
        for (_, victim) in self.victims.iter().filter(|(at, _)| *at == acks) {
            kill_process(*victim, Signal::KILL).unwrap();
        }
    }
}

/// Client that changes the data of its user and records what was acknowledged.
pub(crate) struct Writer {
    user: u32,
    posts: Vec<u64>,
    /// Number of acknowledged changes of the follow.
    toggles: u64,
}

impl Writer {
    /// Creates a writer for each user.
    pub(crate) fn all() -> Vec<Self> {
        (0..WRITERS).map(|user| Self { user, posts: Vec::new(), toggles: 0 }).collect()
    }

    /// Works until the server no longer answers.
    pub(crate) fn work(&mut self, mut client: Client, round: &Round) {
        let (user, other) = (self.user, (self.user + 1) % WRITERS);
        let (posts, follow) =
            (format!("/v1/users/{user}/posts"), format!("/v1/users/{user}/following/{other}"));
        loop {
            for text in ["short", &"long ".repeat(90)] {
                let Ok(made) = client.try_post(&posts, &[], &json!({"text": text})) else { return };
                self.posts.push(number(&made.expect(201).json()["id"]));
                round.acknowledged();
            }
            for method in ["PUT", "DELETE"] {
                let Ok(answer) = client.send(method, &follow, &[], b"") else { return };
                assert!(answer.status < 300, "{answer:?}");
                self.toggles += 1;
                round.acknowledged();
            }
        }
    }
}

/// Client that stores the position after the changes that it has read; at first none, for the oldest kept change.
#[derive(Default)]
pub(crate) struct Consumer {
    pub(crate) after: String,
    pub(crate) changes: Vec<Value>,
}

impl Consumer {
    /// Reads until the server no longer answers, or with `wait_s=0` until there are no more changes.
    pub(crate) fn read(&mut self, mut client: Client, wait_s: u32, limit: u32) {
        loop {
            let mut path = format!("/v1/changes?wait_s={wait_s}&limit={limit}");
            if !self.after.is_empty() {
                path += &format!("&after={}", self.after);
            }
            let Ok(answer) = client.send("GET", &path, &[], b"") else { return };
            if answer.status == 503 {
                // The server stops.
                continue;
            }
            let page = answer.expect(200).json();
            let items = page["items"].as_array().unwrap();
            self.changes.extend(items.iter().cloned());
            self.after = page["next"].as_str().unwrap().to_owned();
            if items.is_empty() && wait_s == 0 {
                return;
            }
        }
    }

    /// Position, kind and ids of each change: what never changes.
    pub(crate) fn stored(&self) -> Vec<[String; 5]> {
        let names = ["position", "kind", "user_id", "other_id", "post_id"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let of = |change: &Value| names.map(|name| text(&change[name]));
        self.changes.iter().map(of).collect()
    }
}

/// Place of a stored change.
pub(crate) fn place([position, ..]: &[String; 5]) -> (u64, u32) {
    let (group, index) = position.split_once('-').unwrap();
    (group.parse().unwrap(), index.parse().unwrap())
}

#[test]
fn a_consumer_gets_every_acknowledged_change_once_and_in_order_across_kill_9() {
    let seed = seed();
    println!("to repeat: ROOST_TEST_SEED={seed} cargo test -p roost --test e2e change_feed");
    let mut rng = StdRng::seed_from_u64(seed);
    let data = tempfile::tempdir().unwrap();
    let mut writers = Writer::all();
    let mut consumer = Consumer { after: "0".to_owned(), changes: Vec::new() };
    let mut server = Server::start(&mut command(data.path(), 0));
    for user in 0..WRITERS {
        server.client().register(&format!("user{user}"));
    }
    for round in 1..=KILLS {
        let (at, victim) = (rng.random_range(1..=ACKS_MAX), server.process.id());
        let load = Round::killing(vec![(at, victim)]);
        std::thread::scope(|scope| {
            for writer in &mut writers {
                let (client, load) = (server.client(), &load);
                scope.spawn(move || writer.work(client, load));
            }
            let (client, limit) = (server.client(), rng.random_range(1..=100));
            let consumer = &mut consumer;
            scope.spawn(move || consumer.read(client, 30, limit));
        });
        server.process.ended();
        if rng.random_bool(0.5) {
            // A start is killed too.
            let process = Process::start(&mut command(data.path(), round));
            if rng.random_bool(0.5) {
                assert!(process.logged("recovered").is_some());
            }
            process.signal(Signal::KILL);
            process.ended();
        }
        server = Server::start(&mut command(data.path(), round));
    }
    consumer.read(server.client(), 0, 100);
    check(&server, &writers, &consumer);
    server.stop();

    // A clean stop and start change nothing either.
    let server = Server::start(&mut command(data.path(), 0));
    let mut again = Consumer { after: "0".to_owned(), changes: Vec::new() };
    again.read(server.client(), 0, 77);
    assert_eq!(again.stored(), consumer.stored());
    server.stop();
}

/// Compares the changes that a consumer has with what writers know and the server has.
pub(crate) fn check(server: &Server, writers: &[Writer], consumer: &Consumer) {
    let changes = &consumer.changes;
    let places: Vec<_> = consumer.stored().iter().map(place).collect();
    let wrong = places.windows(2).find(|pair| pair[0] >= pair[1]);
    assert_eq!(wrong, None, "positions rise");
    let mut found: BTreeMap<(String, u64), Vec<u64>> = BTreeMap::new();
    for change in changes {
        let kind = change["kind"].as_str().unwrap().to_owned();
        let id = change["post_id"].as_str().map_or(0, |post| post.parse().unwrap());
        found.entry((kind, number(&change["user_id"]))).or_default().push(id);
    }
    let mut client = server.client();
    for Writer { user, posts, toggles } in writers {
        let of = |kind: &str| {
            found.get(&(kind.to_owned(), u64::from(*user))).cloned().unwrap_or_default()
        };
        let published = of("post_published");
        let known: BTreeSet<_> = published.iter().copied().collect();
        assert_eq!(known.len(), published.len(), "no post of {user} twice");
        let missing: Vec<_> = posts.iter().filter(|post| !known.contains(post)).collect();
        assert_eq!(missing, [] as [&u64; 0], "acknowledged posts of {user} without a change");
        let mut stored = ids(&mut client, &format!("/v1/users/{user}/posts?limit=100"));
        stored.sort_unstable();
        assert_eq!(published, stored, "posts of {user}, in order");
        let (followed, unfollowed) = (of("followed").len(), of("unfollowed").len());
        let total = (followed + unfollowed) as u64;
        // In each round at most one change has an unknown outcome. A repeated one changes nothing.
        assert!(total + 2 * KILLS >= *toggles && total <= toggles + KILLS, "{total} {toggles}");
        let follows = followed - unfollowed;
        let following = ids(&mut client, &format!("/v1/users/{user}/following"));
        assert_eq!(following.len(), follows, "{user}");
        assert_eq!(of("user_registered").len(), 1);
    }
}
