//! One address for several nodes: connections go to nodes that are ready, by turns.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use sim::client::{Connection, Requests};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Connections at a time; others wait to be accepted.
const CONNECTIONS_MAX: usize = 512;
/// Interval at which a node is asked whether it is ready.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// A node that has not answered for this long is not ready.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// A node behind the address.
pub(super) struct Backend {
    pub(super) address: SocketAddr,
    /// Whether it was ready when it was asked last. A hint: a connection that fails goes to another node.
    is_ready: AtomicBool,
}

impl Backend {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self { address, is_ready: AtomicBool::new(false) }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// Asks the node again and again; never ends.
    async fn check(&self) {
        loop {
            let answer = timeout(ANSWERS_WITHIN, asks_ready(self.address)).await;
            self.is_ready.store(answer == Ok(true), Ordering::Relaxed);
            sleep(CHECK_EVERY).await;
        }
    }
}

/// Whether a node says that it is ready.
pub(super) async fn asks_ready(address: SocketAddr) -> bool {
    let Ok(mut connection) = Connection::connect(address).await else { return false };
    let mut request = Vec::new();
    Requests::new(&address.to_string(), None).get("/readyz", &mut request);
    connection.send(&request).await.is_ok_and(|response| response.is_success())
}

/// Serves connections of `listener` with these nodes; ends when the runtime does.
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
                // Too many open files: some are closed soon.
                sleep(CHECK_EVERY).await;
                continue;
            };
            let (backends, first) = (Arc::clone(&backends), turn.fetch_add(1, Ordering::Relaxed));
            tokio::spawn(async move {
                if let Some(mut node) = connect(&backends, first).await {
                    // Either side may end it, and clients try again.
                    tokio::io::copy_bidirectional(&mut client, &mut node).await.ok();
                }
                drop(permit);
            });
        }
    });
}

/// A connection with the first node from `first` on that is ready and accepts one.
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
