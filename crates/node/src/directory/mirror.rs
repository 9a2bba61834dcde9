//! Mirror of a data directory on a read-only disk, for commands that only read but use engines that also write. Files
//! that these engines change are copied; all others are symbolic links to the original.
//!
//! **Invariant:** the original does not change. The mirror is in the directory of temporary files, and is removed when
//! it is dropped.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use super::open_error::OpenError;
use crate::options::NodeOptions;

/// Folders of the store whose files never change.
const TABLES: &str = "tables";
const LOG: &str = "log";
const STORE: &str = "store";

/// Mirror of a data directory.
#[derive(Debug)]
pub(crate) struct Mirror {
    original: PathBuf,
    options: NodeOptions,
}

impl Mirror {
    /// Creates a mirror of the directory of `options`. May block.
    ///
    /// # Errors
    /// [`OpenError::Directory`]
    pub(crate) fn of(options: &NodeOptions) -> Result<Self, OpenError> {
        let mut random = [0; 8];
        let made = getrandom::fill(&mut random).map_err(io::Error::other).and_then(|()| {
            let name = format!("roost-mirror-{:016x}", u64::from_be_bytes(random));
            let data = std::env::temp_dir().join(name);
            make(&data)?;
            Ok(data)
        });
        let data = made.map_err(|error| OpenError::Directory(std::env::temp_dir(), error))?;
        let original = options.data.canonicalize();
        let original =
            original.map_err(|error| OpenError::Directory(options.data.clone(), error))?;
        let mirror = Self { original, options: NodeOptions { data, ..options.clone() } };
        let filled = mirror.fill();
        filled.map_err(|error| OpenError::Directory(options.data.clone(), error))?;
        Ok(mirror)
    }

    /// Returns the options of the mirror.
    pub(crate) fn options(&self) -> &NodeOptions {
        &self.options
    }

    /// Replaces the mirror's path in a text by that of the original.
    pub(crate) fn explain(&self, text: &str) -> String {
        let path = |path: &Path| path.display().to_string();
        text.replace(&path(&self.options.data), &path(&self.original))
    }

    fn fill(&self) -> io::Result<()> {
        let Self { original, options } = self;
        for entry in fs::read_dir(original)? {
            let (name, from) = entry.map(|entry| (entry.file_name(), entry.path()))?;
            let to = options.data.join(&name);
            match name.to_str() {
                Some(STORE) => store(&from, &to)?,
                Some(LOG) => log(&from, &to)?,
                _ if from.is_dir() => symlink(&from, &to)?,
                _ if from.is_file() => copy(&from, &to)?,
                // Other files, such as sockets, are left out.
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.options.data));
    }
}

/// Links tables: the engine removes them as a whole, which removes the link.
fn store(from: &Path, to: &Path) -> io::Result<()> {
    make(to)?;
    let are_tables = from.file_name().is_some_and(|name| name == TABLES);
    for entry in fs::read_dir(from)? {
        let (name, from) = entry.map(|entry| (entry.file_name(), entry.path()))?;
        let to = to.join(name);
        match (from.is_dir(), are_tables) {
            (true, _) => store(&from, &to)?,
            (false, true) => symlink(&from, &to)?,
            (false, false) => copy(&from, &to)?,
        }
    }
    Ok(())
}

/// Copies the last segment of the log, the only one that is written to, and links the others.
fn log(from: &Path, to: &Path) -> io::Result<()> {
    make(to)?;
    let names = fs::read_dir(from)?.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.sort();
    let last = names.pop();
    names.iter().try_for_each(|name| symlink(from.join(name), to.join(name)))?;
    last.iter().try_for_each(|name| copy(&from.join(name), &to.join(name)))
}

fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(folder)
}

/// Copies a file so that the copy is writable, whatever the permissions of the original are.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    io::copy(&mut File::open(from)?, &mut File::create(to)?).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_shares_what_never_changes_and_goes_without_a_trace() {
        let original = tempfile::tempdir().unwrap();
        let at = |name: &str| original.path().join(name);
        for folder in ["store/facts/keyspaces/1/tables", "log", "media/aa"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        let tables = "store/facts/keyspaces/1/tables/7";
        let files =
            [tables, "store/facts/keyspaces/1/v3", "log/1.log", "log/2.log", "media/aa/x", "lock"];
        files.iter().for_each(|file| fs::write(at(file), file).unwrap());
        let mirror = Mirror::of(&NodeOptions::new(original.path())).unwrap();
        let data = mirror.options().data.clone();
        for (file, is_linked) in files.into_iter().zip([true, false, true, false, false, false]) {
            assert_eq!(fs::read_to_string(data.join(file)).unwrap(), file);
            let metadata = data.join(file).symlink_metadata().unwrap();
            assert_eq!(metadata.is_symlink(), is_linked, "{file}");
            if !file.starts_with("media") && !is_linked {
                fs::write(data.join(file), "changed").unwrap();
            }
        }
        let about = mirror.explain(&format!("{}: damaged", data.join(tables).display()));
        assert_eq!(about, format!("{}: damaged", at(tables).canonicalize().unwrap().display()));
        drop(mirror);
        assert!(!data.exists());
        for file in files {
            assert_eq!(fs::read_to_string(at(file)).unwrap(), file);
        }
    }
}
