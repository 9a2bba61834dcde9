//! `roost demo --cluster`: three NATS servers, three nodes with one common address, clients that post there, and a
//! process that is killed every few seconds.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::balancer::{self, Backend};
use super::processes::{Part, Processes};
use super::writers::{self, Seen, Writers};
use crate::output::out;

/// Interval between lines about the clients.
const LINE_EVERY: Duration = Duration::from_secs(2);
/// Time between a restart and the next kill. JetStream takes up to 9 s to replace a leader.
const UP: Duration = Duration::from_secs(6);
const DOWN: Duration = Duration::from_secs(10);

/// Finds nats-server.
///
/// # Errors
/// If there is none, with advice on how to get it.
pub(super) fn nats_server(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(file) = given {
        anyhow::ensure!(file.is_file(), "{} is not a program", file.display());
        return Ok(file.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let go = std::env::home_dir().map(|home| home.join("go/bin"));
    let mut folders = std::env::split_paths(&path).chain(go);
    let found = folders.find_map(|folder| {
        let file = folder.join("nats-server");
        file.is_file().then_some(file)
    });
    found.context(
        "nats-server is not in PATH: get it with\n\n  go install github.com/nats-io/nats-server/v2@latest\n\nor from \
         https://github.com/nats-io/nats-server/releases, and name it with --nats-server FILE",
    )
}

/// Runs for `duration`, or until `cancel` changes.
///
/// # Errors
/// If a process cannot be started, or a node does not have each acknowledged post exactly once.
pub(super) async fn run(
    listen: SocketAddr,
    nats_server: &Path,
    duration: Duration,
    mut cancel: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    out!("Starting three NATS servers and three nodes; this takes some seconds.");
    let mut processes = tokio::select! {
        started = Processes::start(nats_server) => started?,
        _ = cancel.changed() => return Ok(()),
    };
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    let backends: Vec<Backend> = processes.nodes.iter().copied().map(Backend::new).collect();
    let backends = Arc::new(backends);
    balancer::start(listener, Arc::clone(&backends));
    explain(address, &processes.nodes);
    let mut writers = Writers::start(address);
    let (seen, begin) = (Arc::clone(&writers.seen), Instant::now());
    let stopped = tokio::select! {
        error = writers.failed() => Err(error),
        () = report(&seen, &backends, begin) => Ok(()),
        stopped = kill(&mut processes.parts, begin) => stopped,
        () = sleep(duration) => Ok(()),
        _ = cancel.changed() => Ok(()),
    };
    stopped?;
    processes.parts.iter_mut().try_for_each(Part::start)?;
    out!("\nStopping. All nodes are compared first; Ctrl-C again ends at once.");
    tokio::select! {
        compared = compare(writers, &processes.nodes) => compared,
        _ = cancel.changed() => Ok(()),
    }
}

async fn compare(writers: Writers, nodes: &[SocketAddr]) -> anyhow::Result<()> {
    // The last posts may have to wait until a killed server is replaced.
    let written = timeout(Duration::from_secs(60), writers.stop()).await;
    let written = written.context("the last posts are not acknowledged")??;
    for node in nodes {
        writers::check(*node, &written).await?;
    }
    let posts: u64 = written.iter().map(|one| one.posts).sum();
    out!("Each of {posts} acknowledged posts is on all three nodes, once.");
    Ok(())
}

/// Kills and restarts one process after the other; never ends.
async fn kill(parts: &mut [Part], begin: Instant) -> anyhow::Result<()> {
    let (count, mut turn) = (parts.len(), 0);
    loop {
        sleep(UP).await;
        // Nodes and NATS servers are killed alternately.
        let at = (turn % 2) * (count / 2) + (turn / 2) % (count / 2);
        turn += 1;
        let Some(part) = parts.get_mut(at) else { continue };
        out!("{:>5} s  kill -9 {}", begin.elapsed().as_secs(), part.name);
        part.kill().await?;
        sleep(DOWN).await;
        out!("{:>5} s  restarted {}", begin.elapsed().as_secs(), part.name);
        part.start()?;
    }
}

/// Prints the clients' figures periodically; never ends.
async fn report(seen: &Seen, backends: &[Backend], begin: Instant) {
    loop {
        sleep(LINE_EVERY).await;
        let ready: Vec<&str> = backends
            .iter()
            .map(|backend| if backend.is_ready() { "ready" } else { "down" })
            .collect();
        out!(
            "{:>5} s  {} posts acknowledged, {} retries; the longest took {} ms; nodes: {}",
            begin.elapsed().as_secs(),
            seen.acknowledged.load(Ordering::Relaxed),
            seen.retried.load(Ordering::Relaxed),
            seen.take_longest_ms(),
            ready.join(", ")
        );
    }
}

fn explain(address: SocketAddr, nodes: &[SocketAddr]) {
    out!(
        "roost runs at http://{address} in open mode: three nodes with one common address.

Open it in a browser. In another terminal:

  # the state of a node: nodes at the same position have the same digest
  curl http://{address}/v1/cluster
"
    );
    for (at, node) in nodes.iter().enumerate() {
        out!("  node {} alone: http://{node}", at + 1);
    }
    out!(
        "
Clients post through the address and retry unacknowledged posts, while processes are killed and restarted. Ctrl-C
stops the demo.
"
    );
}
