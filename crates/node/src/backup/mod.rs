//! Backup of a data directory: the rows of a checkpoint, and the later groups of the log.
//!
//! It takes no lock and does not pause the writer: rows come from an iterator, the log is read through handles that
//! stay readable when it is cut, and a group is read after its append has returned.
//!
//! Read this file, then `archive`, the thread that copies the log into an archive, which continues a backup.

pub(crate) mod archive;
pub(crate) mod last_backup;

use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use backup::{BackupError, Group, Header, Keyspace, Summary, Writer};
use commitlog::disk::RealDisk;
use commitlog::{ArchiveError, LogError, LogReader, Position};
use feed::Facts;
use rows::Stamp;
use store::{Snapshot, Store, StoreError, unless_unreadable};

use crate::directory::identity;
use crate::directory::lock::DataLock;
use crate::directory::mirror::Mirror;
use crate::directory::open_error::OpenError;
use crate::options::NodeOptions;
use crate::pictures::check::{FilesReport, FoundFile};
use crate::pictures::files::{HeldFiles, MediaFiles};

/// Longest wait of a backup for the end of a checkpoint.
const WAIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);

/// Reason why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum NodeBackupError {
    /// The directory cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log cannot be read.
    #[error("the log cannot be read")]
    Log(#[from] LogError),
    /// The store cannot be read.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    /// The backup cannot be written or read.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The archive cannot be used.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The archive is damaged or has a gap before the time to restore.
    #[error("to restore the state before the damage, add --to {}", time(*.until_ms))]
    ArchiveDamaged {
        /// Damage of the archive.
        source: ArchiveError,
        /// Last time whose state is known, in milliseconds since 1970.
        until_ms: u64,
    },
    /// The archive and the backup have different groups at the end of the backup.
    #[error(
        "the archive does not continue the backup: its group {0} differs. One of them belongs to a copy of the data directory that was used separately"
    )]
    OtherHistory(u64),
    /// The data directory of the backup or the log is unknown.
    #[error("the backup does not name its data directory, so no archive can be applied to it")]
    NoIdentity,
    /// A checkpoint takes long.
    #[error("a checkpoint is running; try again later")]
    Busy,
    /// A crash left a checkpoint unfinished.
    #[error("start the server on this directory once and stop it, then try again: {0}")]
    NeedsServer(&'static str),
    /// The time to restore is not between the checkpoint and the end of the backup.
    #[error("only times from {} to {} can be restored", time(*.0), time(*.1))]
    Time(u64, u64),
}

/// Formats a time in milliseconds since 1970.
pub(crate) fn time(ms: u64) -> String {
    let timestamp =
        i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    timestamp.map_or_else(|| format!("{ms} ms after 1970"), |timestamp| timestamp.to_string())
}

/// A backup that can be written: all its files are open.
pub struct Backup {
    header: Header,
    rows: Snapshot,
    /// Log of the node; `None` in a cluster, where the rows have everything.
    log: Option<LogReader>,
    /// Present store, and the files of all pictures, including those that only earlier rows need.
    files: (Store, HeldFiles),
}

impl Backup {
    /// Creates a backup of a running node. The backup includes everything up to `last()`: in the groups of the log in
    /// `log_dir`, or in a cluster, which has no log here, in the rows. Calls `request_checkpoint` until there are such
    /// rows. Waits for files of pictures while `lacks_files` returns true, but not longer than for rows; the backup
    /// reports the files that are then still missing. `roost` is the version of the program. Blocks.
    pub(crate) fn of_running(
        (store, files): (&Store, &Arc<MediaFiles>),
        log_dir: Option<&Path>,
        (last, request_checkpoint): (impl Fn() -> u64, impl Fn()),
        lacks_files: impl Fn() -> bool,
        (roost, directory, made_ms): (&str, String, u64),
    ) -> Result<Self, NodeBackupError> {
        let start = Instant::now();
        // Files are held before the rows are read, so that the files of all pictures in the rows exist until the backup
        // ends.
        let held = files.hold();
        let needed = if log_dir.is_some() { 0 } else { last() };
        loop {
            let is_late = start.elapsed() > WAIT;
            // The log is opened before the rows are read: otherwise a segment with groups after the rows could be cut
            // first.
            let log = log_dir.map(|dir| open_log(dir, store)).transpose()?;
            let rows = store.snapshot()?.filter(|rows| rows.applied() >= needed);
            match rows {
                Some(rows) if is_late || !lacks_files() => {
                    let (mut log, mut up_to) = (log, rows.applied());
                    if let Some(log) = &mut log {
                        up_to = last();
                        log.refresh()?;
                    }
                    let of = (log, (store.clone(), held));
                    return Ok(Self::of(rows, of, up_to, (roost, Some(directory), made_ms)));
                }
                Some(_) => {}
                None if is_late => return Err(NodeBackupError::Busy),
                None => request_checkpoint(),
            }
            thread::sleep(PAUSE);
        }
    }

    fn of(
        rows: Snapshot,
        (log, files): (Option<LogReader>, (Store, HeldFiles)),
        last: u64,
        (roost, directory, made_ms): (&str, Option<String>, u64),
    ) -> Self {
        let header = Header {
            roost: roost.to_owned(),
            directory,
            made_ms,
            checkpoint: rows.applied(),
            checkpoint_ms: rows.totals().last_stamp.map_or(0, Stamp::unix_ms),
            last,
        };
        Self { header, rows, log, files }
    }

    /// Creates a backup of the directory of a stopped node; passes it to `write` while it holds the lock. Blocks.
    ///
    /// # Errors
    /// [`NodeBackupError`], and those of `write`.
    pub fn of_stopped<T>(
        options: &NodeOptions,
        roost: &str,
        write: impl FnOnce(Self) -> Result<T, NodeBackupError>,
    ) -> Result<T, NodeBackupError> {
        if !options.log_dir().is_dir() {
            let error = std::io::Error::new(std::io::ErrorKind::NotFound, "it has no log");
            return Err(OpenError::Directory(options.data.clone(), error).into());
        }
        let lock = DataLock::take_to_read(&options.data)?;
        let mirror = lock.is_read_only().then(|| Mirror::of(options)).transpose()?;
        let options = mirror.as_ref().map_or(options, Mirror::options);
        let log = options.log_dir();
        let (rows, applied) = Store::open(&options.store_dir(), options.store())?;
        let last = commitlog::check(&log, Position(applied))?.last.0;
        let why = "a checkpoint was not finished";
        let snapshot = rows.store().snapshot()?.ok_or(NodeBackupError::NeedsServer(why))?;
        let log = LogReader::open(Arc::new(RealDisk), &log)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let made = (roost, identity::read(&options.data)?, now.as_millis() as u64);
        let files = Arc::new(MediaFiles::new(&options.data)).hold();
        write(Self::of(snapshot, (Some(log), (rows.store(), files)), last, made))
    }

    /// Returns the header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Writes the backup, with the file of application keys if there is one. Blocks.
    ///
    /// # Errors
    /// [`NodeBackupError`]; the written data is then incomplete.
    pub fn write<W: Write>(
        self,
        keys: Option<&[u8]>,
        out: W,
    ) -> Result<(W, Summary), NodeBackupError> {
        let Self { header, rows, log, files } = self;
        let mut writer = Writer::new(out, &header).map_err(BackupError::Io)?;
        write_rows(rows, &mut writer)?;
        if let Some(log) = log {
            write_groups(&log, &header, &mut writer)?;
        }
        let written = unless_unreadable(|| write_files(&files, &mut writer));
        written.ok_or(OpenError::Unreadable)?.map_err(BackupError::Io)?;
        drop(files);
        if let Some(keys) = keys {
            writer.keys(keys).map_err(BackupError::Io)?;
        }
        Ok(writer.finish().map_err(BackupError::Io)?)
    }
}

/// Opens the log from the checkpoint on. Earlier segments are not needed, and many may be kept for an archive.
fn open_log(dir: &Path, store: &Store) -> Result<LogReader, NodeBackupError> {
    let before = Position(store.snapshot()?.map_or(0, |rows| rows.applied()));
    Ok(LogReader::open_after(Arc::new(RealDisk), dir, before, usize::MAX)?)
}

fn write_rows<W: Write>(rows: Snapshot, writer: &mut Writer<W>) -> Result<(), NodeBackupError> {
    let mut failed = None;
    let state = RefCell::new((writer, &mut failed));
    let row = |keyspace, key: &[u8], value: &[u8]| {
        let (writer, failed) = &mut *state.borrow_mut();
        writer.row(keyspace, key, value).map_err(|error| {
            **failed = Some(error);
            StoreError::Damaged("its rows cannot be written")
        })
    };
    let read = rows
        .read(&mut |key, value| row(Keyspace::Ephemeral, key, value), &mut |key, value| {
            row(Keyspace::Facts, key, value)
        });
    match failed {
        Some(error) => Err(BackupError::Io(error).into()),
        None => Ok(read?),
    }
}

/// Writes the files that pictures need now, and the existing files that pictures needed earlier, because rows of the
/// checkpoint may need these.
fn write_files<W: Write>(
    (store, files): &(Store, HeldFiles),
    writer: &mut Writer<W>,
) -> std::io::Result<()> {
    let mut report = FilesReport::default();
    files.0.each(Facts::new(store), |hash, found| {
        report.count(&files.0, hash, &found);
        match found {
            FoundFile::Whole(bytes) => writer.file(&hash.0, &bytes),
            FoundFile::Missing | FoundFile::Damaged => {
                writer.lost_file();
                Ok(())
            }
        }
    })?;
    for what in report.end().damage {
        tracing::error!("{what}");
    }
    Ok(())
}

fn write_groups<W: Write>(
    log: &LogReader,
    header: &Header,
    writer: &mut Writer<W>,
) -> Result<(), NodeBackupError> {
    let (after, up_to) = (Position(header.checkpoint), Position(header.last));
    let mut failed = None;
    let read = log.read(after, up_to, &mut |group| {
        let (position, time_ms, payload) = (group.position.0, group.time_ms, group.payload);
        writer.group(Group { position, time_ms, payload }).map_err(|error| {
            failed = Some(BackupError::Io(error).into());
            "the group cannot be written".into()
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(read?),
    }
}
