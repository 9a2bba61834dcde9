//! Backup of a running node.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::Node;
use crate::backup::last_backup::note_backup;
use crate::backup::{Backup, NodeBackupError};

impl Node {
    /// Returns the data directory.
    pub(super) fn data(&self) -> Option<&Path> {
        self.shared.log_dir.parent()
    }

    /// Records in the data directory that a backup was completed. Blocks.
    pub fn note_backup(&self) {
        if let Some(data) = self.data() {
            note_backup(data, self.now_ms());
        }
    }

    /// Starts a backup of everything that was acknowledged before this call, and possibly of later changes. Writing
    /// continues meanwhile. `roost` is the version of the program. Until the backup is written or dropped, it keeps
    /// files that would otherwise be removed. May block for up to a minute.
    ///
    /// # Errors
    /// [`NodeBackupError`].
    pub fn backup(&self, roost: &str) -> Result<Backup, NodeBackupError> {
        let shared = &self.shared;
        let last = || shared.log_last.load(Ordering::Acquire);
        let made = (roost, shared.identity.clone(), shared.time.now_ms());
        let of = (&shared.store, &shared.media_files);
        let request_checkpoint = || {
            shared.checkpoint_due.store(true, Ordering::Release);
            shared.inbox.wake();
        };
        let lacks_files = || shared.exchange.as_ref().is_some_and(|exchange| exchange.missing().1);
        let log_dir = shared.cluster.is_none().then_some(&*shared.log_dir);
        Backup::of_running(of, log_dir, (last, request_checkpoint), lacks_files, made)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use feed::{Bio, Command, Handle, Name};

    use super::*;
    use crate::NodeOptions;

    #[test]
    fn a_checkpoint_that_a_backup_requests_is_taken_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let node = Node::open(&NodeOptions::new(folder.path().join("data"))).unwrap();
        let (handle, name, bio) = (Handle::parse("ann").unwrap(), Name::default(), Bio::default());
        let register = Command::Register { handle, name, bio };
        runtime.block_on(node.submit(register.into())).unwrap().outcome.unwrap();
        node.shared.checkpoint_due.store(true, Ordering::Release);
        node.shared.inbox.wake();
        let start = Instant::now();
        while node.shared.store.snapshot().unwrap().is_none_or(|rows| rows.applied() == 0) {
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "an idle server takes one after 30 s"
            );
            std::thread::yield_now();
        }
        node.close();
    }
}
