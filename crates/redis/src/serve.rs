//! Listener and threads of the Redis edge.
//!
//! Connections are distributed to a few threads, each with its own runtime. All ready connections of a thread are
//! served in one turn, and their changes go to the writer together. **Invariant:** every connection has a permit and
//! its part of the memory budget. At the limit of connections, a new connection replaces one that has not
//! authenticated; if there is none, the new one is refused and closed.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use budget::Reservation;
use edge::{Access, BlockingReads, accept};
use node::Node;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::LocalOptions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::batch::Batches;
use super::client::{Client, Shared};
use super::connection;
use super::failure::Failure;
use super::memory::{self, CONNECTION_BYTES};
use super::metrics::RedisMetrics;
use super::registry::{Registered, Registry};

/// Maximum time for pending changes at shutdown.
const GRACE: Duration = Duration::from_secs(10);
/// Maximum time for which a new connection waits until the connection that it replaces has ended.
const CLOSE_PATIENCE: Duration = Duration::from_millis(500);
/// Interval at which a new connection checks whether the replaced connection has ended.
const CLOSE_PAUSE: Duration = Duration::from_millis(1);
/// Number of tasks that a thread runs before a task that another thread has woken. The writer's answer to a client
/// waits for this number of tasks.
const WAKE_INTERVAL: u32 = 1;

/// Options of the server for Redis clients.
#[derive(Clone, Debug)]
pub struct RedisOptions {
    /// Accepted keys.
    pub access: Access,
    /// Maximum number of connections, at least 1.
    pub connections_max: u32,
    /// Runner of reads that may block.
    pub reads: BlockingReads,
    /// Number of threads that serve clients; `None` for half of the processors.
    pub threads: Option<usize>,
    /// Memory of all clients together, in bytes: input, unsent replies, and the memory of connections. At the limit,
    /// commands that need more than a little memory get the reply `-BUSY`, and no further input is read.
    pub memory: usize,
    /// Counters of the server.
    pub metrics: RedisMetrics,
}

impl RedisOptions {
    /// Default options: 4,096 connections, 64 concurrent reads, 256 MiB.
    #[must_use]
    pub fn new(access: Access) -> Self {
        Self {
            access,
            connections_max: 4_096,
            reads: BlockingReads::new(64),
            threads: None,
            memory: 256 << 20,
            metrics: RedisMetrics::default(),
        }
    }
}

/// Accepted connection that its thread has not taken yet.
struct Accepted {
    stream: std::net::TcpStream,
    registered: Registered,
    permit: OwnedSemaphorePermit,
    reserved: Reservation,
}

/// Serves `node` to Redis clients on `listener` until `shutdown` completes; then closes their connections and returns.
/// Pending changes are completed, but their replies may be lost. The node stays open.
///
/// # Errors
/// If the listener has no local address, or a thread does not start.
pub async fn serve(
    listener: TcpListener,
    node: Node,
    options: &RedisOptions,
    shutdown: impl Future,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let connections_max = options.connections_max.max(1);
    let (connections, budget) = memory::split(options.memory, connections_max);
    options.metrics.watch_memory(&connections, &budget);
    let shared = Arc::new(Shared {
        node,
        access: options.access.clone(),
        metrics: options.metrics.clone(),
        registry: Registry::new(),
        reads: options.reads.clone(),
        connections,
        budget,
        connections_max,
    });
    // Every thread holds a sender and sends nothing, so receiving ends when all threads have ended.
    let (alive, mut ended) = mpsc::channel(1);
    let threads = (0..threads(options)).map(|number| spawn(number, &shared, &alive));
    let threads = threads.collect::<io::Result<Vec<_>>>()?;
    drop(alive);
    let permits = Arc::new(Semaphore::new(connections_max as usize));
    tracing::info!(%address, threads = threads.len(), "serving Redis clients");
    let (mut shutdown, mut rate) = (pin!(shutdown), pin!(options.metrics.measure_rate()));
    let mut next = threads.iter().cycle();
    loop {
        let accepted = tokio::select! {
            _ = &mut shutdown => break,
            never = &mut rate => match never {},
            accepted = accept(&listener) => accepted,
        };
        let Some(admitted) = admit(&permits, &shared).await else {
            refuse(&accepted.0, &shared);
            continue;
        };
        if let Some(accepted) = prepare(accepted, admitted, &shared)
            && let Some(thread) = next.next()
        {
            // The receiver exists: a thread ends only after this sender is dropped.
            drop(thread.send(accepted));
        }
    }
    drop(listener);
    drop(next);
    drop(threads);
    for entry in shared.registry.list(|_| true) {
        entry.kill();
    }
    if tokio::time::timeout(GRACE, ended.recv()).await.is_err() {
        tracing::warn!("some Redis connections did not close in time");
    }
    Ok(())
}

/// Number of threads. The default is half of the processors, because the writer and the clients need the others.
fn threads(options: &RedisOptions) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    options.threads.unwrap_or(processors / 2).max(1)
}

/// Reserves a permit and memory for a connection. At the limit, closes the connection without authentication that has
/// been silent longest.
async fn admit(
    permits: &Arc<Semaphore>,
    shared: &Shared,
) -> Option<(OwnedSemaphorePermit, Reservation)> {
    let try_admit = || {
        let permit = Arc::clone(permits).try_acquire_owned().ok()?;
        Some((permit, shared.connections.try_reserve(CONNECTION_BYTES)?))
    };
    if let Some(admitted) = try_admit() {
        return Some(admitted);
    }
    shared.registry.longest_unauthenticated()?.kill();
    let closed = async {
        loop {
            if let Some(admitted) = try_admit() {
                return admitted;
            }
            tokio::time::sleep(CLOSE_PAUSE).await;
        }
    };
    tokio::time::timeout(CLOSE_PATIENCE, closed).await.ok()
}

/// Replies that the limit of connections is reached. The reply must fit the send buffer of the connection; the rest is
/// dropped.
fn refuse(stream: &TcpStream, shared: &Shared) {
    shared.metrics.count_refused();
    drop(stream.try_write(format!("-{}\r\n", Failure::CLIENTS).as_bytes()));
}

/// Registers a connection before its thread gets it, so that another one can replace it even if the thread is slow.
fn prepare(
    (stream, peer): (TcpStream, SocketAddr),
    (permit, reserved): (OwnedSemaphorePermit, Reservation),
    shared: &Shared,
) -> Option<Accepted> {
    // Disable Nagle's algorithm, because replies are written in one call.
    stream.set_nodelay(true).ok()?;
    let local = stream.local_addr().ok()?;
    let stream = stream.into_std().ok()?;
    let registered = shared.registry.enter(peer, local, shared.access.is_open());
    Some(Accepted { stream, registered, permit, reserved })
}

/// Starts a thread. It ends when the sender is dropped and its connections have ended. It drops `alive` last.
fn spawn(
    number: usize,
    shared: &Arc<Shared>,
    alive: &mpsc::Sender<Infallible>,
) -> io::Result<mpsc::UnboundedSender<Accepted>> {
    let (shared, alive) = (Arc::clone(shared), alive.clone());
    // The channel is unbounded, but each connection in it has a permit.
    let (sender, receiver) = mpsc::unbounded_channel();
    let (built, started) = std::sync::mpsc::sync_channel(1);
    std::thread::Builder::new().name(format!("redis-{number}")).spawn(move || {
        // The tasks of this runtime stay on one thread, so it is built on that thread.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(shared.reads.threads_max())
            .global_queue_interval(WAKE_INTERVAL)
            .build_local(LocalOptions::default());
        let (runtime, result) = match runtime {
            Ok(runtime) => (Some(runtime), Ok(())),
            Err(error) => (None, Err(error)),
        };
        drop(built.send(result));
        if let Some(runtime) = runtime {
            runtime.block_on(serve_dealt(receiver, shared));
        }
        drop(alive);
    })?;
    started.recv().unwrap_or_else(|_| Err(io::Error::other("the thread has ended")))?;
    Ok(sender)
}

/// Serves the connections distributed to this thread.
async fn serve_dealt(mut dealt: mpsc::UnboundedReceiver<Accepted>, shared: Arc<Shared>) {
    let (node, reads, metrics) =
        (shared.node.clone(), shared.reads.clone(), shared.metrics.clone());
    let batches = Rc::new(Batches::new(node, reads, metrics));
    let submitting = tokio::task::spawn_local(Rc::clone(&batches).submit_when_ready());
    let mut connections = tokio::task::JoinSet::new();
    while let Some(accepted) = dealt.recv().await {
        let Accepted { stream, registered, permit, reserved } = accepted;
        let Ok(stream) = TcpStream::from_std(stream) else { continue };
        let client = Client::new(Arc::clone(&shared), Rc::clone(&batches), registered, reserved);
        let connected = shared.metrics.connect();
        connections.spawn_local(async move {
            connection::serve(stream, client).await;
            drop((connected, permit));
        });
        while connections.try_join_next().is_some() {}
    }
    connections.join_all().await;
    submitting.abort();
}
