//! Restore: creates a data directory from a backup and the later groups of an archive, up to a point in time.
//!
//! **Invariant:** until everything is durable, the directory is marked as an unfinished restore, and no node opens it.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use backup::{Header, Keyspace, Reader, Summary};
use commitlog::disk::RealDisk;
use commitlog::{
    ArchiveError, ArchiveReader, LocalLog, Log as _, Position, SEGMENT_BYTES, begin_after,
};
use feed::Facts;
use feed::media::FileHash;
use rows::{Rows as _, Totals};
use store::{PutRow, StoreError};
use xxhash_rust::xxh3::xxh3_128;

use crate::backup::NodeBackupError;
use crate::directory::lock::DataLock;
use crate::directory::open_error::OpenError;
use crate::node::{Stored, store_once};
use crate::options::NodeOptions;
use crate::pictures::files::MediaFiles;

/// Options of a restore in addition to the backup.
#[derive(Clone, Copy, Debug, Default)]
pub struct RestoreOptions<'a> {
    /// Directory of an archive.
    pub archive: Option<&'a Path>,
    /// Time after which groups are left out, in milliseconds since 1970.
    pub until_ms: Option<u64>,
    /// Whether to accept other outcomes, see [`NodeOptions::accept_other_outcomes`].
    pub accept_other_outcomes: bool,
}

/// Result of a restore.
#[derive(Clone, Debug)]
pub struct Restored {
    /// Header of the backup.
    pub header: Header,
    /// Content of the backup.
    pub summary: Summary,
    /// Position of the last restored group.
    pub last: u64,
    /// Time of the last restored group, in milliseconds since 1970; the checkpoint's time if the rows contain the
    /// group.
    pub last_ms: u64,
    /// Number of users, posts and follows.
    pub counts: (u64, u64, u64),
    /// Number of missing files that pictures need: files that the backup lacks, and files of pictures that only the
    /// archive has.
    pub missing_files: u64,
    /// First group whose outcomes differ from those that another build acknowledged; the options accept it.
    pub other_outcomes: Option<u64>,
}

/// Creates the directory `data`, which must be empty or missing, from a backup, and adds the later changes of an
/// archive. The needed part of the archive is checked before anything is created. `keys` receives the file of
/// application keys and writes it into the directory, durably. Blocks.
///
/// # Errors
/// [`NodeBackupError`]. Unless the first step failed, the directory is left marked as an unfinished restore.
pub fn restore(
    stream: impl Read,
    data: &Path,
    from: RestoreOptions<'_>,
    keys: impl FnOnce(&[u8]) -> std::io::Result<()>,
) -> Result<Restored, NodeBackupError> {
    let mut reader = Reader::open(stream)?;
    let header = reader.header().clone();
    let until_ms = from.until_ms;
    let archive = from.archive.map(|dir| Archived::find(dir, &header, until_ms)).transpose()?;
    let known_ms = archive.as_ref().map_or(header.made_ms, |archive| archive.known_ms);
    if let Some(until_ms) = until_ms
        && !(header.checkpoint_ms..=known_ms).contains(&until_ms)
    {
        return Err(NodeBackupError::Time(header.checkpoint_ms, known_ms));
    }
    let mut lock = DataLock::take_to_restore(data)?;
    let mut options = NodeOptions::new(data);
    options.accept_other_outcomes = from.accept_other_outcomes;
    let io = |error| OpenError::Directory(data.to_owned(), error);
    restore_rows(&mut reader, &options.store_dir())?;
    let (last, last_ms) =
        restore_log(&mut reader, archive, &options.log_dir(), until_ms.unwrap_or(u64::MAX))?;
    let files = MediaFiles::new(data);
    reader.files(|hash, file| Ok(files.put(&FileHash(*hash), file)?))?;
    files.sync_all().map_err(io)?;
    if let Some(file) = reader.keys()? {
        keys(&file).map_err(io)?;
    }
    let summary = reader.finish()?;
    let Completed { totals, missing_files, other_outcomes } = complete(&options, &mut lock)?;
    let counts = (totals.users.into(), totals.posts, totals.follows);
    let other_outcomes = other_outcomes.map(|position| position.0);
    Ok(Restored { header, summary, last, last_ms, counts, missing_files, other_outcomes })
}

/// Result of completing a new directory.
pub(crate) struct Completed {
    pub(crate) totals: Totals,
    /// Number of missing files of pictures.
    pub(crate) missing_files: u64,
    /// First group whose outcomes differ from those that another build acknowledged.
    pub(crate) other_outcomes: Option<Position>,
}

/// Opens a new directory once, makes it durable, and marks it as complete.
pub(crate) fn complete(options: &NodeOptions, lock: &mut DataLock) -> Result<Completed, OpenError> {
    let Stored { store, other_outcomes, .. } = store_once(options)?;
    let totals = store.totals();
    let missing_files = MediaFiles::new(&options.data).missing(Facts::new(&store));
    drop(store);
    let io = |error| OpenError::Directory(options.data.clone(), error);
    for dir in [&options.store_dir(), &options.data] {
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(io)?;
    }
    lock.close().map_err(io)?;
    Ok(Completed { totals, missing_files, other_outcomes })
}

fn restore_rows<R: Read>(reader: &mut Reader<R>, dir: &Path) -> Result<(), NodeBackupError> {
    let mut failed = None;
    let mut rows = |keyspace, reader: &mut Reader<R>, put: PutRow<'_>| {
        let read = reader.rows(keyspace, |key, value| Ok(put(key, value)?));
        read.map_err(|error| {
            failed = Some(error);
            StoreError::Damaged("its rows cannot be read from the backup")
        })
    };
    let rows = std::cell::RefCell::new(&mut rows);
    let made = store::restore(
        dir,
        reader,
        |reader, put| (rows.borrow_mut())(Keyspace::Ephemeral, reader, put),
        |reader, put| (rows.borrow_mut())(Keyspace::Facts, reader, put),
    );
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(made?),
    }
}

/// Part of an archive that continues a backup.
struct Archived {
    reader: ArchiveReader,
    /// Last group to restore.
    last: u64,
    /// Time up to which the backup and the archive have every change, in milliseconds since 1970.
    known_ms: u64,
}

impl Archived {
    /// Checks that the archive belongs to the directory of the backup, and the part of it that is needed.
    fn find(dir: &Path, header: &Header, until_ms: Option<u64>) -> Result<Self, NodeBackupError> {
        let reader = ArchiveReader::open(dir)?;
        let directory = header.directory.as_deref().ok_or(NodeBackupError::NoIdentity)?;
        if directory != reader.id() {
            return Err(ArchiveError::Foreign(dir.to_owned()).into());
        }
        let (mut last, mut known_ms) = (header.last, header.made_ms);
        let read = reader.read(Position(header.last), &mut |group| {
            let time_ms = group.time_ms;
            known_ms = known_ms.max(time_ms);
            if until_ms.is_some_and(|until_ms| time_ms > until_ms) {
                return Err("the rest is left out".into());
            }
            last = group.position.0;
            Ok(())
        });
        match read {
            // If the time to restore is earlier, the groups that could not be read are not needed.
            Err(source) if until_ms.is_none_or(|until_ms| until_ms >= known_ms) => {
                // The unreadable group may have the same time as the group before it.
                Err(NodeBackupError::ArchiveDamaged {
                    source,
                    until_ms: known_ms.saturating_sub(1),
                })
            }
            _ => Ok(Self { reader, last, known_ms }),
        }
    }

    /// Checks that the archive has the last group of the backup with this time and digest, if the archive begins early
    /// enough. Copies of one data directory can have different histories.
    fn check_continues(&self, position: u64, last: (u64, u128)) -> Result<(), NodeBackupError> {
        let is_there = self.reader.ends().is_some_and(|(first, _)| first.0 <= position);
        let mut found = None;
        if let Some(before) = position.checked_sub(1).filter(|_| is_there) {
            let read = self.reader.read(Position(before), &mut |group| {
                found = Some((group.time_ms, xxh3_128(group.payload)));
                Err("only one group is compared".into())
            });
            // If a group was found, reading ended with the error above.
            if found.is_none() {
                read?;
            }
        }
        match found {
            Some(found) if found != last => Err(NodeBackupError::OtherHistory(position)),
            _ => Ok(()),
        }
    }
}

/// Writes the log of a backup and an archive; returns position and time of the last restored group.
fn restore_log<R: Read>(
    reader: &mut Reader<R>,
    archive: Option<Archived>,
    dir: &Path,
    until_ms: u64,
) -> Result<(u64, u64), NodeBackupError> {
    let checkpoint = Position(reader.header().checkpoint);
    let mut last_ms = reader.header().checkpoint_ms;
    begin_after(&RealDisk, dir, checkpoint, SEGMENT_BYTES)?;
    let mut log = LocalLog::open(Arc::new(RealDisk), dir, checkpoint)?;
    let mut failed = None;
    let mut append = |position: u64, time_ms: u64, payload: &[u8]| {
        if time_ms <= until_ms {
            let placed = log.write_group(payload, time_ms).map_err(|error| {
                failed = Some(error);
                "the log cannot be written"
            })?;
            assert_eq!(placed.position.0, position, "groups have no gaps");
            last_ms = time_ms;
        }
        Ok(())
    };
    let mut last_of_backup = None;
    let read = reader.groups(|group| {
        last_of_backup = Some((group.time_ms, xxh3_128(group.payload)));
        append(group.position, group.time_ms, group.payload)
    });
    if let (Some(archive), Some(last), Ok(())) = (&archive, last_of_backup, &read) {
        archive.check_continues(reader.header().last, last)?;
    }
    let archived = match &archive {
        Some(archive) if read.is_ok() && archive.last > reader.header().last => {
            archive.reader.read(Position(reader.header().last), &mut |group| {
                if group.position.0 > archive.last {
                    return Err("the rest is left out".into());
                }
                append(group.position.0, group.time_ms, group.payload)
            })
        }
        _ => Ok(()),
    };
    if let Some(error) = failed {
        return Err(error.into());
    }
    read?;
    let done = archive.is_none_or(|archive| archive.last <= log.last().0);
    match archived {
        // The error of the first group that is left out ends the reading.
        Err(error) if !done => return Err(error.into()),
        _ => {}
    }
    log.sync()?;
    Ok((log.last().0, last_ms))
}
