//! Commands for operators of a data directory: `roost backup`, `roost restore`, `roost verify`, `roost repair`,
//! `roost export`, `roost import`.

mod backup;
mod export;
mod import;
mod repair;
mod restore;
mod verify;

use std::path::PathBuf;

use ::backup::{Header, Summary};
use jiff::Timestamp;

use crate::exit::Exit;

pub(crate) use backup::{Backup, fetched};
pub(crate) use export::Export;
pub(crate) use import::Import;
pub(crate) use repair::Repair;
pub(crate) use restore::Restore;
pub(crate) use verify::Verify;

/// Returns the data directory of a command that can also read from `other`, if given. `other` overrides `ROOST_DATA`,
/// and conflicts with `--data`.
fn data_unless(data: Option<PathBuf>, other: Option<&str>) -> anyhow::Result<Option<PathBuf>> {
    let variable = std::env::var_os("ROOST_DATA").map(PathBuf::from);
    match (data, other) {
        (data, Some(_)) if data.is_none() || data == variable => Ok(None),
        (_, Some(other)) => Err(Exit::usage(&format!("--data cannot be used with {other}"))),
        (data, None) => Ok(data),
    }
}

/// Formats a time in milliseconds since 1970, in UTC.
fn time(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| "an unknown time".to_owned(), |time| time.to_string())
}

/// Describes the content of a backup.
fn describe(header: &Header, summary: &Summary) -> String {
    let lost = match summary.lost_files {
        0 => String::new(),
        lost => format!(" ({lost} were missing or damaged when it was made)"),
    };
    format!(
        "{} rows of the checkpoint at group {} ({}), {} groups of the log up to {} ({}), {} files of pictures{lost}\nSHA-256 {}",
        summary.rows + summary.ephemeral_rows,
        header.checkpoint,
        time(header.checkpoint_ms),
        summary.groups,
        header.last,
        time(header.made_ms),
        summary.files,
        summary.sha256
    )
}
