//! Registry of all connections, for CLIENT LIST and CLIENT KILL, and for closing the connections at shutdown.
//!
//! The thread of a connection writes its [`ConnectionInfo`]; other threads read it. **Invariant:** a connection is in
//! the registry as long as it exists.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Instant;

use parking_lot::Mutex;

/// Registry of all connections.
#[derive(Debug)]
pub(crate) struct Registry {
    entries: Mutex<BTreeMap<u64, Arc<ConnectionInfo>>>,
    next: AtomicU64,
    started: Instant,
}

/// State of a connection that other connections can read.
#[derive(Debug)]
pub(crate) struct ConnectionInfo {
    /// Id of the connection, never reused.
    pub(crate) id: u64,
    /// Address of the client.
    pub(crate) peer: SocketAddr,
    /// Address of the server.
    pub(crate) local: SocketAddr,
    /// Names that the client has set.
    pub(crate) about: Mutex<About>,
    since_s: u64,
    seen_s: AtomicU64,
    database: AtomicU64,
    protocol: AtomicU8,
    /// Number of commands queued in a transaction; -1 if there is no transaction.
    queued: AtomicI64,
    last: Mutex<&'static str>,
    authenticated: AtomicBool,
    killed: AtomicBool,
    waker: OnceLock<Waker>,
}

/// Names that a client has set.
#[derive(Debug, Default)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) library: String,
    pub(crate) library_version: String,
}

/// Entry in the registry, which is removed on drop.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) entry: Arc<ConnectionInfo>,
    registry: Arc<Registry>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.registry.entries.lock().remove(&self.entry.id);
    }
}

impl Registry {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            entries: Mutex::default(),
            next: AtomicU64::new(1),
            started: Instant::now(),
        })
    }

    /// Seconds since the server started to listen.
    pub(crate) fn uptime_s(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// Registers a connection.
    pub(crate) fn enter(
        self: &Arc<Self>,
        peer: SocketAddr,
        local: SocketAddr,
        authenticated: bool,
    ) -> Registered {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let now = self.uptime_s();
        let entry = Arc::new(ConnectionInfo {
            id,
            peer,
            local,
            about: Mutex::default(),
            since_s: now,
            seen_s: AtomicU64::new(now),
            database: AtomicU64::new(0),
            protocol: AtomicU8::new(2),
            queued: AtomicI64::new(-1),
            last: Mutex::new("NULL"),
            authenticated: AtomicBool::new(authenticated),
            killed: AtomicBool::new(false),
            waker: OnceLock::new(),
        });
        self.entries.lock().insert(id, Arc::clone(&entry));
        Registered { entry, registry: Arc::clone(self) }
    }

    /// Among the connections that never presented a key, the one that has been silent longest.
    pub(crate) fn longest_unauthenticated(&self) -> Option<Arc<ConnectionInfo>> {
        let waits = |entry: &ConnectionInfo| !entry.authenticated.load(Ordering::Relaxed);
        let waiting = self.list(waits);
        waiting.into_iter().min_by_key(|entry| (entry.seen_s.load(Ordering::Relaxed), entry.id))
    }

    /// Connections for which `fits` is true, oldest first. Omits those that are being closed.
    pub(crate) fn list(&self, fits: impl Fn(&ConnectionInfo) -> bool) -> Vec<Arc<ConnectionInfo>> {
        let entries = self.entries.lock();
        let living = entries.values().filter(|entry| !entry.is_killed());
        living.filter(|entry| fits(entry)).cloned().collect()
    }

    /// Number of connections.
    pub(crate) fn len(&self) -> usize {
        self.entries.lock().len()
    }
}

impl ConnectionInfo {
    /// Records the last activity of the connection.
    pub(crate) fn saw(&self, seen: Seen) {
        self.seen_s.store(seen.uptime_s, Ordering::Relaxed);
        self.database.store(seen.database, Ordering::Relaxed);
        self.protocol.store(seen.protocol, Ordering::Relaxed);
        self.queued.store(seen.queued, Ordering::Relaxed);
        self.authenticated.store(seen.authenticated, Ordering::Relaxed);
        *self.last.lock() = seen.last;
    }

    /// Closes the connection when it next waits for its client.
    pub(crate) fn kill(&self) {
        self.killed.store(true, Ordering::Release);
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Whether the connection must close.
    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// Stores the waker of the connection. If the connection was killed before, it notices this when it first waits.
    pub(crate) fn woken_by(&self, waker: &Waker) {
        self.waker.get_or_init(|| waker.clone());
    }

    /// Line of the connection in CLIENT LIST.
    pub(crate) fn line(&self, uptime_s: u64) -> String {
        let about = self.about.lock();
        let queued = self.queued.load(Ordering::Relaxed);
        let seen_s = self.seen_s.load(Ordering::Relaxed);
        let mut line = format!("id={} addr={} laddr={}", self.id, self.peer, self.local);
        let written = write!(
            line,
            " name={} age={} idle={} flags={} db={} sub=0 psub=0 ssub=0 multi={queued} cmd={} \
             user=default redir=-1 resp={} lib-name={} lib-ver={}",
            about.name,
            uptime_s.saturating_sub(self.since_s),
            uptime_s.saturating_sub(seen_s),
            if queued < 0 { "N" } else { "x" },
            self.database.load(Ordering::Relaxed),
            self.last.lock(),
            self.protocol.load(Ordering::Relaxed),
            about.library,
            about.library_version,
        );
        assert!(written.is_ok(), "a String takes every text");
        line
    }
}

/// Recent activity of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Seconds since the server started to listen.
    pub(crate) uptime_s: u64,
    /// Number of the bucket.
    pub(crate) database: u64,
    /// Protocol version: 2 or 3.
    pub(crate) protocol: u8,
    /// Number of commands queued in a transaction; -1 if there is no transaction.
    pub(crate) queued: i64,
    /// Whether the connection is authenticated or needs no key.
    pub(crate) authenticated: bool,
    /// Name of the last command.
    pub(crate) last: &'static str,
}
