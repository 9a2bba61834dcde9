//! A disk in memory that fails as disks do: it loses power, fills up, fails, tears, loses and misdirects
//! writes, and flips bits. All of it follows from the seed.
//!
//! State: for every file what a reader sees and what is on the platter, sector by sector; the same for the
//! names in the one directory. After a power loss there is what was synced, and a random part of the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use commitlog::disk::{Disk, DiskFile};
use parking_lot::{Mutex, MutexGuard};

use crate::random::Random;

const SECTOR: usize = 512;

/// A disk. Clones are the same disk.
#[derive(Clone)]
pub(crate) struct SimDisk(Arc<Mutex<State>>);

/// What happens to the disk while a process runs.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    /// The process stops at this operation from now: 1 is the next one.
    pub(crate) stop_at: Option<u64>,
    /// Bytes that can be written until the disk is full.
    pub(crate) bytes_left: Option<u64>,
    /// The write from now that fails.
    pub(crate) failed_write: Option<u64>,
    /// The sync from now that fails. As on Linux the data is lost, readers see it nevertheless, and later
    /// syncs succeed.
    pub(crate) failed_sync: Option<u64>,
    /// The write from now that lands in a wrong place and reports success.
    pub(crate) misdirected_write: Option<u64>,
    /// One in so many reads and writes is done in part only, or interrupted; 0 for none.
    pub(crate) partial: u64,
}

/// Only the faults that there are.
impl fmt::Debug for Faults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            ("stop_at", self.stop_at),
            ("bytes_left", self.bytes_left),
            ("failed_write", self.failed_write),
            ("failed_sync", self.failed_sync),
            ("misdirected_write", self.misdirected_write),
            ("partial", Some(self.partial).filter(|times| *times > 0)),
        ];
        let set = named.iter().filter_map(|(name, number)| Some((*name, (*number)?)));
        out.debug_map().entries(set).finish()
    }
}

/// What ended a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    /// The process was killed: what it wrote is in the page cache.
    Kill,
    /// The machine lost power.
    PowerLoss,
}

struct State {
    random: Random,
    files: BTreeMap<usize, Contents>,
    next_id: usize,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    unsynced_names: Vec<NameChange>,
    faults: Faults,
    /// Everything fails, because the process has stopped.
    stopped: bool,
    /// Whether an operation has failed in this process because of a fault.
    has_failed: bool,
    /// Whether a write was misdirected, and the log may have lost what it acknowledged.
    lied: bool,
}

#[derive(Clone, Default)]
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
    disk: SimDisk,
    id: usize,
}

impl SimDisk {
    pub(crate) fn new(random: Random) -> Self {
        Self(Arc::new(Mutex::new(State {
            random,
            files: BTreeMap::new(),
            next_id: 0,
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            unsynced_names: Vec::new(),
            faults: Faults::default(),
            stopped: false,
            has_failed: false,
            lied: false,
        })))
    }

    pub(crate) fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Removes all faults; returns whether there were any, in this process.
    pub(crate) fn repair(&self) -> bool {
        let mut state = self.state();
        let faults = std::mem::take(&mut state.faults);
        std::mem::take(&mut state.has_failed) || faults != Faults::default()
    }

    /// From now on every operation fails: the process has ended.
    pub(crate) fn stop(&self) {
        self.state().stopped = true;
    }

    /// Whether a write was misdirected since this was asked last.
    pub(crate) fn take_lie(&self) -> bool {
        std::mem::take(&mut self.state().lied)
    }

    /// The next process finds what the last one left, and a disk without faults.
    pub(crate) fn restart(&self, crash: Crash) {
        let mut state = self.state();
        state.stopped = false;
        state.faults = Faults::default();
        state.has_failed = false;
        if crash == Crash::PowerLoss {
            state.lose_power();
        }
        let used: BTreeSet<usize> =
            state.names.values().chain(state.durable_names.values()).copied().collect();
        state.files.retain(|id, _| used.contains(id));
    }

    /// Flips a bit of a file that holds something; returns where, to be flipped back.
    pub(crate) fn flip_bit(&self) -> Option<(PathBuf, usize, u8)> {
        let mut state = self.state();
        let names: Vec<(PathBuf, usize)> =
            state.names.iter().map(|(name, id)| (name.clone(), *id)).collect();
        if names.is_empty() {
            return None;
        }
        let (name, id) = state.random.pick(&names).clone();
        let file = state.files.get(&id)?;
        // Mostly where something was written.
        let written = file.now.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1);
        let all = file.now.len();
        let reach = if state.random.once_in(4) { all } else { written.min(all) };
        if reach == 0 {
            return None;
        }
        let (at, bit) = (state.random.index(reach), 1 << state.random.below(8));
        state.flip(id, at, bit);
        Some((name, at, bit))
    }

    /// Flips a bit back.
    pub(crate) fn flip_back(&self, name: &Path, at: usize, bit: u8) {
        let mut state = self.state();
        if let Some(id) = state.names.get(name).copied() {
            state.flip(id, at, bit);
        }
    }

    /// An operation of the store: fails if the process stops there.
    pub(crate) fn pass(&self) -> io::Result<()> {
        self.operate(|_| Ok(()))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Does `act` unless the process has stopped. If it stops just then, the caller gets an error although
    /// it is done.
    fn operate<T>(&self, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state();
        if state.stopped {
            return Err(io::Error::other("the process has stopped"));
        }
        state.stopped = count_down(&mut state.faults.stop_at);
        let done = act(&mut state)?;
        if state.stopped { Err(io::Error::other("the process stops")) } else { Ok(done) }
    }
}

/// Counts an event; true if it is the one.
fn count_down(left: &mut Option<u64>) -> bool {
    match left {
        Some(0 | 1) => {
            *left = None;
            true
        }
        Some(more) => {
            *more -= 1;
            false
        }
        None => false,
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
        if from < to {
            self.durable[from..to].copy_from_slice(&self.now[from..to]);
        }
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if self.now.len() < end {
            self.now.resize(end, 0);
        }
        self.now[offset..end].copy_from_slice(bytes);
        self.dirty.extend(offset / SECTOR..end.div_ceil(SECTOR));
    }
}

impl NameChange {
    fn apply(self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Set(path, id) => drop(names.insert(path, id)),
            Self::Unset(path) => drop(names.remove(&path)),
            Self::Rename(from, to, id) => {
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

    fn file(&mut self, id: usize) -> &mut Contents {
        self.files.entry(id).or_default()
    }

    fn flip(&mut self, id: usize, at: usize, bit: u8) {
        let file = self.file(id);
        file.now[at] ^= bit;
        if let Some(byte) = file.durable.get_mut(at) {
            *byte ^= bit;
        }
    }

    /// Keeps what was synced, and of the rest a share that is drawn once.
    fn lose_power(&mut self) {
        let kept_in_ten = self.random.below(11);
        for change in std::mem::take(&mut self.unsynced_names) {
            if self.random.below(10) < kept_in_ten {
                change.apply(&mut self.durable_names);
            }
        }
        self.names = self.durable_names.clone();
        let Self { random, files, .. } = self;
        for file in files.values_mut() {
            for sector in std::mem::take(&mut file.dirty) {
                if random.below(10) < kept_in_ten {
                    file.persist(sector);
                }
            }
            file.now.clone_from(&file.durable);
        }
    }

    /// How much of `bytes` is done: all, or less if it is done in part. An error if interrupted.
    fn part(&mut self, bytes: usize) -> io::Result<usize> {
        let partial = self.faults.partial;
        if partial == 0 || !self.random.once_in(partial) || bytes <= SECTOR {
            return Ok(bytes);
        }
        if self.random.once_in(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok((1 + self.random.index(bytes / SECTOR)) * SECTOR)
    }

    fn write(&mut self, id: usize, offset: usize, bytes: &[u8]) -> io::Result<usize> {
        if count_down(&mut self.faults.failed_write) {
            self.has_failed = true;
            let written = self.random.index(bytes.len() / SECTOR + 1) * SECTOR;
            self.file(id).write(offset, &bytes[..written]);
            return Err(io::Error::other("the write failed"));
        }
        let mut writes = self.part(bytes.len())?;
        if let Some(left) = self.faults.bytes_left {
            // What is there already needs no more space.
            let there = self.file(id).now.len().saturating_sub(offset);
            // Whole sectors, as `commitlog::disk` promises.
            writes = writes.min(there + left as usize / SECTOR * SECTOR);
            if writes == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.faults.bytes_left = Some(left - writes.saturating_sub(there) as u64);
        }
        if self.stopped {
            // It stops in the middle of the write.
            writes = self.random.index(writes / SECTOR + 1) * SECTOR;
        }
        let mut offset = offset;
        if count_down(&mut self.faults.misdirected_write) {
            let sectors = self.file(id).now.len() / SECTOR;
            offset = self.random.index(sectors.max(1)) * SECTOR;
            self.lied = true;
        }
        self.file(id).write(offset, &bytes[..writes]);
        Ok(writes)
    }
}

impl Disk for SimDisk {
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
            let id = state.next_id;
            state.next_id += 1;
            state.files.insert(id, Contents::default());
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
            // One that is under way when everything stops has done nothing for certain.
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
