//! Tests that archiving the longest group stays within the memory that a node reserves for it. This is a separate
//! binary because it replaces the allocator.

#![allow(clippy::unwrap_used, reason = "what fails here is the test")]
#![allow(unsafe_code, reason = "an allocator that counts is one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use commitlog::disk::RealDisk;
use commitlog::{
    ARCHIVE_MEMORY, Archive, LocalLog, Log as _, LogReader, PAYLOAD_BYTES_MAX, Position,
};

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// Allocator that counts the allocated bytes, and records the maximum.
struct Counting;

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::SeqCst) + layout.size();
        MOST.fetch_max(now, Ordering::SeqCst);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The only test of this binary, because the allocator counts the bytes of the whole process.
#[test]
fn the_longest_group_is_archived_within_the_stated_memory() {
    // Use a directory in memory, because syncs to a disk would take most of the time.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.unwrap();
    let (log_dir, to) = (folder.path().join("log"), folder.path().join("archive"));
    let mut log = LocalLog::open(Arc::new(RealDisk), &log_dir, Position(0)).unwrap();
    log.write_group(&vec![1; PAYLOAD_BYTES_MAX], 1).unwrap();
    log.write_group(&vec![2; PAYLOAD_BYTES_MAX], 2).unwrap();
    log.sync().unwrap();
    let last = log.last();
    drop(log);
    let before = NOW.load(Ordering::SeqCst);
    MOST.store(before, Ordering::SeqCst);
    let reader = LogReader::open(Arc::new(RealDisk), &log_dir).unwrap();
    let mut archive = Archive::open(Arc::new(RealDisk), &to, "id", true).unwrap();
    while archive.last() < last {
        archive.add(&reader, archive.last(), last).unwrap();
    }
    archive.check_continued_by(&reader, last).unwrap();
    let took = MOST.load(Ordering::SeqCst) - before;
    assert!(took <= ARCHIVE_MEMORY, "{took} of {ARCHIVE_MEMORY} bytes");
    assert!(took > ARCHIVE_MEMORY / 2, "{took}: far fewer than stated");
}
