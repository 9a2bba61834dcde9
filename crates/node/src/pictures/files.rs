//! Files of pictures, in the directory `media` next to the store. A file is named after the SHA-256 of its bytes, so it
//! never changes, and equal files are stored once.
//!
//! **Invariant:** a file gets its name only after its bytes are durable, and a command that names it is submitted only
//! after its name is durable.
//! **Invariant:** the collector removes no file that a picture needs or is about to need. To add a picture, a thread
//! pins the file first and only then checks whether it exists; the collector checks pins and rows, and removes the
//! file, under the same lock. A pin ends after the command was applied, when there is a row.
//! **Invariant:** a file is removed only some time after it was first seen without a row. By then the removal of the
//! last row is durable even if the log is not synced before replies, so no power loss restores a row whose file is
//! removed.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use feed::media::FileHash;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

/// Directory of files that do not have their names yet.
const UNNAMED: &str = "new";
/// Number of directories of files: one per first byte of the hash.
pub(crate) const DIRECTORIES: u16 = 256;
/// Time from the first scan that finds no row for a file to its removal.
const UNNEEDED_FOR: Duration = Duration::from_secs(600);

/// Reason why a file was not stored.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The files have reached their maximum size.
    #[error("the server has no room for more pictures")]
    Full,
    /// The file could not be written.
    #[error("a picture could not be stored")]
    Write(#[from] io::Error),
}

/// Files of pictures in a data directory.
pub(crate) struct MediaFiles {
    pub(crate) dir: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether the directory for new files was created and emptied.
    is_ready: bool,
    /// Number of the last new file.
    last_new: u64,
    /// Number of pins of each file.
    pins: HashMap<FileHash, u32>,
    /// Bytes reserved for pictures that are about to be added.
    promised: u64,
    /// Number of holders of all existing files.
    holds: u32,
    /// Files without a row, each with the time at which it was first found to have none.
    unneeded: HashMap<FileHash, Duration>,
}

/// Stored files for which a picture is about to be added. They are kept until this is dropped.
pub(crate) struct PinnedFiles {
    files: Arc<MediaFiles>,
    hashes: Vec<FileHash>,
    promised: u64,
}

/// Guard of all existing files: no file is removed until the guard is dropped.
pub(crate) struct HeldFiles(pub(crate) Arc<MediaFiles>);

impl MediaFiles {
    /// Keeps all existing files until the result is dropped.
    pub(crate) fn hold(self: &Arc<Self>) -> HeldFiles {
        self.state.lock().holds += 1;
        HeldFiles(Arc::clone(self))
    }

    /// Opens the files of a data directory. Creates nothing.
    pub(crate) fn new(data: &Path) -> Self {
        Self { dir: Self::directory(data), state: Mutex::default() }
    }

    /// Returns the directory of the files in a data directory.
    pub(crate) fn directory(data: &Path) -> PathBuf {
        data.join("media")
    }

    /// Reserves `bytes` bytes in addition to the `taken` ones.
    pub(crate) fn promise(
        self: &Arc<Self>,
        (taken, max): (u64, u64),
        bytes: u64,
    ) -> Result<PinnedFiles, FileError> {
        let mut state = self.state.lock();
        if taken.saturating_add(state.promised).saturating_add(bytes) > max {
            return Err(FileError::Full);
        }
        state.promised += bytes;
        drop(state);
        Ok(PinnedFiles { files: Arc::clone(self), hashes: Vec::new(), promised: bytes })
    }

    /// Creates an empty set of pins without a reservation, for files of existing pictures.
    pub(crate) fn pin_nothing(self: &Arc<Self>) -> PinnedFiles {
        PinnedFiles { files: Arc::clone(self), hashes: Vec::new(), promised: 0 }
    }

    /// Returns the path of a file.
    pub(crate) fn path(&self, hash: &FileHash) -> PathBuf {
        let name = hex(&hash.0);
        self.dir.join(name.get(..2).unwrap_or_default()).join(name)
    }

    /// Opens a file for reading.
    pub(crate) fn open(&self, hash: &FileHash) -> io::Result<File> {
        File::open(self.path(hash))
    }

    fn store(&self, bytes: &[u8], hash: &FileHash) -> io::Result<()> {
        let path = self.path(hash);
        let Some(parent) = path.parent() else {
            unreachable!("a file is in a directory");
        };
        // A damaged file is written again.
        if !self.is_whole(hash, bytes.len() as u64) {
            let unnamed = self.unnamed()?;
            let written = write(&unnamed, bytes).and_then(|()| {
                make_directory(parent)?;
                fs::rename(&unnamed, &path)
            });
            if written.is_err() {
                let _ = fs::remove_file(&unnamed);
            }
            written?;
        }
        // The directories are synced even if another upload or an earlier process created the file: its name may not be
        // durable yet.
        sync(parent)?;
        sync(&self.dir)
    }

    /// Returns a path for a new file. The first call removes the remains of an earlier process.
    fn unnamed(&self) -> io::Result<PathBuf> {
        let mut state = self.state.lock();
        let dir = self.dir.join(UNNAMED);
        if !state.is_ready {
            make_directory(&self.dir)?;
            self.dir.parent().map_or(Ok(()), sync)?;
            make_directory(&dir)?;
            for file in fs::read_dir(&dir)? {
                fs::remove_file(file?.path())?;
            }
            state.is_ready = true;
        }
        state.last_new += 1;
        Ok(dir.join(state.last_new.to_string()))
    }

    /// Removes files of directory number `directory` that no picture has needed for a while; returns their number.
    pub(crate) fn collect(
        &self,
        directory: u16,
        (now, unneeded_for): (Duration, Duration),
        needs: impl Fn(&FileHash) -> bool,
    ) -> io::Result<u64> {
        let directory = self.dir.join(hex(&[directory as u8]));
        let files = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            files => files?,
        };
        let mut removed = 0;
        for file in files {
            let name = file?.file_name();
            let Some(hash) = name.to_str().and_then(hash_of) else { continue };
            // Rows are read without the lock, and only files that no row needs are checked again with the lock.
            if needs(&hash) {
                self.state.lock().unneeded.remove(&hash);
                continue;
            }
            let mut state = self.state.lock();
            let since = *state.unneeded.entry(hash).or_insert(now);
            if state.pins.contains_key(&hash) || needs(&hash) {
                state.unneeded.remove(&hash);
            } else if now.saturating_sub(since) >= unneeded_for && state.holds == 0 {
                fs::remove_file(directory.join(&name))?;
                state.unneeded.remove(&hash);
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Removes all files that can be removed now; returns their number.
    pub(crate) fn collect_all(
        &self,
        times: (Duration, Duration),
        needs: impl Fn(&FileHash) -> bool,
    ) -> io::Result<u64> {
        (0..DIRECTORIES).map(|directory| self.collect(directory, times, &needs)).sum()
    }
}

impl PinnedFiles {
    /// Pins a file, which may not exist.
    pub(crate) fn pin(&mut self, hash: FileHash) {
        *self.files.state.lock().pins.entry(hash).or_default() += 1;
        self.hashes.push(hash);
    }

    /// Stores a file durably. Blocks.
    pub(crate) fn store(&mut self, bytes: &[u8]) -> Result<FileHash, FileError> {
        let hash = FileHash(Sha256::digest(bytes).into());
        self.pin(hash);
        self.files.store(bytes, &hash)?;
        Ok(hash)
    }
}

impl Drop for HeldFiles {
    fn drop(&mut self) {
        self.0.state.lock().holds -= 1;
    }
}

impl Drop for PinnedFiles {
    fn drop(&mut self) {
        let mut state = self.files.state.lock();
        state.promised -= self.promised;
        for hash in &self.hashes {
            if let Some(pins) = state.pins.get_mut(hash) {
                *pins -= 1;
                if *pins == 0 {
                    state.pins.remove(hash);
                }
            }
        }
    }
}

/// Removes the files that no picture needs, directory after directory.
pub(crate) struct Collector {
    next: u16,
}

impl Collector {
    /// Pause between two directories: a pass over all of them takes 21 minutes.
    pub(crate) const PACE: Duration = Duration::from_secs(5);

    pub(crate) fn new() -> Self {
        Self { next: 0 }
    }

    /// Processes the next directory.
    pub(crate) fn step(
        &mut self,
        files: &MediaFiles,
        now: Duration,
        needs: impl Fn(&FileHash) -> bool,
    ) {
        if let Err(error) = files.collect(self.next, (now, UNNEEDED_FOR), needs) {
            tracing::warn!(%error, "cannot look for files of pictures that are not needed");
        }
        self.next = (self.next + 1) % DIRECTORIES;
    }
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Creates a directory if it does not exist.
pub(crate) fn make_directory(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

pub(crate) fn sync(dir: &Path) -> io::Result<()> {
    match File::open(dir)?.sync_all() {
        Ok(()) => Ok(()),
        // A retry could report lost data as durable.
        Err(error) => store::fatal("continuing could lose pictures", &error),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reverses [`hex`] for a whole hash.
pub(crate) fn hash_of(name: &str) -> Option<FileHash> {
    let mut hash = [0; 32];
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if name.len() != 64 || !name.bytes().all(is_hex) {
        return None;
    }
    for (byte, digits) in hash.iter_mut().zip(name.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(FileHash(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: (Duration, Duration) = (Duration::from_secs(1_000), Duration::ZERO);

    fn files() -> (tempfile::TempDir, Arc<MediaFiles>) {
        let dir = tempfile::tempdir().unwrap();
        let files = Arc::new(MediaFiles::new(dir.path()));
        (dir, files)
    }

    fn promise(files: &Arc<MediaFiles>) -> PinnedFiles {
        files.promise((0, 1_000), 10).unwrap()
    }

    #[test]
    fn a_file_has_the_name_of_its_hash_and_is_stored_once() {
        let (dir, files) = files();
        let mut pinned = promise(&files);
        let hash = pinned.store(b"abc").unwrap();
        assert!(hex(&hash.0).starts_with("ba7816bf"), "SHA-256");
        assert_eq!(hash_of(&hex(&hash.0)), Some(hash));
        assert_eq!(fs::read(files.path(&hash)).unwrap(), b"abc");
        assert_eq!(pinned.store(b"abc").unwrap(), hash);
        assert_eq!(fs::read_dir(dir.path().join("media").join(UNNAMED)).unwrap().count(), 0);
        // A crash leaves a file that was not renamed, and one that was cut.
        fs::write(dir.path().join("media").join(UNNAMED).join("7"), b"x").unwrap();
        fs::write(files.path(&hash), b"a").unwrap();
        let again = Arc::new(MediaFiles::new(dir.path()));
        assert_eq!(promise(&again).store(b"abc").unwrap(), hash);
        assert_eq!(fs::read(files.path(&hash)).unwrap(), b"abc");
        assert_eq!(fs::read_dir(dir.path().join("media").join(UNNAMED)).unwrap().count(), 0);
        for wrong in ["", "new", &"g".repeat(64), &"A".repeat(64)] {
            assert_eq!(hash_of(wrong), None);
        }
    }

    #[test]
    fn a_file_is_removed_when_no_picture_needs_it_for_a_while() {
        let (_dir, files) = files();
        let hash = promise(&files).store(b"abc").unwrap();
        let later = |secs: u64| (Duration::from_secs(1_000 + secs), Duration::from_secs(60));
        let collect = |secs, needed: bool| files.collect_all(later(secs), |_| needed).unwrap();
        assert_eq!(collect(0, false), 0);
        assert_eq!(collect(59, false), 0);
        assert_eq!(collect(60, true), 0, "it is needed again");
        assert_eq!(collect(70, false), 0, "so its time begins anew");
        assert!(files.open(&hash).is_ok());
        assert_eq!(collect(130, false), 1);
        assert!(files.open(&hash).is_err());
    }

    #[test]
    fn a_pinned_file_is_not_removed_also_if_it_was_about_to_be() {
        let (_dir, files) = files();
        let hash = promise(&files).store(b"abc").unwrap();
        let mut other = promise(&files);
        assert_eq!(other.store(b"abc").unwrap(), hash);
        let mut twice = promise(&files);
        twice.store(b"abc").unwrap();
        drop(twice);
        assert_eq!(files.collect_all(NOW, |_| false).unwrap(), 0);
        drop(other);
        assert_eq!(files.collect_all(NOW, |_| false).unwrap(), 1);
        assert!(files.state.lock().pins.is_empty() && files.state.lock().unneeded.is_empty());
        assert_eq!(promise(&files).store(b"abc").unwrap(), hash, "it can be stored again");
    }

    #[test]
    fn no_file_is_removed_while_all_are_held() {
        let (_dir, files) = files();
        promise(&files).store(b"abc").unwrap();
        let held = [files.hold(), files.hold()];
        assert_eq!(files.collect_all(NOW, |_| false).unwrap(), 0);
        drop(held);
        assert_eq!(files.collect_all(NOW, |_| false).unwrap(), 1);
    }

    #[test]
    fn what_is_promised_counts_until_it_is_dropped() {
        let (_dir, files) = files();
        let first = files.promise((50, 100), 30).unwrap();
        assert!(matches!(files.promise((50, 100), 21), Err(FileError::Full)));
        let second = files.promise((50, 100), 20).unwrap();
        drop((first, second));
        assert!(files.promise((50, 100), 50).is_ok());
        assert!(files.promise((u64::MAX, 100), 1).is_err());
    }
}
