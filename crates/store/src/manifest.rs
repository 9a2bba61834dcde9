//! Checks what the engine does not check when it opens its files: each keyspace has a manifest, which names
//! its tables, and the file `current` names the manifest and has its checksum. The engine reads neither
//! checksum, and it removes a keyspace without `current`, with everything in it.
//!
//! **Invariant:** a store that fails this check has not been changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use crate::error::StoreError;

/// The file that names the manifest: its number (`u64`), its checksum (`u128`), and 0 for xxh3; numbers little
/// endian.
const CURRENT: &str = "current";

/// Checks the manifests of all keyspaces of the database in `database`.
///
/// # Errors
/// If a file is missing or was changed, or cannot be read.
pub(crate) fn check(database: &Path) -> Result<(), StoreError> {
    let keyspaces = database.join("keyspaces");
    for keyspace in fs::read_dir(&keyspaces).map_err(at(&keyspaces))? {
        let keyspace = keyspace.map_err(at(&keyspaces))?.path();
        if keyspace.is_dir() {
            check_keyspace(&keyspace)?;
        }
    }
    Ok(())
}

fn check_keyspace(keyspace: &Path) -> Result<(), StoreError> {
    let current = keyspace.join(CURRENT);
    let damaged = |path: &Path, what| StoreError::DamagedFile { path: path.to_owned(), what };
    let Some(bytes) = read(&current)? else {
        // The engine stopped while it made this keyspace, and begins again. But one with tables was whole.
        let tables = keyspace.join("tables");
        let is_new = match fs::read_dir(&tables) {
            Ok(mut files) => files.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(at(&tables)(error)),
        };
        return if is_new { Ok(()) } else { Err(damaged(&current, "it is missing")) };
    };
    let parts = bytes.split_first_chunk::<8>().and_then(|(number, rest)| {
        let (checksum, rest) = rest.split_first_chunk::<16>()?;
        Some((u64::from_le_bytes(*number), u128::from_le_bytes(*checksum), rest))
    });
    let Some((number, checksum, [0])) = parts else {
        return Err(damaged(&current, "it is not as it was written"));
    };
    let manifest = keyspace.join(format!("v{number}"));
    match read(&manifest)? {
        None => Err(damaged(&manifest, "it is missing")),
        Some(bytes) if xxh3_128(&bytes) != checksum => {
            Err(damaged(&manifest, "its checksum is not the one in the file `current`"))
        }
        Some(_) => Ok(()),
    }
}

/// The content of a file, if it exists.
fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    let path = PathBuf::from(path);
    move |source| StoreError::Io { path, source }
}
