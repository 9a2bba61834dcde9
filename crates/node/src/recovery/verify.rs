//! Verification of the data directory of a stopped node.

use std::error::Error;
use std::path::Path;

use commitlog::{Checked, Position};
use feed::Facts;
use rows::{Rows as _, Stamp};
use store::{RowsReport, Store, unless_unreadable};

use super::repair::check;
use crate::clock::ClockError;
use crate::directory::last_run::LastRun;
use crate::directory::lock::DataLock;
use crate::directory::mirror::Mirror;
use crate::directory::open_error::OpenError;
use crate::options::NodeOptions;
use crate::pictures::check::FilesReport;
use crate::pictures::files::MediaFiles;
use crate::submission::entry::Entry;

/// Maximum number of groups that are named individually.
const NAMED_MAX: usize = 10;

/// Result of a check.
#[derive(Debug)]
pub struct DataReport {
    /// Report on the store, or the reason why it cannot be opened.
    pub store: Result<RowsReport, String>,
    /// Report on the log, or its first damage.
    pub log: Result<Checked, OpenError>,
    /// Report on the files of pictures; `None` if the rows cannot be read.
    pub files: Option<FilesReport>,
    /// Reason why a server would refuse the recorded time of its last run, if that is damage.
    pub last_run: Result<(), OpenError>,
    /// Entries of the log that a server could not read.
    pub entries: Vec<String>,
}

/// Checks every row of the store and every group of the log in `data`. Changes no row and no group. Blocks.
///
/// # Errors
/// [`OpenError`] if another process uses the directory, or it is unusable.
pub fn verify(data: &Path) -> Result<DataReport, OpenError> {
    let options = NodeOptions::new(data);
    if !options.log_dir().is_dir() && !options.store_dir().is_dir() {
        let what = "it has neither a log nor a store";
        let error = std::io::Error::new(std::io::ErrorKind::NotFound, what);
        return Err(OpenError::Directory(data.to_owned(), error));
    }
    let lock = DataLock::take_to_read(data)?;
    let mirror = lock.is_read_only().then(|| Mirror::of(&options)).transpose()?;
    let explain = |error: &(dyn Error + 'static)| match &mirror {
        Some(mirror) => mirror.explain(&causes(error)),
        None => causes(error),
    };
    let of_store = mirror.as_ref().map_or(&options, Mirror::options);
    let (mut files, mut last_run) = (None, Ok(()));
    let mut store = store::verify(&of_store.store_dir()).map_err(|error| explain(&error));
    if let Ok(report) = store.as_mut()
        && report.damage.is_empty()
    {
        let checked = unless_unreadable(|| {
            let (mut rows, _) = Store::open(&of_store.store_dir(), of_store.store())?;
            check(&mut rows, &mut |finding| report.damage.push(finding.what))?;
            let read = MediaFiles::new(data).check(Facts::new(&rows));
            files = Some(read.map_err(|error| OpenError::Directory(data.to_owned(), error))?);
            last_run = check_last_run(&options, rows.totals().last_stamp);
            Ok(())
        });
        let checked: Option<Result<(), OpenError>> = checked;
        match checked {
            Some(Ok(())) => {}
            Some(Err(error)) => report.damage.push(explain(&error)),
            None => report.damage.push("rows cannot be read".to_owned()),
        }
    }
    if let (Ok(report), Some(mirror)) = (&mut store, &mirror) {
        report.damage.iter_mut().for_each(|what| *what = mirror.explain(what));
    }
    // Without the position of the store, the existing groups can still be checked.
    let applied = store.as_ref().map(|report| Position(report.applied));
    let log = match applied {
        Ok(applied) => commitlog::check(&options.log_dir(), applied),
        Err(_) => commitlog::check_all(&options.log_dir()),
    };
    let entries = match &log {
        Ok(_) => unreadable_entries(&options, applied.unwrap_or_default())?,
        Err(_) => Vec::new(),
    };
    Ok(DataReport { store, log: log.map_err(OpenError::from), files, last_run, entries })
}

/// Checks that the recorded time of the last run is plausible: fails if it is in the future and no row has such a time.
/// A wrong clock of this machine has the same effect.
fn check_last_run(options: &NodeOptions, last: Option<Stamp>) -> Result<(), OpenError> {
    let last_ms = LastRun::read_of(&options.data)?.max(last.map_or(0, Stamp::unix_ms));
    match options.clock.check(last_ms, Some(options.clock_jump_max)) {
        Err(error @ ClockError::Behind(..)) => Err(error.into()),
        // The server was stopped for long, or the clock of this machine is wrong.
        _ => Ok(()),
    }
}

/// Returns the groups after `applied` that have a right checksum but that this program cannot read.
fn unreadable_entries(options: &NodeOptions, applied: Position) -> Result<Vec<String>, OpenError> {
    let mut unreadable = Vec::new();
    commitlog::salvage(&options.log_dir(), &mut |group| {
        let mut rest = group.payload;
        while group.position > applied && !rest.is_empty() && unreadable.len() < NAMED_MAX {
            match Entry::read(rest) {
                Ok((_, after)) => rest = after,
                Err(error) => {
                    let position = group.position.0;
                    unreadable
                        .push(format!("group {position} of the log cannot be applied: {error}"));
                    break;
                }
            }
        }
        Ok(())
    })?;
    Ok(unreadable)
}

/// Formats an error with its causes.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
