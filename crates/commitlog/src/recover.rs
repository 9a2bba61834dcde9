//! Opening a log: checks every group, and erases the remains of groups that were not durable at a power loss. Any other
//! difference from the written data is an error.
//!
//! State: the files. When [`recover`] returns, the log owns the result.
//! - **Invariant:** all segments except the last are complete, because a segment is synced before the next one gets its
//!   name. Only the last one may have groups that are not durable.
//! - If a group is missing or torn, it and all later groups are erased: they were appended later, so they were not
//!   durable either. If one of them states that the missing group was durable, the log is damaged.
//! - All groups found are durable before they are used.
//!
//! A file that is shorter than its header says is refused: files have their full length before they are used, so no
//! power loss makes one shorter. To accept the loss of the missing part, lengthen the file with zeros (`truncate
//! --size`).

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};
use crate::format::{
    Body, GroupHeader, SECTOR_BYTES, Sector, Start, group_sectors, is_unwritten, read_group,
    read_start,
};
use crate::segment::{Segment, install, make_blank, read_segment, survey};
use crate::{Group, LogError, Position, ReadError, disk_error};

/// Callback that receives the groups.
pub(crate) type EachGroup<'a> = &'a mut dyn FnMut(Group<'_>) -> Result<(), ReadError>;

/// Recovered log. All of it is durable.
pub(crate) struct Recovered {
    /// All segments except the last, oldest first.
    pub(crate) closed: VecDeque<Segment>,
    pub(crate) tail: Segment,
    pub(crate) file: Arc<dyn DiskFile>,
    /// Offset of the next group in the last segment, in bytes.
    pub(crate) end: u64,
    pub(crate) last: u64,
}

/// Checks the log in `dir`, and creates it if it does not exist. Fails if the log lacks a group after `from`, or ends
/// before `from`.
pub(crate) fn recover(
    disk: &dyn Disk,
    dir: &Path,
    segment_bytes: u64,
    from: Position,
) -> Result<Recovered, LogError> {
    disk.make_dir(dir).map_err(disk_error("make", dir))?;
    let mut firsts = survey(disk, dir)?.into_iter().peekable();
    let mut due = match firsts.peek() {
        Some(first) => *first,
        None => 1,
    };
    if due > from.0.saturating_add(1) {
        let first = Position(due);
        return Err(LogError::StartsAfterStore { first, from });
    }
    let mut closed = VecDeque::new();
    let mut sectors = Vec::new();
    let mut found = None;
    while let Some(first) = firsts.next() {
        let (segment, file) = read_segment(disk, dir, first, &mut sectors)?;
        let mut scan = Scan { segment: &segment, sectors: &sectors, at: 1, due };
        if first != due {
            return Err(scan.damaged(0, "groups are missing before this segment"));
        }
        scan.groups(&mut |_| Ok(()))?;
        due = scan.due;
        if firsts.peek().is_some() {
            scan.check_rest_unwritten()?;
            closed.push_back(segment);
        } else {
            let (at, end) = (scan.at, scan.offset(scan.at));
            if scan.check_rest_never_durable()? {
                tracing::warn!(
                    file = %segment.path.display(), offset = end, group = due,
                    "the log ended in groups that were not durable when the power failed; they are cut"
                );
                let at = if crate::has_bug("keep-torn-group") { sectors.len() } else { at };
                sectors.iter_mut().skip(at).for_each(|sector| sector.fill(0));
            }
            write_again(&*file, &segment, &sectors)?;
            found = Some((segment, file, end));
        }
    }
    let last = due - 1;
    if last < from.0 {
        let last = Position(last);
        return Err(LogError::ShorterThanStore { last, from });
    }
    let (tail, file, end) = match found {
        Some(found) => found,
        None => {
            let blank = make_blank(disk, dir, "first", segment_bytes)?;
            let (segment, file) = install(disk, dir, blank, due)?;
            (segment, file, SECTOR_BYTES as u64)
        }
    };
    Ok(Recovered { closed, tail, file, end, last })
}

/// Writes the last segment again as it was read, and syncs it. The groups of a killed process may be only in the page
/// cache. They may go into a checkpoint, but a store must never be newer than the log on disk. A sync alone is not
/// enough: after a failed sync, the page cache has data that the disk lacks, and the next sync reports success.
fn write_again(file: &dyn DiskFile, segment: &Segment, sectors: &[Sector]) -> Result<(), LogError> {
    if crate::has_bug("trust-page-cache") {
        return file.sync_data().map_err(disk_error("sync", &segment.path));
    }
    file.write_all_at(sectors.as_flattened(), 0).map_err(disk_error("write to", &segment.path))?;
    file.sync_data().map_err(disk_error("sync", &segment.path))
}

/// Passes the groups of a segment to `each`, in order. Does not check the bytes after the last group.
pub(crate) fn read_groups(
    disk: &dyn Disk,
    dir: &Path,
    first: u64,
    sectors: &mut Vec<Sector>,
    each: EachGroup<'_>,
) -> Result<(), LogError> {
    let (segment, _) = read_segment(disk, dir, first, sectors)?;
    Scan { segment: &segment, sectors, at: 1, due: first }.groups(each)
}

/// Reader of a segment.
struct Scan<'a> {
    segment: &'a Segment,
    sectors: &'a [Sector],
    /// Index of the current sector.
    at: usize,
    /// Position of the group expected at this sector.
    due: u64,
}

impl Scan<'_> {
    /// Reads valid groups until there are no more. Leaves `at` and `due` at the first missing or torn group.
    fn groups(&mut self, each: EachGroup<'_>) -> Result<(), LogError> {
        let mut payload = Vec::new();
        while let Some(sector) = self.sectors.get(self.at) {
            let header = match read_start(sector) {
                Start::Unwritten => break,
                Start::Damaged(what) => return Err(self.damaged(self.at, what)),
                Start::Group(header) => header,
            };
            let end = self.at + group_sectors(header.payload_bytes);
            match self.group(&header, end, &mut payload)? {
                Body::Whole => {}
                Body::Torn => break,
                Body::Damaged(what) => return Err(self.damaged(self.at, what)),
            }
            let position = Position(header.position);
            each(Group { position, time_ms: header.time_ms, payload: &payload })
                .map_err(|source| LogError::Read { position, source })?;
            self.at = end;
            self.due += 1;
        }
        Ok(())
    }

    fn group(
        &self,
        header: &GroupHeader,
        end: usize,
        payload: &mut Vec<u8>,
    ) -> Result<Body, LogError> {
        if header.position != self.due {
            return Err(self.damaged(self.at, "another group is in its place"));
        }
        match self.sectors.get(self.at..end) {
            Some(sectors) => Ok(read_group(header, sectors, payload)),
            None => Err(self.damaged(self.at, "the group is longer than the file")),
        }
    }

    /// Checks that a segment with a successor has nothing after its groups, not even a torn group, because everything
    /// in it was durable.
    fn check_rest_unwritten(&self) -> Result<(), LogError> {
        match self.rest().find(|(_, sector)| !is_unwritten(sector)) {
            Some((at, _)) => Err(self.damaged(at, "unexpected data after the last group")),
            None => Ok(()),
        }
    }

    /// Checks that no data after the groups of the last segment was durable. Returns whether there is any data.
    fn check_rest_never_durable(&self) -> Result<bool, LogError> {
        let mut any = false;
        for (_, sector) in self.rest() {
            any |= !is_unwritten(sector);
            let Start::Group(header) = read_start(sector) else {
                continue;
            };
            if header.durable >= self.due {
                return Err(self.damaged(self.at, "a durable group is missing"));
            }
        }
        Ok(any)
    }

    fn rest(&self) -> impl Iterator<Item = (usize, &Sector)> {
        self.sectors.iter().enumerate().skip(self.at)
    }

    fn offset(&self, sector: usize) -> u64 {
        (sector * SECTOR_BYTES) as u64
    }

    fn damaged(&self, sector: usize, what: &'static str) -> LogError {
        LogError::Damaged {
            file: self.segment.path.to_path_buf(),
            offset: self.offset(sector),
            position: Position(self.due),
            what,
        }
    }
}
