//! Thread of a cluster node that fetches missing files of pictures, and stores files that other nodes request.

use feed::Facts;
use feed::media::FileHash;
use store::unless_unreadable;

use crate::cluster::exchange::Exchange;
use crate::cluster::missing_files::Task;
use crate::pictures::check::FoundFile;
use crate::shared::Shared;

/// Number of rows per step of the scan for missing files.
const SCAN_ROWS: usize = 256;

impl Shared {
    /// Fetches missing files and stores requested ones until the node is closed.
    pub(crate) fn exchange_files(&self) {
        let Some(exchange) = &self.exchange else { return };
        while let Some(task) = exchange.next(|| self.time.elapsed()) {
            match task {
                Task::Fetch(hash, tries) => {
                    let fetched = unless_unreadable(|| self.fetch(exchange, &hash, tries));
                    exchange.note(&hash, fetched == Some(true), self.time.elapsed());
                }
                Task::Offer(hash) => _ = unless_unreadable(|| self.offer(exchange, &hash)),
                Task::Scan(from) => {
                    // The scan skips unreadable rows; reads of these rows report them.
                    let next = unless_unreadable(|| self.scan_files(exchange, &from)).flatten();
                    exchange.scanned(next);
                }
            }
        }
    }

    /// Fetches a file; returns true if it exists here now or no picture needs it.
    fn fetch(&self, exchange: &Exchange, hash: &FileHash, tries: u32) -> bool {
        // The file is pinned before the row is read: an existing file is not removed from then on.
        let mut pinned = self.media_files.pin_nothing();
        pinned.pin(*hash);
        if !self.needs_file(hash) || matches!(self.media_files.read(hash), FoundFile::Whole(_)) {
            return true;
        }
        self.space.check();
        if self.space.is_full() {
            return false;
        }
        let file = match exchange.get(hash) {
            Ok(file) => file,
            Err(error) => {
                tracing::debug!(%error, "cannot fetch a file of a picture");
                return false;
            }
        };
        let Some(file) = file else {
            // A server of the log may not have a file yet that other servers have acknowledged.
            if tries > 0 {
                exchange.ask(hash);
            }
            return false;
        };
        match pinned.store(&file) {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!(%error, "cannot store a fetched file of a picture");
                false
            }
        }
    }

    /// Stores a file on the servers if this node has it and the servers do not.
    fn offer(&self, exchange: &Exchange, hash: &FileHash) {
        if !self.needs_file(hash) {
            return;
        }
        let FoundFile::Whole(bytes) = self.media_files.read(hash) else { return };
        // Another node may have stored the file first.
        if exchange.get(hash).is_ok_and(|there| there.is_some()) {
            return;
        }
        if let Err(error) = exchange.put(hash, &bytes) {
            tracing::debug!(%error, "cannot store a file of a picture for another node");
        }
    }

    /// Scans some rows and adds the missing files to `exchange`; returns the start of the next rows.
    fn scan_files(&self, exchange: &Exchange, from: &[u8]) -> Option<Vec<u8>> {
        let (needed, next) = Facts::new(&self.store).needed_files(from, SCAN_ROWS);
        let missing = needed.into_iter().filter(|hash| !self.media_files.path(hash).is_file());
        exchange.add(&missing.collect::<Vec<_>>(), self.time.elapsed());
        next
    }
}
