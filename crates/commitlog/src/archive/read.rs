//! Reading an archive, without changing it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ArchiveError, MARK, Span, disk_error, read_mark, spans};
use crate::Position;
use crate::disk::Disk as _;
use crate::read_only::ReadOnlyDisk;
use crate::reader::OpenSegment;
use crate::recover::EachGroup;

/// Reader of an archive. Files may be moved away and added until it is opened.
#[derive(Debug)]
pub struct ArchiveReader {
    dir: PathBuf,
    id: String,
    spans: Vec<Span>,
}

impl ArchiveReader {
    /// Reads the names of the files in `dir`.
    ///
    /// # Errors
    /// [`ArchiveError`]
    pub fn open(dir: &Path) -> Result<Self, ArchiveError> {
        let path = dir.join(MARK);
        let mark = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ArchiveError::NotAnArchive(dir.to_owned()));
            }
            mark => mark.map_err(disk_error("read", &path))?,
        };
        let id = read_mark(dir, &mark)?;
        let id = id.ok_or_else(|| ArchiveError::NotAnArchive(dir.to_owned()))?;
        Ok(Self { dir: dir.to_owned(), id, spans: spans(&ReadOnlyDisk, dir)? })
    }

    /// Whether a directory is an archive.
    #[must_use]
    pub fn is_archive(dir: &Path) -> bool {
        dir.join(MARK).is_file()
    }

    /// Returns the id of the archived log.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the number of files.
    #[must_use]
    pub fn files(&self) -> usize {
        self.spans.len()
    }

    /// Returns the first and the last group; `None` if there is no file.
    #[must_use]
    pub fn ends(&self) -> Option<(Position, Position)> {
        let last = self.spans.iter().map(|span| span.last).max()?;
        Some((Position(self.spans.first()?.first), Position(last)))
    }

    /// Checks the groups after `after` and passes them to `each`, in order, until `each` returns an error or there are
    /// no more.
    ///
    /// # Errors
    /// [`ArchiveError::Gap`] and [`ArchiveError::Segment`] (also for an error of `each`). All groups before the error
    /// were passed.
    pub fn read(&self, after: Position, each: EachGroup<'_>) -> Result<(), ArchiveError> {
        let mut done = after.0;
        for span in self.spans.iter().filter(|span| span.last > after.0) {
            if span.last <= done {
                continue;
            }
            if span.first > done + 1 {
                let (from, to) = (Position(done + 1), Position(span.first - 1));
                return Err(ArchiveError::Gap { dir: self.dir.clone(), from, to });
            }
            self.read_file(*span, Position(done), each)?;
            done = span.last;
        }
        Ok(())
    }

    /// Checks every file to its end, even if others are damaged. Returns all gaps and damage.
    ///
    /// # Errors
    /// Those of `each`, which receives all undamaged groups.
    pub fn check(&self, each: EachGroup<'_>) -> Vec<ArchiveError> {
        let mut wrong = Vec::new();
        let mut done = self.spans.first().map_or(0, |span| span.first - 1);
        for span in &self.spans {
            if span.first > done + 1 {
                let (from, to) = (Position(done + 1), Position(span.first - 1));
                wrong.push(ArchiveError::Gap { dir: self.dir.clone(), from, to });
            }
            wrong.extend(self.read_file(*span, Position(span.first - 1), each).err());
            done = done.max(span.last);
        }
        wrong
    }

    fn read_file(
        &self,
        span: Span,
        after: Position,
        each: EachGroup<'_>,
    ) -> Result<(), ArchiveError> {
        let path: Arc<Path> = self.dir.join(span.name()).into();
        let file = ReadOnlyDisk.open(&path).map_err(disk_error("open", &path))?;
        let segment = OpenSegment { path, file };
        segment.read_all(span.first, span.last, after, each).map_err(ArchiveError::Segment)
    }
}
