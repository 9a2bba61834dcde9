//! TCP load balancer: one address for several nodes. Connections go to ready nodes in turn.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sim::client::{Connection, Requests};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Maximum number of connections; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 512;
/// Interval between readiness checks of a node.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// Timeout of a readiness check.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Node that gets connections.
pub(super) struct Backend {
    pub(super) address: SocketAddr,
    /// Result of the last readiness check. A connection that fails nevertheless goes to another node.
    is_ready: AtomicBool,
}

impl Backend {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, is_ready: AtomicBool::new(false) }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// Checks the node periodically; never ends.
    async fn check(&self) {
        loop {
            let answer = timeout(ANSWERS_WITHIN, asks_ready(self.address)).await;
            self.is_ready.store(answer == Ok(true), Ordering::Relaxed);
            sleep(CHECK_EVERY).await;
        }
    }
}

/// Whether a node reports that it is ready.
pub(super) async fn asks_ready(address: SocketAddr) -> bool {
    let Ok(mut connection) = Connection::connect(address).await else { return false };
    let mut request = Vec::new();
    Requests::new(&address.to_string(), None).get("/readyz", &mut request);
    connection.send(&request).await.is_ok_and(|response| response.is_success())
}

/// Distributes the connections of `listener` among these nodes, in background tasks.
pub(super) fn start(listener: TcpListener, backends: Arc<Vec<Backend>>) {
    for at in 0..backends.len() {
        let backends = Arc::clone(&backends);
        tokio::spawn(async move {
            if let Some(backend) = backends.get(at) {
                backend.check().await;
            }
        });
    }
    tokio::spawn(async move {
        let (permits, turn) = (Arc::new(Semaphore::new(CONNECTIONS_MAX)), AtomicUsize::new(0));
        while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
            let Ok((mut client, _)) = listener.accept().await else {
                // If too many files are open, wait until some are closed.
                sleep(CHECK_EVERY).await;
                continue;
            };
            let (backends, first) = (Arc::clone(&backends), turn.fetch_add(1, Ordering::Relaxed));
            tokio::spawn(async move {
                if let Some(mut node) = connect(&backends, first).await {
                    // Ignore the error: either side may close the connection, and clients retry.
                    tokio::io::copy_bidirectional(&mut client, &mut node).await.ok();
                }
                drop(permit);
            });
        }
    });
}

/// Connects to the first node that is ready and accepts, beginning with number `first`.
async fn connect(backends: &[Backend], first: usize) -> Option<TcpStream> {
    for at in 0..backends.len() {
        let backend = backends.get((first + at) % backends.len())?;
        if !backend.is_ready() {
            continue;
        }
        match timeout(ANSWERS_WITHIN, TcpStream::connect(backend.address)).await {
            Ok(Ok(node)) => {
                node.set_nodelay(true).ok();
                return Some(node);
            }
            _ => backend.is_ready.store(false, Ordering::Relaxed),
        }
    }
    None
}
