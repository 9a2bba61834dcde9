//! Tests of sweeps of keys on stores that have the same rows but different rows in memory, as the nodes of a cluster
//! do.

use std::path::Path;

use kv::{BucketId, Bytes, Expiry, Facts, KeyAnswer, KeyOp, KeyOps, Only, Txn, apply};
use rows::{EPOCH_MS, Rows as _, SetTable, Span, Stamp};
use store::{Store, StoreOptions, StoreWriter};
use tempfile::TempDir;

const FULL: BucketId = BucketId(0);
/// Buckets with a few keys each.
const SMALL: std::ops::Range<u64> = 1..9;
const SMALL_KEYS: u32 = 5;
/// Number of keys of a bucket that is emptied: more than one step may read in memory.
const KEYS: u32 = 20_000;

/// Items and their numbers in three sets.
type Orphans = [Vec<(u64, u64)>; 3];

struct Member {
    writer: StoreWriter,
    stamp: Stamp,
    position: u64,
}

impl Member {
    fn open(data: &Path, bucket_bytes: usize, stamp: Stamp) -> Self {
        let options = StoreOptions { cache_bytes: 4 << 20, bucket_bytes };
        let (writer, position) = Store::open(data, options).unwrap();
        Self { writer, stamp, position }
    }

    fn run(&mut self, op: KeyOp<'_>) -> KeyAnswer {
        let ops: KeyOps = [op].into_iter().collect();
        let (mut txn, mut answers) = (Txn::new(&mut self.writer), Vec::new());
        apply(&mut txn, self.stamp, &ops, &mut |_, _| (), &mut answers);
        self.stamp = self.stamp.after(1);
        self.position += 1;
        answers.pop().unwrap()
    }

    fn put(&mut self, bucket: BucketId, key: u32) {
        let (key, value) = (key.to_string(), vec![b'v'; key as usize % 50]);
        let (key, value) = (Bytes::new(key.as_bytes()), Bytes::new(&value));
        let (expiry, only) = (Expiry::Never, Only::Always);
        self.run(KeyOp::Put { bucket, key, value, expiry, only, old: false });
    }

    /// Sweeps until nothing is left. Returns the answer and the remaining rows after each sweep.
    fn sweep(&mut self) -> Vec<(KeyAnswer, Orphans)> {
        let mut swept = Vec::new();
        loop {
            let answer = self.run(KeyOp::Sweep);
            let more = matches!(answer, KeyAnswer::Swept { more: true, .. });
            swept.push((answer, self.orphans()));
            if !more {
                return swept;
            }
        }
    }

    fn store_all(&mut self) {
        self.writer.freeze(self.position).unwrap().run().unwrap();
    }

    /// Returns the rows that list the spaces to be emptied (with cursors), the row with the number of rows in these
    /// spaces, and the rows that list the free spaces.
    fn orphans(&self) -> Orphans {
        let members = |table, owner| self.writer.members(table, owner, Span::ALL);
        [(SetTable::OrphanedSpaces, 0), (SetTable::OrphanedSpaces, 1), (SetTable::FreeSpaces, 0)]
            .map(|(table, owner)| members(table, owner))
    }
}

/// Creates two stores with the same rows. The second one has few of them in memory.
fn two() -> (TempDir, [Member; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    let mut first = Member::open(&one, 64 << 20, Stamp::first_of(EPOCH_MS + 1_000));
    (0..KEYS).for_each(|key| first.put(FULL, key));
    for bucket in SMALL {
        (0..SMALL_KEYS).for_each(|key| first.put(BucketId(bucket), key));
    }
    first.store_all();
    let stamp = first.stamp;
    drop(first);
    let copied = std::process::Command::new("cp").arg("-r").args([&one, &other]).status().unwrap();
    assert!(copied.success());
    let members = [(&one, 64 << 20), (&other, 0)]
        .map(|(data, bucket_bytes)| Member::open(data, bucket_bytes, stamp));
    members[0].writer.store().warm_keys(|| false);
    assert!(!Facts::new(&members[0].writer).has_cold_keys());
    assert!(Facts::new(&members[1].writer).has_cold_keys());
    (folder, members)
}

#[test]
fn every_sweep_ends_at_the_same_key_whatever_is_in_memory() {
    let (_folder, mut members) = two();
    let mut steps = Vec::new();
    for (at, member) in members.iter_mut().enumerate() {
        // No checkpoint has written these rows yet.
        (KEYS..KEYS + 100).for_each(|key| member.put(FULL, key));
        for bucket in SMALL {
            member.run(KeyOp::Flush { bucket: BucketId(bucket) });
        }
        let mut swept = member.sweep();
        member.run(KeyOp::Flush { bucket: FULL });
        if at == 1 {
            member.store_all();
        }
        swept.extend(member.sweep());
        steps.push(swept);
    }
    let [one, other] = &steps[..] else { unreachable!() };
    for (step, (one, other)) in one.iter().zip(other).enumerate() {
        assert_eq!(one, other, "sweep {step}");
    }
    assert_eq!(one.len(), other.len());
    assert!((40..150).contains(&one.len()), "{} sweeps", one.len());
    let removed: u32 = one
        .iter()
        .map(|(answer, _)| match answer {
            KeyAnswer::Swept { rows, .. } => *rows,
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(removed, KEYS + 100 + 8 * SMALL_KEYS);
    let [orphaned, left, free] = &one.last().unwrap().1;
    assert_eq!((orphaned.len(), left.len(), free.len()), (0, 0, 8));
}
