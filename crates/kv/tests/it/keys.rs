//! Operations on keys: tables of cases, and random sequences compared with a plain map.

use std::collections::BTreeMap;

use kv::limits::{NUMBERED_BUCKETS, SWEEP_BYTES_MAX, VALUE_BYTES_MAX};
use kv::{
    BucketId, BucketName, Bytes, Expiry, Facts, KeyAnswer, KeyOp, KeyOps, KeyRefusal, KeyRow,
    KeyRows as _, Only, OnlyExpiry, Txn, WalkLimit, Watched, apply,
};
use proptest::prelude::*;
use rows::{EPOCH_MS, Stamp, StampClock};
use testkit::MemoryRows;

const ZERO: BucketId = BucketId(0);
const ONE: BucketId = BucketId(1);

struct World {
    rows: MemoryRows,
    /// Rows after the same commands, applied like a replay of the log.
    replayed: MemoryRows,
    clock: StampClock,
    now_ms: u64,
}

impl World {
    fn new() -> Self {
        let (rows, replayed) = (MemoryRows::default(), MemoryRows::default());
        let clock = StampClock::new(Stamp(0));
        Self { rows, replayed, clock, now_ms: EPOCH_MS + 10_000 }
    }

    fn run_all(&mut self, ops: &[KeyOp<'_>]) -> Vec<KeyAnswer> {
        let ops: KeyOps = ops.iter().cloned().collect();
        let stamp = self.clock.next_run(self.now_ms, ops.stamps());
        let mut answers = Vec::new();
        apply(&mut Txn::new(&mut self.rows), stamp, &ops, &mut |_, _| (), &mut answers);
        let logged: KeyOps = postcard::from_bytes(&postcard::to_stdvec(&ops).unwrap()).unwrap();
        let mut replayed = Vec::new();
        let mut txn = Txn::new(&mut self.replayed);
        apply(&mut txn, stamp, &logged, &mut |_, _| (), &mut replayed);
        assert_eq!(answers, replayed);
        answers
    }

    fn run(&mut self, op: KeyOp<'_>) -> KeyAnswer {
        self.run_all(&[op]).pop().unwrap()
    }

    fn put(&mut self, bucket: BucketId, key: &str, value: &str, expiry: Expiry) {
        let (key, value) = (bytes(key), bytes(value));
        let answer =
            self.run(KeyOp::Put { bucket, key, value, expiry, only: Only::Always, old: false });
        assert!(matches!(answer, KeyAnswer::Written { .. }), "{answer:?}");
    }

    /// Value and TTL in milliseconds of a live key.
    fn look(&self, bucket: BucketId, key: &str) -> Option<(String, Option<u64>)> {
        let facts = Facts::new(&self.rows);
        let row = facts.key(facts.bucket(bucket)?.space, key.as_bytes())?;
        let value = String::from_utf8(row.value().to_vec()).unwrap();
        row.is_live(self.now_ms).then(|| (value, row.expires_ms().map(|at| at - self.now_ms)))
    }

    /// Checks the invariants of the stored rows.
    fn check_facts(&self) {
        let facts = Facts::new(&self.rows);
        let mut expiring = 0;
        let made = u64::from(NUMBERED_BUCKETS) + facts.totals().buckets_made;
        for id in (0..made).map(BucketId) {
            let Some(bucket) = facts.bucket(id) else { continue };
            let (rows, _) = facts.rows_of_keys(bucket.space, 0, WalkLimit::NONE);
            let held = rows.iter().map(KeyRow::data_bytes).sum::<u64>();
            assert_eq!((bucket.keys, bucket.bytes), (rows.len() as u64, held), "{id:?}");
            let expiries: Vec<u64> = rows.iter().filter_map(KeyRow::expires_ms).collect();
            let sum = expiries.iter().copied().map(u128::from).sum();
            let (expiring_here, expiries_ms) = (bucket.expiring, bucket.expiries_ms);
            assert_eq!((expiring_here, expiries_ms), (expiries.len() as u64, sum), "{id:?}");
            expiring += bucket.expiring;
        }
        assert!(facts.totals().keys_expiring >= expiring, "keys of orphaned spaces count too");
        assert_eq!(self.rows, self.replayed);
    }
}

fn bytes(text: &str) -> &Bytes {
    Bytes::new(text.as_bytes())
}

/// Formats an answer for tables.
fn show(answer: &KeyAnswer) -> String {
    match answer {
        KeyAnswer::Written { created, .. } => format!("written {created}"),
        KeyAnswer::Number(number) => number.to_string(),
        KeyAnswer::Row(row) => String::from_utf8_lossy(row.value()).into_owned(),
        KeyAnswer::Refused(refusal) => format!("{refusal:?}"),
        other => format!("{other:?}"),
    }
}

/// Applies `op` to a bucket in which `a` is 7, `b` is "text" with a TTL of 500 ms, and `gone` has expired. Checks the
/// answer, and `key` afterwards.
fn check(op: &KeyOp<'_>, answer: &str, key: &str, after: Option<(&str, Option<u64>)>) {
    let mut world = World::new();
    world.put(ZERO, "gone", "late", Expiry::In(50));
    world.now_ms += 100;
    world.put(ZERO, "a", "7", Expiry::Never);
    world.put(ZERO, "b", "text", Expiry::In(500));
    world.put(ONE, "a", "other", Expiry::Never);
    let found = world.run(op.clone());
    assert_eq!(show(&found), answer, "{op:?}");
    let after = after.map(|(value, expiry)| (value.to_owned(), expiry));
    assert_eq!(world.look(ZERO, key), after, "{key} after {op:?}");
    world.check_facts();
}

#[test]
fn values_are_set_under_conditions_and_with_an_expiry() {
    let put = |key, expiry, only, old| {
        let (key, value) = (bytes(key), bytes("new"));
        KeyOp::Put { bucket: ZERO, key, value, expiry, only, old }
    };
    let now = EPOCH_MS + 10_100;
    let new = Some(("new", None));
    for (op, answer, key, after) in [
        (put("a", Expiry::Never, Only::Always, false), "written false", "a", new),
        (put("c", Expiry::Keep, Only::Always, false), "written true", "c", new),
        (put("gone", Expiry::Keep, Only::Always, false), "written true", "gone", new),
        (put("b", Expiry::Keep, Only::Always, true), "text", "b", Some(("new", Some(500)))),
        (put("b", Expiry::Never, Only::Always, true), "text", "b", new),
        (
            put("b", Expiry::In(9), Only::Always, false),
            "written false",
            "b",
            Some(("new", Some(9))),
        ),
        (
            put("b", Expiry::At(now + 4), Only::Always, false),
            "written false",
            "b",
            Some(("new", Some(4))),
        ),
        (put("b", Expiry::At(now), Only::Always, false), "written false", "b", None),
        (put("c", Expiry::At(0), Only::Always, false), "written true", "c", None),
        (put("a", Expiry::Never, Only::IfAbsent, false), "Nothing", "a", Some(("7", None))),
        (put("a", Expiry::Never, Only::IfAbsent, true), "7", "a", Some(("7", None))),
        (put("gone", Expiry::Never, Only::IfAbsent, true), "Nothing", "gone", new),
        (put("gone", Expiry::Never, Only::IfPresent, false), "Nothing", "gone", None),
        (put("a", Expiry::Never, Only::IfPresent, false), "written false", "a", new),
        (
            put("a", Expiry::Never, Only::IfVersion(Stamp(1)), false),
            "Nothing",
            "a",
            Some(("7", None)),
        ),
    ] {
        check(&op, answer, key, after);
    }
    let pairs = vec![(bytes("a"), bytes("1")), (bytes("c"), bytes("2")), (bytes("c"), bytes("3"))];
    let put_all = |only_new| KeyOp::PutAll { bucket: ZERO, pairs: pairs.clone(), only_new };
    check(&put_all(false), "written false", "c", Some(("3", None)));
    check(&put_all(true), "Nothing", "c", None);
}

#[test]
fn values_are_changed_in_place() {
    let bucket = ZERO;
    let add = |key, by| KeyOp::Add { bucket, key: bytes(key), by };
    let append = |key, more| KeyOp::Append { bucket, key: bytes(key), bytes: bytes(more) };
    let range =
        |key, offset, part| KeyOp::SetRange { bucket, key: bytes(key), offset, bytes: bytes(part) };
    let bit = |key, offset, bit| KeyOp::SetBit { bucket, key: bytes(key), offset, bit };
    let float = |key, by| KeyOp::AddFloat { bucket, key: bytes(key), by: bytes(by) };
    let seven = Some(("7", None));
    for (op, answer, key, after) in [
        (add("a", -9), "-2", "a", Some(("-2", None))),
        (add("c", 5), "5", "c", Some(("5", None))),
        (add("gone", 5), "5", "gone", Some(("5", None))),
        (add("b", 1), "NotInteger", "b", Some(("text", Some(500)))),
        (add("a", i64::MAX), "Overflow", "a", seven),
        (float("a", "0.1"), "7.1", "a", Some(("7.1", None))),
        (float("c", "1e2"), "100", "c", Some(("100", None))),
        (float("b", "1"), "NotFloat", "b", Some(("text", Some(500)))),
        (float("a", "x"), "NotFloat", "a", seven),
        (append("a", "89"), "3", "a", Some(("789", None))),
        (append("b", "s"), "5", "b", Some(("texts", Some(500)))),
        (append("gone", ""), "0", "gone", Some(("", None))),
        (range("b", 2, "st!"), "5", "b", Some(("test!", Some(500)))),
        (range("c", 2, "x"), "3", "c", Some(("\0\0x", None))),
        (range("c", 2, ""), "0", "c", None),
        (range("a", 5, ""), "1", "a", seven),
        (range("a", VALUE_BYTES_MAX as u64, "x"), "TooLong", "a", seven),
        (range("a", u64::MAX, "x"), "TooLong", "a", seven),
        (bit("a", 7, false), "1", "a", Some(("6", None))),
        (bit("c", 9, true), "0", "c", Some(("\0@", None))),
        (bit("a", 8 * VALUE_BYTES_MAX as u64, true), "TooLong", "a", seven),
    ] {
        check(&op, answer, key, after);
    }
}

#[test]
fn keys_are_removed_renamed_copied_and_moved() {
    let bucket = ZERO;
    let remove = |keys: &[&'static str]| {
        let keys = keys.iter().map(|key| bytes(key)).collect();
        KeyOp::Remove { bucket, keys }
    };
    let take = |key, only| KeyOp::Take { bucket, key: bytes(key), only };
    let rename =
        |from, to, only_new| KeyOp::Rename { bucket, from: bytes(from), to: bytes(to), only_new };
    let copy = |key, to_bucket, to, replace| KeyOp::Copy {
        bucket,
        key: bytes(key),
        to_bucket,
        to: bytes(to),
        replace,
    };
    let moved = |key, to_bucket| KeyOp::Move { bucket, key: bytes(key), to_bucket };
    let text = Some(("text", Some(500)));
    for (op, answer, key, after) in [
        (remove(&["a", "gone", "c", "a"]), "1", "a", None),
        (take("a", Only::Always), "7", "a", None),
        (take("gone", Only::Always), "Nothing", "gone", None),
        (take("a", Only::IfVersion(Stamp(1))), "Nothing", "a", Some(("7", None))),
        (rename("b", "c", false), "1", "c", text),
        (rename("b", "a", false), "1", "a", text),
        (rename("b", "a", true), "0", "b", text),
        (rename("b", "gone", true), "1", "gone", text),
        (rename("b", "b", false), "1", "b", text),
        (rename("b", "b", true), "0", "b", text),
        (rename("gone", "c", false), "KeyNotFound", "c", None),
        (copy("b", ZERO, "c", false), "1", "c", text),
        (copy("b", ZERO, "a", false), "0", "a", Some(("7", None))),
        (copy("b", ZERO, "a", true), "1", "a", text),
        (copy("gone", ZERO, "a", true), "0", "a", Some(("7", None))),
        (copy("b", ZERO, "b", true), "SameKey", "b", text),
        (copy("a", BucketId(99), "a", true), "BucketNotFound", "a", Some(("7", None))),
        (moved("a", ONE), "0", "a", Some(("7", None))),
        (moved("b", ONE), "1", "b", None),
        (moved("b", ZERO), "SameKey", "b", text),
    ] {
        check(&op, answer, key, after);
    }
}

#[test]
fn expiries_are_changed_under_conditions() {
    let expire = |key, expiry, only, read| KeyOp::Expire {
        bucket: ZERO,
        key: bytes(key),
        expiry,
        only,
        read,
    };
    let (always, none, some) = (OnlyExpiry::Always, OnlyExpiry::IfNone, OnlyExpiry::IfSome);
    let (later, earlier) = (OnlyExpiry::IfLater, OnlyExpiry::IfEarlier);
    let seven = Some(("7", None));
    let text = |ms| Some(("text", Some(ms)));
    for (op, answer, key, after) in [
        (expire("a", Expiry::In(5), always, false), "1", "a", Some(("7", Some(5)))),
        (expire("a", Expiry::In(0), always, false), "1", "a", None),
        (expire("gone", Expiry::In(5), always, false), "0", "gone", None),
        (expire("gone", Expiry::In(5), always, true), "Nothing", "gone", None),
        (expire("b", Expiry::Never, always, true), "text", "b", Some(("text", None))),
        (expire("b", Expiry::Never, always, false), "1", "b", Some(("text", None))),
        (expire("a", Expiry::Never, always, false), "0", "a", seven),
        (expire("a", Expiry::In(5), none, false), "1", "a", Some(("7", Some(5)))),
        (expire("b", Expiry::In(5), none, false), "0", "b", text(500)),
        (expire("a", Expiry::In(5), some, false), "0", "a", seven),
        (expire("b", Expiry::In(5), some, false), "1", "b", text(5)),
        (expire("a", Expiry::In(5), later, false), "0", "a", seven),
        (expire("b", Expiry::In(501), later, false), "1", "b", text(501)),
        (expire("b", Expiry::In(500), later, false), "0", "b", text(500)),
        (expire("a", Expiry::In(5), earlier, false), "1", "a", Some(("7", Some(5)))),
        (expire("b", Expiry::In(501), earlier, false), "0", "b", text(500)),
        (expire("a", Expiry::In(5), OnlyExpiry::IfSomeAndEarlier, false), "0", "a", seven),
        (expire("b", Expiry::In(5), OnlyExpiry::IfSomeAndEarlier, false), "1", "b", text(5)),
        (expire("b", Expiry::In(505), OnlyExpiry::IfSomeAndLater, false), "1", "b", text(505)),
    ] {
        check(&op, answer, key, after);
    }
}

#[test]
fn a_transaction_is_applied_only_if_watched_keys_are_unchanged() {
    let mut world = World::new();
    world.put(ZERO, "a", "1", Expiry::In(500));
    let version = |world: &World, key: &str| {
        let space = world.rows.bucket(ZERO).unwrap().space;
        let row = world.rows.key(space, key.as_bytes());
        row.filter(|row| row.is_live(world.now_ms)).map(|row| row.version())
    };
    let begin = |a, c| KeyOp::Begin {
        watched: vec![
            Watched { bucket: ZERO, key: bytes("a"), version: a },
            Watched { bucket: ZERO, key: bytes("c"), version: c },
        ],
        then: 2,
    };
    let add = |key| KeyOp::Add { bucket: ZERO, key: bytes(key), by: 1 };
    let run = |world: &mut World, a, c| {
        let answers = world.run_all(&[begin(a, c), add("a"), add("b"), add("after")]);
        answers.iter().map(show).collect::<Vec<_>>().join(" ")
    };
    let first = version(&world, "a");
    assert_eq!(run(&mut world, first, None), "Done 2 1 1");
    assert_eq!(run(&mut world, first, None), "Skipped Skipped Skipped 2", "the key was changed");
    let second = version(&world, "a");
    assert_eq!(
        run(&mut world, second, first),
        "Skipped Skipped Skipped 3",
        "c never had this version"
    );
    world.now_ms += 600;
    assert_eq!(run(&mut world, second, None), "Skipped Skipped Skipped 4", "the key expired");
    assert_eq!(run(&mut world, None, None), "Done 1 2 5");
    let third = version(&world, "a");
    world.run(KeyOp::Flush { bucket: ZERO });
    assert_eq!(run(&mut world, third, None), "Skipped Skipped Skipped 1", "the key was removed");
    world.check_facts();
}

#[test]
fn the_callback_between_operations_sees_the_earlier_ones_and_no_skipped_ones() {
    let mut world = World::new();
    let stale = Watched { bucket: ZERO, key: bytes("a"), version: Some(Stamp(1)) };
    let add = KeyOp::Add { bucket: ZERO, key: bytes("a"), by: 1 };
    let ops: KeyOps = [
        KeyOp::Begin { watched: vec![], then: 1 },
        add.clone(),
        KeyOp::Begin { watched: vec![stale], then: 2 },
        add.clone(),
        add.clone(),
        add,
    ]
    .into_iter()
    .collect();
    let stamp = world.clock.next_run(world.now_ms, ops.stamps());
    let mut seen = Vec::new();
    let mut answers = Vec::new();
    apply(&mut Txn::new(&mut world.rows), stamp, &ops, &mut |at, _| seen.push(at), &mut answers);
    assert_eq!(seen, [0, 1, 2, 5, 6]);
    assert_eq!(show(answers.last().unwrap()), "2");
}

#[test]
fn buckets_are_created_emptied_exchanged_and_deleted() {
    let mut world = World::new();
    let name = |text| BucketName::parse(text).unwrap();
    let create = |text| KeyOp::Create { name: name(text) };
    let delete = |text| KeyOp::Drop { name: name(text) };
    let first = i64::from(NUMBERED_BUCKETS);
    for (op, answer) in [
        (create("drafts"), KeyAnswer::Number(first)),
        (create("drafts"), KeyAnswer::Nothing),
        (create("Drafts"), KeyAnswer::Number(first + 1)),
        (create("7"), KeyAnswer::Nothing),
        (create("16"), KeyAnswer::Number(first + 2)),
        (create("07"), KeyAnswer::Number(first + 3)),
        (delete("Drafts"), KeyAnswer::Done),
        (delete("Drafts"), KeyAnswer::Refused(KeyRefusal::BucketNotFound)),
        (delete("0"), KeyAnswer::Refused(KeyRefusal::BucketStays)),
        (create("Drafts"), KeyAnswer::Number(first + 4)),
        (KeyOp::Flush { bucket: BucketId(17) }, KeyAnswer::Refused(KeyRefusal::BucketNotFound)),
        (KeyOp::Swap { a: ZERO, b: BucketId(17) }, KeyAnswer::Refused(KeyRefusal::BucketNotFound)),
    ] {
        assert_eq!(world.run(op.clone()), answer, "{op:?}");
    }
    let drafts = BucketId(NUMBERED_BUCKETS.into());
    world.put(ZERO, "a", "zero", Expiry::In(90_000));
    world.put(drafts, "a", "draft", Expiry::Never);
    world.run(KeyOp::Swap { a: ZERO, b: drafts });
    assert_eq!(world.look(ZERO, "a"), Some(("draft".into(), None)));
    assert_eq!(world.look(drafts, "a"), Some(("zero".into(), Some(90_000))));
    world.run(KeyOp::Flush { bucket: drafts });
    assert_eq!((world.look(drafts, "a"), world.rows.bucket(drafts).unwrap().keys), (None, 0));
    world.check_facts();
}

#[test]
fn deleted_buckets_free_their_spaces_and_do_not_count_for_the_limit() {
    let mut world = World::new();
    let name = BucketName::parse("drafts").unwrap();
    let mut ids = Vec::new();
    for round in 0..300 {
        let KeyAnswer::Number(id) = world.run(KeyOp::Create { name: name.clone() }) else {
            panic!("round {round}")
        };
        ids.push(id);
        let bucket = BucketId(id as u64);
        world.put(bucket, "a", "value", Expiry::Never);
        if round % 2 == 0 {
            world.run(KeyOp::Flush { bucket });
        }
        world.run(KeyOp::Drop { name: name.clone() });
        sweep(&mut world);
    }
    ids.dedup();
    assert_eq!(ids.len(), 300, "an id is never another bucket's");
    let facts = Facts::new(&world.rows);
    assert_eq!(facts.bucket_count(), NUMBERED_BUCKETS as usize);
    assert!(facts.totals().spaces <= 2, "{} spaces", facts.totals().spaces);
    world.check_facts();
}

#[test]
fn emptying_the_numbered_buckets_leaves_the_named_ones() {
    let mut world = World::new();
    world.run(KeyOp::Create { name: BucketName::parse("drafts").unwrap() });
    let drafts = BucketId(NUMBERED_BUCKETS.into());
    for bucket in [ZERO, ONE, drafts] {
        world.put(bucket, "a", "value", Expiry::In(500));
    }
    assert_eq!(world.run(KeyOp::FlushNumbered), KeyAnswer::Done);
    assert_eq!((world.look(ZERO, "a"), world.look(ONE, "a")), (None, None));
    assert!(world.look(drafts, "a").is_some());
    assert_eq!(sweep(&mut world), 2);
    world.check_facts();
}

#[test]
fn a_sweep_is_limited_in_bytes_and_in_rows() {
    let mut world = World::new();
    let value = "x".repeat(SWEEP_BYTES_MAX / 4);
    for key in 0..20 {
        world.put(ZERO, &format!("key{key}"), &value, Expiry::In(10));
    }
    world.now_ms += 1_000;
    let answer = world.run(KeyOp::Sweep);
    assert_eq!(answer, KeyAnswer::Swept { rows: 4, more: true });
    assert_eq!(sweep(&mut world), 16);
    for key in 0..20 {
        world.put(ZERO, &format!("key{key}"), &value, Expiry::Never);
    }
    world.run(KeyOp::Flush { bucket: ZERO });
    assert_eq!(world.run(KeyOp::Sweep), KeyAnswer::Swept { rows: 4, more: true });
}

/// Sweeps until nothing is left; returns the number of removed rows.
fn sweep(world: &mut World) -> u32 {
    let mut swept = 0;
    loop {
        let KeyAnswer::Swept { rows, more } = world.run(KeyOp::Sweep) else { unreachable!() };
        swept += rows;
        if !more {
            return swept;
        }
    }
}

#[test]
fn the_sweep_removes_expired_keys_and_keys_of_orphaned_spaces() {
    let mut world = World::new();
    let keys: Vec<String> = (0..1_500).map(|number| format!("key{number}")).collect();
    for key in &keys {
        let expiry = if key.ends_with('7') { Expiry::In(700) } else { Expiry::Never };
        world.put(ZERO, key, "value", expiry);
        world.put(ONE, key, "value", Expiry::In(5_000));
    }
    // Change the expiry of one key, remove that of another, and swap the buckets.
    world.put(ZERO, "key7", "value", Expiry::In(100_000));
    world.put(ZERO, "key17", "value", Expiry::Never);
    world.run(KeyOp::Swap { a: ZERO, b: ONE });
    assert_eq!(sweep(&mut world), 0, "nothing has expired");
    world.now_ms += 1_900;
    assert!(Facts::new(&world.rows).has_dead_keys(world.now_ms));
    assert_eq!(sweep(&mut world), 148);
    assert_eq!(world.rows.bucket(ONE).unwrap().keys, 1_352);
    world.check_facts();
    world.run(KeyOp::Flush { bucket: ONE });
    assert_eq!(sweep(&mut world), 1_352);
    world.now_ms += 4_500;
    assert_eq!(sweep(&mut world), 1_500);
    let facts = Facts::new(&world.rows);
    assert!(!facts.has_dead_keys(world.now_ms));
    assert_eq!(facts.totals().keys_expiring, 0);
    world.check_facts();
}

#[derive(Clone, Debug)]
enum Step {
    Put(u64, u8, String, Option<u64>),
    Remove(u64, u8),
    Add(u64, u8, i64),
    Append(u64, u8, String),
    Expire(u64, u8, Option<u64>),
    Rename(u64, u8, u8),
    Move(u64, u8, u64),
    Flush(u64),
    Swap(u64, u64),
    Sweep,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let bucket = || 0..3u64;
    let key = || 0..6u8;
    let text = || prop_oneof!["[0-9]{1,3}", "[a-z]{0,3}"];
    let life = || proptest::option::of(prop_oneof![Just(0), 1..3_000u64]);
    prop_oneof![
        8 => (bucket(), key(), text(), life()).prop_map(|(b, k, v, l)| Step::Put(b, k, v, l)),
        3 => (bucket(), key()).prop_map(|(b, k)| Step::Remove(b, k)),
        2 => (bucket(), key(), -9..9i64).prop_map(|(b, k, n)| Step::Add(b, k, n)),
        2 => (bucket(), key(), text()).prop_map(|(b, k, v)| Step::Append(b, k, v)),
        3 => (bucket(), key(), life()).prop_map(|(b, k, l)| Step::Expire(b, k, l)),
        2 => (bucket(), key(), key()).prop_map(|(b, k, to)| Step::Rename(b, k, to)),
        2 => (bucket(), key(), bucket()).prop_map(|(b, k, to)| Step::Move(b, k, to)),
        1 => bucket().prop_map(Step::Flush),
        1 => (bucket(), bucket()).prop_map(|(a, b)| Step::Swap(a, b)),
        2 => Just(Step::Sweep),
        3 => (0..2_000u64).prop_map(Step::Wait),
    ]
}

/// Value and expiry of each key.
type Plain = BTreeMap<u8, (String, Option<u64>)>;

fn expiry(life: Option<u64>) -> Expiry {
    life.map_or(Expiry::Never, Expiry::In)
}

/// Applies a step to plain maps, as the rules demand; returns the operation of the step.
fn plainly(
    step: &Step,
    maps: &mut [Plain; 3],
    now: u64,
    names: &[String],
) -> Option<KeyOp<'static>> {
    let leaked = |text: &str| Bytes::new(String::leak(text.to_owned()).as_bytes());
    let name = |key: &u8| leaked(&names[usize::from(*key)]);
    for map in maps.iter_mut() {
        map.retain(|_, (_, expires)| expires.is_none_or(|at| at > now));
    }
    let until = |life: &Option<u64>| life.map(|life| now + life);
    Some(match step {
        Step::Put(b, k, value, life) => {
            maps[*b as usize].insert(*k, (value.clone(), until(life)));
            let (bucket, key, value) = (BucketId(*b), name(k), leaked(value));
            KeyOp::Put { bucket, key, value, expiry: expiry(*life), only: Only::Always, old: true }
        }
        Step::Remove(b, k) => {
            maps[*b as usize].remove(k);
            KeyOp::Remove { bucket: BucketId(*b), keys: vec![name(k)] }
        }
        Step::Add(b, k, by) => {
            let (value, _) = maps[*b as usize].entry(*k).or_insert(("0".into(), None));
            let number = value.parse::<i64>().ok();
            if let Some(number) = number.filter(|number| number.to_string() == *value) {
                *value = (number + by).to_string();
            }
            KeyOp::Add { bucket: BucketId(*b), key: name(k), by: *by }
        }
        Step::Append(b, k, more) => {
            maps[*b as usize].entry(*k).or_default().0.push_str(more);
            KeyOp::Append { bucket: BucketId(*b), key: name(k), bytes: leaked(more) }
        }
        Step::Expire(b, k, life) => {
            if let Some((_, expires)) = maps[*b as usize].get_mut(k) {
                *expires = until(life);
            }
            let (bucket, key, only) = (BucketId(*b), name(k), OnlyExpiry::Always);
            KeyOp::Expire { bucket, key, expiry: expiry(*life), only, read: false }
        }
        Step::Rename(b, from, to) => {
            if let Some(found) = maps[*b as usize].remove(from) {
                maps[*b as usize].insert(*to, found);
            }
            let (from, to) = (name(from), name(to));
            KeyOp::Rename { bucket: BucketId(*b), from, to, only_new: false }
        }
        Step::Move(b, k, to) => {
            if b != to
                && !maps[*to as usize].contains_key(k)
                && let Some(found) = maps[*b as usize].remove(k)
            {
                maps[*to as usize].insert(*k, found);
            }
            KeyOp::Move { bucket: BucketId(*b), key: name(k), to_bucket: BucketId(*to) }
        }
        Step::Flush(bucket) => {
            maps[*bucket as usize].clear();
            KeyOp::Flush { bucket: BucketId(*bucket) }
        }
        Step::Swap(a, b) => {
            maps.swap(*a as usize, *b as usize);
            KeyOp::Swap { a: BucketId(*a), b: BucketId(*b) }
        }
        Step::Sweep => KeyOp::Sweep,
        Step::Wait(_) => return None,
    })
}

proptest! {
    #[test]
    fn keys_equal_those_of_plain_maps(steps in proptest::collection::vec(step(), 1..80)) {
        let names: Vec<String> = (0..6).map(|key| format!("k{key}")).collect();
        let mut world = World::new();
        let mut maps = [Plain::new(), Plain::new(), Plain::new()];
        for step in &steps {
            if let Step::Wait(ms) = step {
                world.now_ms += ms;
            }
            if let Some(op) = plainly(step, &mut maps, world.now_ms, &names) {
                world.run(op);
            }
            for (bucket, map) in (0..3).map(BucketId).zip(&maps) {
                for (key, name) in (0..6).zip(&names) {
                    let plain = map.get(&key).filter(|(_, at)| at.is_none_or(|at| at > world.now_ms));
                    let plain = plain.map(|(value, at)| (value.clone(), at.map(|at| at - world.now_ms)));
                    prop_assert_eq!(world.look(bucket, name), plain);
                }
            }
            world.check_facts();
        }
        world.now_ms += 10_000;
        sweep(&mut world);
        world.check_facts();
        prop_assert_eq!(Facts::new(&world.rows).totals().keys_expiring, 0);
    }
}
