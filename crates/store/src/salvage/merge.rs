//! Newest versions of the rows of several tables. Some of the tables are partly unreadable.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;

use fjall::Slice;

use super::table::{Piece, TableScan, Version};
use crate::describe::describe;
use crate::manifest::TableFile;

/// Unreadable rows between two keys in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Path of the file.
    pub file: PathBuf,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// Description of the fault at that offset.
    pub what: &'static str,
    /// Number of faults of this file that have no readable row between them. `offset` and `what` describe the first
    /// one.
    pub faults: u64,
    /// Last key before the hole; `None` if no row precedes it.
    pub after: Option<Vec<u8>>,
    /// First readable key after the hole; `None` if no readable row follows.
    pub before: Option<Vec<u8>>,
    /// Number of rows of older files within the hole. They may have been changed or removed later.
    pub older: u64,
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.file.display(), self.offset, self.what)?;
        if self.faults > 1 {
            write!(f, ", and {} more faults after it", self.faults - 1)?;
        }
        match (&self.after, &self.before) {
            (Some(after), Some(before)) => {
                write!(f, ": rows after {} and before {}", describe(after), describe(before))
            }
            (Some(after), None) => write!(f, ": rows after {}", describe(after)),
            (None, Some(before)) => write!(f, ": rows before {}", describe(before)),
            (None, None) => write!(f, ": all its rows"),
        }
    }
}

/// Row, and whether a newer version of it may be in a hole.
pub(super) struct Merged {
    pub(super) key: Slice,
    pub(super) value: Slice,
    pub(super) may_be_old: bool,
}

pub(super) struct Merge {
    sources: Vec<Source>,
    pub(super) holes: Vec<Hole>,
    /// Files and offsets of corrected blocks.
    pub(super) corrected: Vec<(PathBuf, u64)>,
}

/// A run of tables.
struct Source {
    rest: VecDeque<TableFile>,
    table: Option<(TableFile, TableScan)>,
    next: Option<Version>,
    level: usize,
    /// Last key that was read.
    last: Option<Vec<u8>>,
    /// Holes between the last row and the next one: their index, and the number added to sequence numbers there.
    open: Vec<(usize, u64)>,
}

impl Merge {
    pub(super) fn new(runs: impl Iterator<Item = Vec<TableFile>>) -> Self {
        let sources = runs.filter_map(|run| {
            let level = run.first()?.level;
            let (rest, open) = (run.into(), Vec::new());
            Some(Source { rest, table: None, next: None, level, last: None, open })
        });
        let mut merge =
            Self { sources: sources.collect(), holes: Vec::new(), corrected: Vec::new() };
        for source in &mut merge.sources {
            source.advance(&mut merge.holes, &mut merge.corrected);
        }
        merge
    }

    /// Returns the next row. Skips removed rows.
    pub(super) fn next(&mut self) -> Option<Merged> {
        loop {
            let key =
                self.sources.iter().filter_map(|source| Some(&source.next.as_ref()?.key)).min()?;
            let key = key.clone();
            let newest = self.sources.iter().filter_map(|source| {
                let version = source.next.as_ref().filter(|version| version.key == key)?;
                Some((version.clone(), source.level))
            });
            // If sequence numbers are equal, the first version counts, because it belongs to the newer run.
            let newest = newest
                .reduce(|best, other| if other.0.seqno > best.0.seqno { other } else { best });
            let Some((version, level)) = newest else { continue };
            let mut may_be_old = false;
            for source in self.sources.iter().filter(|source| !source.has(&key)) {
                for (hole, seqno) in &source.open {
                    let is_newer = source.level < level
                        || (source.level == level && (*seqno == 0 || *seqno > version.seqno));
                    if let Some(hole) = self.holes.get_mut(*hole).filter(|_| is_newer) {
                        may_be_old = true;
                        hole.older += u64::from(version.value.is_some());
                    }
                }
            }
            for source in &mut self.sources {
                while source.has(&key) {
                    source.advance(&mut self.holes, &mut self.corrected);
                }
            }
            if let Some(value) = version.value {
                return Some(Merged { key, value, may_be_old });
            }
        }
    }
}

impl Source {
    fn has(&self, key: &[u8]) -> bool {
        self.next.as_ref().is_some_and(|version| *version.key == *key)
    }

    fn advance(&mut self, holes: &mut Vec<Hole>, corrected: &mut Vec<(PathBuf, u64)>) {
        self.open.clear();
        loop {
            let Some((table, scan)) = &mut self.table else {
                let Some(table) = self.rest.pop_front() else {
                    self.next = None;
                    return;
                };
                match TableScan::open(&table.path, table.seqno) {
                    Ok(scan) => self.table = Some((table, scan)),
                    Err(_) => self.hole(&table, 0, "it is missing or cannot be read", holes),
                }
                continue;
            };
            match scan.next() {
                Some(Piece::Row(version)) => {
                    for (hole, _) in &self.open {
                        if let Some(hole) = holes.get_mut(*hole) {
                            hole.before = Some(version.key.to_vec());
                        }
                    }
                    self.last = Some(version.key.to_vec());
                    self.next = Some(version);
                    return;
                }
                Some(Piece::Hole { offset, what }) => {
                    let table = table.clone();
                    self.hole(&table, offset, what, holes);
                }
                None => {
                    corrected.extend(scan.corrected.drain(..).map(|at| (table.path.clone(), at)));
                    self.table = None;
                }
            }
        }
    }

    fn hole(&mut self, table: &TableFile, offset: u64, what: &'static str, holes: &mut Vec<Hole>) {
        let open = self.open.last().and_then(|(hole, _)| holes.get_mut(*hole));
        if let Some(hole) = open.filter(|hole| hole.file == table.path) {
            hole.faults += 1;
            return;
        }
        let (file, after) = (table.path.clone(), self.last.clone());
        self.open.push((holes.len(), table.seqno));
        holes.push(Hole { file, offset, what, faults: 1, after, before: None, older: 0 });
    }
}
