//! A disk in memory that fails as disks do, for tests of code that writes through `commitlog::disk`.
//!
//! State: for every file what a reader sees now and what is on the platter, sector by sector; the same
//! for the names of the directory. A power loss keeps what was synced and a pseudo-random part of the
//! rest; the same seed keeps the same part. Names are whole paths, and there is one directory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use commitlog::disk::{Disk, DiskFile};

const SECTOR: usize = 512;

/// A disk; clones are the same disk.
#[derive(Clone, Default)]
pub(crate) struct FaultyDisk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    files: Vec<Contents>,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    unsynced_names: Vec<NameChange>,
    /// Operations by the thread under test until all stops, at the last of them.
    operations_left: Option<u64>,
    /// Bytes that can be written until the disk is full.
    bytes_left: Option<u64>,
    /// Syncs of files until one fails, once.
    syncs_left: Option<u64>,
}

#[derive(Default)]
struct Contents {
    now: Vec<u8>,
    durable: Vec<u8>,
    dirty: BTreeSet<usize>,
}

#[derive(Clone)]
enum NameChange {
    Set(PathBuf, usize),
    Unset(PathBuf),
    Rename(PathBuf, PathBuf, usize),
}

struct OpenFile {
    disk: FaultyDisk,
    id: usize,
}

impl FaultyDisk {
    /// Everything stops during the n-th operation from now (1 is the next one): follow it with `restart`
    /// for a power loss, with `repair` for the end of the process. Operations of threads
    /// with a name that begins with `log-` do not count, so that the count is the same in every run.
    pub(crate) fn stop_at(&self, operation: u64) {
        self.state().operations_left = Some(operation);
    }

    /// A power loss and a restart.
    pub(crate) fn restart(&self, seed: u64) {
        let mut state = self.state();
        let kept_in_ten = hash(&(seed, "share")) % 11;
        let keeps = |what: &dyn Fn() -> u64| what() % 10 < kept_in_ten;
        for change in std::mem::take(&mut state.unsynced_names) {
            let described = match &change {
                NameChange::Set(path, _) => format!("set {path:?}"),
                NameChange::Unset(path) => format!("unset {path:?}"),
                NameChange::Rename(from, to, _) => format!("rename {from:?} {to:?}"),
            };
            if keeps(&|| hash(&(seed, &described))) {
                change.apply(&mut state.durable_names);
            }
        }
        let names = state.names.clone();
        for (name, id) in names {
            let file = &mut state.files[id];
            for sector in std::mem::take(&mut file.dirty) {
                if keeps(&|| hash(&(seed, &name, sector))) {
                    file.persist(sector);
                }
            }
        }
        state.names = state.durable_names.clone();
        for file in &mut state.files {
            file.dirty.clear();
            file.now = file.durable.clone();
        }
        state.operations_left = None;
        state.bytes_left = None;
        state.syncs_left = None;
    }

    /// From now on only this number of bytes can be written.
    pub(crate) fn fill_up_after(&self, bytes: u64) {
        self.state().bytes_left = Some(bytes);
    }

    /// The n-th sync of a file from now fails (1 is the next one). As on Linux, what it was to write is
    /// lost, readers see it nevertheless, and later syncs succeed.
    pub(crate) fn fail_sync(&self, sync: u64) {
        self.state().syncs_left = Some(sync);
    }

    /// Removes the faults that were set and have not happened, or go on happening.
    pub(crate) fn repair(&self) {
        let mut state = self.state();
        state.operations_left = None;
        state.bytes_left = None;
        state.syncs_left = None;
    }

    /// The paths of all files, in order.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    /// What a reader sees in the file.
    pub(crate) fn contents(&self, path: &Path) -> Vec<u8> {
        let state = self.state();
        state.files[state.names[path]].now.clone()
    }

    /// Puts a file on the disk, durably, in place of one that may be there.
    pub(crate) fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let id = state.files.len();
        state.files.push(Contents {
            now: bytes.to_vec(),
            durable: bytes.to_vec(),
            dirty: BTreeSet::new(),
        });
        state.names.insert(path.to_owned(), id);
        state.durable_names.insert(path.to_owned(), id);
    }

    /// Changes a file without an operation of the disk.
    pub(crate) fn edit(&self, path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.contents(path);
        edit(&mut bytes);
        self.put(path, &bytes);
    }

    /// Another disk with the same durable files.
    pub(crate) fn copy(&self) -> FaultyDisk {
        let copy = FaultyDisk::default();
        for path in self.paths() {
            copy.put(&path, &self.contents(&path));
        }
        copy
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Does `act`, unless everything has stopped; if it stops just then, the caller gets an error although it is done.
    fn operate<T>(&self, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state();
        let counts = !std::thread::current().name().is_some_and(|name| name.starts_with("log-"));
        let stopped = || io::Error::other("stopped");
        match &mut state.operations_left {
            Some(0) => return Err(stopped()),
            Some(left) if counts => *left -= 1,
            _ => {}
        }
        let done = act(&mut state)?;
        match state.operations_left {
            Some(0) => Err(stopped()),
            _ => Ok(done),
        }
    }

    /// Like `operate`, for a sync: one that is under way when everything stops has done nothing for certain.
    fn sync(&self, act: impl FnOnce(&mut State)) -> io::Result<()> {
        self.operate(|state| {
            if state.operations_left != Some(0) {
                act(state);
            }
            Ok(())
        })
    }
}

impl Contents {
    /// Puts one sector, as it is now, on the platter.
    fn persist(&mut self, sector: usize) {
        let from = sector * SECTOR;
        let to = self.now.len().min(from + SECTOR);
        if self.durable.len() < to {
            self.durable.resize(to, 0);
        }
        self.durable[from..to].copy_from_slice(&self.now[from..to]);
    }
}

impl NameChange {
    fn apply(self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            NameChange::Set(path, id) => {
                names.insert(path, id);
            }
            NameChange::Unset(path) => {
                names.remove(&path);
            }
            NameChange::Rename(from, to, id) => {
                names.remove(&from);
                names.insert(to, id);
            }
        }
    }
}

impl State {
    fn change(&mut self, change: NameChange) {
        change.clone().apply(&mut self.names);
        self.unsynced_names.push(change);
    }

    fn id(&self, path: &Path) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Disk for FaultyDisk {
    fn make_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, _dir: &Path) -> io::Result<Vec<String>> {
        self.operate(|state| {
            let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
            Ok(state.names.keys().map(name).collect())
        })
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let id = self.operate(|state| state.id(path))?;
        let disk = self.clone();
        Ok(Arc::new(OpenFile { disk, id }))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let id = self.operate(|state| {
            let id = state.files.len();
            state.files.push(Contents::default());
            state.change(NameChange::Set(path.to_owned(), id));
            Ok(id)
        })?;
        let disk = self.clone();
        Ok(Arc::new(OpenFile { disk, id }))
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
        self.sync(|state| {
            state.durable_names = state.names.clone();
            state.unsynced_names.clear();
        })
    }
}

impl DiskFile for OpenFile {
    fn bytes(&self) -> io::Result<u64> {
        self.disk.operate(|state| Ok(state.files[self.id].now.len() as u64))
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.operate(|state| {
            let now = &state.files[self.id].now;
            let from = now.len().min(offset as usize);
            let to = now.len().min(from + into.len());
            into[..to - from].copy_from_slice(&now[from..to]);
            Ok(to - from)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.disk.operate(|state| {
            let mut writes = bytes.len();
            if let Some(left) = &mut state.bytes_left {
                // Whole sectors, as `commitlog::disk` promises.
                writes = writes.min(*left as usize / SECTOR * SECTOR);
                if writes == 0 {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                *left -= writes as u64;
            }
            let (from, to) = (offset as usize, offset as usize + writes);
            let file = &mut state.files[self.id];
            if file.now.len() < to {
                file.now.resize(to, 0);
            }
            file.now[from..to].copy_from_slice(&bytes[..writes]);
            file.dirty.extend(from / SECTOR..to.div_ceil(SECTOR));
            Ok(writes)
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut failed = false;
        self.disk.sync(|state| {
            let file = &mut state.files[self.id];
            let dirty = std::mem::take(&mut file.dirty);
            if let Some(left) = &mut state.syncs_left {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    state.syncs_left = None;
                    failed = true;
                    return;
                }
            }
            for sector in dirty {
                file.persist(sector);
            }
        })?;
        match failed {
            true => Err(io::Error::other("the sync failed")),
            false => Ok(()),
        }
    }
}

/// The same number for the same value in every run.
fn hash(value: &impl std::hash::Hash) -> u64 {
    #[expect(deprecated, reason = "the one hasher of std whose results never change")]
    let mut hasher = std::hash::SipHasher::new();
    value.hash(&mut hasher);
    std::hash::Hasher::finish(&hasher)
}
