//! Checks that the engine does not make when it opens its files. Each keyspace has a manifest that names its tables;
//! the file `current` has the number and the checksum of the manifest. The engine compares neither checksum. If
//! `current` is missing, it removes the keyspace and everything in it. It also trusts the number of sections at the end
//! of a table.
//!
//! **Invariant:** the check changes nothing.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use crate::error::StoreError;
use crate::flipped;
use crate::sections::{self, take};
use crate::table_check::compare;

/// File that names the manifest: the manifest's number (`u64`), its checksum (`u128`), and 0 for xxh3. Numbers are
/// little endian.
const CURRENT: &str = "current";
/// Folder of the tables.
const TABLES: &str = "tables";
/// Name and content of the file with the format of the database: the engine's mark and format 3.
const VERSION: (&str, &[u8]) = ("version", b"FJL\x03");

/// Fault of a file with a known content.
const CHANGED: &str = "its content was changed";

/// Table as a manifest names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableFile {
    pub(crate) path: PathBuf,
    /// Checksum of the whole file.
    pub(crate) checksum: u128,
    /// Number to add to the sequence numbers in the file; 0 if a merge wrote the file.
    pub(crate) seqno: u64,
    pub(crate) level: usize,
}

/// Tables of a keyspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    /// Runs of tables, newest first. In a run, keys ascend from table to table.
    pub(crate) runs: Vec<Vec<TableFile>>,
    /// Descriptions of found damage.
    pub(crate) notes: Vec<String>,
}

/// Checks the manifests and the ends of tables of all keyspaces of the database in `database`.
///
/// # Errors
/// A file is missing, was changed, or cannot be read.
pub(crate) fn check(database: &Path) -> Result<(), StoreError> {
    let version = database.join(VERSION.0);
    match read(&version)? {
        None => return Err(damaged(&version, "it is missing")),
        Some(bytes) if bytes != VERSION.1 => return Err(damaged(&version, CHANGED)),
        Some(_) => {}
    }
    for keyspace in keyspaces(database)? {
        check_tables(&tables_of(&keyspace)?)?;
    }
    Ok(())
}

/// Returns an error for the first table of the database that does not match its checksum, because errors of the engine
/// name no file. Reads every table.
pub(crate) fn damaged_table(database: &Path) -> Option<StoreError> {
    let runs =
        keyspaces(database).ok()?.into_iter().filter_map(|keyspace| tables_of(&keyspace).ok());
    let mut tables = runs.flatten().flatten();
    let table = tables.find(|table| compare(&table.path, table.checksum).is_some())?;
    Some(damaged(&table.path, "it does not match its checksum"))
}

/// Returns the folders of the keyspaces.
fn keyspaces(database: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let folder = database.join("keyspaces");
    let mut found = Vec::new();
    for keyspace in fs::read_dir(&folder).map_err(at(&folder))? {
        let keyspace = keyspace.map_err(at(&folder))?.path();
        if keyspace.is_dir() {
            found.push(keyspace);
        }
    }
    Ok(found)
}

fn damaged(path: &Path, what: &'static str) -> StoreError {
    StoreError::DamagedFile { path: path.to_owned(), what }
}

/// Returns the runs of tables that the manifest of a keyspace names.
fn tables_of(keyspace: &Path) -> Result<Vec<Vec<TableFile>>, StoreError> {
    let current = keyspace.join(CURRENT);
    let tables = keyspace.join(TABLES);
    let Some(bytes) = read(&current)? else {
        // If there are no tables, the process ended while the engine created this keyspace; the engine creates it
        // again. If there are tables, the keyspace was complete and the file was lost.
        let is_new = match fs::read_dir(&tables) {
            Ok(mut files) => files.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(at(&tables)(error)),
        };
        return if is_new { Ok(Vec::new()) } else { Err(damaged(&current, "it is missing")) };
    };
    let Some((number, checksum)) = parse_current(&bytes) else {
        return Err(damaged(&current, CHANGED));
    };
    let manifest = keyspace.join(format!("v{number}"));
    match read(&manifest)? {
        None => Err(damaged(
            &manifest,
            "it is missing, or the file `current`, which names it, was changed",
        )),
        Some(bytes) if xxh3_128(&bytes) != checksum => {
            Err(damaged(&manifest, "its checksum is not the one in the file `current`"))
        }
        // No manifest names this file, so it may be unfinished. The engine removes it without reading it.
        Some(bytes) => Ok(parse(&bytes, &tables).unwrap_or_default()),
    }
}

fn check_tables(runs: &[Vec<TableFile>]) -> Result<(), StoreError> {
    for TableFile { path, .. } in runs.iter().flatten() {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(damaged(path, "it is missing"));
            }
            file => file.map_err(at(path))?,
        };
        let length = file.metadata().map_err(at(path))?.len();
        let sections = sections::read(length, |offset, into| file.read_exact_at(into, offset));
        if let Err(what) = sections.map_err(at(path))? {
            return Err(damaged(path, what));
        }
    }
    Ok(())
}

/// Parses the number of the manifest and its checksum.
fn parse_current(mut bytes: &[u8]) -> Option<(u64, u128)> {
    let number = take(&mut bytes).map(u64::from_le_bytes)?;
    let checksum = take(&mut bytes).map(u128::from_le_bytes)?;
    (bytes == [0]).then_some((number, checksum))
}

/// Parses the runs of tables that a manifest names, newest first.
fn parse(manifest: &[u8], folder: &Path) -> Option<Vec<Vec<TableFile>>> {
    let part = |offset: u64, bytes: usize| manifest.get(offset as usize..)?.get(..bytes);
    let sections = sections::read(manifest.len() as u64, |offset, into| {
        let bytes = part(offset, into.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(bytes);
        Ok(())
    });
    let section = sections.ok()?.ok()?.into_iter().find(|section| section.name == b"tables")?;
    let mut bytes = part(section.offset, section.bytes as usize)?;
    let mut runs = Vec::new();
    let [levels] = take(&mut bytes)?;
    for level in 0..usize::from(levels) {
        let [count] = take(&mut bytes)?;
        for _ in 0..count {
            let mut run = Vec::new();
            for _ in 0..take(&mut bytes).map(u32::from_le_bytes)? {
                let id = take(&mut bytes).map(u64::from_le_bytes)?;
                let [0] = take(&mut bytes)? else { return None };
                let checksum = take(&mut bytes).map(u128::from_le_bytes)?;
                let seqno = take(&mut bytes).map(u64::from_le_bytes)?;
                let path = folder.join(id.to_string());
                run.push(TableFile { path, checksum, seqno, level });
            }
            runs.push(run);
        }
    }
    bytes.is_empty().then_some(runs)
}

/// Returns the tables of a damaged keyspace according to its manifest; `None` if the manifest cannot be trusted.
pub(crate) fn salvage(keyspace: &Path) -> Result<Option<Tables>, StoreError> {
    let (path, folder) = (keyspace.join(CURRENT), keyspace.join(TABLES));
    let mut manifests = Vec::new();
    for entry in fs::read_dir(keyspace).map_err(at(keyspace))? {
        let entry = entry.map_err(at(keyspace))?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix('v')?.parse::<u64>().ok());
        if let (Some(number), Ok(bytes)) = (number, fs::read(entry.path())) {
            manifests.push((number, bytes));
        }
    }
    let current = fs::read(&path).unwrap_or_default();
    let encode = |number: u64, bytes: &[u8]| {
        [&number.to_le_bytes()[..], &xxh3_128(bytes).to_le_bytes(), &[0]].concat()
    };
    let found = |bytes: &[u8], note: Option<String>| {
        parse(bytes, &folder).map(|runs| Tables { runs, notes: note.into_iter().collect() })
    };
    // Accept each file if it is intact, or after the correction of one flipped bit.
    for (number, bytes) in &mut manifests {
        let right = encode(*number, bytes);
        if right == current {
            return Ok(found(bytes, None));
        }
        if flipped::bits_that_differ(&right, &current) == Some(1) {
            return Ok(found(bytes, Some(format!("{}: one bit was changed", path.display()))));
        }
        let named = parse_current(&current).filter(|(named, _)| named == number);
        let is_right =
            |bytes: &[u8]| named.is_some_and(|(_, checksum)| xxh3_128(bytes) == checksum);
        if named.is_some() && flipped::correct(bytes, is_right) {
            let note =
                format!("{}: one bit was changed", keyspace.join(format!("v{number}")).display());
            return Ok(found(bytes, Some(note)));
        }
    }
    // `current` is lost. If the checksums of all tables match, the newest manifest is whole. Even if it was not in use
    // yet, its tables are complete.
    manifests.sort_unstable_by_key(|(number, _)| *number);
    let named = parse_current(&current).map(|(named, _)| named);
    let newest = manifests.last().filter(|(number, _)| named != Some(*number));
    let Some((number, bytes)) = newest else { return Ok(None) };
    let Some(runs) = parse(bytes, &folder) else { return Ok(None) };
    let is_whole = |table: &TableFile| {
        fs::read(&table.path).is_ok_and(|bytes| xxh3_128(&bytes) == table.checksum)
    };
    let note = format!("{}: it is missing or damaged; v{number} was used instead", path.display());
    let notes = vec![note];
    Ok(runs.iter().flatten().all(is_whole).then_some(Tables { runs, notes }))
}

/// Reads the content of a file; `None` if the file does not exist.
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
