//! Reading a log while its owner may write to it, and creating a log that begins at any position.
//!
//! State: open handles of segments, which stay readable when the log is cut.
//! - Existing logs are not changed.
//! - **Invariant:** the caller reads only groups whose append has returned, because later bytes may be incomplete.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::format::{
    Body, SECTOR_BYTES, Sector, Start, group_sectors, read_group, read_segment_sector, read_start,
};
use crate::recover::EachGroup;
use crate::segment::{first_of, install, make_blank, path_of};
use crate::{Group, LogError, Position, disk_error};

/// Open handles of the segments of a log.
pub struct LogReader {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Position after which segments are opened, at most `segments_max` at a time.
    after: Position,
    segments_max: usize,
    /// Open segments by the position of their first group.
    files: BTreeMap<u64, OpenSegment>,
}

pub(crate) struct OpenSegment {
    pub(crate) path: Arc<Path>,
    pub(crate) file: Arc<dyn DiskFile>,
}

impl LogReader {
    /// Opens all existing segments in `dir`.
    ///
    /// # Errors
    /// [`LogError::Disk`].
    pub fn open(disk: Arc<dyn Disk>, dir: &Path) -> Result<Self, LogError> {
        Self::open_after(disk, dir, Position(0), usize::MAX)
    }

    /// Opens the segments with groups after `after`, oldest first and at most `segments_max` at a time.
    ///
    /// # Errors
    /// [`LogError::Disk`].
    pub fn open_after(
        disk: Arc<dyn Disk>,
        dir: &Path,
        after: Position,
        segments_max: usize,
    ) -> Result<Self, LogError> {
        let files = BTreeMap::new();
        let mut reader = Self { disk, dir: dir.to_owned(), after, segments_max, files };
        reader.refresh()?;
        Ok(reader)
    }

    /// Opens the segments that exist now. Segments that are open stay open if they were removed.
    ///
    /// # Errors
    /// [`LogError::Disk`].
    pub fn refresh(&mut self) -> Result<(), LogError> {
        let names = self.disk.list(&self.dir).map_err(disk_error("list", &self.dir))?;
        let mut firsts: Vec<u64> = names.iter().filter_map(|name| first_of(name)).collect();
        firsts.sort_unstable();
        let next = self.after.0.saturating_add(1);
        let unneeded = firsts.partition_point(|first| *first <= next).saturating_sub(1);
        for first in firsts.into_iter().skip(unneeded).take(self.segments_max) {
            let path = path_of(&self.dir, first);
            // Open a segment again even if it is open: while it has no groups, its file may be replaced.
            match self.disk.open(&path) {
                Ok(file) => drop(self.files.insert(first, OpenSegment { path, file })),
                // The segment was cut meanwhile.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(disk_error("open", &path)(error)),
            }
        }
        Ok(())
    }

    /// Makes all groups durable that were appended before the segments were opened. The last of these segments must be
    /// open. An error must end the process that appends: see [`crate::SyncPoint::sync`].
    ///
    /// # Errors
    /// [`LogError::Disk`].
    pub fn sync(&self) -> Result<(), LogError> {
        // All segments except the last are durable.
        let Some(newest) = self.files.values().next_back() else { return Ok(()) };
        newest.file.sync_data().map_err(disk_error("sync", &newest.path))
    }

    /// Returns the last group of the segment that contains the group after `after`; for the last segment, a greater
    /// position.
    #[must_use]
    pub fn end_of_segment(&self, after: Position) -> Position {
        let next = self.files.range(after.0.saturating_add(2)..).next();
        Position(next.map_or(u64::MAX, |(first, _)| first - 1))
    }

    /// Returns the first position of the oldest segment, even if it has no group yet; `None` if there is no segment.
    #[must_use]
    pub fn first(&self) -> Option<Position> {
        self.files.keys().next().copied().map(Position)
    }

    /// Checks the groups after `after` up to `up_to`, and passes them to `each` in order.
    ///
    /// # Errors
    /// [`LogError`]; [`LogError::StartsAfterStore`] if the group after `after` is in no open segment.
    pub fn read(
        &self,
        after: Position,
        up_to: Position,
        each: EachGroup<'_>,
    ) -> Result<(), LogError> {
        if after >= up_to {
            return Ok(());
        }
        let Some((first, _)) = self.files.range(..=after.0 + 1).next_back() else {
            let first = Position(self.files.keys().next().copied().unwrap_or_default());
            return Err(LogError::StartsAfterStore { first, from: after });
        };
        let mut due = *first;
        for (first, segment) in self.files.range(*first..=up_to.0) {
            if *first != due {
                let what = "groups are missing before this segment";
                return Err(segment.damaged(0, due, what));
            }
            due = segment.read(due, after, up_to, each)?.0;
        }
        let last = Position(due - 1);
        if last < up_to {
            return Err(LogError::ShorterThanStore { last, from: up_to });
        }
        Ok(())
    }
}

impl OpenSegment {
    /// Passes the groups of a file after `after` to `each`. The file must contain exactly the groups `first` to `last`.
    pub(crate) fn read_all(
        &self,
        first: u64,
        last: u64,
        after: Position,
        each: EachGroup<'_>,
    ) -> Result<(), LogError> {
        let (due, offset) = self.read(first, after, Position(last), each)?;
        let bytes = self.file.bytes().map_err(disk_error("measure", &self.path))?;
        if due <= last {
            return Err(self.damaged(offset, due, "a group is missing or its header is damaged"));
        }
        if offset != bytes {
            return Err(self.damaged(offset, due, "unexpected data after the last group"));
        }
        Ok(())
    }

    /// Passes the groups after `after` up to `up_to` to `each`. Returns the next position and its offset in the file.
    fn read(
        &self,
        mut due: u64,
        after: Position,
        up_to: Position,
        each: EachGroup<'_>,
    ) -> Result<(u64, u64), LogError> {
        let mut sectors = Vec::new();
        let mut payload = Vec::new();
        let bytes = self.file.bytes().map_err(disk_error("measure", &self.path))?;
        self.check_header(due, bytes)?;
        let mut offset = SECTOR_BYTES as u64;
        while due <= up_to.0 && offset + SECTOR_BYTES as u64 <= bytes {
            self.sectors(offset, 1, &mut sectors)?;
            let Some(Start::Group(header)) = sectors.first().map(read_start) else {
                // This is the end of the segment, or a group is missing or damaged. In the latter case, the next
                // segment begins with another position.
                break;
            };
            if header.position != due {
                return Err(self.damaged(offset, due, "another group is in its place"));
            }
            let length = group_sectors(header.payload_bytes);
            if offset + (length * SECTOR_BYTES) as u64 > bytes {
                return Err(self.damaged(offset, due, "the group is longer than the file"));
            }
            if due > after.0 {
                self.sectors(offset, length, &mut sectors)?;
                if read_group(&header, &sectors, &mut payload) != Body::Whole {
                    let what = "the group does not match its checksum";
                    return Err(self.damaged(offset, due, what));
                }
                let position = Position(due);
                each(Group { position, time_ms: header.time_ms, payload: &payload })
                    .map_err(|source| LogError::Read { position, source })?;
            }
            offset += (length * SECTOR_BYTES) as u64;
            due += 1;
        }
        Ok((due, offset))
    }

    fn check_header(&self, first: u64, bytes: u64) -> Result<(), LogError> {
        let mut sectors = Vec::new();
        if bytes < SECTOR_BYTES as u64 {
            return Err(self.damaged(0, first, "the file has no header"));
        }
        self.sectors(0, 1, &mut sectors)?;
        let header = sectors.first().map(read_segment_sector);
        let header = header.unwrap_or(Err("the file has no header"));
        let header = header.map_err(|what| self.damaged(0, first, what))?;
        header.check_version(&self.path)?;
        if header.first != first {
            return Err(self.damaged(0, first, "the file has the name of another segment"));
        }
        if header.bytes != bytes {
            return Err(self.damaged(0, first, "the file is not as long as its header says"));
        }
        Ok(())
    }

    fn sectors(&self, offset: u64, count: usize, into: &mut Vec<Sector>) -> Result<(), LogError> {
        into.resize(count, [0; SECTOR_BYTES]);
        self.file
            .read_exact_at(into.as_flattened_mut(), offset)
            .map_err(disk_error("read", &self.path))
    }

    fn damaged(&self, offset: u64, position: u64, what: &'static str) -> LogError {
        let (file, position) = (self.path.to_path_buf(), Position(position));
        LogError::Damaged { file, offset, position, what }
    }
}

/// Creates an empty log in `dir`, which must have no log. Its first group will be the one after `after`.
///
/// # Errors
/// [`LogError::Disk`].
pub fn begin_after(
    disk: &dyn Disk,
    dir: &Path,
    after: Position,
    segment_bytes: u64,
) -> Result<(), LogError> {
    disk.make_dir(dir).map_err(disk_error("make", dir))?;
    let blank = make_blank(disk, dir, "first", segment_bytes)?;
    install(disk, dir, blank, after.0 + 1)?;
    Ok(())
}
