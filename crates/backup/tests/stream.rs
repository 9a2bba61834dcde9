//! A written backup is read unchanged, and any difference from it is refused.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here is the test")]

use backup::{BackupError, Group, Header, Keyspace, Reader, Summary, Writer, verify};
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

/// The content of a backup.
#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    ephemeral: Vec<(Vec<u8>, Vec<u8>)>,
    facts: Vec<(Vec<u8>, Vec<u8>)>,
    groups: Vec<(u64, Vec<u8>)>,
    files: Vec<Vec<u8>>,
    keys: Option<Vec<u8>>,
}

const CHECKPOINT: u64 = 41;

fn write(content: &Content) -> (Vec<u8>, Summary) {
    let header = Header {
        roost: "0.1.0".into(),
        directory: Some("0123".into()),
        made_ms: 1_700_000_000_000,
        checkpoint: CHECKPOINT,
        checkpoint_ms: 1_600_000_000_000,
        last: CHECKPOINT + content.groups.len() as u64,
    };
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    for (key, value) in &content.ephemeral {
        writer.row(Keyspace::Ephemeral, key, value).unwrap();
    }
    for (key, value) in &content.facts {
        writer.row(Keyspace::Facts, key, value).unwrap();
    }
    for (position, (time_ms, payload)) in (CHECKPOINT + 1..).zip(&content.groups) {
        writer.group(Group { position, time_ms: *time_ms, payload }).unwrap();
    }
    for file in &content.files {
        writer.file(&Sha256::digest(file).into(), file).unwrap();
    }
    if let Some(keys) = &content.keys {
        writer.keys(keys).unwrap();
    }
    writer.finish().unwrap()
}

fn read(bytes: &[u8]) -> Result<(Content, Summary), BackupError> {
    let mut reader = Reader::open(bytes)?;
    let mut content = Content::default();
    reader.rows(Keyspace::Ephemeral, |key, value| {
        content.ephemeral.push((key.to_vec(), value.to_vec()));
        Ok(())
    })?;
    reader.rows(Keyspace::Facts, |key, value| {
        content.facts.push((key.to_vec(), value.to_vec()));
        Ok(())
    })?;
    reader.groups(|group| {
        content.groups.push((group.time_ms, group.payload.to_vec()));
        Ok(())
    })?;
    reader.files(|hash, file| {
        assert_eq!(*hash, <[u8; 32]>::from(Sha256::digest(file)));
        content.files.push(file.to_vec());
        Ok(())
    })?;
    content.keys = reader.keys()?;
    Ok((content, reader.finish()?))
}

fn small() -> Content {
    let row = |key: &str, value: &str| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
    Content {
        ephemeral: vec![row("a", ""), row("b", "story")],
        facts: vec![row("\0", "head"), row("p", "post"), row("q", "")],
        groups: vec![(7, b"one".to_vec()), (7, b"two".to_vec()), (9, b"three".to_vec())],
        // Files are in the order of their digests.
        files: vec![b"two".to_vec(), b"one".to_vec()],
        keys: Some(b"{}".to_vec()),
    }
}

fn rows() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    let bytes = |lengths| proptest::collection::vec(any::<u8>(), lengths);
    let row = (bytes(1..20), bytes(0..200));
    proptest::collection::btree_map(row.0, row.1, 0..50).prop_map(|rows| rows.into_iter().collect())
}

fn contents() -> impl Strategy<Value = Content> {
    let payload = proptest::collection::vec(any::<u8>(), 1..300);
    let groups = proptest::collection::vec((0..1_000_u64, payload), 0..20);
    let keys = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..100));
    let files =
        proptest::collection::btree_set(proptest::collection::vec(any::<u8>(), 0..300), 0..5);
    let parts = (rows(), rows(), groups, files, keys);
    parts.prop_map(|(ephemeral, facts, mut groups, files, keys)| {
        groups.sort_by_key(|(time_ms, _)| *time_ms);
        let mut files: Vec<_> = files.into_iter().collect();
        files.sort_by_key(|file| <[u8; 32]>::from(Sha256::digest(file)));
        Content { ephemeral, facts, groups, files, keys }
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read(content in contents()) {
        let (bytes, summary) = write(&content);
        let (found, checked) = read(&bytes).unwrap();
        prop_assert_eq!(&found, &content);
        prop_assert_eq!(&checked, &summary);
        prop_assert_eq!(summary.total_bytes, bytes.len() as u64);
        prop_assert_eq!(verify(bytes.as_slice()).unwrap().1, summary);
    }

    #[test]
    fn other_bytes_are_refused_and_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        prop_assert!(verify(bytes.as_slice()).is_err());
    }
}

#[test]
fn entries_longer_than_a_block_are_kept_whole() {
    let long = |byte| vec![byte; 3 << 20];
    let content = Content {
        facts: vec![(vec![1; 65_535], long(1)), (vec![2], long(2)), (vec![3], vec![3])],
        groups: vec![(1, long(4)), (2, vec![5])],
        ..Content::default()
    };
    let (bytes, _) = write(&content);
    assert!(read(&bytes).unwrap().0 == content);
}

#[test]
fn every_flipped_bit_is_found() {
    let (bytes, _) = write(&small());
    for at in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[at / 8] ^= 1 << (at % 8);
        assert!(verify(flipped.as_slice()).is_err(), "bit {at} of {}", bytes.len() * 8);
    }
}

#[test]
fn every_truncation_and_every_extension_is_found() {
    let (bytes, _) = write(&small());
    for length in 0..bytes.len() {
        match verify(&bytes[..length]) {
            Err(BackupError::Truncated { bytes }) => assert_eq!(bytes, length as u64),
            Err(BackupError::NotABackup) => assert!(length < 8, "{length}"),
            other => panic!("{length} bytes: {other:?}"),
        }
    }
    assert!(verify([bytes.as_slice(), &[0]].concat().as_slice()).is_err());
    assert!(verify([bytes.as_slice(), &bytes].concat().as_slice()).is_err());
}

/// Splits a backup into its prefix and blocks.
fn blocks(bytes: &[u8]) -> Vec<&[u8]> {
    let (prefix, mut rest) = bytes.split_at(16);
    let mut blocks = vec![prefix];
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let (block, after) = rest.split_at(16 + length);
        blocks.push(block);
        rest = after;
    }
    blocks
}

#[test]
fn blocks_that_are_missing_or_in_another_order_are_found() {
    let (bytes, _) = write(&small());
    let blocks = blocks(&bytes);
    assert_eq!(blocks.len(), 9);
    for left_out in 0..blocks.len() {
        let mut fewer = blocks.clone();
        fewer.remove(left_out);
        assert!(verify(fewer.concat().as_slice()).is_err(), "without block {left_out}");
        let mut more = blocks.clone();
        more.insert(left_out, blocks[left_out]);
        assert!(verify(more.concat().as_slice()).is_err(), "block {left_out} twice");
    }
    for first in 1..blocks.len() - 1 {
        let mut swapped = blocks.clone();
        swapped.swap(first, first + 1);
        assert!(verify(swapped.concat().as_slice()).is_err(), "blocks {first} and {}", first + 1);
    }
}

/// A stream with valid checksums can still have content that no writer makes. Checksums protect against accidents, not
/// against attackers.
#[test]
fn contents_that_no_writer_makes_are_refused() {
    let row = |key: &[u8]| (key.to_vec(), Vec::new());
    let check = |change: fn(&mut Content), what: &str| {
        let mut content = small();
        change(&mut content);
        let (bytes, _) = write(&content);
        match read(&bytes) {
            Err(BackupError::Damaged { what: found, .. }) => assert_eq!(found, what),
            other => panic!("{what}: {other:?}"),
        }
    };
    check(|content| content.facts.swap(0, 1), "rows are not in order");
    check(|content| content.facts[1].0 = content.facts[0].0.clone(), "rows are not in order");
    check(|content| content.ephemeral[0].0.clear(), "a row is malformed");
    check(|content| content.groups[2].0 = 6, "groups are not in order");
    check(|content| content.files.swap(0, 1), "files are not in order");
    assert!(read(&write(&Content { facts: vec![row(b"a")], ..Content::default() }).0).is_ok());
}

#[test]
fn another_version_is_refused_with_both_numbers() {
    let (mut bytes, _) = write(&small());
    bytes[8] = 2;
    let crc = crc32c::crc32c(&bytes[..12]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    let error = verify(bytes.as_slice()).unwrap_err().to_string();
    assert!(error.contains("format version 2") && error.contains("reads version 1"), "{error}");
}

#[test]
fn a_backup_of_version_1_is_read_and_written_the_same() {
    let fixture = include_bytes!("fixtures/version-1.backup");
    assert_eq!(read(fixture).unwrap().0, small());
    assert_eq!(write(&small()).0, fixture);
}

#[test]
#[ignore = "writes into the source tree"]
fn write_the_fixture() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/version-1.backup");
    std::fs::write(path, write(&small()).0).unwrap();
}

#[test]
fn a_file_has_the_name_of_its_bytes() {
    let mut writer = Writer::new(Vec::new(), &Header::default()).unwrap();
    writer.file(&[7; 32], b"one").unwrap();
    writer.lost_file();
    let (bytes, summary) = writer.finish().unwrap();
    assert_eq!((summary.files, summary.lost_files), (1, 1));
    let error = verify(bytes.as_slice()).unwrap_err().to_string();
    assert!(error.contains("the name of another one"), "{error}");
}

/// The reader allocates memory for bytes that arrived, not for an announced length.
#[test]
fn an_announced_length_is_not_reserved() {
    let (bytes, _) = write(&small());
    let mut announced = bytes[..32].to_vec();
    announced[24..28].copy_from_slice(&(66_u32 << 20).to_le_bytes());
    assert!(matches!(verify(announced.as_slice()), Err(BackupError::Truncated { bytes: 32 })));
    announced[24..28].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(verify(announced.as_slice()), Err(BackupError::Damaged { offset: 16, .. })));
}
