//! Check of a completed segment, group by group, while its log is in use.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk as _, DiskFile as _, RealDisk};
use crate::format::{
    Body, SECTOR_BYTES, Sector, Start, group_sectors, read_group, read_segment_sector, read_start,
};
use crate::segment::{first_of, path_of};
use crate::{LogError, Position, disk_error};

/// Check of a segment.
pub struct SegmentCheck {
    file: File,
    path: PathBuf,
    /// Next expected group, and its offset in the file, in bytes.
    due: u64,
    at: u64,
    /// First group of the next segment.
    end: u64,
}

/// Returns the completed segments in `dir`: the first group of the segment, and the first group of the next one.
///
/// # Errors
/// [`LogError::Disk`]
pub fn closed_segments(dir: &Path) -> Result<Vec<(Position, Position)>, LogError> {
    let names = RealDisk.list(dir).map_err(disk_error("list", dir))?;
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| first_of(name)).collect();
    firsts.sort_unstable();
    Ok(firsts
        .iter()
        .zip(firsts.iter().skip(1))
        .map(|(first, next)| (Position(*first), Position(*next)))
        .collect())
}

impl SegmentCheck {
    /// Opens one of [`closed_segments`]; `None` if the segment was cut meanwhile.
    ///
    /// # Errors
    /// [`LogError`], also if the header of the file is damaged.
    pub fn open(dir: &Path, (first, end): (Position, Position)) -> Result<Option<Self>, LogError> {
        let path = path_of(dir, first.0).to_path_buf();
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(disk_error("open", &path))?,
        };
        let at = SECTOR_BYTES as u64;
        let check = Self { file, path, due: first.0, at, end: end.0 };
        let sectors = check.sectors(0, 1)?;
        let header = sectors.first().map(read_segment_sector);
        let header =
            header.unwrap_or(Err("the file has no header")).map_err(|what| check.damaged(what))?;
        header.check_version(&check.path)?;
        Ok(Some(check))
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks the next group. Returns its size in bytes, or `None` after the last group.
    ///
    /// # Errors
    /// [`LogError::Damaged`], and [`LogError::Disk`] if the file is unreadable.
    pub fn step(&mut self) -> Result<Option<usize>, LogError> {
        if self.due >= self.end {
            return Ok(None);
        }
        let start = self.sectors(self.at, 1)?;
        let header = match start.first().map(read_start) {
            Some(Start::Group(header)) if header.position == self.due => header,
            Some(Start::Group(_)) => return Err(self.damaged("another group is in its place")),
            Some(Start::Damaged(what)) => return Err(self.damaged(what)),
            Some(Start::Unwritten) | None => return Err(self.damaged("a group is missing")),
        };
        let sectors = self.sectors(self.at, group_sectors(header.payload_bytes))?;
        match read_group(&header, &sectors, &mut Vec::new()) {
            Body::Whole => {}
            Body::Torn => return Err(self.damaged("a group is not whole")),
            Body::Damaged(what) => return Err(self.damaged(what)),
        }
        let bytes = sectors.len() * SECTOR_BYTES;
        self.at += bytes as u64;
        self.due += 1;
        Ok(Some(bytes))
    }

    fn sectors(&self, offset: u64, count: usize) -> Result<Vec<Sector>, LogError> {
        let mut sectors = vec![[0; SECTOR_BYTES]; count];
        let read = self.file.read_exact_at(sectors.as_flattened_mut(), offset);
        match read {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.damaged("the group is longer than the file"))
            }
            read => {
                read.map_err(disk_error("read", &self.path))?;
                Ok(sectors)
            }
        }
    }

    fn damaged(&self, what: &'static str) -> LogError {
        let (file, offset, position) = (self.path.clone(), self.at, Position(self.due));
        LogError::Damaged { file, offset, position, what }
    }
}
