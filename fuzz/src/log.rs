//! Fuzz target of the recovery of a log with changed bytes: the log is refused, or contains a prefix of the written
//! groups.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use commitlog::disk::{Disk, DiskFile};
use commitlog::{LocalLog, Log as _, LogOptions, Position};

/// Options with which a segment holds only a few groups.
const OPTIONS: LogOptions = LogOptions { segment_bytes: 4_096, prepares_on_thread: false };
const GROUPS_MAX: usize = 24;

/// Input: a byte for the number of groups, then changes. A change is three bytes for the place, and one for the new
/// value. If the place is beyond the end of the log, the last file is shortened.
pub fn log(data: &[u8]) {
    let Some((groups, changes)) = data.split_first() else { return };
    let groups = usize::from(*groups) % GROUPS_MAX;
    let disk = MemoryDisk::default();
    let dir = Path::new("log");
    let open = || LocalLog::open_with(Arc::new(disk.clone()), dir, OPTIONS, Position(0));
    let mut log = open().unwrap();
    for number in 0..groups {
        log.write_group(&payload(number), number as u64).unwrap();
        log.sync_point().sync().unwrap();
    }
    drop(log);
    let (changes, _) = changes.as_chunks::<4>();
    for [high, middle, low, with] in changes {
        disk.change(u32::from_be_bytes([0, *high, *middle, *low]) as usize, *with);
    }
    let Ok(mut log) = open() else { return };
    let last = log.last().0;
    assert!(last <= groups as u64, "{last} groups of {groups}");
    check(&log, last);
    log.write_group(b"another", 99).unwrap();
    log.sync_point().sync().unwrap();
    drop(log);
    let log = open().expect("a log that was opened can be opened again");
    assert_eq!(log.last().0, last + 1);
}

/// Payload of the group with this number, counted from 0.
fn payload(number: usize) -> Vec<u8> {
    vec![number as u8 + 1; 1 + number * 97 % 1500]
}

fn check(log: &LocalLog, last: u64) {
    let mut next = 1;
    log.read(Position(0), &mut |group| {
        assert_eq!(group.position, Position(next));
        assert_eq!(group.payload, payload(next as usize - 1));
        next += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(next, last + 1);
}

/// Files by path.
#[derive(Clone, Default)]
struct MemoryDisk(Arc<Mutex<BTreeMap<PathBuf, MemoryFile>>>);

type MemoryFile = Arc<Bytes>;

#[derive(Default)]
struct Bytes(Mutex<Vec<u8>>);

impl MemoryDisk {
    /// Changes the byte at a place in the concatenation of all files; beyond their end, changes the length of the last
    /// file.
    fn change(&self, mut place: usize, with: u8) {
        let files = self.0.lock().unwrap();
        for file in files.values() {
            let mut bytes = file.0.lock().unwrap();
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= with;
                return;
            }
            place -= bytes.len();
        }
        if let Some(file) = files.values().last() {
            let mut bytes = file.0.lock().unwrap();
            let left = place % (bytes.len() + 1);
            bytes.truncate(left);
        }
    }
}

impl Disk for MemoryDisk {
    fn make_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        Ok(self.0.lock().unwrap().keys().map(name).collect())
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        match self.0.lock().unwrap().get(path) {
            Some(file) => Ok(Arc::clone(file) as Arc<dyn DiskFile>),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = MemoryFile::default();
        self.0.lock().unwrap().insert(path.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.0.lock().unwrap();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.lock().unwrap().remove(path);
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for Bytes {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().len() as u64)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.0.lock().unwrap();
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        let mut bytes = self.0.lock().unwrap();
        let end = offset as usize + from.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(from);
        Ok(from.len())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}
