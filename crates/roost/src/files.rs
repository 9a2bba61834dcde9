//! Small files that are replaced in one step, and how a running server notices it.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::Context as _;

/// Replaces a file in one step; only this user may read it. It is on disk afterwards.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let write = || -> anyhow::Result<()> {
        // The operating system gives temporary files to this user alone (0600).
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        // The directory entry as well: a key cannot be shown again.
        File::open(folder)?.sync_all()?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// The identity of a version of a file: device, inode, length, and the times of the last change of its contents and of
/// its permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64, u64, [i64; 4]);

impl Identity {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let file = std::fs::metadata(path).ok()?;
        let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
        Some(Self(file.dev(), file.ino(), file.len(), times))
    }
}
