//! Clients of a cluster demo. Each posts as its own user through the common address, and retries with the same
//! idempotency key until the post is acknowledged.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Deserialize;
use sim::client::{Connection, Requests};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Number of clients.
const WRITERS: usize = 4;
/// Pause after each post and before each retry.
const PAUSE: Duration = Duration::from_millis(20);
/// Timeout of a request, after which it is retried.
const ANSWERED_WITHIN: Duration = Duration::from_secs(4);
/// Longest time for nodes to apply acknowledged changes.
const CATCHES_UP_WITHIN: Duration = Duration::from_secs(60);

/// Figures that the clients have collected.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) acknowledged: AtomicU64,
    pub(super) retried: AtomicU64,
    /// Longest time between a first attempt and its acknowledgement, since the last report, in milliseconds.
    longest_ms: AtomicU64,
}

impl Seen {
    pub(super) fn take_longest_ms(&self) -> u64 {
        self.longest_ms.swap(0, Ordering::Relaxed)
    }
}

/// Acknowledged changes of a client.
pub(super) struct Written {
    user: String,
    /// Number of acknowledged posts.
    pub(super) posts: u64,
}

/// Running clients.
pub(super) struct Writers {
    pub(super) seen: Arc<Seen>,
    tasks: JoinSet<anyhow::Result<Written>>,
    stop: watch::Sender<bool>,
}

#[derive(Deserialize)]
struct User {
    id: String,
    #[serde(default)]
    post_count: u64,
}

impl Writers {
    /// Starts clients that post at `address`.
    pub(super) fn start(address: SocketAddr) -> Self {
        let (seen, mut tasks, stop) =
            (Arc::new(Seen::default()), JoinSet::new(), watch::Sender::new(false));
        for writer in 0..WRITERS {
            tasks.spawn(write(address, writer, Arc::clone(&seen), stop.subscribe()));
        }
        Self { seen, tasks, stop }
    }

    /// Waits until a client fails.
    pub(super) async fn failed(&mut self) -> anyhow::Error {
        match self.tasks.join_next().await {
            Some(Ok(Err(error))) => error,
            _ => anyhow::anyhow!("a client has ended"),
        }
    }

    /// Stops the clients after their current posts; returns their acknowledged changes.
    ///
    /// # Errors
    /// If an answer was wrong.
    pub(super) async fn stop(mut self) -> anyhow::Result<Vec<Written>> {
        self.stop.send_replace(true);
        let mut written = Vec::new();
        while let Some(writer) = self.tasks.join_next().await {
            written.push(writer??);
        }
        Ok(written)
    }
}

/// Registers a user and posts until stopped.
async fn write(
    address: SocketAddr,
    writer: usize,
    seen: Arc<Seen>,
    stopped: watch::Receiver<bool>,
) -> anyhow::Result<Written> {
    let mut client = Client { address, connection: None };
    let body = format!("{{\"handle\":\"writer{writer}\"}}");
    let made = client.insist("/v1/users", &format!("user-{writer}"), &body, &seen).await?;
    let User { id, .. } = serde_json::from_slice(&made).context("a user is returned")?;
    let (path, mut posts) = (format!("/v1/users/{id}/posts"), 0);
    while !*stopped.borrow() {
        let start = Instant::now();
        let body = format!("{{\"text\":\"post {posts}\"}}");
        client.insist(&path, &format!("{writer}-{posts}"), &body, &seen).await?;
        posts += 1;
        seen.acknowledged.fetch_add(1, Ordering::Relaxed);
        let took_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        seen.longest_ms.fetch_max(took_ms, Ordering::Relaxed);
        sleep(PAUSE).await;
    }
    Ok(Written { user: id, posts })
}

struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
}

impl Client {
    /// Sends a change until it is acknowledged; returns the body of the answer.
    async fn insist(
        &mut self,
        path: &str,
        key: &str,
        body: &str,
        seen: &Seen,
    ) -> anyhow::Result<Vec<u8>> {
        let (host, length) = (self.address, body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nIdempotency-Key: {key}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        loop {
            if let Ok(Some((status, body))) =
                timeout(ANSWERED_WITHIN, self.send(request.as_bytes())).await
            {
                match status {
                    200 | 201 => return Ok(body),
                    // A node returns 404 if it has not applied the registration of the user yet.
                    404 | 503 => {}
                    _ => anyhow::bail!("{status} {}", String::from_utf8_lossy(&body)),
                }
            }
            // Reconnect, because the next connection may reach another node.
            self.connection = None;
            seen.retried.fetch_add(1, Ordering::Relaxed);
            sleep(PAUSE).await;
        }
    }

    async fn send(&mut self, request: &[u8]) -> Option<(u16, Vec<u8>)> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::connect(self.address).await.ok()?,
        };
        let response = connection.send(request).await.ok()?;
        let answer = (response.status, response.body.to_vec());
        self.connection = Some(connection);
        Some(answer)
    }
}

/// Checks that a node has each acknowledged post exactly once.
///
/// # Errors
/// If the number of posts is still wrong after [`CATCHES_UP_WITHIN`].
pub(super) async fn check(node: SocketAddr, written: &[Written]) -> anyhow::Result<()> {
    for Written { user, posts: expected } in written {
        let (mut request, start) = (Vec::new(), Instant::now());
        Requests::new(&node.to_string(), None).get(&format!("/v1/users/{user}"), &mut request);
        loop {
            let mut client = Client { address: node, connection: None };
            let answer = timeout(ANSWERED_WITHIN, client.send(&request)).await;
            let found = match answer {
                Ok(Some((200, body))) => Some(serde_json::from_slice::<User>(&body)?.post_count),
                _ => None,
            };
            if found == Some(*expected) {
                break;
            }
            anyhow::ensure!(
                start.elapsed() < CATCHES_UP_WITHIN,
                "user {user} has {found:?} posts on {node} instead of {expected}"
            );
            sleep(PAUSE).await;
        }
    }
    Ok(())
}
