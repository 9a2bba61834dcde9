//! Disk in memory that fails like real disks: it loses power, fills up, refuses, tears, loses and misdirects writes,
//! and flips bits. The seed determines all of this.
//!
//! State: for every file, the bytes that a reader sees and the bytes on the platter, sector by sector; for the only
//! directory, the names in the same two forms. After a power loss, the disk has the synced data and a random part of
//! the rest. Names are whole paths.
//!
//! Operations of threads whose name begins with `log-` take place, but do not count for [`Faults::stop_at`], so that a
//! run does not depend on the scheduling of threads.

mod faults;
mod files;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use self::faults::Faults;
use self::faults::count_down;
use crate::Random;

const SECTOR: usize = 512;

/// Simulated disk. A clone is another handle of the same disk.
#[derive(Clone, Debug)]
pub struct FaultyDisk(Arc<Mutex<State>>);

/// Reason why a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process was killed; its writes are in the page cache.
    Kill,
    /// The machine lost power.
    PowerLoss,
}

#[derive(Debug)]
struct State {
    random: Random,
    files: BTreeMap<usize, Contents>,
    next_id: usize,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    unsynced_names: Vec<NameChange>,
    faults: Faults,
    /// Whether the process has stopped. If so, every operation fails.
    stopped: bool,
    /// Whether a fault has made an operation of this process fail.
    has_failed: bool,
    /// Whether a write was misdirected, so that the log may have lost acknowledged data.
    lied: bool,
}

#[derive(Clone, Debug, Default)]
struct Contents {
    now: Vec<u8>,
    durable: Vec<u8>,
    dirty: BTreeSet<usize>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Set(PathBuf, usize),
    Unset(PathBuf),
    Rename(PathBuf, PathBuf, usize),
}

impl FaultyDisk {
    /// Creates an empty disk whose random choices come from `random`.
    #[must_use]
    pub fn new(random: Random) -> Self {
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

    /// Replaces the faults that are set.
    pub fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Stops the process during the n-th operation from now; 1 is the next one. Call [`FaultyDisk::restart`]
    /// afterwards.
    pub fn stop_at(&self, operation: u64) {
        self.state().faults.stop_at = Some(operation);
    }

    /// Limits the number of bytes that can still be written.
    pub fn fill_up_after(&self, bytes: u64) {
        self.state().faults.bytes_left = Some(bytes);
    }

    /// Makes the n-th sync of a file from now fail; 1 is the next one: see [`Faults::failed_sync`].
    pub fn fail_sync(&self, sync: u64) {
        self.state().faults.failed_sync = Some(sync);
    }

    /// Removes all faults. Returns whether any were set, or have made an operation of this process fail.
    pub fn repair(&self) -> bool {
        let mut state = self.state();
        let faults = std::mem::take(&mut state.faults);
        std::mem::take(&mut state.has_failed) || faults != Faults::default()
    }

    /// Ends the process: every operation fails from now on.
    pub fn stop(&self) {
        self.state().stopped = true;
    }

    /// Whether a write was misdirected since the last call.
    pub fn take_lie(&self) -> bool {
        std::mem::take(&mut self.state().lied)
    }

    /// Starts the next process with the remaining data and without faults.
    pub fn restart(&self, crash: Crash) {
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

    /// Flips a bit of a file that is not empty. Returns its place, so that it can be flipped back.
    pub fn flip_bit(&self) -> Option<(PathBuf, usize, u8)> {
        let mut state = self.state();
        let names: Vec<(PathBuf, usize)> =
            state.names.iter().map(|(name, id)| (name.clone(), *id)).collect();
        if names.is_empty() {
            return None;
        }
        let (name, id) = state.random.pick(&names).clone();
        let file = state.files.get(&id)?;
        // Prefer the written part of the file.
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
    pub fn flip_back(&self, name: &Path, at: usize, bit: u8) {
        let mut state = self.state();
        if let Some(id) = state.names.get(name).copied() {
            state.flip(id, at, bit);
        }
    }

    /// Loses power and restarts. The seed determines which unsynced data is kept.
    pub fn lose_power(&self, seed: u64) {
        self.state().random = Random::new(seed);
        self.restart(Crash::PowerLoss);
    }

    /// Paths of all files, sorted.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    /// Content of a file as a reader sees it.
    #[must_use]
    pub fn contents(&self, path: &Path) -> Vec<u8> {
        let mut state = self.state();
        let id = state.id(path).unwrap();
        state.file(id).now.clone()
    }

    /// Puts a durable file on the disk, and replaces any file of this name.
    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let (now, durable) = (bytes.to_vec(), bytes.to_vec());
        let id = state.add(Contents { now, durable, dirty: BTreeSet::new() });
        state.names.insert(path.to_owned(), id);
        state.durable_names.insert(path.to_owned(), id);
    }

    /// Changes the content of a file directly, without an operation of the disk.
    pub fn edit(&self, path: &Path, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.contents(path);
        edit(&mut bytes);
        self.put(path, &bytes);
    }

    /// Copies the disk: the same files, all durable, and no faults.
    #[must_use]
    pub fn copy(&self) -> Self {
        let copy = Self::default();
        for path in self.paths() {
            copy.put(&path, &self.contents(&path));
        }
        copy
    }

    /// Whether the process has stopped.
    pub fn has_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Counts a write of the store. Fails if the process stops during this write, or if a fault makes the write fail.
    pub fn pass(&self) -> io::Result<()> {
        self.operate(|state| {
            if count_down(&mut state.faults.failed_write) {
                state.has_failed = true;
                return Err(io::Error::other("the write failed"));
            }
            Ok(())
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // If another thread panicked, it poisoned the lock. Its test reports the panic, and may still read the disk.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `act` unless the process has stopped. If the process stops during the operation, the operation takes place,
    /// but the caller gets an error.
    fn operate<T>(&self, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state();
        if state.stopped {
            return Err(io::Error::other("the process has stopped"));
        }
        let counts = !std::thread::current().name().is_some_and(|name| name.starts_with("log-"));
        state.stopped = counts && count_down(&mut state.faults.stop_at);
        let done = act(&mut state)?;
        if state.stopped { Err(io::Error::other("the process stops")) } else { Ok(done) }
    }
}

/// Creates an empty disk, on which nothing is random until [`FaultyDisk::lose_power`].
impl Default for FaultyDisk {
    fn default() -> Self {
        Self::new(Random::new(0))
    }
}

impl Contents {
    /// Writes the current content of one sector to the platter.
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

    fn add(&mut self, contents: Contents) -> usize {
        let id = self.next_id;
        self.next_id += 1;
        self.files.insert(id, contents);
        id
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

    /// Keeps the synced data, and a random share of the rest.
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

    /// Number of bytes that are read or written: all, or fewer if the operation is partial. Fails if it is interrupted.
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
            // Overwriting existing data needs no more space.
            let there = self.file(id).now.len().saturating_sub(offset);
            // Only whole sectors are written: this is a promise of `commitlog::disk`.
            writes = writes.min(there + left as usize / SECTOR * SECTOR);
            if writes == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.faults.bytes_left = Some(left - writes.saturating_sub(there) as u64);
        }
        if self.stopped {
            // The process stops in the middle of the write.
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
