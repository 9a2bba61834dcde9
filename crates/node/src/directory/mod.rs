//! Small files of a data directory, in addition to its log, store and pictures: lock, identity and time of the last
//! run; and the errors of opening it.
//!
//! Read `lock` and `open_error`, then `identity`, `last_run` and `mirror`. Only directories of cluster nodes have the
//! files of `membership` and `divergence`.

pub(crate) mod divergence;
pub(crate) mod identity;
pub(crate) mod last_run;
pub(crate) mod lock;
pub(crate) mod membership;
pub(crate) mod mirror;
pub(crate) mod open_error;

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

/// Returns the content of a file of the directory `data`; `None` if the file does not exist.
fn read(data: &Path, file: &str) -> io::Result<Option<Vec<u8>>> {
    match fs::read(data.join(file)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        content => content.map(Some),
    }
}

/// Replaces a file of the directory `data` atomically and durably: after a power loss it has either the old or the new
/// content.
fn replace(data: &Path, file: &str, content: &str) -> io::Result<()> {
    let temporary = data.join(format!("{file}.tmp"));
    let mut new = File::create(&temporary)?;
    new.write_all(content.as_bytes())?;
    new.sync_all()?;
    fs::rename(temporary, data.join(file))?;
    File::open(data)?.sync_all()
}

/// Removes a file of the directory `data`, if it exists.
fn remove(data: &Path, file: &str) -> io::Result<()> {
    match fs::remove_file(data.join(file)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
