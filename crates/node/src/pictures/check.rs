//! Checks of the files of pictures: reads them one by one, compares them with their names, and finds missing ones, for
//! backups, repairs, verification and the scrub. Only the names of one directory at a time are in memory.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use feed::Facts;
use feed::media::FileHash;
use media::STORED_BYTES_MAX;
use rows::Rows;
use sha2::{Digest as _, Sha256};

use super::files::{DIRECTORIES, MediaFiles, hash_of, hex, make_directory, sync, write};

/// Number of rows that are read at a time.
const STRIDE: usize = 4_096;
/// Maximum number of files that are named individually; the others are counted.
const NAMED_MAX: usize = 1_000;

/// State of a file of a picture.
pub(crate) enum FoundFile {
    /// The file matches its name.
    Whole(Vec<u8>),
    /// The file does not exist.
    Missing,
    /// The file does not match its name, or is unreadable.
    Damaged,
}

/// Report on files of pictures and their damage.
#[derive(Debug, Default)]
pub struct FilesReport {
    /// Number of files that match their names.
    pub files: u64,
    /// Total size of these files, in bytes.
    pub bytes: u64,
    /// Names of missing or damaged files; the last line may have the number of further ones.
    pub damage: Vec<String>,
    /// Number of missing or damaged files.
    pub damaged: u64,
}

impl FilesReport {
    /// Counts a file.
    pub(crate) fn count(&mut self, files: &MediaFiles, hash: &FileHash, found: &FoundFile) {
        let what = match found {
            FoundFile::Whole(bytes) => {
                self.files += 1;
                self.bytes += bytes.len() as u64;
                return;
            }
            FoundFile::Missing => "is missing",
            FoundFile::Damaged => "is damaged",
        };
        self.damaged += 1;
        if self.damage.len() < NAMED_MAX {
            self.damage
                .push(format!("{}: the file of a picture {what}", files.path(hash).display()));
        }
    }

    pub(crate) fn end(mut self) -> Self {
        let more = self.damaged - self.damage.len() as u64;
        self.damage.extend((more > 0).then(|| format!("and {more} more files of pictures")));
        self
    }
}

impl MediaFiles {
    /// Whether a file with this length and hash exists. May block.
    pub(crate) fn is_whole(&self, hash: &FileHash, bytes: u64) -> bool {
        let has_length = fs::metadata(self.path(hash)).is_ok_and(|file| file.len() == bytes);
        has_length && matches!(self.read(hash), FoundFile::Whole(_))
    }

    /// Reads a file and compares it with its name.
    pub(crate) fn read(&self, hash: &FileHash) -> FoundFile {
        let mut bytes = Vec::new();
        let read = self.open(hash).and_then(|file| {
            file.take(STORED_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
            Ok(FileHash(Sha256::digest(&bytes).into()))
        });
        match read {
            Ok(found) if found == *hash => FoundFile::Whole(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => FoundFile::Missing,
            _ => FoundFile::Damaged,
        }
    }

    /// Returns the files in the directory with the number `directory`, and the files that pictures need there, in
    /// order, each with whether a picture needs it.
    pub(crate) fn listed<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        directory: u16,
    ) -> io::Result<BTreeMap<FileHash, bool>> {
        let first = directory as u8;
        let mut listed = BTreeMap::new();
        let mut from = Some(vec![first]);
        while let Some(key) = from {
            let (needed, next) = facts.needed_files(&key, STRIDE);
            let here = needed.iter().take_while(|hash| hash.0.first() == Some(&first));
            listed.extend(here.map(|hash| (*hash, true)));
            from = next.filter(|next| next.first() == Some(&first));
        }
        // Files are listed after the rows are read, because a file is durable before it has a row.
        let files = match fs::read_dir(self.dir.join(hex(&[first]))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(listed),
            files => files?,
        };
        for file in files {
            let hash = file?.file_name().to_str().and_then(hash_of);
            if let Some(hash) = hash.filter(|hash| hash.0.first() == Some(&first)) {
                listed.entry(hash).or_insert(false);
            }
        }
        Ok(listed)
    }

    /// Reads all files and passes them to `each` in order, except damaged ones that no picture needs.
    pub(crate) fn each<R: Rows + ?Sized, E: From<io::Error>>(
        &self,
        facts: Facts<'_, R>,
        mut each: impl FnMut(&FileHash, FoundFile) -> Result<(), E>,
    ) -> Result<(), E> {
        for directory in 0..DIRECTORIES {
            for (hash, is_needed) in self.listed(facts, directory)? {
                let found = self.read(&hash);
                if is_needed || matches!(found, FoundFile::Whole(_)) {
                    each(&hash, found)?;
                }
            }
        }
        Ok(())
    }

    /// Checks all files.
    pub(crate) fn check<R: Rows + ?Sized>(&self, facts: Facts<'_, R>) -> io::Result<FilesReport> {
        let mut report = FilesReport::default();
        self.each(facts, |hash, found| {
            report.count(self, hash, &found);
            Ok::<_, io::Error>(())
        })?;
        Ok(report.end())
    }

    /// Returns the number of missing files that pictures need.
    pub(crate) fn missing<R: Rows + ?Sized>(&self, facts: Facts<'_, R>) -> u64 {
        let (mut missing, mut from) = (0, Some(Vec::new()));
        while let Some(key) = from {
            let (needed, next) = facts.needed_files(&key, STRIDE);
            missing += needed.iter().filter(|hash| !self.path(hash).is_file()).count() as u64;
            from = next;
        }
        missing
    }

    /// Stores a file in a directory that is not in use yet. It is durable after [`MediaFiles::sync_all`].
    pub(crate) fn put(&self, hash: &FileHash, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(hash);
        make_directory(&self.dir)?;
        path.parent().map(make_directory).transpose()?;
        write(&path, bytes)
    }

    /// Makes the names of all files durable.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        if !self.dir.is_dir() {
            return Ok(());
        }
        for directory in fs::read_dir(&self.dir)? {
            sync(&directory?.path())?;
        }
        sync(&self.dir)?;
        self.dir.parent().map(sync).transpose().map(drop)
    }
}

/// Copies all undamaged files into a new directory.
pub(crate) fn copy<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    (from, to): (&Path, &Path),
) -> io::Result<FilesReport> {
    let (from, to) = (MediaFiles::new(from), MediaFiles::new(to));
    let mut report = FilesReport::default();
    from.each(facts, |hash, found| {
        report.count(&from, hash, &found);
        match found {
            FoundFile::Whole(bytes) => to.put(hash, &bytes),
            _ => Ok::<_, io::Error>(()),
        }
    })?;
    to.sync_all()?;
    Ok(report.end())
}
