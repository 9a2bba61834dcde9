//! File layer that changes nothing, for checking a log with the code that opens it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile, RealDisk};
use crate::recover::{Recovered, recover};
use crate::segment::first_of;
use crate::{LogError, Position, SEGMENT_BYTES, disk_error};

/// Disk of this machine on which every change succeeds and is ignored.
pub(crate) struct ReadOnlyDisk;

struct ReadOnlyFile(std::fs::File);

impl Disk for ReadOnlyDisk {
    fn make_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(dir)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(ReadOnlyFile(std::fs::File::open(path)?)))
    }

    fn create(&self, _: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Err(io::Error::new(io::ErrorKind::NotFound, "there is no segment"))
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for ReadOnlyFile {
    fn bytes(&self) -> io::Result<u64> {
        DiskFile::bytes(&self.0)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        DiskFile::read_at(&self.0, into, offset)
    }

    fn write_at(&self, bytes: &[u8], _: u64) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Result of a check of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// Number of segment files.
    pub segments: usize,
    /// Last group; 0 if there has never been one.
    pub last: Position,
}

/// Checks every group of the log in `dir`, and that the log has every group after `from`. Changes nothing. The caller
/// ensures that nobody writes to the log meanwhile.
///
/// # Errors
/// Those of [`crate::LocalLog::open`].
pub fn check(dir: &Path, from: Position) -> Result<Checked, LogError> {
    let Recovered { closed, last, .. } = recover(&ReadOnlyDisk, dir, SEGMENT_BYTES, from)?;
    Ok(Checked { segments: closed.len() + 1, last: Position(last) })
}

/// Checks the log in `dir` like [`check`], from its oldest group on.
///
/// # Errors
/// Those of [`crate::LocalLog::open`].
pub fn check_all(dir: &Path) -> Result<Checked, LogError> {
    let names = RealDisk.list(dir).map_err(disk_error("list", dir))?;
    let first = names.iter().filter_map(|name| first_of(name)).min().unwrap_or(1);
    check(dir, Position(first.saturating_sub(1)))
}
