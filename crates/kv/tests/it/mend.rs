//! Check of buckets and keys. Rows of operations give no finding, and lost expiries and counts are restored. After
//! other losses, no rows contradict each other, and all keys are in a bucket.

use kv::{
    BucketId, BucketName, Bytes, Expiry, Facts, KeyOp, KeyOps, KeyRowsMut as _, KeyScan as _, Mend,
    Only, Txn, WalkLimit, apply,
};
use proptest::prelude::*;
use rows::{
    EPOCH_MS, Finding, NameTable, PointTable, PutRows as _, Rows as _, RowsMut as _, SetTable,
    Span, Stamp, StampClock,
};
use testkit::MemoryRows;

#[derive(Clone, Debug)]
enum Act {
    Put(u64, u8, Option<u64>),
    Remove(u64, u8),
    Flush(u64),
    Swap(u64, u64),
    Create(u8),
    Drop(u8),
    Sweep,
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let bucket = || prop_oneof![0..3_u64, 16..19_u64];
    prop_oneof![
        6 => (bucket(), 0..20_u8, prop::option::of(1..200_u64)).prop_map(|(b, k, e)| Act::Put(b, k, e)),
        2 => (bucket(), 0..20_u8).prop_map(|(b, k)| Act::Remove(b, k)),
        1 => bucket().prop_map(Act::Flush),
        1 => (bucket(), bucket()).prop_map(|(a, b)| Act::Swap(a, b)),
        1 => (0..3_u8).prop_map(Act::Create),
        1 => (0..3_u8).prop_map(Act::Drop),
        1 => Just(Act::Sweep),
        1 => (1..300_u64).prop_map(Act::Wait),
    ]
}

struct World {
    rows: MemoryRows,
    clock: StampClock,
    now_ms: u64,
}

impl World {
    fn run(&mut self, op: KeyOp<'_>) {
        let ops: KeyOps = std::iter::once(op).collect();
        let stamp = self.clock.next_run(self.now_ms, ops.stamps());
        apply(&mut Txn::new(&mut self.rows), stamp, &ops, &mut |_, _| (), &mut Vec::new());
    }

    fn act(&mut self, act: &Act) {
        let name = |number: u8| BucketName::parse(&format!("b{number}")).unwrap();
        let bytes = |number: &u8| vec![b'k', *number];
        match act {
            Act::Put(bucket, key, expiry) => {
                let (key, value) = (bytes(key), vec![b'v'; usize::from(*key)]);
                let (key, value, only) = (Bytes::new(&key), Bytes::new(&value), Only::Always);
                let (bucket, expiry) =
                    (BucketId(*bucket), expiry.map_or(Expiry::Never, Expiry::In));
                self.run(KeyOp::Put { bucket, key, value, expiry, only, old: false });
            }
            Act::Remove(bucket, key) => {
                let key = bytes(key);
                self.run(KeyOp::Remove { bucket: BucketId(*bucket), keys: vec![Bytes::new(&key)] });
            }
            Act::Flush(bucket) => self.run(KeyOp::Flush { bucket: BucketId(*bucket) }),
            Act::Swap(a, b) => self.run(KeyOp::Swap { a: BucketId(*a), b: BucketId(*b) }),
            Act::Create(number) => self.run(KeyOp::Create { name: name(*number) }),
            Act::Drop(number) => self.run(KeyOp::Drop { name: name(*number) }),
            Act::Sweep => self.run(KeyOp::Sweep),
            Act::Wait(ms) => self.now_ms += ms,
        }
    }
}

fn world_of(acts: &[Act]) -> World {
    let (rows, clock) = (MemoryRows::default(), StampClock::new(Stamp(0)));
    let mut world = World { rows, clock, now_ms: EPOCH_MS + 10_000 };
    acts.iter().for_each(|act| world.act(act));
    world
}

fn mend(rows: &mut MemoryRows) -> Vec<Finding> {
    let (mut check, mut findings) = (Mend::default(), Vec::new());
    while check.step(rows, &mut |finding| findings.push(finding)) {}
    findings
}

/// Number of keys in buckets.
fn reachable(rows: &MemoryRows) -> usize {
    let facts = Facts::new(rows);
    let buckets = rows.buckets();
    buckets
        .iter()
        .map(|(_, bucket)| facts.rows_of_keys(bucket.space, 0, WalkLimit::NONE).0.len())
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn rows_of_operations_give_no_finding(acts in prop::collection::vec(act(), 0..100)) {
        let mut world = world_of(&acts);
        let before = world.rows.clone();
        prop_assert_eq!(mend(&mut world.rows), vec![]);
        prop_assert_eq!(&world.rows, &before);
    }

    #[test]
    fn expiries_and_counts_come_back(acts in prop::collection::vec(act(), 10..100)) {
        let mut world = world_of(&acts);
        let before = world.rows.clone();
        for name in before.first_names(NameTable::KeyExpiry, &[], 3) {
            world.rows.put_name(NameTable::KeyExpiry, &name, None);
        }
        for (id, bucket) in before.buckets() {
            if bucket.keys > 0 {
                world.rows.put_bucket(id, Some(kv::Bucket { keys: 0, bytes: 7, ..bucket }));
            }
        }
        let mut totals = before.totals();
        (totals.keys_expiring, totals.spaces, totals.buckets_made) = (7, totals.spaces, totals.buckets_made);
        world.rows.put_totals(totals);
        let findings = mend(&mut world.rows);
        prop_assert!(findings.iter().all(|finding| !finding.is_lost), "{findings:?}");
        prop_assert_eq!(&world.rows, &before);
    }

    #[test]
    fn keys_that_are_lost_are_counted(acts in prop::collection::vec(act(), 10..100)) {
        let mut world = world_of(&acts);
        for (id, bucket) in world.rows.buckets() {
            world.rows.put_bucket(id, Some(kv::Bucket { keys: bucket.keys + 3, ..bucket }));
            let findings = mend(&mut world.rows);
            let lost = format!("bucket {}: 3 of {} keys", id.0, bucket.keys + 3);
            prop_assert_eq!(findings, vec![Finding::lost(lost)]);
        }
    }

    #[test]
    fn no_key_is_lost_with_the_row_of_its_bucket(
        acts in prop::collection::vec(act(), 10..100),
        later in prop::collection::vec(act(), 0..40),
        spaces in any::<bool>(),
        names in any::<bool>(),
    ) {
        let mut world = world_of(&acts);
        let before = reachable(&world.rows);
        for (id, bucket) in world.rows.buckets() {
            world.rows.put_bucket(id, None);
            if spaces {
                world.rows.put_point(PointTable::BucketOfSpace, bucket.space.0.into(), None);
            }
        }
        for name in world.rows.first_names(NameTable::Bucket, &[], usize::MAX) {
            if names {
                world.rows.put_name(NameTable::Bucket, &name, None);
            }
        }
        mend(&mut world.rows);
        prop_assert_eq!(reachable(&world.rows), before);
        prop_assert_eq!(mend(&mut world.rows), vec![]);
        for act in &later {
            world.act(act);
        }
        prop_assert_eq!(mend(&mut world.rows), vec![]);
        let orphaned = world.rows.members(SetTable::OrphanedSpaces, 0, Span::ALL);
        prop_assert!(orphaned.len() < 100);
    }
}
