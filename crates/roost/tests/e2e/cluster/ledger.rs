//! Ledgers of the clients: changes that were acknowledged, refused, or have an unknown outcome.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::http::{Answer, Client};
use testkit::redis::{Redis, command};
use testkit::{PATIENCE, Random, Reply};

use super::pictures::{path, try_upload};

/// Maximum time to wait for a response. After it, a client tries another node.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// Maximum time for a change with its retries. If it is not acknowledged by then, the test fails.
const INSISTS_FOR: Duration = Duration::from_secs(300);

/// Interval between the uploads of a client, and maximum time of an upload.
const UPLOADS_EVERY: Duration = Duration::from_secs(5);
const UPLOADED_WITHIN: Duration = Duration::from_secs(10);

/// Addresses of the nodes. For a killed node, these are its last ones.
pub(crate) struct Nodes {
    pub(crate) http: Mutex<Vec<SocketAddr>>,
    pub(crate) redis: Mutex<Vec<SocketAddr>>,
    pub(crate) done: AtomicBool,
    pub(crate) begin: Instant,
}

impl Nodes {
    fn http(&self, at: usize) -> SocketAddr {
        let all = self.http.lock().unwrap();
        all[at % all.len()]
    }

    fn redis(&self, at: usize) -> SocketAddr {
        let all = self.redis.lock().unwrap();
        all[at % all.len()]
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }
}

/// Duration of a change with all its retries.
#[derive(Clone, Copy)]
pub(crate) struct Pause {
    /// Time at which the change began, since the beginning of the run.
    pub(crate) at: Duration,
    pub(crate) took: Duration,
}

/// The changes of one user.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) user: u64,
    /// Texts of acknowledged posts, in order.
    acknowledged: Vec<String>,
    /// Texts of posts that may exist, because their response was lost or left the outcome open.
    possible: BTreeSet<String>,
    /// Texts of refused posts.
    refused: BTreeSet<String>,
    /// Whether the user follows `followed`.
    pub(crate) follows: bool,
    /// Position of the last acknowledged change.
    pub(crate) position: u64,
    pub(crate) pauses: Vec<Pause>,
}

/// Client that writes as one user.
pub(crate) struct Writer<'a> {
    nodes: &'a Nodes,
    client: Client,
    /// Index of the node that the writer uses now.
    at: usize,
    random: Random,
    ledger: Ledger,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(nodes: &'a Nodes, at: usize, user: u64, random: Random) -> Self {
        let client = Client::new(nodes.http(at), None).within(ANSWERS_WITHIN);
        Self { nodes, client, at, random, ledger: Ledger { user, ..Ledger::default() } }
    }

    /// Writes until the run ends.
    pub(crate) fn run(mut self, followed: u64) -> Ledger {
        let mut number = 0;
        while !self.nodes.is_done() {
            number += 1;
            match self.random.below(10) {
                0 => self.post_once(number),
                1 => self.toggle(followed),
                _ => self.post(number),
            }
        }
        self.ledger
    }

    fn go_to_another_node(&mut self) {
        self.at += 1;
        self.client = Client::new(self.nodes.http(self.at), None).within(ANSWERS_WITHIN);
    }

    /// Repeats an idempotent change until it is acknowledged.
    fn insist(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) {
        let start = Instant::now();
        let headers = [&[("Content-Type", "application/json")], headers].concat();
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        loop {
            assert!(start.elapsed() < INSISTS_FOR, "{path} is acknowledged in time");
            match self.client.send(method, path, &headers, &body) {
                Ok(answer) if matches!(answer.status, 200..300) => {
                    self.acknowledge(&answer);
                    break;
                }
                // Status 404: this node does not yet have the user, who was registered on another node.
                Ok(answer) => assert!(
                    matches!(answer.status, 404 | 503),
                    "{path}: {} {}",
                    answer.status,
                    answer.text()
                ),
                Err(_) => {}
            }
            self.go_to_another_node();
        }
        let (at, took) = (start.duration_since(self.nodes.begin), start.elapsed());
        self.ledger.pauses.push(Pause { at, took });
    }

    fn acknowledge(&mut self, answer: &Answer) {
        let position = answer.header("roost-position").unwrap().parse().unwrap();
        self.ledger.position = self.ledger.position.max(position);
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/users/{}/{rest}", self.ledger.user)
    }

    fn post(&mut self, number: usize) {
        let text = format!("{}-{number}", self.ledger.user);
        let path = self.path("posts");
        self.insist("POST", &path, &[("Idempotency-Key", &text)], &json!({"text": text}));
        self.ledger.acknowledged.push(text);
    }

    /// Posts without an idempotency key, and so without retries.
    fn post_once(&mut self, number: usize) {
        let text = format!("{}-{number} once", self.ledger.user);
        let sent = self.client.try_post(&self.path("posts"), &[], &json!({"text": text}));
        match sent {
            Ok(answer) if answer.status == 201 => {
                self.acknowledge(&answer);
                self.ledger.acknowledged.push(text);
                return;
            }
            Ok(answer) if answer.status == 503 && answer.json()["error"] == "unconfirmed" => {
                self.ledger.possible.insert(text);
            }
            Ok(answer) => {
                assert!(matches!(answer.status, 404 | 503), "{} {}", answer.status, answer.text());
                self.ledger.refused.insert(text);
            }
            Err(_) => _ = self.ledger.possible.insert(text),
        }
        self.go_to_another_node();
    }

    fn toggle(&mut self, followed: u64) {
        self.ledger.follows = !self.ledger.follows;
        let method = if self.ledger.follows { "PUT" } else { "DELETE" };
        let path = self.path(&format!("following/{followed}"));
        self.insist(method, &path, &[], &Value::Null);
    }
}

impl Ledger {
    /// Compares the posts of the user, oldest first, with the ledger.
    pub(crate) fn check(&self, found: &[String]) {
        let user = self.user;
        let mut seen = BTreeSet::new();
        for text in found {
            assert!(seen.insert(text), "user {user}: {text:?} is there twice");
            assert!(!self.refused.contains(text), "user {user}: {text:?} was refused");
        }
        let certain: Vec<&String> =
            found.iter().filter(|text| !self.possible.contains(*text)).collect();
        let differs = certain.iter().zip(&self.acknowledged).find(|(found, told)| *found != told);
        assert!(differs.is_none(), "user {user}: found and acknowledged: {differs:?}");
        assert_eq!(certain.len(), self.acknowledged.len(), "user {user}");
    }

    /// Numbers of acknowledged, refused, and possible posts, in this order.
    pub(crate) fn counts(&self) -> [usize; 3] {
        [self.acknowledged.len(), self.refused.len(), self.possible.len()]
    }
}

/// Changes of a counter by one Redis client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) acknowledged: i64,
    pub(crate) possible: i64,
    pub(crate) refused: i64,
}

/// Increments a counter with a Redis client until the run ends, on one node after the other.
pub(crate) fn count(nodes: &Nodes, first: usize, key: &str) -> Counted {
    let (mut counted, mut at) = (Counted::default(), first);
    let increment = command(&[b"INCR", key.as_bytes()]);
    while !nodes.is_done() {
        at += 1;
        let Ok(mut redis) = Redis::try_new(nodes.redis(at)) else { continue };
        redis.stream().set_read_timeout(Some(ANSWERS_WITHIN)).unwrap();
        // Use a connection for several changes, so that it may break during one.
        for _ in 0..100 {
            if redis.try_send(&increment).is_err() {
                // The server may have received the command before the connection broke.
                counted.possible += 1;
                break;
            }
            match redis.try_receive() {
                Ok(Reply::Integer(_)) => counted.acknowledged += 1,
                Ok(Reply::Error(error)) if error.contains("may still be made") => {
                    counted.possible += 1;
                    break;
                }
                Ok(Reply::Error(error)) => {
                    let known = ["TRYAGAIN", "LOADING", "BUSY", "ERR the server is shutting down"];
                    assert!(known.iter().any(|known| error.starts_with(known)), "{error}");
                    counted.refused += 1;
                    break;
                }
                Ok(other) => panic!("{other:?}"),
                Err(_) => {
                    counted.possible += 1;
                    break;
                }
            }
            if nodes.is_done() {
                break;
            }
        }
    }
    counted
}

/// Uploads a picture every few seconds until the run ends, on one node after the other. Returns the acknowledged
/// pictures.
pub(crate) fn upload(nodes: &Nodes, first: usize, token: &str) -> Vec<(String, u8)> {
    let (mut pictures, mut next) = (Vec::new(), Instant::now());
    for at in first.. {
        while Instant::now() < next && !nodes.is_done() {
            std::thread::park_timeout(Duration::from_millis(50));
        }
        if nodes.is_done() {
            break;
        }
        next = Instant::now() + UPLOADS_EVERY;
        let mut client =
            Client::new(nodes.http(at), Some(token.to_owned())).within(UPLOADED_WITHIN);
        let color = pictures.len() as u8;
        match try_upload(&mut client, color) {
            Ok(answer) if answer.status == 200 => pictures.push((path(&answer), color)),
            // After a quarter of an hour, the user has the maximum number of pictures that no post has.
            Ok(answer) if answer.text().contains("pictures that no post has") => break,
            // Status 401: the node does not have the token yet. Status 429: too many requests.
            Ok(answer) => assert!(
                matches!(answer.status, 401 | 429 | 503),
                "{} {}",
                answer.status,
                answer.text()
            ),
            Err(_) => {}
        }
    }
    pictures
}

/// Waits until a node has applied all changes up to this position.
pub(crate) fn reach(client: &mut Client, position: u64) {
    let start = Instant::now();
    let after = position.to_string();
    while client.send("GET", "/v1/users", &[("Roost-After", &after)], b"").unwrap().status == 503 {
        assert!(start.elapsed() < PATIENCE, "the node catches up");
    }
}
