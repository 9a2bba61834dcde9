//! Lock of a data directory: one process at a time, and never on a copy that was made while a server wrote.
//!
//! A process that uses the directory locks the file `lock`. While a server runs, and after a crash, the file also
//! contains its own inode and time of creation. A copy of the file has the same content but another inode, so a copy of
//! the directory of a running server, whose files are from different moments, is detected. A mark in the file also
//! shows that a restore is unfinished. After a clean stop the file is empty, and copies of the directory are valid.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use commitlog::ClusterId;

use super::membership;
use super::open_error::OpenError;

const FILE: &str = "lock";
const RESTORING: &str = "restoring\n";
/// Maximum length of the content that is read, in bytes.
const CONTENT_BYTES_MAX: u64 = 256;

/// Lock of a data directory, held until it is dropped.
#[derive(Debug)]
pub(crate) struct DataLock {
    file: File,
    /// Whether the disk cannot be written, so that the directory and its mark stay unchanged.
    is_read_only: bool,
}

/// Content of the file `lock`.
enum Mark {
    /// No server has used the directory since it was closed.
    Closed,
    /// A restore or an import runs or did not finish.
    Restoring,
    /// A server uses this directory, or ended without closing it.
    Used,
    /// The directory is a copy of one that was in use.
    Copied,
}

impl DataLock {
    /// Locks the directory for a node, creating it if necessary.
    ///
    /// # Errors
    /// [`OpenError`]: another process uses it, it is a copy or an unfinished restore, or it is unusable.
    pub(crate) fn take(data: &Path) -> Result<Self, OpenError> {
        Self::make(data)?;
        let mut lock = Self::take_to_read(data)?;
        lock.mark_used(data)?;
        Ok(lock)
    }

    /// Locks the directory of a node of a cluster without changing the file. Returns the cluster.
    ///
    /// # Errors
    /// Those of [`DataLock::take`], and an error if the directory belongs to no cluster.
    pub(crate) fn take_member(data: &Path) -> Result<(Self, ClusterId), OpenError> {
        Self::make(data)?;
        let lock = Self::take_any(data)?;
        Ok((lock, membership::member_of(data)?))
    }

    /// Marks the directory as used by a server.
    ///
    /// # Errors
    /// [`OpenError::Directory`]
    pub(crate) fn mark_used(&mut self, data: &Path) -> Result<(), OpenError> {
        let mark = format!("used {}\n", self.identity().map_err(at(data))?);
        self.mark(&mark).map_err(at(data))
    }

    /// Whether the last server that used the directory closed it.
    ///
    /// # Errors
    /// [`OpenError::Directory`]
    pub(crate) fn was_closed(&mut self, data: &Path) -> Result<bool, OpenError> {
        Ok(matches!(self.read_mark().map_err(at(data))?, Mark::Closed))
    }

    /// Locks the directory without changing the file.
    ///
    /// # Errors
    /// Those of [`DataLock::take`].
    pub(crate) fn take_to_read(data: &Path) -> Result<Self, OpenError> {
        let lock = Self::take_any(data)?;
        membership::refuse_member(data)?;
        Ok(lock)
    }

    /// Whether nothing in the directory can be changed.
    pub(crate) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    fn take_any(data: &Path) -> Result<Self, OpenError> {
        let mut lock = Self::lock(data)?;
        match lock.read_mark().map_err(at(data))? {
            Mark::Closed | Mark::Used => Ok(lock),
            Mark::Restoring => Err(OpenError::RestoreUnfinished(data.to_owned())),
            Mark::Copied => Err(OpenError::Copied(data.to_owned())),
        }
    }

    /// Locks an empty directory for a restore or an import, and marks it as unfinished.
    ///
    /// # Errors
    /// Those of [`DataLock::take`], and an error if the directory is not empty.
    pub(crate) fn take_to_restore(data: &Path) -> Result<Self, OpenError> {
        if data.join(FILE).exists() {
            let mut lock = Self::lock(data)?;
            if matches!(lock.read_mark().map_err(at(data))?, Mark::Restoring) {
                return Err(OpenError::RestoreUnfinished(data.to_owned()));
            }
        }
        if data.exists() {
            for entry in std::fs::read_dir(data).map_err(at(data))? {
                let name = entry.map_err(at(data))?.file_name();
                // A new file system has the folder `lost+found`. A restore that ended before it wrote its mark leaves
                // the file `lock`.
                if name != "lost+found" && name != FILE {
                    return Err(OpenError::NotEmpty(data.to_owned()));
                }
            }
        }
        Self::make(data)?;
        let mut lock = Self::lock(data)?;
        lock.mark(RESTORING).map_err(at(data))?;
        File::open(data).and_then(|dir| dir.sync_all()).map_err(at(data))?;
        Ok(lock)
    }

    /// Duplicates the lock, which is then held until both duplicates are dropped.
    ///
    /// # Errors
    /// The operating system reports one.
    pub(crate) fn again(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, is_read_only: self.is_read_only })
    }

    /// Marks the directory as complete and consistent.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        self.mark("")
    }

    fn make(data: &Path) -> Result<(), OpenError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(data);
        made.map_err(at(data))?;
        // Syncs the parent, so that the directory itself survives a power loss.
        if let Some(parent) = data.canonicalize().map_err(at(data))?.parent() {
            File::open(parent).and_then(|parent| parent.sync_all()).map_err(at(data))?;
        }
        Ok(())
    }

    fn lock(data: &Path) -> Result<Self, OpenError> {
        let mut options = File::options();
        options.create(true).truncate(false).read(true).write(true);
        let (file, is_read_only) = match options.open(data.join(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                // On a disk where the lock file cannot be created, the directory itself is locked.
                let file = File::open(data.join(FILE)).or_else(|_| File::open(data));
                (file.map_err(at(data))?, true)
            }
            file => (file.map_err(at(data))?, false),
        };
        match file.try_lock() {
            Ok(()) => Ok(Self { file, is_read_only }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(data.to_owned())),
            Err(TryLockError::Error(error)) => Err(at(data)(error)),
        }
    }

    fn read_mark(&mut self) -> io::Result<Mark> {
        let mut content = Vec::new();
        // `file` is the directory itself if the lock file cannot be created: see `lock`.
        if self.file.metadata()?.is_file() {
            self.file.rewind()?;
            (&self.file).take(CONTENT_BYTES_MAX).read_to_end(&mut content)?;
        }
        let content = String::from_utf8_lossy(&content);
        Ok(match &*content {
            "" => Mark::Closed,
            RESTORING => Mark::Restoring,
            used if is_whole(used) && used != format!("used {}\n", self.identity()?) => {
                Mark::Copied
            }
            // This is the mark of this file, or what a power loss left of it.
            _ => Mark::Used,
        })
    }

    /// Returns what distinguishes this file from a copy of it. An atomic snapshot of a whole volume has the same
    /// identity.
    fn identity(&self) -> io::Result<String> {
        let metadata = self.file.metadata()?;
        // Some file systems have no time of creation.
        let created = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let created = created.map(|time| time.as_nanos()).unwrap_or_default();
        Ok(format!("{} {created}", metadata.ino()))
    }

    fn mark(&mut self, content: &str) -> io::Result<()> {
        if self.is_read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(content.as_bytes())?;
        self.file.sync_all()
    }
}

/// Whether `mark` is a complete mark of a directory in use.
fn is_whole(mark: &str) -> bool {
    let numbers = mark.strip_prefix("used ").and_then(|rest| rest.strip_suffix('\n'));
    let numbers = numbers.and_then(|numbers| numbers.split_once(' '));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.is_some_and(|(inode, created)| is_number(inode) && is_number(created))
}

fn at(data: &Path) -> impl FnOnce(io::Error) -> OpenError {
    |error| OpenError::Directory(data.to_owned(), error)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Copies a directory with one file, the lock.
    fn copy(from: &Path) -> tempfile::TempDir {
        let to = tempfile::tempdir().unwrap();
        fs::copy(from.join(FILE), to.path().join(FILE)).unwrap();
        to
    }

    #[test]
    fn a_directory_is_used_by_one_process_and_may_be_used_again_after_a_crash() {
        let data = tempfile::tempdir().unwrap();
        let lock = DataLock::take(data.path()).unwrap();
        assert!(matches!(DataLock::take(data.path()), Err(OpenError::InUse(_))));
        assert!(matches!(DataLock::take_to_read(data.path()), Err(OpenError::InUse(_))));
        drop(lock);
        drop(DataLock::take_to_read(data.path()).unwrap());
        drop(DataLock::take(data.path()).unwrap());
    }

    #[test]
    fn a_copy_is_good_only_if_nobody_used_the_original() {
        let data = tempfile::tempdir().unwrap();
        let mut lock = DataLock::take(data.path()).unwrap();
        let copied = copy(data.path());
        assert!(matches!(DataLock::take(copied.path()), Err(OpenError::Copied(_))));
        assert!(matches!(DataLock::take_to_read(copied.path()), Err(OpenError::Copied(_))));
        // The operator removes the file, as the message says.
        fs::remove_file(copied.path().join(FILE)).unwrap();
        drop(DataLock::take(copied.path()).unwrap());
        lock.close().unwrap();
        drop(DataLock::take(copy(data.path()).path()).unwrap());
        fs::write(copied.path().join(FILE), "used 1 2\n").unwrap();
        assert!(matches!(DataLock::take(copied.path()), Err(OpenError::Copied(_))));
        // Possible remains of the mark of the same directory after a power loss.
        for content in [&[0; 9][..], b"used 1 2", b"used \0\0\0\n", &[0xff; 9], &[b'x'; 1_000]] {
            fs::write(copied.path().join(FILE), content).unwrap();
            drop(DataLock::take(copied.path()).unwrap());
        }
    }

    #[test]
    fn a_restore_needs_an_empty_directory_and_marks_it_until_it_is_done() {
        let parent = tempfile::tempdir().unwrap();
        let data = parent.path().join("data");
        let mut lock = DataLock::take_to_restore(&data).unwrap();
        assert!(matches!(DataLock::take_to_restore(&data), Err(OpenError::InUse(_))));
        drop(lock);
        for take in [DataLock::take, DataLock::take_to_read, DataLock::take_to_restore] {
            assert!(matches!(take(&data), Err(OpenError::RestoreUnfinished(_))));
        }
        fs::remove_file(data.join(FILE)).unwrap();
        fs::create_dir(data.join("lost+found")).unwrap();
        lock = DataLock::take_to_restore(&data).unwrap();
        lock.close().unwrap();
        drop(lock);
        drop(DataLock::take_to_restore(&data).unwrap());
        fs::remove_file(data.join(FILE)).unwrap();
        fs::create_dir(data.join("log")).unwrap();
        assert!(matches!(DataLock::take_to_restore(&data), Err(OpenError::NotEmpty(_))));
        drop(DataLock::take(&data).unwrap());
    }
}
