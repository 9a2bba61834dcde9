//! Journal: the changes of files by a process, in order, in memory that the process shares with the test.
//!
//! State: the file, which both map. The process orders all calls with one lock, which disappears with the process. A
//! record is complete before the head counts it, so a reader needs no lock after the process has ended.

#![expect(unsafe_code, reason = "memory shared between processes")]

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Maximum length of a journal, in bytes. The file is sparse: only the recorded bytes take space.
const BYTES: usize = 2 << 30;
/// Length of the counters at the beginning, in bytes.
const HEAD_BYTES: usize = 4096;

/// The counters at the beginning of a journal.
#[repr(C)]
pub(crate) struct Head {
    /// Length of all records so far, in bytes.
    pub(crate) end: AtomicU64,
    /// Number of records so far.
    pub(crate) records: AtomicU64,
    /// Number of the record during which the process ends; 0 if it does not.
    pub(crate) die_at: AtomicU64,
    /// Number of the system call that the layer did not know, plus 1; 0 if there was none.
    pub(crate) unknown: AtomicU64,
    pub(crate) lock: AtomicU32,
    /// 1 if the layer was loaded, otherwise 0.
    pub(crate) loaded: AtomicU32,
}

/// The fixed part of a record. `payload` bytes follow, and then zeros up to a multiple of 8.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Fixed {
    pub(crate) kind: u64,
    pub(crate) inode: u64,
    pub(crate) first: u64,
    pub(crate) second: u64,
    pub(crate) payload: u64,
}

pub(crate) const CREATE: u64 = 1;
pub(crate) const WRITE: u64 = 2;
pub(crate) const RESIZE: u64 = 3;
pub(crate) const SYNC: u64 = 4;
pub(crate) const RENAME: u64 = 5;
pub(crate) const LINK: u64 = 6;
pub(crate) const REMOVE: u64 = 7;
pub(crate) const MAKE_DIR: u64 = 8;

/// A change of a file or directory by a process. Offsets and lengths are in bytes, paths are absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields that their names explain")]
pub enum Record<'a> {
    /// The process opened a file, which may be new, and may have been emptied.
    Create { inode: u64, path: &'a Path, emptied: bool },
    /// The process wrote `bytes` bytes at an offset. If `data` is `None`, all of them are zeros.
    Write { inode: u64, offset: u64, bytes: u64, data: Option<&'a [u8]> },
    /// The process changed the length of a file.
    Resize { inode: u64, bytes: u64 },
    /// The process synced a file or a directory.
    Sync { inode: u64 },
    /// The process renamed a file or directory.
    Rename { from: &'a Path, to: &'a Path },
    /// The process gave a file a second name.
    Link { from: &'a Path, to: &'a Path },
    /// The process removed a name of a file, or a directory.
    Remove { path: &'a Path },
    /// The process created a directory.
    MakeDir { inode: u64, path: &'a Path },
}

/// Mapped journal.
pub struct Journal {
    path: PathBuf,
    memory: *mut u8,
}

// SAFETY: another process shares this memory anyway; only atomics and finished records are read.
unsafe impl Send for Journal {}
// SAFETY: another process shares this memory anyway; only atomics and finished records are read.
unsafe impl Sync for Journal {}

impl Journal {
    /// Creates an empty journal, preferably on a file system in memory.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(path)?;
        file.set_len(BYTES as u64)?;
        let memory = map(file.as_raw_fd())?;
        Ok(Self { path: path.to_owned(), memory })
    }

    /// Path of the journal, which is the value of [`crate::JOURNAL`].
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping is longer than the head, aligned to a page, and lives as long as `self`.
        unsafe { &*self.memory.cast() }
    }

    /// Number of records so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.head().records.load(Ordering::Acquire)
    }

    /// Makes the process die as from SIGKILL, during the n-th call from now; 1 is the next one.
    pub fn die_after(&self, calls: u64) {
        self.head().die_at.store(self.records() + calls, Ordering::Release);
    }

    /// Whether the layer was loaded into a process with this journal.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.head().loaded.load(Ordering::Acquire) != 0
    }

    /// The number of the unknown system call that ended the process; `None` if there was none. It is invalid if the
    /// journal was full.
    #[must_use]
    pub fn unknown_call(&self) -> Option<u64> {
        self.head().unknown.load(Ordering::Acquire).checked_sub(1)
    }

    /// Passes all records to `each`, in order. Call it after the process has ended.
    pub fn read(&self, mut each: impl FnMut(Record<'_>)) {
        let end = self.head().end.load(Ordering::Acquire) as usize;
        // SAFETY: the process wrote these bytes, and has ended.
        let mut rest = unsafe { std::slice::from_raw_parts(self.memory.add(HEAD_BYTES), end) };
        while let Some((fixed, after)) = rest.split_at_checked(size_of::<Fixed>()) {
            // SAFETY: every value of `Fixed` is valid, and records begin at multiples of 8.
            let fixed: Fixed = unsafe { fixed.as_ptr().cast::<Fixed>().read() };
            let bytes = fixed.payload as usize;
            let (payload, _) = after.split_at(bytes);
            (_, rest) = after.split_at(bytes.next_multiple_of(8));
            each(fixed.record(payload));
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // SAFETY: `map` mapped this memory, and nothing borrows from it any more.
        unsafe { libc::munmap(self.memory.cast(), BYTES) };
        std::fs::remove_file(&self.path).ok();
    }
}

impl Fixed {
    fn record<'a>(&self, payload: &'a [u8]) -> Record<'a> {
        let path = || Path::new(OsStr::from_bytes(payload));
        let paths = || {
            let (from, to) = payload.split_at(self.first as usize);
            (Path::new(OsStr::from_bytes(from)), Path::new(OsStr::from_bytes(to)))
        };
        let inode = self.inode;
        match self.kind {
            CREATE => Record::Create { inode, path: path(), emptied: self.first != 0 },
            WRITE => {
                let data = (!payload.is_empty()).then_some(payload);
                Record::Write { inode, offset: self.first, bytes: self.second, data }
            }
            RESIZE => Record::Resize { inode, bytes: self.first },
            SYNC => Record::Sync { inode },
            RENAME => {
                let (from, to) = paths();
                Record::Rename { from, to }
            }
            LINK => {
                let (from, to) = paths();
                Record::Link { from, to }
            }
            REMOVE => Record::Remove { path: path() },
            MAKE_DIR => Record::MakeDir { inode, path: path() },
            kind => unreachable!("a record of kind {kind}"),
        }
    }
}

/// Maps the journal that is open as `fd`.
pub(crate) fn map(fd: i32) -> io::Result<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: this is a new mapping of a file of this length.
    let memory =
        unsafe { libc::mmap(std::ptr::null_mut(), BYTES, protection, libc::MAP_SHARED, fd, 0) };
    if memory == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(memory.cast()) }
}

/// The start of the next record; `None` if a payload of this length does not fit.
pub(crate) fn place(memory: *mut u8, end: u64, payload: u64) -> Option<*mut u8> {
    let at = HEAD_BYTES as u64 + end;
    let after = at + size_of::<Fixed>() as u64 + payload + 8;
    // SAFETY: the address is within the mapping.
    (after <= BYTES as u64).then(|| unsafe { memory.add(at as usize) })
}
