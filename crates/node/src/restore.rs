//! Making a data directory of a backup, up to a point in time.
//!
//! **Invariant:** until everything is durable, the directory is marked as an unfinished restore, which no node
//! opens.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use backup::{Header, Keyspace, Reader, Summary};
use commitlog::disk::RealDisk;
use commitlog::{LocalLog, Log as _, Position, SEGMENT_BYTES, begin_after};
use rows::{Rows as _, Totals};
use store::{PutRow, StoreError};

use crate::backup::NodeBackupError;
use crate::lock::DataLock;
use crate::node::recover_once;
use crate::open_error::OpenError;
use crate::options::NodeOptions;

/// A restored directory.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The description of the backup.
    pub header: Header,
    /// What the backup holds.
    pub summary: Summary,
    /// Position of the last group that was restored.
    pub last: u64,
    /// Number of users, posts and follows.
    pub counts: (u64, u64, u64),
}

/// Makes the directory `data`, which must be empty or missing, from a backup. Groups of the log after `until_ms`
/// (milliseconds since 1970) are left out. `keys` gets the file of application keys and puts it into the
/// directory, durably. Blocks.
///
/// # Errors
/// [`NodeBackupError`]. Unless it was the first step that failed, the directory is then marked as an unfinished
/// restore.
pub fn restore(
    stream: impl Read,
    data: &Path,
    until_ms: Option<u64>,
    keys: impl FnOnce(&[u8]) -> std::io::Result<()>,
) -> Result<Restored, NodeBackupError> {
    let mut reader = Reader::open(stream)?;
    let header = reader.header().clone();
    if let Some(until_ms) = until_ms
        && !(header.checkpoint_ms..=header.made_ms).contains(&until_ms)
    {
        return Err(NodeBackupError::Time(header.checkpoint_ms, header.made_ms));
    }
    let mut lock = DataLock::take_to_restore(data)?;
    let options = NodeOptions::new(data);
    let io = |error| OpenError::Directory(data.to_owned(), error);
    restore_rows(&mut reader, &options.store_dir())?;
    let last = restore_log(&mut reader, &options.log_dir(), until_ms.unwrap_or(u64::MAX))?;
    if let Some(file) = reader.keys()? {
        keys(&file).map_err(io)?;
    }
    let summary = reader.finish()?;
    let totals = complete(&options, &mut lock)?;
    let counts = (totals.users.into(), totals.posts, totals.follows);
    Ok(Restored { header, summary, last, counts })
}

/// Opens a directory once that was made, makes it durable, and marks it as complete.
pub(crate) fn complete(options: &NodeOptions, lock: &mut DataLock) -> Result<Totals, OpenError> {
    let totals = recover_once(options)?.totals();
    let io = |error| OpenError::Directory(options.data.clone(), error);
    for dir in [&options.store_dir(), &options.data] {
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(io)?;
    }
    lock.close().map_err(io)?;
    Ok(totals)
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

/// Returns the position of the last group that was restored.
fn restore_log<R: Read>(
    reader: &mut Reader<R>,
    dir: &Path,
    until_ms: u64,
) -> Result<u64, NodeBackupError> {
    let checkpoint = Position(reader.header().checkpoint);
    begin_after(&RealDisk, dir, checkpoint, SEGMENT_BYTES)?;
    let mut log = LocalLog::open(Arc::new(RealDisk), dir, checkpoint)?;
    let mut failed = None;
    let read = reader.groups(|group| {
        if group.time_ms <= until_ms {
            let placed = log.append(group.payload, group.time_ms);
            let placed = placed.map_err(|error| {
                failed = Some(error);
                "the log cannot be written"
            })?;
            assert_eq!(placed.position.0, group.position, "groups have no gaps");
        }
        Ok(())
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    read?;
    log.sync()?;
    Ok(log.last().0)
}
