//! File layer of the local log: traits for the few operations on directories and files that it needs. Tests implement a
//! disk that loses power, fills up or fails its fsync.
//!
//! The operating system owns the state. Callers may rely on this:
//! - written data survives a power loss once `sync_data` of its file has returned;
//! - a file that was created, renamed or removed stays so once `sync_dir` of its directory has returned;
//! - sectors of 512 bytes are written whole or not at all, and a write that stops early stops between two sectors if it
//!   began at the start of one (Linux copies page by page).
//!
//! After a failed sync, the state of everything written since the last successful sync is unknown.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Directories and the files in them.
pub trait Disk: Send + Sync {
    /// Creates the directory and its missing parents, durably. Does not change an existing directory.
    fn make_dir(&self, dir: &Path) -> io::Result<()>;
    /// Returns the names of the files in the directory, unordered, without those that are not UTF-8.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Opens an existing file for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens an empty file for reading and writing; empties an existing one.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames a file within a directory; replaces an existing file of the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. An open handle of the file stays usable.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Waits until every name created, changed or removed in the directory is durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file. Several threads may use it at the same time.
pub trait DiskFile: Send + Sync {
    /// Returns the length of the file in bytes.
    fn bytes(&self) -> io::Result<u64>;
    /// Reads up to `into.len()` bytes from `offset` on; returns 0 at the end of the file.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes a first part of `bytes` at `offset`, and extends the file if necessary. Returns the length of the part.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Waits until all written data, and the length of the file, is durable.
    fn sync_data(&self) -> io::Result<()>;

    /// Reads exactly `into.len()` bytes from `offset` on. Fails if the file ends before.
    fn read_exact_at(&self, mut into: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !into.is_empty() {
            match self.read_at(into, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    let (_, rest) = into.split_at_mut(read);
                    into = rest;
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of `bytes` at `offset`. After an error, any part of it may have been written.
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    let (_, rest) = bytes.split_at(written);
                    bytes = rest;
                    offset += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Disk of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        // The parent of a relative path with one component is the empty path, which means the current directory.
        let parent = match dir.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        self.make_dir(parent)?;
        fs::create_dir(dir)?;
        self.sync_dir(parent)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.extend(entry.file_name().into_string());
            }
        }
        Ok(names)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            // Open the file for reading only; then a write fails.
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                OpenOptions::new().read(true).open(path)
            }
            file => file,
        };
        Ok(Arc::new(file?))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Arc::new(options.open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

impl DiskFile for File {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }
}
