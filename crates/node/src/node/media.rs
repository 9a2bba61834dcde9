//! Adding pictures, reading their files, and removing files that no picture needs.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use feed::Facts;
use feed::media::{FileHash, MediaId};
use media::Format;
use store::unless_unreadable;

use super::Node;
use crate::cluster::{CONFIRMED_WITHIN, Cluster};
use crate::pictures::files::{Collector, FileError, PinnedFiles};
use crate::pictures::uploads::{Added, Upload, UploadError};
use crate::shared::Shared;
use crate::submission::inbox::SubmitError;

impl Node {
    /// Converts a picture, makes its files durable, and adds it as [`MediaUse::Unattached`] or as the new picture of
    /// the profile. Uploads are processed one at a time in order of arrival.
    ///
    /// [`MediaUse::Unattached`]: feed::media::MediaUse::Unattached
    ///
    /// # Errors
    /// [`UploadError`]
    pub async fn upload(&self, upload: Upload) -> Result<MediaId, UploadError> {
        Format::of(&upload.file)?;
        let cluster = self.shared.cluster.as_ref();
        cluster.map_or(Ok(()), Cluster::admits_pictures)?;
        let Added { submitted, result } = self.shared.uploads.put(upload)?;
        let added = match cluster {
            None => result.await,
            // If there is a result without a submission, `submitted` is closed and this wait ends too.
            Some(_) => {
                let _ = submitted.await;
                let added = tokio::time::timeout(CONFIRMED_WITHIN, result).await;
                added.map_err(|_| UploadError::Unavailable(SubmitError::Unconfirmed))?
            }
        };
        added.unwrap_or(Err(UploadError::Unavailable(SubmitError::Stopped)))
    }

    /// Whether this node accepts uploads of pictures.
    #[must_use]
    pub fn accepts_pictures(&self) -> bool {
        self.shared.media_max > 0
    }

    /// Waits, for a limited time, until a file of a picture that could not be read was fetched from another node of the
    /// cluster; returns true if the file may now exist on this node.
    pub async fn fetched_media(&self, hash: &FileHash) -> bool {
        match &self.shared.exchange {
            Some(exchange) => exchange.fetched(hash).await,
            None => false,
        }
    }

    /// Opens a file of a picture. Blocks.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open_media(&self, hash: &FileHash) -> io::Result<File> {
        self.shared.media_files.open(hash)
    }

    /// Returns the maximum size of all files of pictures, in bytes.
    #[must_use]
    pub fn media_max(&self) -> u64 {
        self.shared.media_max
    }

    /// Removes the files that have been known for `unneeded_for` to be needed by no picture; returns their number. A
    /// thread of the node does the same periodically. Blocks.
    ///
    /// # Errors
    /// A directory cannot be read, or a file cannot be removed.
    pub fn collect_media(&self, unneeded_for: Duration) -> io::Result<u64> {
        let times = (self.shared.time.elapsed(), unneeded_for);
        let shared = Arc::clone(&self.shared);
        self.shared.media_files.collect_all(times, move |hash| shared.needs_file(hash))
    }
}

impl Shared {
    /// Reserves disk space for files of `bytes` bytes, in disk blocks.
    pub(crate) fn promise_media(&self, bytes: u64) -> Result<PinnedFiles, FileError> {
        self.space.check();
        if self.space.is_full() {
            return Err(FileError::Full);
        }
        let taken = Facts::new(&self.store).all_media_space().bytes;
        self.media_files.promise((taken, self.media_max), bytes)
    }

    /// Removes files that no picture needs, until the node is closed.
    pub(crate) fn collect_files(&self) {
        let mut collector = Collector::new();
        while !self.stopped() {
            let needs = |hash: &_| self.needs_file(hash);
            let now = self.time.elapsed();
            unless_unreadable(|| collector.step(&self.media_files, now, needs));
            std::thread::park_timeout(Collector::PACE);
        }
    }

    /// Whether a picture needs a file.
    pub(crate) fn needs_file(&self, hash: &FileHash) -> bool {
        Facts::new(&self.store).needs_file(hash)
    }
}
