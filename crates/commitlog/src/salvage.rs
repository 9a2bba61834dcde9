//! Salvage of a damaged log: reads every undamaged group. Changes nothing.
//!
//! A sector that begins a group cannot be mistaken for a part of a payload (see [`crate::format`]), so after damage the
//! next group is found by checking each sector.

use std::path::{Path, PathBuf};

use crate::disk::{Disk as _, DiskFile as _, RealDisk};
use crate::format::{
    Body, SECTOR_BYTES, Sector, Start, group_sectors, is_unwritten, read_group,
    read_segment_sector, read_start,
};
use crate::segment::{first_of, path_of};
use crate::{Group, LogError, Position, ReadError, disk_error};

/// Consecutive undamaged groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// First group.
    pub first: Position,
    /// Last group.
    pub last: Position,
    /// Time of the last group in milliseconds since 1970.
    pub last_ms: u64,
}

/// Place in a log where the content differs from the written content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// Path of the segment.
    pub file: PathBuf,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Group expected there.
    pub position: Position,
    /// Description of the damage.
    pub what: &'static str,
}

/// Readable parts of a damaged log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSurvey {
    /// Last group that existed, as far as known: the last one in the last segment with groups, or the one before the
    /// last segment. `None` without segments.
    pub last: Option<Position>,
    /// Stretches, in order. Groups between two stretches are missing or damaged.
    pub stretches: Vec<Stretch>,
    /// Damage in the order of files.
    pub damage: Vec<LogDamage>,
}

/// Reads all segments in `dir`, and passes every undamaged group to `each`, in order. The caller ensures that nobody
/// writes to the log meanwhile. Groups that a power loss left incomplete do not count as damage, because they were not
/// durable.
///
/// # Errors
/// [`LogError`], if the directory cannot be listed, a segment has another format than this program, or `each` fails.
pub fn salvage(
    dir: &Path,
    each: &mut dyn FnMut(Group<'_>) -> Result<(), ReadError>,
) -> Result<LogSurvey, LogError> {
    let names = RealDisk.list(dir).map_err(disk_error("list", dir))?;
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| first_of(name)).collect();
    firsts.sort_unstable();
    let mut survey = LogSurvey::default();
    let last = firsts.last().copied();
    for first in firsts {
        let path = path_of(dir, first);
        let due = survey.stretches.last().map_or(first, |stretch| stretch.last.0 + 1);
        let mut scan = Scan { path: &path, due: due.max(first), survey: &mut survey, each };
        if due < first && due > 1 {
            scan.damaged(0, "groups are missing before this segment");
        }
        match read(&path) {
            Ok(sectors) => {
                let bytes = scan.header(&sectors, first)?;
                scan.segment(&sectors, Some(first) == last)?;
                if bytes.is_some_and(|bytes| bytes != (sectors.len() * SECTOR_BYTES) as u64) {
                    // The missing part was after the last group.
                    scan.damaged(sectors.len(), "the file is not as long as its header says");
                }
            }
            Err(error) => {
                tracing::warn!(file = %path.display(), %error, "a segment cannot be read");
                scan.damaged(0, "the file cannot be read");
            }
        }
    }
    let group = survey.stretches.last().map_or(0, |stretch| stretch.last.0);
    survey.last = last.map(|first| Position(group.max(first.saturating_sub(1))));
    Ok(survey)
}

/// Returns the whole sectors of a file. Fills an unreadable sector with 0xff.
fn read(path: &Path) -> std::io::Result<Vec<Sector>> {
    let file = std::fs::File::open(path)?;
    let mut sectors = vec![[0; SECTOR_BYTES]; (file.bytes()? / SECTOR_BYTES as u64) as usize];
    for (at, sector) in sectors.iter_mut().enumerate() {
        if file.read_exact_at(sector, (at * SECTOR_BYTES) as u64).is_err() {
            // A sector of 0xff bytes is neither a group nor unwritten space.
            sector.fill(0xff);
        }
    }
    Ok(sectors)
}

struct Scan<'a> {
    path: &'a Path,
    /// Position of the next expected group.
    due: u64,
    survey: &'a mut LogSurvey,
    each: &'a mut dyn FnMut(Group<'_>) -> Result<(), ReadError>,
}

impl Scan<'_> {
    fn segment(&mut self, sectors: &[Sector], is_last: bool) -> Result<(), LogError> {
        let (mut at, mut payload) = (1, Vec::new());
        // Whether the damage before sector `at` was reported.
        let mut reported = false;
        while let Some(sector) = sectors.get(at) {
            let start = read_start(sector);
            let what = match &start {
                Start::Group(header) if header.position < self.due => {
                    "another group is in its place"
                }
                Start::Group(header) => {
                    let end = at + group_sectors(header.payload_bytes);
                    let body =
                        sectors.get(at..end).map(|all| read_group(header, all, &mut payload));
                    match body {
                        Some(Body::Whole) => {
                            if header.position > self.due && !reported {
                                self.damaged(at, "groups are missing before this one");
                            }
                            let position = Position(header.position);
                            self.whole(Group {
                                position,
                                time_ms: header.time_ms,
                                payload: &payload,
                            })?;
                            (at, reported) = (end, false);
                            continue;
                        }
                        Some(Body::Torn) => "a group is not whole",
                        Some(Body::Damaged(what)) => what,
                        None => "the group is longer than the file",
                    }
                }
                Start::Unwritten => "a group is missing",
                Start::Damaged(what) => what,
            };
            // At the end of the log, groups that were never durable may be missing.
            let is_gap = matches!(start, Start::Unwritten) || what == "a group is not whole";
            let rest = sectors.get(at..).unwrap_or_default();
            if is_gap && !reported && !self.is_durable(rest, is_last) {
                return Ok(());
            }
            if !reported {
                self.damaged(at, what);
                reported = true;
            }
            at += 1;
        }
        Ok(())
    }

    /// Whether the rest of a segment proves that the next expected group was durable.
    fn is_durable(&self, rest: &[Sector], is_last: bool) -> bool {
        if !is_last {
            return rest.iter().any(|sector| !is_unwritten(sector));
        }
        rest.iter().any(|sector| match read_start(sector) {
            Start::Group(header) => header.durable >= self.due,
            Start::Unwritten | Start::Damaged(_) => false,
        })
    }

    /// Returns the length of the file according to its header; `None` if the header is damaged.
    fn header(&mut self, sectors: &[Sector], first: u64) -> Result<Option<u64>, LogError> {
        let header = sectors.first().map(read_segment_sector);
        match header.unwrap_or(Err("the file has no header")) {
            Ok(header) => {
                header.check_version(self.path)?;
                if header.first != first {
                    self.damaged(0, "the file has the name of another segment");
                }
                Ok(Some(header.bytes))
            }
            Err(what) => {
                self.damaged(0, what);
                Ok(None)
            }
        }
    }

    fn whole(&mut self, group: Group<'_>) -> Result<(), LogError> {
        let (position, last_ms) = (group.position, group.time_ms);
        (self.each)(group).map_err(|source| LogError::Read { position, source })?;
        match self.survey.stretches.last_mut() {
            Some(stretch) if stretch.last.0 + 1 == position.0 => {
                (stretch.last, stretch.last_ms) = (position, last_ms);
            }
            _ => self.survey.stretches.push(Stretch { first: position, last: position, last_ms }),
        }
        self.due = position.0 + 1;
        Ok(())
    }

    fn damaged(&mut self, sector: usize, what: &'static str) {
        let (file, offset) = (self.path.to_path_buf(), (sector * SECTOR_BYTES) as u64);
        let position = Position(self.due);
        self.survey.damage.push(LogDamage { file, offset, position, what });
    }
}
