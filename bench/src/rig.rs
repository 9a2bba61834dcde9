//! Servers as child processes, and the closed loop that drives them.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hdrhistogram::Histogram;
use sim::client::{Connection, Requests};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

/// Application key of every measured server, because roost in production runs with a key.
pub(crate) const KEY: &str = "key-of-the-benchmark";
/// Usual number of connections.
pub(crate) const CONNECTIONS: usize = 64;

/// Server in its own process. It is killed on drop.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// The address for Redis clients, if the server has one.
    pub(crate) redis: Option<SocketAddr>,
    pub(crate) child: Child,
}

impl Server {
    /// Starts the control with these sizes of responses.
    pub(crate) async fn control(get_bytes: usize, post_bytes: usize) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("control").args(["--get-bytes", &get_bytes.to_string()]);
        command.args(["--post-bytes", &post_bytes.to_string()]);
        Self::start(command).await
    }

    /// Starts roost with `settings`, and default settings otherwise.
    pub(crate) async fn roost(
        roost: &Path,
        data: &Path,
        settings: &[&str],
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(roost);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).args(settings);
        command.env("ROOST_KEY", KEY).env("ROOST_LOG", "warn");
        Self::start(command).await
    }

    async fn start(command: Command) -> anyhow::Result<Self> {
        let (child, lines) = started(command, "serves http://").await?;
        let address = |scheme: &str| {
            let address = lines.iter().find_map(|line| Some(line.split_once(scheme)?.1));
            address.map(str::parse).transpose()
        };
        let redis = address("serves redis://")?;
        let address = address("serves http://")?.context("no address")?;
        Ok(Self { address, redis, child })
    }

    /// Writer of requests to this server.
    pub(crate) fn requests(&self) -> Requests {
        Requests::new(&self.address.to_string(), Some(KEY))
    }

    /// GET request as bytes.
    pub(crate) fn get(&self, path: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.requests().get(path, &mut bytes);
        bytes
    }

    /// POST request as bytes.
    pub(crate) fn post(&self, path: &str, body: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.requests().post(path, body.as_bytes(), &mut bytes);
        bytes
    }

    /// PUT request without a body as bytes.
    pub(crate) fn put(&self, path: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.requests().put(path, b"", &mut bytes);
        bytes
    }

    /// Request to the batch route as bytes.
    fn ndjson(&self, body: &str) -> Vec<u8> {
        let (address, length) = (self.address, body.len());
        format!(
            "POST /v1/batch HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {KEY}\r\n\
             Content-Type: application/x-ndjson\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }

    /// Sends one request; returns the body of a successful response.
    pub(crate) async fn ask(&self, request: &[u8]) -> anyhow::Result<Vec<u8>> {
        let mut connection = Connection::connect(self.address).await?;
        let response = connection.send(request).await?;
        let body = String::from_utf8_lossy(response.body);
        anyhow::ensure!(response.is_success(), "{}: {body}", response.status);
        Ok(response.body.to_vec())
    }

    /// Sends lines to the batch route in pieces. Every line must be accepted.
    pub(crate) async fn batch(
        &self,
        lines: impl IntoIterator<Item = String>,
    ) -> anyhow::Result<()> {
        let mut connection = Connection::connect(self.address).await?;
        let mut lines = lines.into_iter().peekable();
        while lines.peek().is_some() {
            let body: String = lines.by_ref().take(10_000).collect();
            let response = connection.send(&self.ndjson(&body)).await?;
            let bad = response
                .body
                .split(|byte| *byte == b'\n')
                .find(|line| !line.is_empty() && !line.starts_with(b"{\"ok\":true"));
            if let Some(bad) = bad {
                anyhow::bail!("a line was refused: {}", String::from_utf8_lossy(bad));
            }
        }
        Ok(())
    }

    /// Resident and peak memory of the server in MB.
    pub(crate) fn memory_mb(&self) -> anyhow::Result<(f64, f64)> {
        memory_mb(self.child.id().context("the server has ended")?)
    }
}

/// Resident and peak memory of a process in MB.
pub(crate) fn memory_mb(pid: u32) -> anyhow::Result<(f64, f64)> {
    let memory = testkit::proc::memory(pid).context("no memory figures")?;
    Ok((memory.resident as f64 / 1e6, memory.peak as f64 / 1e6))
}

/// Starts a server, and waits until it prints a line with `ready`. Returns the lines up to that one.
///
/// The function does not use the processes of the test kit, which would keep the server's log in memory.
pub(crate) async fn started(
    mut command: Command,
    ready: &str,
) -> anyhow::Result<(Child, Vec<String>)> {
    let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let output = child.stdout.take().context("the server has no output")?;
    let mut output = BufReader::new(output).lines();
    let mut lines = Vec::new();
    while let Some(line) = output.next_line().await? {
        let is_ready = line.contains(ready);
        lines.push(line);
        if is_ready {
            // Read and drop the rest of the output, so that the server never waits until it is read.
            tokio::spawn(async move { while let Ok(Some(_)) = output.next_line().await {} });
            return Ok((child, lines));
        }
    }
    anyhow::bail!("a server ended early: {}", child.wait().await?)
}

/// Results of a closed loop.
pub(crate) struct Driven {
    pub(crate) per_second: f64,
    /// Latencies in nanoseconds.
    pub(crate) latency: Histogram<u64>,
}

/// Sends requests to `address` over concurrent connections. Each connection sends its next request after the response
/// to the previous one. Every response must be a success.
pub(crate) async fn drive(
    address: SocketAddr,
    connections: usize,
    time: Duration,
    requests: impl Fn(usize) -> Vec<Vec<u8>>,
) -> anyhow::Result<Driven> {
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    for number in 0..connections {
        let requests = requests(number);
        tasks.spawn(async move {
            let mut connection = Connection::connect(address).await?;
            let mut latency = Histogram::<u64>::new(3)?;
            for request in requests.iter().cycle() {
                let sent = Instant::now();
                if sent - start >= time {
                    break;
                }
                let response = connection.send(request).await?;
                if !response.is_success() {
                    let body = String::from_utf8_lossy(response.body);
                    anyhow::bail!("{}: {body}", response.status);
                }
                latency.record(sent.elapsed().as_nanos() as u64)?;
            }
            anyhow::Ok(latency)
        });
    }
    let mut latency = Histogram::<u64>::new(3)?;
    while let Some(done) = tasks.join_next().await {
        latency.add(done??)?;
    }
    let per_second = latency.len() as f64 / start.elapsed().as_secs_f64();
    Ok(Driven { per_second, latency })
}

/// Sends requests over [`CONNECTIONS`], and returns the bodies of the responses in their order.
pub(crate) async fn send_all(
    address: SocketAddr,
    requests: Vec<Vec<u8>>,
) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut tasks = Vec::new();
    for requests in requests.chunks(requests.len().div_ceil(CONNECTIONS).max(1)) {
        let requests = requests.to_vec();
        tasks.push(tokio::spawn(async move {
            let (mut connected, mut bodies) = (Connection::connect(address).await?, Vec::new());
            for request in requests {
                let response = connected.send(&request).await?;
                anyhow::ensure!(response.is_success(), "status {}", response.status);
                bodies.push(response.body.to_vec());
            }
            anyhow::Ok(bodies)
        }));
    }
    let mut bodies = Vec::new();
    for task in tasks {
        bodies.extend(task.await??);
    }
    Ok(bodies)
}

/// Calls `act` at every multiple of `pace` during `time`, however long a call takes: an open loop. `act` gets the
/// number of the call and its due time. Latency is measured from the due time, so it includes waiting for a slow
/// earlier call.
pub(crate) fn at_pace(
    pace: Duration,
    time: Duration,
    mut act: impl FnMut(u32, Instant) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let start = Instant::now();
    for n in 0.. {
        let due = start + pace * n;
        if due - start >= time {
            break;
        }
        while Instant::now() < due {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        act(n, due)?;
    }
    Ok(())
}

/// Lines of the batch route that register `count` users named `prefix` and a number.
pub(crate) fn register_lines(prefix: &str, count: u32) -> impl Iterator<Item = String> {
    (0..count).map(move |n| format!("{{\"op\":\"register\",\"handle\":\"{prefix}{n}\"}}\n"))
}

/// A line of the batch route that makes `user` follow `other`.
pub(crate) fn follow_line(user: u32, other: u32) -> String {
    format!("{{\"op\":\"follow\",\"user\":{user},\"other\":{other}}}\n")
}

/// Line of the batch route by which `user` follows all of `others`, at most 1,000.
pub(crate) fn follow_all_line(user: u32, others: impl Iterator<Item = u32>) -> String {
    let others: Vec<String> = others.map(|other| other.to_string()).collect();
    format!("{{\"op\":\"follow\",\"user\":{user},\"others\":[{}]}}\n", others.join(","))
}

/// A line of the batch route with a post of typical length.
pub(crate) fn post_line(user: u32, number: u64) -> String {
    format!("{{\"op\":\"post\",\"user\":{user},\"text\":\"{}\"}}\n", text(number))
}

/// A text of typical length.
pub(crate) fn text(number: u64) -> String {
    format!("Number {number:07}: today the weather was kinder than the forecast, so we went out.")
}
