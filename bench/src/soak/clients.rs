//! Clients of the soak test. Each removes later what it creates, sends requests at a fixed rate or as fast as it can,
//! and connects again after a restart of the server.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use sim::client::Connection;
use testkit::Random;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::rig::{KEY, Server};

/// Requests of each kind, in percent.
pub(super) const KINDS: [(&str, u64); 10] = [
    ("home timelines", 45),
    ("posts, or deletions of the oldest", 14),
    ("edits", 3),
    ("stories of 30 s", 6),
    ("homes of stories", 6),
    ("keys of 30 s", 6),
    ("reads of keys", 6),
    ("follows and unfollows", 4),
    ("recognitions", 2),
    ("Redis commands", 8),
];
/// Number of connections. Each has at most one request at a time.
const CLIENTS: u64 = 16;
/// Maximum number of posts of each client. A client with more deletes its oldest.
const POSTS: usize = 2_000;
/// TTL of stories and keys, in seconds.
const TTL_S: u64 = 30;
/// Number of keys of each client.
const KEYS: u64 = 2_000;
/// One in this many deleted and expired texts is remembered, and of these only the newest.
const REMEMBERED: u8 = 16;
const GONE_MAX: usize = 100_000;
/// Pause before another attempt to connect.
const RECONNECT: Duration = Duration::from_millis(20);

pub(super) const TOKEN_BYTES: usize = 16;
/// A random text of letters and digits.
pub(super) type Token = [u8; TOKEN_BYTES];

/// Deleted or expired texts of a kind, with the time of each.
type Gone = VecDeque<(Instant, Token)>;
const GONE: [&str; 3] = ["deleted and edited posts", "expired stories", "expired values"];

/// Addresses of a server.
#[derive(Clone, Copy)]
pub(super) struct Addresses {
    http: SocketAddr,
    redis: SocketAddr,
}

impl Addresses {
    pub(super) fn of(server: &Server) -> anyhow::Result<Self> {
        Ok(Self { http: server.address, redis: server.redis.context("no address for Redis")? })
    }
}

/// State shared by all clients.
pub(super) struct Clients {
    users: u32,
    waits: Mutex<Histogram<u64>>,
    failed: AtomicU64,
    gone: Mutex<[Gone; 3]>,
}

impl Clients {
    pub(super) fn new(users: u32) -> Self {
        let (waits, gone) = (Mutex::new(histogram()), Mutex::default());
        Self { users, waits, failed: AtomicU64::new(0), gone }
    }

    /// Runs all clients for a time, at `rate` together or as fast as they can, and runs `beside` at the same time.
    /// Returns the number of responses per second.
    pub(super) async fn run(
        self: &Arc<Self>,
        addresses: &watch::Receiver<Option<Addresses>>,
        time: Duration,
        rate: Option<f64>,
        beside: impl AsyncFnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<f64> {
        let start = Instant::now();
        let pace = rate.map(|rate| Duration::from_secs_f64(CLIENTS as f64 / rate));
        let mut tasks = JoinSet::new();
        for number in 0..CLIENTS {
            let (shared, addresses) = (Arc::clone(self), addresses.clone());
            tasks.spawn(shared.client(number, addresses, start + time, pace));
        }
        let clients = async {
            let mut answers = 0;
            while let Some(done) = tasks.join_next().await {
                answers += done??;
            }
            anyhow::Ok(answers)
        };
        let (answers, ()) = tokio::try_join!(clients, beside())?;
        Ok(answers as f64 / start.elapsed().as_secs_f64())
    }

    /// The latencies since the last call, in nanoseconds.
    pub(super) fn take_waits(&self) -> Histogram<u64> {
        std::mem::replace(&mut *self.waits.lock(), histogram())
    }

    /// Number of requests without a response, or with 503.
    pub(super) fn failed(&self) -> f64 {
        self.failed.load(Ordering::Relaxed) as f64
    }

    /// Texts that were deleted or have expired for longer than `age`, by kind.
    pub(super) fn gone(&self, age: Duration) -> Vec<(&'static str, HashSet<Token>)> {
        let gone = self.gone.lock();
        let old = |gone: &Gone| {
            let old = gone.iter().filter(|(since, _)| since.elapsed() > age);
            old.map(|(_, token)| *token).collect()
        };
        GONE.into_iter().zip(gone.iter().map(old)).collect()
    }

    /// Remembers a text that was deleted, or that will expire.
    fn forget(&self, kind: usize, since: Instant, token: Token) {
        let [first, ..] = token;
        if first % REMEMBERED != 0 {
            return;
        }
        let mut gone = self.gone.lock();
        let Some(gone) = gone.get_mut(kind) else { return };
        gone.push_back((since, token));
        if gone.len() > GONE_MAX {
            gone.pop_front();
        }
    }

    async fn client(
        self: Arc<Self>,
        number: u64,
        mut addresses: watch::Receiver<Option<Addresses>>,
        end: Instant,
        pace: Option<Duration>,
    ) -> anyhow::Result<u64> {
        let mut client = Client::new(number, self.users);
        let mut answers = 0;
        while Instant::now() < end {
            let address = *addresses.borrow_and_update();
            let connected = match address {
                Some(address) => Link::connect(address).await.ok(),
                None => None,
            };
            let Some(mut server) = connected else {
                tokio::time::sleep(RECONNECT).await;
                continue;
            };
            // Begin the schedule now: the time without a server is not latency.
            let mut due = Instant::now();
            while Instant::now() < end {
                due = pace.map_or_else(Instant::now, |pace| due + pace);
                let is_late = Instant::now() > due;
                tokio::time::sleep_until(due.into()).await;
                // If this task wakes up late, the server is not to blame.
                let since = if is_late { due } else { Instant::now() };
                match client.act(&mut server, &self).await? {
                    true => answers += 1,
                    false => break,
                }
                self.waits.lock().record(since.elapsed().as_nanos() as u64)?;
            }
        }
        Ok(answers)
    }
}

fn histogram() -> Histogram<u64> {
    let Ok(histogram) = Histogram::new(3) else { unreachable!("3 digits are allowed") };
    histogram
}

/// The connections of a client to a server.
struct Link {
    address: SocketAddr,
    http: Connection,
    redis: TcpStream,
}

impl Link {
    async fn connect(addresses: Addresses) -> anyhow::Result<Self> {
        let http = Connection::connect(addresses.http).await?;
        let mut redis = TcpStream::connect(addresses.redis).await?;
        redis.set_nodelay(true)?;
        redis_reply(&mut redis, &format!("AUTH {KEY}\r\n")).await?;
        Ok(Self { address: addresses.http, http, redis })
    }

    /// Status and body of a response; `None` if the connection broke.
    async fn ask(&mut self, method: &str, path: &str, body: &str) -> Option<(u16, Vec<u8>)> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {KEY}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let response = self.http.send(request.as_bytes()).await.ok()?;
        Some((response.status, response.body.to_vec()))
    }
}

/// Sends an inline command. The reply must be a line, or a line and a value.
async fn redis_reply(stream: &mut TcpStream, line: &str) -> anyhow::Result<()> {
    stream.write_all(line.as_bytes()).await?;
    let (mut bytes, mut piece) = (Vec::new(), [0; 512]);
    loop {
        let read = stream.read(&mut piece).await?;
        anyhow::ensure!(read > 0, "the connection is closed");
        bytes.extend_from_slice(piece.get(..read).unwrap_or_default());
        let is_value = bytes.starts_with(b"$") && !bytes.starts_with(b"$-1");
        let lines = bytes.windows(2).filter(|end| end == b"\r\n").count();
        if lines == if is_value { 2 } else { 1 } && bytes.ends_with(b"\r\n") {
            anyhow::ensure!(!bytes.starts_with(b"-"), "{}", String::from_utf8_lossy(&bytes));
            return Ok(());
        }
    }
}

/// Client with its posts, stories and keys.
struct Client {
    number: u64,
    users: u64,
    random: Random,
    posts: VecDeque<(String, Token)>,
    follows: bool,
}

impl Client {
    fn new(number: u64, users: u32) -> Self {
        let random = Random::new(number ^ 0x50_a4);
        Self { number, users: users.into(), random, posts: VecDeque::new(), follows: false }
    }

    fn token(&mut self) -> Token {
        const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
        std::array::from_fn(|_| *self.random.pick(LETTERS))
    }

    /// Sends a request. Returns false if the connection broke or the server is busy.
    async fn act(&mut self, server: &mut Link, shared: &Clients) -> anyhow::Result<bool> {
        let kind = self.random.weighted(&KINDS.map(|(_, share)| share));
        let user = self.random.below(self.users);
        let key = self.random.below(KEYS) + KEYS * self.number;
        let answer = match kind {
            0 => server.ask("GET", &format!("/v1/users/{user}/timeline"), "").await,
            1 if self.posts.len() < POSTS => self.post(server, user).await,
            1 => self.delete(server, shared).await,
            2 => self.edit(server, shared).await,
            3 => self.story(server, user, shared).await,
            4 => server.ask("GET", &format!("/v1/users/{user}/timeline/stories"), "").await,
            5 => self.put(server, key, shared).await,
            6 => server.ask("GET", &format!("/v1/buckets/soak/keys/{key}"), "").await,
            7 => self.follow(server).await,
            8 => self.recognize(server).await,
            _ => self.redis(server, key, shared).await,
        };
        match answer {
            Some((503 | 429, _)) | None => {
                shared.failed.fetch_add(1, Ordering::Relaxed);
                Ok(false)
            }
            // Status 404 is a success too: if the server was killed, changes without a response may be lost.
            Some((200..=299 | 404, _)) => Ok(true),
            Some((status, body)) => {
                anyhow::bail!("{status}: {}", String::from_utf8_lossy(&body))
            }
        }
    }

    async fn post(&mut self, server: &mut Link, user: u64) -> Option<(u16, Vec<u8>)> {
        let token = self.token();
        let path = format!("/v1/users/{user}/posts");
        let answer = server.ask("POST", &path, &text(&token, "")).await?;
        self.posts.extend(id(&answer.1).map(|id| (format!("{path}/{id}"), token)));
        Some(answer)
    }

    async fn delete(&mut self, server: &mut Link, shared: &Clients) -> Option<(u16, Vec<u8>)> {
        let (path, token) = self.posts.front()?.clone();
        let answer = server.ask("DELETE", &path, "").await?;
        self.posts.pop_front();
        shared.forget(0, Instant::now(), token);
        Some(answer)
    }

    async fn edit(&mut self, server: &mut Link, shared: &Clients) -> Option<(u16, Vec<u8>)> {
        if self.posts.is_empty() {
            return Some((200, Vec::new()));
        }
        let (at, new) = (self.random.index(self.posts.len()), self.token());
        let (path, old) = self.posts.get(at)?.clone();
        let answer = server.ask("PATCH", &path, &text(&new, "")).await?;
        if let Some((_, token)) = self.posts.get_mut(at).filter(|_| answer.0 == 200) {
            *token = new;
            shared.forget(0, Instant::now(), old);
        }
        Some(answer)
    }

    async fn story(
        &mut self,
        server: &mut Link,
        user: u64,
        shared: &Clients,
    ) -> Option<(u16, Vec<u8>)> {
        let token = self.token();
        let body = text(&token, &format!(",\"ttl_s\":{TTL_S}"));
        let answer = server.ask("POST", &format!("/v1/users/{user}/stories"), &body).await?;
        shared.forget(1, Instant::now() + Duration::from_secs(TTL_S), token);
        Some(answer)
    }

    async fn put(
        &mut self,
        server: &mut Link,
        key: u64,
        shared: &Clients,
    ) -> Option<(u16, Vec<u8>)> {
        let token = self.token();
        let path = format!("/v1/buckets/soak/keys/{key}?ttl_s={TTL_S}");
        let answer = server.ask("PUT", &path, &String::from_utf8_lossy(&token)).await?;
        shared.forget(2, Instant::now() + Duration::from_secs(TTL_S), token);
        Some(answer)
    }

    async fn follow(&mut self, server: &mut Link) -> Option<(u16, Vec<u8>)> {
        self.follows = !self.follows;
        let method = if self.follows { "PUT" } else { "DELETE" };
        // Only this client follows as `user`.
        let (user, other) = (self.number, self.users - 1 - self.number);
        server.ask(method, &format!("/v1/users/{user}/following/{other}"), "").await
    }

    async fn recognize(&mut self, server: &mut Link) -> Option<(u16, Vec<u8>)> {
        let drawing: String = (0..16).map(|_| format!("{:016x}", self.random.next())).collect();
        server.ask("POST", "/v1/recognitions", &format!("{{\"sample\":\"{drawing}\"}}")).await
    }

    async fn redis(
        &mut self,
        server: &mut Link,
        key: u64,
        shared: &Clients,
    ) -> Option<(u16, Vec<u8>)> {
        let token = self.token();
        let is_write = self.random.once_in(2);
        let line = match is_write {
            true => format!("SET r{key} {} EX {TTL_S}\r\n", String::from_utf8_lossy(&token)),
            false => format!("GET r{key}\r\n"),
        };
        redis_reply(&mut server.redis, &line).await.ok()?;
        if is_write {
            shared.forget(2, Instant::now() + Duration::from_secs(TTL_S), token);
        }
        Some((200, Vec::new()))
    }
}

/// JSON of a text that contains the token, with further fields.
fn text(token: &Token, more: &str) -> String {
    format!(
        "{{\"text\":\"{} and the usual length of a text\"{more}}}",
        String::from_utf8_lossy(token)
    )
}

/// Id of the created record.
fn id(body: &[u8]) -> Option<u64> {
    let body = std::str::from_utf8(body).ok()?;
    body.split_once("\"id\":\"")?.1.split_once('"')?.0.parse().ok()
}
