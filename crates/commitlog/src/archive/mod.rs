//! Archive: a separate directory with copies of the groups of one log, in files that never change. With a backup and an
//! archive, every later state can be restored. Any tool can copy the files.
//!
//! A file is a segment as [`crate::format`] describes, exactly as long as its groups. Its name has the positions of its
//! first and last group, 20 digits each (`FIRST-LAST.log`), so a missing file is visible. The file `roost-archive`
//! identifies the log of the archive; the process that writes to the archive locks it.
//!
//! - **Invariant:** a file gets its name when all of it is durable, and never changes after that.
//! - **Invariant:** every group is checked when it is copied, and again when it is read.
//! - Files may overlap, for example when groups were archived again because a file had been moved away. The groups at
//!   the same position are then the same.

mod read;
mod write;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::{LogError, Position};

pub use read::ArchiveReader;
pub use write::{ARCHIVE_MEMORY, Archive};

const MARK: &str = "roost-archive";
const MARK_PREFIX: &str = "roost archive 1 ";
/// Maximum length of the mark file that is read, in bytes.
const MARK_BYTES_MAX: u64 = 256;

/// Reason why an archive cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The directory is not an archive.
    #[error("{} is not an archive: it has no file {MARK}", .0.display())]
    NotAnArchive(PathBuf),
    /// The archive was made from another log.
    #[error("the archive {} belongs to another data directory", .0.display())]
    Foreign(PathBuf),
    /// The archive has groups that the log lacks, or the log has different groups at their positions.
    #[error(
        "the archive {} has different changes than this data directory, which is an older state or a copy of the \
         archived directory; use an empty directory as the archive", .0.display()
    )]
    Diverged(PathBuf),
    /// Another process writes to the archive.
    #[error("another process writes to the archive {}", .0.display())]
    InUse(PathBuf),
    /// Groups are missing in all files.
    #[error("the archive {} lacks the groups {} to {}", dir.display(), from.0, to.0)]
    Gap {
        /// Directory of the archive.
        dir: PathBuf,
        /// First missing group.
        from: Position,
        /// Last missing group.
        to: Position,
    },
    /// A file of the archive is damaged, or the receiver of a group refused it.
    #[error(transparent)]
    Segment(LogError),
    /// The log to archive cannot be read.
    #[error("the log cannot be read")]
    Log(#[from] LogError),
    /// The operating system reports an error.
    #[error("cannot {doing} {}", file.display())]
    Disk {
        /// Operation, as a verb.
        doing: &'static str,
        /// File or directory.
        file: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

fn disk_error(doing: &'static str, file: &Path) -> impl FnOnce(io::Error) -> ArchiveError {
    let file = file.to_owned();
    move |source| ArchiveError::Disk { doing, file, source }
}

/// Positions of the first and the last group of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    first: u64,
    last: u64,
}

impl Span {
    fn name(self) -> String {
        format!("{:020}-{:020}.log", self.first, self.last)
    }

    fn of_name(name: &str) -> Option<Self> {
        let (first, last) = name.strip_suffix(".log")?.split_once('-')?;
        let number = |digits: &str| {
            let all_digits = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
            if all_digits { digits.parse().ok() } else { None }
        };
        let span = Self { first: number(first)?, last: number(last)? };
        (1 <= span.first && span.first <= span.last && span.last < u64::MAX).then_some(span)
    }
}

fn spans(disk: &dyn Disk, dir: &Path) -> Result<Vec<Span>, ArchiveError> {
    let names = disk.list(dir).map_err(disk_error("list", dir))?;
    let mut spans: Vec<Span> = names.iter().filter_map(|name| Span::of_name(name)).collect();
    spans.sort_unstable();
    Ok(spans)
}

/// Returns the id in the mark file of an archive; `None` if the id was not written yet.
fn read_mark(dir: &Path, file: &File) -> Result<Option<String>, ArchiveError> {
    let mut text = String::new();
    let read = io::Read::read_to_string(&mut io::Read::take(file, MARK_BYTES_MAX), &mut text);
    match read {
        Ok(0) => return Ok(None),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
        Err(error) => return Err(disk_error("read", &dir.join(MARK))(error)),
    }
    let id = text.strip_prefix(MARK_PREFIX).and_then(|rest| rest.strip_suffix('\n'));
    id.map(|id| Some(id.to_owned())).ok_or_else(|| ArchiveError::NotAnArchive(dir.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_positions_in_20_digits() {
        let span = Span { first: 7, last: 4_711 };
        assert_eq!(span.name(), "00000000000000000007-00000000000000004711.log");
        assert_eq!(Span::of_name(&span.name()), Some(span));
        for name in [
            "00000000000000000000-00000000000000004711.log",
            "00000000000000000008-00000000000000000007.log",
            "00000000000000000007-18446744073709551615.log",
            "00000000000000000007-99999999999999999999.log",
            "+0000000000000000007-00000000000000000008.log",
            "00000000000000000007.log",
            "7-8.log",
            "next.tmp",
        ] {
            assert_eq!(Span::of_name(name), None, "{name}");
        }
    }
}
