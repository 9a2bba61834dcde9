//! Permissions of the files of a data directory: only its owner may read them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;

/// Permission bits of group and others.
const OTHERS: u32 = 0o077;

/// Makes files that this process or its libraries create private to their owner from now on.
pub(crate) fn keep_new_files_private() {
    umask(Mode::RWXG | Mode::RWXO);
}

/// Warns if other users may enter the data directory.
pub(crate) fn warn_of_readable_files(data: &Path) {
    // Other users cannot enter a private directory, so files in it need no check.
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
