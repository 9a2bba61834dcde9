//! Tests of keys as a node reads them: the same before and after a checkpoint, a restart and evictions; absent when
//! they expire, then swept; consistent when they are read together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kv::{BucketId, Bytes, Expiry, KeyAnswer, KeyOp, KeyOps, Only, Watched};
use node::{Clock, Durability, Found, Node, NodeOptions, ReadAt, ReadRows};
use tokio::runtime::Runtime;

const ZERO: BucketId = BucketId(0);
const START_MS: u64 = 1_800_000_000_000;

struct Subject {
    /// `None` only during a restart.
    node: Option<Node>,
    options: NodeOptions,
    clock: Arc<AtomicU64>,
    runtime: Runtime,
    _data: tempfile::TempDir,
}

impl Subject {
    fn new(set: impl FnOnce(&mut NodeOptions)) -> Self {
        let data = tempfile::tempdir().unwrap();
        let clock = Arc::new(AtomicU64::new(START_MS));
        let mut options = NodeOptions::new(data.path());
        options.durability = Durability::Never;
        options.clock = Clock::from_fn({
            let clock = Arc::clone(&clock);
            move || clock.load(Ordering::Acquire)
        });
        set(&mut options);
        let node = Some(Node::open(&options).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        Self { node, options, clock, runtime, _data: data }
    }

    fn node(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.node = None;
        self.node = Some(Node::open(&self.options).unwrap());
    }

    fn run(&self, ops: &[KeyOp<'_>]) -> Vec<KeyAnswer> {
        let ops: KeyOps = ops.iter().cloned().collect();
        self.runtime.block_on(self.node().submit_keys(ops, Vec::new())).unwrap().answers
    }

    fn value(&self, key: &str) -> Option<Vec<u8>> {
        let row = self.node().keys().row(ZERO, key.as_bytes())?;
        Some(row.value().to_vec())
    }

    /// Returns all keys, by a walk in small steps.
    fn walked(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let (mut found, mut next) = (BTreeMap::new(), Some(0));
        while let Some(from) = next {
            let (rows, after) = self.node().keys().walk(ZERO, from, 9);
            for row in rows {
                let twice = found.insert(row.key().to_vec(), row.value().to_vec());
                assert!(twice.is_none(), "{row:?} is returned once");
            }
            next = after;
        }
        found
    }
}

fn put<'a>(key: &'a str, value: &'a str, expiry: Expiry) -> KeyOp<'a> {
    let (key, value) = (Bytes::new(key.as_bytes()), Bytes::new(value.as_bytes()));
    KeyOp::Put { bucket: ZERO, key, value, expiry, only: Only::Always, old: false }
}

fn add(key: &str) -> KeyOp<'_> {
    KeyOp::Add { bucket: ZERO, key: Bytes::new(key.as_bytes()), by: 1 }
}

#[test]
fn keys_beyond_the_budget_of_memory_come_from_the_disk() {
    let mut subject = Subject::new(|options| {
        options.overlay_memory = 50_000;
        options.bucket_memory = 150_000;
    });
    let mut expected = BTreeMap::new();
    for round in 0..4 {
        for number in 0..1_000 {
            let (key, value) = (format!("key{number}"), format!("{:0>120}", number * round));
            let op = if number % 9 == round {
                KeyOp::Remove { bucket: ZERO, keys: vec![Bytes::new(key.as_bytes())] }
            } else {
                put(&key, &value, Expiry::Never)
            };
            let removed = matches!(op, KeyOp::Remove { .. });
            subject.run(&[op]);
            match removed {
                true => drop(expected.remove(key.as_bytes())),
                false => drop(expected.insert(key.clone().into_bytes(), value.into_bytes())),
            }
        }
        // A checkpoint may be adding a row now, before it drops another one.
        let bytes = subject.node().sizes().resident_bytes;
        assert!(bytes <= 150_000 + 300, "{bytes}");
        assert_eq!(subject.walked(), expected);
        if round % 2 == 1 {
            subject.restart();
        }
        for number in 0..1_000 {
            let key = format!("key{number}");
            assert_eq!(subject.value(&key).as_ref(), expected.get(key.as_bytes()), "{key}");
        }
    }
    let counted = subject.node().keys().bucket(ZERO).unwrap().keys;
    assert_eq!(counted, expected.len() as u64);
}

#[test]
fn keys_that_are_not_in_memory_are_reported_as_unknown() {
    let mut subject = Subject::new(|options| options.bucket_memory = 0);
    assert_eq!(subject.node().keys().try_row(ZERO, b"a"), Found::Absent, "nothing is on the disk");
    subject.run(&[put("a", "1", Expiry::Never)]);
    assert!(matches!(subject.node().keys().try_row(ZERO, b"a"), Found::Row(_)));
    subject.restart();
    assert_eq!(subject.node().keys().try_row(ZERO, b"a"), Found::Unknown);
    assert_eq!(subject.node().keys().try_row(ZERO, b"b"), Found::Unknown);
    assert_eq!(subject.value("a").unwrap(), b"1");
    assert_eq!(subject.value("b"), None);
}

#[test]
fn expiry_is_exact_over_restarts_and_steps_of_the_clock_and_rows_are_swept() {
    let mut subject = Subject::new(|_| ());
    subject.run(&[put("short", "1", Expiry::In(1_000)), put("long", "1", Expiry::In(9_000))]);
    subject.restart();
    subject.clock.store(START_MS - 50_000, Ordering::Release);
    subject.run(&[add("short")]);
    subject.clock.store(START_MS + 999, Ordering::Release);
    assert_eq!(subject.value("short").unwrap(), b"2");
    subject.clock.store(START_MS + 1_000, Ordering::Release);
    assert_eq!(subject.value("short"), None);
    assert_eq!(subject.run(&[add("short")]), [KeyAnswer::Number(1)], "it begins anew");
    assert_eq!(subject.value("long").unwrap(), b"1");
    subject.clock.store(START_MS + 12_000, Ordering::Release);
    // The node sweeps on its own.
    while subject.node().keys().bucket(ZERO).unwrap().keys > 1 {
        std::thread::yield_now();
    }
    assert_eq!(subject.walked().len(), 1);
}

#[test]
fn a_bucket_that_was_emptied_leaves_no_rows() {
    let mut subject = Subject::new(|options| options.overlay_memory = 20_000);
    let keys: Vec<String> = (0..2_000).map(|number| format!("key{number}")).collect();
    let ops: Vec<KeyOp<'_>> = keys.iter().map(|key| put(key, "value", Expiry::Never)).collect();
    subject.run(&ops);
    subject.restart();
    subject.run(&[KeyOp::Flush { bucket: ZERO }, put("key7", "new", Expiry::Never)]);
    assert_eq!(subject.walked().len(), 1);
    while subject.node().key_facts().has_dead_keys(START_MS) {
        std::thread::yield_now();
    }
    subject.restart();
    assert_eq!(subject.walked(), BTreeMap::from([(b"key7".to_vec(), b"new".to_vec())]));
    let space = kv::Space(0);
    let (rows, _) = subject.node().key_facts().rows_of_keys(space, 0, kv::WalkLimit::rows(1));
    assert_eq!(rows, []);
}

#[test]
fn keys_read_under_the_snapshot_lock_are_of_one_state() {
    let subject = Subject::new(|_| ());
    subject.run(&[put("a", "0", Expiry::Never), put("b", "0", Expiry::Never)]);
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stopped.load(Ordering::Acquire) {
                let snapshot_lock = subject.node().snapshot_lock();
                let keys = subject.node().keys();
                let [a, b] = [b"a", b"b"].map(|key| keys.row(ZERO, key).unwrap());
                assert_eq!(a.value(), b.value());
                drop(snapshot_lock);
            }
        });
        for _ in 0..2_000 {
            subject.run(&[add("a"), add("b")]);
        }
        stopped.store(true, Ordering::Release);
    });
    assert_eq!(subject.value("b").unwrap(), b"2000");
}

#[test]
fn a_transaction_reads_between_its_own_operations() {
    let subject = Subject::new(|_| ());
    subject.run(&[put("a", "0", Expiry::Never)]);
    let version = subject.node().keys().row(ZERO, b"a").map(|row| row.version());
    let run = |version| {
        let watched = vec![Watched { bucket: ZERO, key: Bytes::new(b"a"), version }];
        let begin = KeyOp::Begin { watched, then: 2 };
        let ops: KeyOps = [begin, add("a"), add("a")].into_iter().collect();
        let read = |before| ReadAt { before, bucket: ZERO, keys: vec![b"a"[..].into()] };
        let submitted = subject.node().submit_keys(ops, (0..4).map(read).collect());
        let replies = subject.runtime.block_on(submitted).unwrap();
        let value = |read: &ReadRows| {
            let rows = read.rows.as_ref().unwrap();
            assert_eq!((read.count, rows.len()), (1, 1));
            String::from_utf8(rows[0].as_ref().unwrap().value().to_vec()).unwrap()
        };
        (replies.answers, replies.reads.iter().map(value).collect::<Vec<_>>())
    };
    let (answers, read) = run(version);
    assert_eq!(answers, [KeyAnswer::Done, KeyAnswer::Number(1), KeyAnswer::Number(2)]);
    assert_eq!(read, ["0", "0", "1", "2"]);
    let (answers, read) = run(version);
    assert_eq!(answers, vec![KeyAnswer::Skipped; 3]);
    assert_eq!(read, ["2"; 4], "reads are done, even though the changes are not");
}

#[test]
fn long_values_and_many_operations_share_groups_of_the_log() {
    let mut subject = Subject::new(|options| options.bucket_memory = 1 << 20);
    let value = "x".repeat(16 << 20);
    subject.run(&[put("long", &value, Expiry::Never), put("longer", &value, Expiry::Never)]);
    let keys: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    let ops: Vec<KeyOp<'_>> = keys.iter().map(|key| add(key)).collect();
    assert_eq!(subject.run(&ops).len(), 20_000);
    for _ in 0..2 {
        assert!(subject.value("longer").unwrap() == value.as_bytes());
        assert_eq!(subject.node().keys().bucket(ZERO).unwrap().keys, 20_002);
        subject.restart();
    }
}

#[test]
fn keys_longer_than_any_key_do_not_exist_live_on_disk_or_in_a_replay() {
    let mut subject = Subject::new(|options| options.bucket_memory = 1 << 20);
    subject.run(&[put("a", "1", Expiry::Never)]);
    // Some rows are only on disk.
    subject.restart();
    let long = vec![b'x'; 70_000];
    let (long, a) = (Bytes::new(&long), Bytes::new(b"a"));
    let watched = vec![Watched { bucket: ZERO, key: long, version: None }];
    let ops = [
        KeyOp::Begin { watched, then: 1 },
        KeyOp::Remove { bucket: ZERO, keys: vec![long, a] },
        KeyOp::Move { bucket: ZERO, key: long, to_bucket: BucketId(1) },
    ];
    let answers = subject.run(&ops);
    assert_eq!(answers, [KeyAnswer::Done, KeyAnswer::Number(1), KeyAnswer::Number(0)]);
    subject.restart();
    assert_eq!(subject.value("a"), None);
    assert_eq!(subject.node().keys().row(ZERO, long), None);
}
