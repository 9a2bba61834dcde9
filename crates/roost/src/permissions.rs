//! Permissions of the files of a data directory: only its owner may read them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;

/// Permissions that others than the owner must not have.
const OTHERS: u32 = 0o077;

/// From now on this process makes files that only their owner may use, whatever library makes them.
pub(crate) fn keep_new_files_private() {
    umask(Mode::RWXG | Mode::RWXO);
}

/// Warns if others may enter the data directory.
pub(crate) fn warn_of_readable_files(data: &Path) {
    // Nothing below a private directory can be reached.
    match fs::metadata(data) {
        Ok(metadata) if metadata.permissions().mode() & OTHERS == 0 => {}
        Ok(_) => tracing::warn!(
            "other users of this machine have access to the data directory; remove their permissions: \
             chmod -R go= {}",
            data.display()
        ),
        Err(error) => {
            tracing::warn!(%error, "the permissions of the data directory cannot be read");
        }
    }
}
