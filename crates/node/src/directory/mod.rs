//! The files of a data directory beside its log, its store and its pictures: who uses it, whose it is, and when it was last
//! used; and why it cannot be opened.
//!
//! Read `lock` and `open_error`, then `identity`, `last_run` and `mirror`. Only directories of nodes of a cluster have
//! the files of `membership` and `divergence`.

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

/// The content of a file of the directory `data`; none if there is no such file.
fn read(data: &Path, file: &str) -> io::Result<Option<Vec<u8>>> {
    match fs::read(data.join(file)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        content => content.map(Some),
    }
}

/// Replaces a file of the directory `data` durably: whenever the power fails, it has all of the old content or of the new one.
fn replace(data: &Path, file: &str, content: &str) -> io::Result<()> {
    let temporary = data.join(format!("{file}.tmp"));
    let mut new = File::create(&temporary)?;
    new.write_all(content.as_bytes())?;
    new.sync_all()?;
    fs::rename(temporary, data.join(file))?;
    File::open(data)?.sync_all()
}

/// Removes a file of the directory `data`, if there is one.
fn remove(data: &Path, file: &str) -> io::Result<()> {
    match fs::remove_file(data.join(file)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
