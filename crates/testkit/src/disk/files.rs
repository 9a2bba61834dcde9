//! File operations of the simulated disk, for the log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use commitlog::disk::{Disk, DiskFile};

use super::{Contents, FaultyDisk, NameChange, count_down};

struct OpenFile {
    disk: FaultyDisk,
    id: usize,
}

impl Disk for FaultyDisk {
    fn make_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, _dir: &Path) -> io::Result<Vec<String>> {
        self.operate(|state| {
            let name = |path: &PathBuf| Some(path.file_name()?.to_str()?.to_owned());
            Ok(state.names.keys().filter_map(name).collect())
        })
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let id = self.operate(|state| state.id(path))?;
        Ok(Arc::new(OpenFile { disk: self.clone(), id }))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let id = self.operate(|state| {
            let id = state.add(Contents::default());
            state.change(NameChange::Set(path.to_owned(), id));
            Ok(id)
        })?;
        Ok(Arc::new(OpenFile { disk: self.clone(), id }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.operate(|state| {
            let id = state.id(from)?;
            state.change(NameChange::Rename(from.to_owned(), to.to_owned(), id));
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.operate(|state| {
            state.id(path)?;
            state.change(NameChange::Unset(path.to_owned()));
            Ok(())
        })
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        self.operate(|state| {
            // If the process has stopped during this sync, the sync guarantees nothing.
            if !state.stopped {
                state.durable_names = state.names.clone();
                state.unsynced_names.clear();
            }
            Ok(())
        })
    }
}

impl DiskFile for OpenFile {
    fn bytes(&self) -> io::Result<u64> {
        self.disk.operate(|state| Ok(state.file(self.id).now.len() as u64))
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.operate(|state| {
            let wanted = state.part(into.len())?;
            let now = &state.file(self.id).now;
            let from = now.len().min(offset as usize);
            let to = now.len().min(from + wanted);
            into[..to - from].copy_from_slice(&now[from..to]);
            Ok(to - from)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.disk.operate(|state| state.write(self.id, offset as usize, bytes))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.operate(|state| {
            if state.stopped {
                return Ok(());
            }
            let failed = count_down(&mut state.faults.failed_sync);
            state.has_failed |= failed;
            let file = state.file(self.id);
            for sector in std::mem::take(&mut file.dirty) {
                if !failed {
                    file.persist(sector);
                }
            }
            if failed { Err(io::Error::other("the sync failed")) } else { Ok(()) }
        })
    }
}
