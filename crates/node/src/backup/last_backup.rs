//! Time at which the last backup of a data directory was completed, in a file of the directory, so that an alert knows
//! it after a restart.

use std::fs;
use std::path::Path;

const FILE: &str = "last-backup";

/// Records the time of a backup of the directory `data`, in milliseconds since 1970. It is a hint: errors are ignored,
/// and it is not synced.
pub fn note_backup(data: &Path, unix_ms: u64) {
    drop(fs::write(data.join(FILE), format!("{unix_ms:020}\n")));
}

/// Returns the last record, in milliseconds since 1970; 0 if there is none.
pub(crate) fn read(data: &Path) -> u64 {
    let text = fs::read_to_string(data.join(FILE)).ok();
    text.and_then(|text| text.trim_end().parse().ok()).unwrap_or(0)
}
