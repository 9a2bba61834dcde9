//! Tests of which data the disk keeps and which it loses.

use commitlog::disk::Disk as _;

use super::*;

/// Writes two sectors and a file, and syncs the first sector and the name.
fn written(seed: u64) -> FaultyDisk {
    let disk = FaultyDisk::new(Random::new(seed));
    let file = disk.create(Path::new("/a")).unwrap();
    file.write_all_at(&[1; SECTOR], 0).unwrap();
    file.sync_data().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    file.write_all_at(&[2; SECTOR], SECTOR as u64).unwrap();
    disk.create(Path::new("/b")).unwrap();
    disk
}

fn bytes(disk: &FaultyDisk) -> Vec<u8> {
    let file = disk.open(Path::new("/a")).unwrap();
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn a_power_loss_keeps_what_was_synced_and_some_of_the_rest() {
    let mut outcomes = BTreeSet::new();
    for seed in 0..100 {
        let disk = written(seed);
        disk.restart(Crash::PowerLoss);
        let bytes = bytes(&disk);
        assert_eq!(bytes[..SECTOR], [1; SECTOR]);
        outcomes.insert((bytes.len() > SECTOR, disk.open(Path::new("/b")).is_ok()));
    }
    assert_eq!(outcomes.len(), 4, "the sector and the name are independent");
}

#[test]
fn a_killed_process_leaves_everything_it_wrote() {
    let disk = written(1);
    disk.stop();
    assert!(disk.open(Path::new("/a")).is_err());
    disk.restart(Crash::Kill);
    assert_eq!(bytes(&disk).len(), 2 * SECTOR);
}

#[test]
fn after_a_failed_sync_readers_see_what_a_power_loss_takes_away() {
    let disk = written(1);
    disk.set_faults(Faults { failed_sync: Some(1), ..Faults::default() });
    let file = disk.open(Path::new("/a")).unwrap();
    assert!(file.sync_data().is_err());
    assert!(file.sync_data().is_ok());
    assert_eq!(bytes(&disk).len(), 2 * SECTOR);
    disk.restart(Crash::PowerLoss);
    assert_eq!(bytes(&disk).len(), SECTOR);
}
