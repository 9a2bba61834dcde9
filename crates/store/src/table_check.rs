//! Comparison of a table file with its checksum, in pieces, while the store is in use.
//!
//! If the file system supports it, the file is read with direct I/O: the page cache may have an intact copy while the
//! disk is damaged, and direct reads evict nothing from the page cache.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3Default;

/// Number of bytes per read.
const PIECE_BYTES: usize = 256 << 10;
/// Number of bytes per read of a file that is not in use.
const READ_BYTES: usize = 1 << 20;
/// Alignment of direct reads, in bytes. It suffices for every disk.
const ALIGNMENT: usize = 4_096;

/// Check of a file.
pub struct TableCheck {
    file: File,
    path: PathBuf,
    expected: u128,
    hash: Xxh3Default,
    at: u64,
    buffer: Vec<u8>,
}

/// Result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableStep {
    /// Number of bytes read. There may be more.
    Read(usize),
    /// The whole file matches its checksum.
    Whole,
    /// The file does not match its checksum, or is unreadable.
    Damaged(String),
}

impl TableCheck {
    /// Opens a file; `None` if it no longer exists, because its rows were merged into other files.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path, expected: u128) -> io::Result<Option<Self>> {
        let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
        let file = match File::options().read(true).custom_flags(direct).open(path) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => File::open(path),
            file => file,
        };
        let file = match file {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let (path, hash, buffer) =
            (path.to_owned(), Xxh3Default::new(), vec![0; PIECE_BYTES + ALIGNMENT]);
        Ok(Some(Self { file, path, expected, hash, at: 0, buffer }))
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the next piece.
    pub fn step(&mut self) -> TableStep {
        let begin = self.buffer.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        let piece = self.buffer.get_mut(begin..begin + PIECE_BYTES).unwrap_or_default();
        let mut read = self.file.read_at(piece, self.at);
        if read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::InvalidInput) {
            // Some file systems allow opening a file for direct reads, but refuse the reads.
            read = File::open(&self.path).and_then(|file| {
                self.file = file;
                self.file.read_at(piece, self.at)
            });
        }
        match read {
            Ok(0) if self.hash.digest128() == self.expected => TableStep::Whole,
            Ok(0) => TableStep::Damaged("the file does not match its checksum".to_owned()),
            Ok(bytes) => {
                self.hash.update(piece.get(..bytes).unwrap_or_default());
                self.at += bytes as u64;
                TableStep::Read(bytes)
            }
            Err(error) => TableStep::Damaged(error.to_string()),
        }
    }
}

/// Compares a file with its checksum. Returns a description of the fault, if any.
pub(crate) fn compare(file: &Path, checksum: u128) -> Option<String> {
    let mut hash = Xxh3Default::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut read = || -> io::Result<u128> {
        let mut file = File::open(file)?;
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(hash.digest128()),
                bytes => hash.update(buffer.get(..bytes).unwrap_or_default()),
            }
        }
    };
    match read() {
        Ok(found) if found == checksum => None,
        Ok(_) => Some("the file does not match its checksum".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}
