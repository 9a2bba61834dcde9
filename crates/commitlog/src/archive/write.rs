//! Writing an archive.
//!
//! State: the lock of the archive, and its last group.

use std::fmt;
use std::fs::{File, TryLockError};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ArchiveError, ArchiveReader, MARK, MARK_PREFIX, Span, disk_error, read_mark, spans};
use crate::Position;
use crate::disk::{Disk, DiskFile};
use crate::format::{
    NewGroup, PAYLOAD_BYTES_MAX, SECTOR_BYTES, Sector, sectors_of, segment_sector,
};
use crate::reader::LogReader;

const TEMPORARY: &str = "next.tmp";
/// Number of sectors to write and sync at a time: 1 MiB. A sync of a log on the same disk waits for these writes, so
/// they must be short.
const SECTORS_AT_ONCE: usize = (1 << 20) / SECTOR_BYTES;

/// Maximum memory for writing to an archive, in bytes: the longest group of the log, its sectors, and the sectors to
/// write at a time. Most groups are short and need far less.
pub const ARCHIVE_MEMORY: usize =
    2 * PAYLOAD_BYTES_MAX + PAYLOAD_BYTES_MAX / 32 + 2 * SECTORS_AT_ONCE * SECTOR_BYTES;

/// Archive to which this process writes.
pub struct Archive {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Mark file, locked until the archive is dropped.
    mark: File,
    last: Position,
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive")
            .field("dir", &self.dir)
            .field("last", &self.last)
            .finish_non_exhaustive()
    }
}

impl Archive {
    /// Opens the archive in `dir` of the log with the id `id`. If `new`, a missing or empty directory becomes an
    /// archive; its parent must exist. Files are written through `disk`, except the mark file, which is locked.
    ///
    /// # Errors
    /// [`ArchiveError`]
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        id: &str,
        new: bool,
    ) -> Result<Self, ArchiveError> {
        if new && !dir.is_dir() {
            std::fs::create_dir(dir).map_err(disk_error("make", dir))?;
        }
        let path = dir.join(MARK);
        let names = disk.list(dir).map_err(disk_error("list", dir))?;
        if !names.is_empty() && !names.iter().any(|name| name == MARK) {
            return Err(ArchiveError::NotAnArchive(dir.to_owned()));
        }
        let mut options = File::options();
        let options = options.create(new).truncate(false).read(true).write(true);
        let mut mark = options.open(&path).map_err(disk_error("open", &path))?;
        match mark.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ArchiveError::InUse(dir.to_owned())),
            Err(TryLockError::Error(error)) => return Err(disk_error("lock", &path)(error)),
        }
        match read_mark(dir, &mark)? {
            Some(found) if found == id => {}
            Some(_) => return Err(ArchiveError::Foreign(dir.to_owned())),
            None => {
                mark.write_all(format!("{MARK_PREFIX}{id}\n").as_bytes())
                    .and_then(|()| mark.sync_all())
                    .map_err(disk_error("write to", &path))?;
            }
        }
        // A killed process may have renamed a file without a sync of the directory.
        disk.sync_dir(dir).map_err(disk_error("sync", dir))?;
        let last = spans(&*disk, dir)?.iter().map(|span| span.last).max().unwrap_or_default();
        Ok(Self { disk, dir: dir.to_owned(), mark, last: Position(last) })
    }

    /// Checks that the log, whose last group is `log_last`, continues the archive.
    ///
    /// # Errors
    /// [`ArchiveError::Diverged`], and errors of reading the log or the archive.
    pub fn check_continued_by(
        &self,
        log: &LogReader,
        log_last: Position,
    ) -> Result<(), ArchiveError> {
        let last = self.last;
        if last > log_last {
            return Err(ArchiveError::Diverged(self.dir.clone()));
        }
        if last.0 == 0 || log.first().is_none_or(|first| first > last) {
            return Ok(());
        }
        let (mut ours, mut theirs) = (None, None);
        let before = Position(last.0 - 1);
        ArchiveReader::open(&self.dir)?.read(before, &mut |group| {
            ours = Some(digest(&group));
            Ok(())
        })?;
        log.read(before, last, &mut |group| {
            theirs = Some(digest(&group));
            Ok(())
        })?;
        if ours == theirs { Ok(()) } else { Err(ArchiveError::Diverged(self.dir.clone())) }
    }

    /// Checks that the directory is still the one that was opened; after an unmount, another directory may be at the
    /// same path.
    fn check_present(&self) -> Result<(), ArchiveError> {
        let path = self.dir.join(MARK);
        let of = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
        let opened = self.mark.metadata().map_err(disk_error("read", &path))?;
        let now = std::fs::metadata(&path).map_err(disk_error("find", &path))?;
        let replaced = || io::Error::other("it was replaced");
        if of(&opened) == of(&now) { Ok(()) } else { Err(disk_error("use", &path)(replaced())) }
    }

    /// Returns the last group in a file; 0 if there is no file.
    #[must_use]
    pub fn last(&self) -> Position {
        self.last
    }

    /// Copies the groups after `after` up to `up_to` into one file. The groups must be durable in the log. Copies fewer
    /// if they are in several segments of the log. Returns the last copied group, which is durable in the archive.
    ///
    /// # Errors
    /// [`ArchiveError`]. Then either no file was added, or a complete file whose name is not durable.
    pub fn add(
        &mut self,
        log: &LogReader,
        after: Position,
        up_to: Position,
    ) -> Result<Position, ArchiveError> {
        self.check_present()?;
        let up_to = log.end_of_segment(after).min(up_to);
        let path = self.dir.join(TEMPORARY);
        // Remove an incomplete file, which only takes space.
        self.copy(log, after, up_to, &path).inspect_err(|_| drop(self.disk.remove(&path)))?;
        let span = Span { first: after.0 + 1, last: up_to.0 };
        let name = self.dir.join(span.name());
        self.disk.rename(&path, &name).map_err(disk_error("rename", &path))?;
        self.disk.sync_dir(&self.dir).map_err(disk_error("sync", &self.dir))?;
        self.last = self.last.max(up_to);
        Ok(up_to)
    }

    /// Writes the groups after `after` up to `up_to` to a file, durably.
    fn copy(
        &self,
        log: &LogReader,
        after: Position,
        up_to: Position,
        path: &Path,
    ) -> Result<(), ArchiveError> {
        let file = self.disk.create(path).map_err(disk_error("create", path))?;
        let mut copy = Copy { file: &*file, sectors: Vec::new(), end: SECTOR_BYTES as u64 };
        let mut failed = None;
        let read = log.read(after, up_to, &mut |group| {
            copy.group(&group).map_err(|error| {
                failed = Some(error);
                "the archive cannot be written".into()
            })
        });
        if let Some(error) = failed {
            return Err(disk_error("write to", path)(error));
        }
        read?;
        copy.finish(after.0 + 1).map_err(disk_error("write to", path))
    }
}

/// Returns a digest of the time and the payload of a group, which takes less memory than a copy.
fn digest(group: &crate::Group<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (group.time_ms, group.payload).hash(&mut hasher);
    hasher.finish()
}

/// File that is being added to an archive.
struct Copy<'a> {
    file: &'a dyn DiskFile,
    /// Sectors that are not written yet.
    sectors: Vec<Sector>,
    /// Offset of the next group in the file, in bytes.
    end: u64,
}

impl Copy<'_> {
    fn group(&mut self, group: &crate::Group<'_>) -> io::Result<()> {
        let crate::Group { position: Position(position), time_ms, payload } = *group;
        let durable = position - 1;
        let (first, more) = sectors_of(&NewGroup { position, durable, time_ms, payload });
        for sector in std::iter::once(first).chain(more) {
            self.sectors.push(sector);
            if self.sectors.len() >= SECTORS_AT_ONCE {
                self.write()?;
            }
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all_at(self.sectors.as_flattened(), self.end)?;
        self.end += (self.sectors.len() * SECTOR_BYTES) as u64;
        self.sectors.clear();
        self.file.sync_data()
    }

    fn finish(mut self, first: u64) -> io::Result<()> {
        self.write()?;
        self.file.write_all_at(&segment_sector(first, self.end), 0)?;
        self.file.sync_data()
    }
}
