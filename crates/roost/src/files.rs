//! Files that are replaced atomically: outputs of commands, and small files that a running server watches for changes.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::NamedTempFile;

/// Longest chain of symbolic links to an output; the limit of Linux.
const LINKS_MAX: usize = 40;

/// Output file of a command. A regular file gets its name when it is complete, so readers never see half of it. If the
/// name is a symbolic link, the link stays and its target is replaced. Devices and pipes are written directly.
pub(crate) struct OutputFile {
    path: PathBuf,
    file: Output,
}

enum Output {
    Replaced(NamedTempFile),
    Direct(File),
}

impl OutputFile {
    /// Opens the file. Call this before the work that produces its content. A new file is private to this user unless
    /// `is_public`; then the umask decides.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn open(path: &Path, is_public: bool) -> anyhow::Result<Self> {
        let open = || -> io::Result<Output> {
            if path.metadata().is_ok_and(|there| !there.is_file()) {
                return Ok(Output::Direct(File::options().write(true).open(path)?));
            }
            let mut beside = tempfile::Builder::new();
            if is_public {
                beside.permissions(Permissions::from_mode(0o666));
            }
            Ok(Output::Replaced(beside.tempfile_in(folder(&linked(path)?))?))
        };
        let file = open().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Whether it is a regular file.
    pub(crate) fn is_regular(&self) -> bool {
        matches!(self.file, Output::Replaced(_))
    }

    /// Handle for writing.
    pub(crate) fn file(&self) -> &File {
        match &self.file {
            Output::Replaced(file) => file.as_file(),
            Output::Direct(file) => file,
        }
    }

    /// Gives the file its name. A regular file is synced to disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn complete(self) -> anyhow::Result<()> {
        let Self { path, file } = self;
        let complete = || -> io::Result<()> {
            let Output::Replaced(file) = file else { return Ok(()) };
            file.as_file().sync_all()?;
            let to = linked(&path)?;
            file.persist(&to)?;
            File::open(folder(&to))?.sync_all()
        };
        complete().with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Checks that an output can be written. Call this before the work that produces its content.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn check_output(path: &Path) -> anyhow::Result<()> {
    // Opening a pipe would wait for its reader.
    if path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        let writable = rustix::fs::access(path, rustix::fs::Access::WRITE_OK);
        return writable.with_context(|| format!("cannot write {}", path.display()));
    }
    OutputFile::open(path, false).map(drop)
}

/// Resolves symbolic links. The target need not exist.
fn linked(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(to) => path = folder(&path).join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

fn folder(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Replaces a file atomically and syncs it to disk. The new file is readable by this user only.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = folder(path);
    let write = || -> anyhow::Result<()> {
        // Temporary files are private to this user (0600).
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        // Sync the directory too, because a lost key cannot be shown again.
        File::open(folder)?.sync_all()?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Locks a small file that commands and servers change, one at a time. `lock` is another file, which is created.
///
/// # Errors
/// If it cannot be locked.
pub(crate) fn lock(lock: &Path) -> anyhow::Result<File> {
    let locked = File::create(lock).and_then(|file| file.lock().map(|()| file));
    locked.with_context(|| format!("cannot lock {}", lock.display()))
}

/// Reads a text file of at most `bytes_max` bytes; `None` if it does not exist.
///
/// # Errors
/// If it cannot be read or is longer.
pub(crate) fn read_small(path: &Path, bytes_max: u64) -> anyhow::Result<Option<String>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut text = String::new();
    file.take(bytes_max + 1).read_to_string(&mut text)?;
    anyhow::ensure!(text.len() as u64 <= bytes_max, "the file is too long");
    Ok(Some(text))
}

/// Identity of a version of a file: device, inode, length, and the times of the last changes of contents and
/// permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64, u64, [i64; 4]);

impl Identity {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        let times = [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()];
        Some(Self(file.dev(), file.ino(), file.len(), times))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, symlink};

    use super::*;

    fn write(path: &Path, text: &str) -> anyhow::Result<()> {
        let out = OutputFile::open(path, false)?;
        out.file().write_all(text.as_bytes())?;
        out.complete()
    }

    #[test]
    fn an_output_replaces_a_file_when_it_is_complete_and_keeps_links_devices_and_pipes() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write(&at("file"), "one").unwrap();
        let unfinished = OutputFile::open(&at("file"), false).unwrap();
        unfinished.file().write_all(b"part").unwrap();
        drop(unfinished);
        assert_eq!(fs::read(at("file")).unwrap(), b"one");
        for (link, to) in [("relative", "file"), ("dangling", "new"), ("twice", "relative")] {
            symlink(to, at(link)).unwrap();
            write(&at(link), link).unwrap();
            assert!(at(link).symlink_metadata().unwrap().is_symlink(), "{link}");
            assert_eq!(fs::read_to_string(at(to)).unwrap(), link);
        }
        symlink("loop", at("loop")).unwrap();
        assert!(write(&at("loop"), "x").is_err());
        write(Path::new("/dev/null"), "x").unwrap();
        assert!(Path::new("/dev/null").metadata().unwrap().file_type().is_char_device());
        assert!(write(Path::new("/dev/full"), "x").is_err());
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 6, "no temporary file is left");
    }

    #[test]
    fn an_output_that_cannot_be_written_is_refused_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path(), &folder.path().join("none/file"), Path::new("/")] {
            assert!(OutputFile::open(path, false).is_err(), "{}", path.display());
            assert!(check_output(path).is_err(), "{}", path.display());
        }
        check_output(&folder.path().join("new")).unwrap();
        check_output(Path::new("/dev/null")).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
