//! Segment files: preparing one in advance, putting it in place, and reading all of it.
//!
//! State: the directory and its files. `Segment` describes a file in place.
//! - **Invariant:** a file with the name of a segment is complete: its zeros, in full length, and its header were
//!   synced before it got the name.
//! - Files that end in `.tmp` were never part of the log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::format::{SECTOR_BYTES, Sector, read_segment_sector, segment_sector};
use crate::{LogError, Position, disk_error};

/// Number of bytes to fill with zeros and sync at a time. A sync of the log waits for these writes at the disk, so they
/// must be short.
const ZEROING_BYTES: u64 = 1 << 20;
const TEMPORARY: &str = ".tmp";
const SUFFIX: &str = ".log";

/// Segment in place.
pub(crate) struct Segment {
    pub(crate) first: u64,
    /// Length of the file in bytes.
    pub(crate) bytes: u64,
    pub(crate) path: Arc<Path>,
}

/// File of zeros that will be a segment. Its content is durable, but it does not have its name yet.
pub(crate) struct Blank {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    bytes: u64,
}

/// Creates a file of zeros. `name` distinguishes files that exist at the same time.
pub(crate) fn make_blank(
    disk: &dyn Disk,
    dir: &Path,
    name: &str,
    bytes: u64,
) -> Result<Blank, LogError> {
    assert!(bytes.is_multiple_of(SECTOR_BYTES as u64) && bytes > SECTOR_BYTES as u64);
    let path = dir.join(format!("{name}{TEMPORARY}"));
    let file = disk.create(&path).map_err(disk_error("create", &path))?;
    write_zeros(&*file, &path, 0, bytes)?;
    Ok(Blank { file, path, bytes })
}

/// Writes zeros over a range of bytes and syncs them.
fn write_zeros(file: &dyn DiskFile, path: &Path, mut from: u64, to: u64) -> Result<(), LogError> {
    let zeros = vec![0; ZEROING_BYTES.min(to.saturating_sub(from)) as usize];
    while from < to {
        let (now, _) = zeros.split_at(ZEROING_BYTES.min(to - from) as usize);
        file.write_all_at(now, from).map_err(disk_error("write zeros to", path))?;
        file.sync_data().map_err(disk_error("sync", path))?;
        from += now.len() as u64;
    }
    Ok(())
}

/// Makes a file of zeros the segment that begins with the group `first`, durably. Replaces a segment that has the same
/// name and no groups.
pub(crate) fn install(
    disk: &dyn Disk,
    dir: &Path,
    blank: Blank,
    first: u64,
) -> Result<(Segment, Arc<dyn DiskFile>), LogError> {
    let Blank { file, path: old, bytes } = blank;
    file.write_all_at(&segment_sector(first, bytes), 0)
        .map_err(disk_error("write the header of", &old))?;
    file.sync_data().map_err(disk_error("sync", &old))?;
    let path = path_of(dir, first);
    disk.rename(&old, &path).map_err(disk_error("rename", &old))?;
    if crate::has_bug("no-directory-sync") {
        return Ok((Segment { first, bytes, path }, file));
    }
    disk.sync_dir(dir).map_err(disk_error("sync", dir))?;
    Ok((Segment { first, bytes, path }, file))
}

/// Removes unused files of zeros, and returns the first positions of the segments, in order.
pub(crate) fn survey(disk: &dyn Disk, dir: &Path) -> Result<Vec<u64>, LogError> {
    let mut firsts = Vec::new();
    for name in disk.list(dir).map_err(disk_error("list", dir))? {
        if name.ends_with(TEMPORARY) {
            let path = dir.join(name);
            disk.remove(&path).map_err(disk_error("remove", &path))?;
        } else {
            firsts.extend(first_of(&name));
        }
    }
    firsts.sort_unstable();
    // A killed process may have renamed a segment without a sync of the directory.
    disk.sync_dir(dir).map_err(disk_error("sync", dir))?;
    Ok(firsts)
}

/// Opens the segment that begins with the group `first`, and reads all of it into `sectors`.
pub(crate) fn read_segment(
    disk: &dyn Disk,
    dir: &Path,
    first: u64,
    sectors: &mut Vec<Sector>,
) -> Result<(Segment, Arc<dyn DiskFile>), LogError> {
    let path = path_of(dir, first);
    let damaged = |what| LogError::Damaged {
        file: path.to_path_buf(),
        offset: 0,
        position: Position(first),
        what,
    };
    let file = disk.open(&path).map_err(disk_error("open", &path))?;
    let bytes = file.bytes().map_err(disk_error("measure", &path))?;
    // Ignore bytes after the last whole sector; the check of the header notices the wrong length.
    sectors.resize((bytes / SECTOR_BYTES as u64) as usize, [0; SECTOR_BYTES]);
    file.read_exact_at(sectors.as_flattened_mut(), 0).map_err(disk_error("read", &path))?;

    let Some(sector) = sectors.first() else {
        return Err(damaged("the file has no header"));
    };
    let header = read_segment_sector(sector).map_err(damaged)?;
    header.check_version(&path)?;
    if header.first != first {
        return Err(damaged("the file has the name of another segment"));
    }
    if header.bytes != bytes {
        return Err(damaged("the file is not as long as its header says"));
    }
    Ok((Segment { first, bytes, path }, file))
}

pub(crate) fn path_of(dir: &Path, first: u64) -> Arc<Path> {
    dir.join(format!("{first:020}{SUFFIX}")).into()
}

pub(crate) fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    let all_digits = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if all_digits { digits.parse().ok() } else { None }
}
