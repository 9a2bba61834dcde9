//! Permissions of the files of a data directory: its owner alone may read them.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::umask;

/// Permissions that others than the owner must not have.
const OTHERS: u32 = 0o077;

/// From now on this process makes files that only their owner may use, whatever library makes them.
pub(crate) fn keep_new_files_private() {
    umask(Mode::RWXG | Mode::RWXO);
}

/// Warns if others may use files of the data directory. They were made by an earlier version, or changed.
pub(crate) fn warn_of_readable_files(data: &Path) {
    match first_readable(data) {
        Ok(None) => {}
        Ok(Some(path)) => tracing::warn!(
            path = %path.display(),
            "other users of this machine may use files of the data directory; remove their permissions: \
             chmod -R go= {}",
            data.display()
        ),
        Err(error) => tracing::warn!(%error, "the permissions of the data directory cannot be read"),
    }
}

/// The first file or directory that others may use and can reach: behind a private directory nothing is reached.
fn first_readable(path: &Path) -> io::Result<Option<PathBuf>> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.permissions().mode() & OTHERS == 0 || metadata.is_symlink() {
        return Ok(None);
    }
    Ok(Some(path.to_owned()))
}
