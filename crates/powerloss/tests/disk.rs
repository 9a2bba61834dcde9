//! Tests of what the disk keeps and loses, in tables. Tests that the layer records an unmodified process.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

use std::fs;
use std::io::{IoSlice, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use powerloss::{Accounting, DIRECTORY, Disk, JOURNAL, Journal, Loss, Record, SUPPORTED};

/// Creates a directory that contains the file `old` with 1,024 bytes of `o`, and a disk of the directory.
fn disk(accounting: Accounting) -> (tempfile::TempDir, Disk, PathBuf, u64) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("data");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("old"), [b'o'; 1024]).unwrap();
    let inode = fs::metadata(root.join("old")).unwrap().ino();
    let disk = Disk::read(&root, accounting).unwrap();
    (folder, disk, root, inode)
}

fn write(inode: u64, offset: u64, data: &[u8]) -> Record<'_> {
    Record::Write { inode, offset, bytes: data.len() as u64, data: Some(data) }
}

/// The names of the files in a directory.
fn names(root: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn what_was_synced_is_kept_and_the_rest_only_if_nothing_is_lost() {
    let (_folder, mut disk, root, inode) = disk(Accounting::Honest);
    disk.apply(write(inode, 0, &[b'1'; 512]));
    disk.apply(Record::Sync { inode });
    disk.apply(write(inode, 512, &[b'2'; 1024]));
    disk.lose_power(Loss::Nothing, 0).unwrap();
    assert_eq!(fs::read(root.join("old")).unwrap(), [[b'1'; 512], [b'o'; 512]].concat());
    disk.lose_power(Loss::Everything, 0).unwrap();
    let all = [[b'1'; 512], [b'2'; 512], [b'2'; 512]].concat();
    assert_eq!(fs::read(root.join("old")).unwrap(), all);
}

#[test]
fn a_new_file_needs_a_sync_of_its_own_and_one_of_its_directory() {
    for (synced_file, synced_dir) in [(false, false), (true, false), (false, true), (true, true)] {
        let (_folder, mut disk, root, _) = disk(Accounting::Honest);
        let (inode, dir) = (u64::MAX, fs::metadata(&root).unwrap().ino());
        disk.apply(Record::Create { inode, path: &root.join("new"), emptied: true });
        disk.apply(write(inode, 0, b"text"));
        if synced_file {
            disk.apply(Record::Sync { inode });
        }
        if synced_dir {
            disk.apply(Record::Sync { inode: dir });
        }
        disk.lose_power(Loss::Nothing, 0).unwrap();
        let content = fs::read_to_string(root.join("new")).ok();
        let expected = synced_dir.then_some(if synced_file { "text" } else { "" });
        assert_eq!(content.as_deref(), expected, "{synced_file} {synced_dir}");
    }
}

#[test]
fn a_rename_is_kept_whole_or_not_at_all_and_a_removed_name_may_be_back() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..64 {
        let (_folder, mut disk, root, _) = disk(Accounting::Honest);
        let dir = fs::metadata(&root).unwrap().ino();
        disk.apply(Record::Create { inode: u64::MAX, path: &root.join("tmp"), emptied: true });
        disk.apply(Record::Sync { inode: dir });
        disk.apply(Record::Rename { from: &root.join("tmp"), to: &root.join("new") });
        disk.apply(Record::Remove { path: &root.join("old") });
        disk.lose_power(Loss::Parts(500), seed).unwrap();
        seen.insert(names(&root).join(" "));
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["new", "new old", "old tmp", "tmp"]);
}

#[test]
fn sectors_of_one_write_are_kept_in_any_combination_and_a_length_without_its_bytes() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..256 {
        let (_folder, mut disk, root, inode) = disk(Accounting::Honest);
        disk.apply(write(inode, 0, &[b'n'; 1536]));
        disk.lose_power(Loss::Parts(500), seed).unwrap();
        let content = fs::read(root.join("old")).unwrap();
        let sectors: String = content.chunks(512).map(|sector| char::from(sector[0])).collect();
        assert!(content.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        seen.insert(sectors.replace('\0', "0"));
    }
    for expected in ["oo", "no", "on", "nn", "oo0", "non", "nnn", "oon", "on0"] {
        assert!(seen.contains(expected), "{expected}: {seen:?}");
    }
}

#[test]
fn a_disk_that_ignores_syncs_loses_what_was_synced() {
    let (_folder, mut disk, root, inode) = disk(Accounting::ForgetsFiles);
    disk.apply(write(inode, 0, b"1"));
    disk.apply(Record::Sync { inode });
    disk.lose_power(Loss::Nothing, 0).unwrap();
    assert_eq!(fs::read(root.join("old")).unwrap(), [b'o'; 1024]);
}

/// Environment variable with the script of a child process: see [`child`].
const SCRIPT: &str = "POWERLOSS_TEST_SCRIPT";

/// Changes files in a separate process, according to the script that the test chose.
#[test]
#[ignore = "started by other tests"]
fn child() {
    let root = PathBuf::from(std::env::var_os(DIRECTORY).unwrap());
    let append = || fs::OpenOptions::new().append(true).open(root.join("a")).unwrap();
    match std::env::var(SCRIPT).unwrap().as_str() {
        "many" => {
            fs::write(root.join("a"), "synced ").unwrap();
            fs::File::open(root.join("a")).unwrap().sync_all().unwrap();
            fs::File::open(&root).unwrap().sync_all().unwrap();
            append().write_all(b"more").unwrap();
            let parts = [IoSlice::new(b" and"), IoSlice::new(b" more")];
            assert_eq!(append().write_vectored(&parts).unwrap(), 9);
            fs::OpenOptions::new()
                .write(true)
                .open(root.join("a"))
                .unwrap()
                .write_at(b"S", 0)
                .unwrap();
            fs::create_dir_all(root.join("dir/below")).unwrap();
            fs::write(root.join("dir/below/file"), "").unwrap();
            fs::rename(root.join("old"), root.join("b")).unwrap();
            // These calls are relative to descriptors of directories.
            fs::remove_dir_all(root.join("dir/below")).unwrap();
        }
        "two" => {
            fs::write(root.join("a"), "1").unwrap();
            fs::write(root.join("b"), "2").unwrap();
        }
        "unknown" => symlink("somewhere", root.join("link")).unwrap(),
        script => panic!("no script {script}"),
    }
}

/// Runs [`child`] under the layer. Returns the disk after the run.
fn run(root: &Path, script: &str, die_after: Option<u64>) -> (Disk, Journal, ExitStatus) {
    let journal = Journal::create(&root.parent().unwrap().join("journal")).unwrap();
    if let Some(calls) = die_after {
        journal.die_after(calls);
    }
    let mut disk = Disk::read(root, Accounting::Honest).unwrap();
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--ignored", "--exact", "child"]).env("LD_PRELOAD", layer()).env(SCRIPT, script);
    process.env(JOURNAL, journal.path()).env(DIRECTORY, root).stdout(Stdio::null());
    let status = process.status().unwrap();
    assert!(journal.is_loaded(), "the layer was not loaded");
    journal.read(|record| disk.apply(record));
    (disk, journal, status)
}

/// Path of the library, which is next to this test's binary.
fn layer() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().join("libpowerloss.so")
}

#[test]
fn the_layer_records_a_process_that_knows_nothing_of_it() {
    if !SUPPORTED {
        return;
    }
    let (_folder, _, root, _) = disk(Accounting::Honest);
    let (disk, journal, status) = run(&root, "many", None);
    assert!(status.success(), "{status} {:?}", journal.unknown_call());
    for name in ["a", "b", "old", "dir/below/file"] {
        // Remove the file. Afterwards it exists only if the disk writes it.
        fs::remove_file(root.join(name)).ok();
    }
    disk.lose_power(Loss::Everything, 0).unwrap();
    assert_eq!(names(&root), ["a", "b", "dir"]);
    assert!(names(&root.join("dir")).is_empty());
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "Synced more and more");
    disk.lose_power(Loss::Nothing, 0).unwrap();
    assert_eq!(names(&root), ["a", "old"]);
    assert_eq!(fs::read_to_string(root.join("a")).unwrap(), "synced ");
}

#[test]
fn a_process_ends_during_the_call_that_it_was_told() {
    if !SUPPORTED {
        return;
    }
    let (_folder, _, root, _) = disk(Accounting::Honest);
    // The second call of the script is the write.
    let (disk, journal, status) = run(&root, "two", Some(2));
    assert_eq!(status.signal(), Some(9));
    assert_eq!((journal.records(), disk.unsynced()), (2, 2));
    assert_eq!(names(&root), ["a", "old"]);
}

#[test]
fn a_call_that_the_layer_does_not_know_ends_the_process() {
    if !SUPPORTED {
        return;
    }
    let (_folder, _, root, _) = disk(Accounting::Honest);
    let (_, journal, status) = run(&root, "unknown", None);
    // Number 88 is `symlink`, 266 is `symlinkat`.
    assert!(matches!(journal.unknown_call(), Some(88 | 266)), "{:?}", journal.unknown_call());
    assert_eq!(status.signal(), Some(9));
}
