//! Reads the files of pictures one by one, compares them with their names, and finds those that are missing: for backups,
//! repairs, checks and the scrub. A directory of files at a time, so that its names are all that is in memory.

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

/// Rows that are read at a time.
const STRIDE: usize = 4_096;
/// Files that are named one by one; of the others their number is.
const NAMED_MAX: usize = 1_000;

/// A file of a picture as it was found.
pub(crate) enum FoundFile {
    /// As its name says.
    Whole(Vec<u8>),
    /// There is none.
    Missing,
    /// It is another one, or cannot be read.
    Damaged,
}

/// Files of pictures, and what is wrong with them.
#[derive(Debug, Default)]
pub struct FilesReport {
    /// Number of files that are as their names say.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that are missing or damaged, by name; the last line may say how many more there are.
    pub damage: Vec<String>,
    /// Their number.
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
    /// Whether there is the file with this length and hash. May block.
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

    /// The files of directory number `directory`, and those that pictures need there, in order: each with whether a picture
    /// needs it.
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
        // After the rows: a file is durable before it has a row.
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

    /// Reads all files, and gives them to `each` in order. Those that are damaged and that no picture needs are left out.
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

    /// Number of files that pictures need and that do not exist.
    pub(crate) fn missing<R: Rows + ?Sized>(&self, facts: Facts<'_, R>) -> u64 {
        let (mut missing, mut from) = (0, Some(Vec::new()));
        while let Some(key) = from {
            let (needed, next) = facts.needed_files(&key, STRIDE);
            missing += needed.iter().filter(|hash| !self.path(hash).is_file()).count() as u64;
            from = next;
        }
        missing
    }

    /// Stores a file in a directory that nobody uses yet. It is durable after [`MediaFiles::sync_all`].
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

/// Copies all files that are whole into a new directory.
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
