//! Exchange of files of pictures between the nodes of a cluster. The node that converted a picture stores its files on
//! servers before the picture exists; the others fetch them from there, and ask each other for files that the servers
//! no longer have.
//!
//! **Invariant:** a fetched file is compared with its name, and durable, before it is read.
//! **Invariant:** one file is in memory at a time, and one more while a picture is added.

use std::sync::Arc;
use std::time::Duration;

use commitlog::{FilesError, SharedFiles};
use feed::media::FileHash;
use media::STORED_BYTES_MAX;
use parking_lot::{Condvar, Mutex};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use super::CONFIRMED_WITHIN;
use super::missing_files::{MissingFiles, Task};

/// Maximum memory of the exchange, in bytes: a file, and as much again for its parts in transit.
pub const EXCHANGE_MEMORY: u64 = 2 * STORED_BYTES_MAX as u64;

/// Exchange of files with the servers of the cluster.
pub(crate) struct Exchange {
    servers: Arc<dyn SharedFiles>,
    state: Mutex<State>,
    /// Notified when the thread has something to do.
    changed: Condvar,
    /// Notified of each file that is no longer missing.
    arrived: watch::Sender<()>,
}

struct State {
    missing: MissingFiles,
    is_closed: bool,
}

impl Exchange {
    /// Creates an exchange through these servers.
    pub(crate) fn new(servers: Arc<dyn SharedFiles>) -> Arc<Self> {
        let state = Mutex::new(State { missing: MissingFiles::new(), is_closed: false });
        let (changed, arrived) = (Condvar::new(), watch::Sender::new(()));
        let exchange = Arc::new(Self { servers, state, changed, arrived });
        // The callback must not keep the exchange alive, which owns the servers.
        let weak = Arc::downgrade(&exchange);
        exchange.servers.listen(Box::new(move |name| {
            if let Some(exchange) = weak.upgrade() {
                exchange.state.lock().missing.request(FileHash(name));
                exchange.changed.notify_one();
            }
        }));
        exchange
    }

    /// Stores a file for the other nodes; most servers have it when this returns. Blocks.
    pub(crate) fn put(&self, hash: &FileHash, bytes: &[u8]) -> Result<(), FilesError> {
        self.servers.put(&hash.0, bytes)
    }

    /// Returns a file if the servers have it. Blocks.
    pub(crate) fn get(&self, hash: &FileHash) -> Result<Option<Vec<u8>>, FilesError> {
        let file = self.servers.get(&hash.0, STORED_BYTES_MAX)?;
        Ok(file.filter(|file| <[u8; 32]>::from(Sha256::digest(file)) == hash.0))
    }

    /// Asks the other nodes to store a file again.
    pub(crate) fn ask(&self, hash: &FileHash) {
        self.servers.ask(&hash.0);
    }

    /// Records that rows were scanned up to the name `next`, or to the end.
    pub(crate) fn scanned(&self, next: Option<Vec<u8>>) {
        self.state.lock().missing.scanned(next);
    }

    /// Adds files that new pictures need.
    pub(crate) fn add(&self, hashes: &[FileHash], now: Duration) {
        if hashes.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        hashes.iter().for_each(|hash| state.missing.add(*hash, now));
        drop(state);
        self.changed.notify_one();
    }

    /// Waits, for a limited time, until an unreadable file is available; returns whether it may be.
    pub(crate) async fn fetched(&self, hash: &FileHash) -> bool {
        let mut arrived = self.arrived.subscribe();
        if !self.state.lock().missing.add_urgent(*hash) {
            return false;
        }
        self.changed.notify_one();
        let wait = arrived.wait_for(|()| !self.state.lock().missing.contains(hash));
        matches!(tokio::time::timeout(CONFIRMED_WITHIN, wait).await, Ok(Ok(_)))
    }

    /// Returns the number of known missing files, and whether there may be more.
    pub(crate) fn missing(&self) -> (usize, bool) {
        let state = self.state.lock();
        (state.missing.len(), !state.missing.is_complete())
    }

    /// Ends the thread.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits for the next task; `None` after [`Exchange::close`].
    pub(crate) fn next(&self, now: impl Fn() -> Duration) -> Option<Task> {
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return None;
            }
            let now = now();
            if let Some(task) = state.missing.next(now) {
                return Some(task);
            }
            match state.missing.next_at() {
                Some(at) => _ = self.changed.wait_for(&mut state, at.saturating_sub(now)),
                None => self.changed.wait(&mut state),
            }
        }
    }

    /// Records the result of the search for a file at the time `now`.
    pub(crate) fn note(&self, hash: &FileHash, is_here: bool, now: Duration) {
        let mut state = self.state.lock();
        match is_here {
            true => state.missing.found(hash),
            false => state.missing.not_found(hash, now),
        }
        // Readers access the state under the lock of the channel, so holding both locks here could deadlock.
        drop(state);
        if is_here {
            self.arrived.send_replace(());
        }
    }
}
