//! Reads and writes of the keys of a bucket, as in the core workloads of YCSB (Cooper and others, "Benchmarking Cloud
//! Serving Systems with YCSB", 2010; the names and shares of its files).
//!
//! The popularity of keys is independent of their order: ranks are drawn by Zipf's law among ten billion items and
//! scattered over the records by a hash, as in YCSB. Workload D reads the newest records most often, by the same law.
//!
//! Differences from YCSB: A record is one value instead of ten fields, so an update writes all of it. A key is read
//! only [`ANSWERED_AFTER`] after its insert, because keys are chosen before the responses to inserts are known.

use std::collections::VecDeque;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

use super::zipf::Zipf;
use super::{Action, What, exponential};

/// Default number of operations per second.
pub(crate) const PER_SECOND: f64 = 1_000.0;
/// Number of items from which a popular one is drawn, before it is scattered over the records.
const ITEMS: u64 = 10_000_000_000;
/// Maximum number of keys of a scan.
const SCAN_KEYS_MAX: u32 = 100;
/// Time from the due time of an insert until its key may be read.
const ANSWERED_AFTER: Duration = Duration::from_secs(1);
/// Number of other operations after an insert until its key may be read. It is used in a closed loop, which has no due
/// times.
const ANSWERED_IN: u64 = 256;

/// A core workload of YCSB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ycsb {
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads.
    C,
    /// 95 % reads of the latest records, 5 % inserts.
    D,
    /// 95 % scans of 1 to 100 keys, 5 % inserts.
    E,
    /// Half reads, half read-modify-writes.
    F,
}

/// Load on the keys of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KeyLoad {
    /// The workload.
    pub ycsb: Ycsb,
    /// Number of records at the start, at least 1.
    pub records: u32,
    /// Length of each value in bytes, at least 1.
    pub value_bytes: u32,
}

impl Default for KeyLoad {
    /// Workload A on 100,000 records of 1,000 bytes.
    fn default() -> KeyLoad {
        KeyLoad { ycsb: Ycsb::A, records: 100_000, value_bytes: 1_000 }
    }
}

/// An operation on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyVerb {
    Read,
    Update,
    Insert,
    Scan,
    Modify,
}

impl Ycsb {
    /// Returns the first kind of operation of a workload, its share of all operations, and the other kind, if any.
    fn mix(self) -> (KeyVerb, f64, Option<KeyVerb>) {
        match self {
            Ycsb::A => (KeyVerb::Read, 0.5, Some(KeyVerb::Update)),
            Ycsb::B => (KeyVerb::Read, 0.95, Some(KeyVerb::Update)),
            Ycsb::C => (KeyVerb::Read, 1.0, None),
            Ycsb::D => (KeyVerb::Read, 0.95, Some(KeyVerb::Insert)),
            Ycsb::E => (KeyVerb::Scan, 0.95, Some(KeyVerb::Insert)),
            Ycsb::F => (KeyVerb::Read, 0.5, Some(KeyVerb::Modify)),
        }
    }

    /// Kinds of operations in the workload.
    pub(crate) fn verbs(self) -> impl Iterator<Item = KeyVerb> {
        let (first, _, other) = self.mix();
        std::iter::once(first).chain(other)
    }
}

/// A written value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// Seed of the value.
    pub seed: u64,
    /// Length in bytes, at least 1.
    pub bytes: u32,
}

impl Value {
    /// Initial value of a record.
    pub(crate) fn of_record(record: u64, load: &KeyLoad, seed: u64) -> Value {
        Value { seed: fnv(record).wrapping_add(seed), bytes: load.value_bytes }
    }

    /// Bytes of the value. They depend only on the seed and the length.
    pub(crate) fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes as usize];
        StdRng::seed_from_u64(self.seed).fill(bytes.as_mut_slice());
        bytes
    }

    /// Returns a copy of the value that was read, with a tenth of its bytes changed. (In YCSB, one of ten fields
    /// changes.)
    pub(crate) fn changed(self, read: &[u8]) -> Vec<u8> {
        let mut bytes = read.to_vec();
        let mut rng = StdRng::seed_from_u64(self.seed);
        let tenth = read.len().div_ceil(10).max(1);
        let part = rng.random_range(0..read.len().div_ceil(tenth).max(1));
        if let Some(part) = bytes.chunks_mut(tenth).nth(part) {
            rng.fill(part);
        }
        bytes
    }
}

/// The key of a record.
pub(crate) fn key(record: u64) -> String {
    format!("user{}", fnv(record))
}

/// Hash with which YCSB scatters numbers: 64-bit FNV-1a, then the absolute value as a signed 64-bit number.
fn fnv(number: u64) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211);
    let hash = number.to_le_bytes().iter().fold(0xCBF2_9CE4_8422_2325, step);
    (hash as i64).unsigned_abs()
}

/// Returns operations at an average rate per second. Another value of `turn` inserts other keys.
pub(crate) fn operate(
    load: KeyLoad,
    per_second: f64,
    turn: u64,
    seed: u64,
) -> impl Iterator<Item = Action> {
    let mut operations = Operations::new(load, turn, seed);
    let mut due_s = 0.0;
    std::iter::from_fn(move || {
        due_s += exponential(1.0 / per_second, &mut operations.rng);
        let due = Duration::from_secs_f64(due_s);
        Some(Action { due, user: 0, what: operations.next(due) })
    })
}

struct Operations {
    load: KeyLoad,
    popular: Zipf,
    /// Number of the first inserted record.
    inserts_from: u64,
    inserted: u64,
    /// Number of inserted records that may be read.
    readable: u64,
    /// Due times and operation numbers of inserts whose records may not be read yet.
    settling: VecDeque<(Duration, u64)>,
    done: u64,
    rng: StdRng,
}

impl Operations {
    fn new(load: KeyLoad, turn: u64, seed: u64) -> Operations {
        let inserts_from = u64::from(load.records) + (turn << 40);
        Operations {
            load,
            popular: Zipf::new(ITEMS),
            inserts_from,
            inserted: 0,
            readable: 0,
            settling: VecDeque::new(),
            done: 0,
            rng: StdRng::seed_from_u64(seed),
        }
    }

    fn next(&mut self, due: Duration) -> What {
        self.done += 1;
        while let Some(&(inserted, number)) = self.settling.front() {
            if inserted + ANSWERED_AFTER > due || number + ANSWERED_IN > self.done {
                break;
            }
            self.settling.pop_front();
            self.readable += 1;
        }
        let (first, share, other) = self.load.ycsb.mix();
        let verb = if self.rng.random::<f64>() < share { first } else { other.unwrap_or(first) };
        match verb {
            KeyVerb::Read if self.load.ycsb == Ycsb::D => What::ReadKey(self.latest()),
            KeyVerb::Read => What::ReadKey(self.popular()),
            KeyVerb::Update => What::UpdateKey { record: self.popular(), value: self.value() },
            KeyVerb::Modify => What::ModifyKey { record: self.popular(), value: self.value() },
            KeyVerb::Scan => {
                let keys = self.rng.random_range(1..=SCAN_KEYS_MAX);
                What::ScanKeys { from: self.popular(), keys }
            }
            KeyVerb::Insert => {
                let record = self.inserts_from + self.inserted;
                self.inserted += 1;
                self.settling.push_back((due, self.done));
                What::InsertKey { record, value: self.value() }
            }
        }
    }

    /// Draws one of the initial records by popularity.
    fn popular(&mut self) -> u64 {
        fnv(self.popular.rank(&mut self.rng)) % u64::from(self.load.records)
    }

    /// Draws one of the readable records. Newer records are more frequent.
    fn latest(&mut self) -> u64 {
        let records = u64::from(self.load.records);
        let age = Zipf::new(records + self.readable).rank(&mut self.rng);
        match self.readable.checked_sub(age + 1) {
            Some(insert) => self.inserts_from + insert,
            None => records - 1 - (age - self.readable),
        }
    }

    fn value(&mut self) -> Value {
        Value { seed: self.rng.random(), bytes: self.load.value_bytes }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    const RECORDS: u32 = 1_000;

    fn actions(ycsb: Ycsb, count: usize) -> Vec<Action> {
        let load = KeyLoad { ycsb, records: RECORDS, value_bytes: 100 };
        operate(load, 500.0, 0, 3).take(count).collect()
    }

    fn name(what: What) -> &'static str {
        match what {
            What::ReadKey(_) => "read",
            What::UpdateKey { .. } => "update",
            What::InsertKey { .. } => "insert",
            What::ScanKeys { .. } => "scan",
            What::ModifyKey { .. } => "modify",
            other => panic!("not of keys: {other:?}"),
        }
    }

    #[test]
    fn operations_come_in_the_shares_of_their_workload() {
        let check = |ycsb: Ycsb, expect: &[(&str, f64)]| {
            let mut counts: HashMap<&str, f64> = HashMap::new();
            for action in actions(ycsb, 20_000) {
                *counts.entry(name(action.what)).or_default() += 1.0 / 20_000.0;
            }
            assert_eq!(counts.len(), expect.len(), "{ycsb:?}: {counts:?}");
            for (name, share) in expect {
                assert!((counts[name] - share).abs() < 0.016, "{ycsb:?}: {counts:?}");
            }
        };
        check(Ycsb::A, &[("read", 0.5), ("update", 0.5)]);
        check(Ycsb::B, &[("read", 0.95), ("update", 0.05)]);
        check(Ycsb::C, &[("read", 1.0)]);
        check(Ycsb::D, &[("read", 0.95), ("insert", 0.05)]);
        check(Ycsb::E, &[("scan", 0.95), ("insert", 0.05)]);
        check(Ycsb::F, &[("read", 0.5), ("modify", 0.5)]);
    }

    #[test]
    fn operations_come_at_their_rate_in_order_and_the_same_for_the_same_seed() {
        let first = actions(Ycsb::A, 20_000);
        assert!(first.is_sorted_by_key(|action| action.due));
        let seconds = first[first.len() - 1].due.as_secs_f64();
        assert!((seconds - 40.0).abs() < 4.5 * 40.0 / 20_000_f64.sqrt(), "{seconds}");
        assert_eq!(first, actions(Ycsb::A, 20_000));
    }

    #[test]
    fn only_records_there_are_get_read_updated_and_scanned() {
        for ycsb in [Ycsb::A, Ycsb::B, Ycsb::C, Ycsb::E, Ycsb::F] {
            let mut seen = HashSet::new();
            let mut scans = HashSet::new();
            for action in actions(ycsb, 20_000) {
                match action.what {
                    What::ReadKey(record)
                    | What::UpdateKey { record, .. }
                    | What::ModifyKey { record, .. } => _ = seen.insert(record),
                    What::ScanKeys { from, keys } => _ = (seen.insert(from), scans.insert(keys)),
                    What::InsertKey { record, .. } => assert!(record >= u64::from(RECORDS)),
                    other => panic!("{other:?}"),
                }
            }
            assert!(seen.iter().all(|record| *record < u64::from(RECORDS)), "{ycsb:?}");
            assert!(seen.len() > 900, "{ycsb:?}: nearly all are met: {}", seen.len());
            if ycsb == Ycsb::E {
                assert_eq!((scans.iter().min(), scans.iter().max()), (Some(&1), Some(&100)));
                assert_eq!(scans.len(), 100);
            }
        }
    }

    #[test]
    fn a_few_scattered_records_are_popular() {
        let mut counts = HashMap::new();
        for action in actions(Ycsb::C, 100_000) {
            let What::ReadKey(record) = action.what else { panic!("{action:?}") };
            *counts.entry(record).or_insert(0_u32) += 1;
        }
        let mut counts: Vec<(u32, u64)> = counts.into_iter().map(|(r, count)| (count, r)).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // The first rank has a share of 1/26.5. Every record also has a share of the ranks beyond the records.
        assert!((3_400..4_500).contains(&counts[0].0), "{:?}", counts[0]);
        assert_eq!(counts[0].1, fnv(0) % u64::from(RECORDS));
        assert!(counts[1].1.abs_diff(counts[0].1) > 1 || counts[2].1.abs_diff(counts[1].1) > 1);
    }

    #[test]
    fn workload_d_reads_what_was_inserted_and_the_newest_most() {
        let (mut inserted, mut new, mut old) = (HashMap::new(), 0, 0);
        for (number, action) in actions(Ycsb::D, 60_000).into_iter().enumerate() {
            match action.what {
                What::InsertKey { record, .. } => {
                    assert_eq!(record, u64::from(RECORDS) + inserted.len() as u64);
                    inserted.insert(record, (action.due, number));
                }
                What::ReadKey(record) if record < u64::from(RECORDS) => old += 1,
                What::ReadKey(record) => {
                    let (due, at) = inserted[&record];
                    assert!(
                        due + ANSWERED_AFTER <= action.due && at + ANSWERED_IN as usize <= number
                    );
                    new += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(new > 2 * old, "{new} reads of new ones and {old} of old ones");
    }

    #[test]
    fn every_turn_inserts_other_keys_and_reads_back_only_its_own() {
        let load = KeyLoad { ycsb: Ycsb::D, records: RECORDS, value_bytes: 1 };
        let keys = |turn: u64| {
            let records = operate(load, 500.0, turn, 3).take(20_000).map(|action| action.what);
            let of = |what| match what {
                What::InsertKey { record, .. } | What::ReadKey(record) => record,
                other => panic!("{other:?}"),
            };
            let new = records.map(of).filter(|record| *record >= u64::from(RECORDS));
            new.collect::<HashSet<u64>>()
        };
        assert!(keys(0).is_disjoint(&keys(1)));
    }

    #[test]
    fn keys_are_those_of_ycsb() {
        assert_eq!(key(0), "user6284781860667377211");
        assert_eq!(key(1), "user8517097267634966620");
        let all: HashSet<String> = (0..100_000).map(key).collect();
        assert_eq!(all.len(), 100_000);
    }

    #[test]
    fn values_are_the_same_for_a_seed_and_change_in_a_tenth() {
        for bytes in [1, 9, 10, 1_000] {
            let value = |seed| Value { seed, bytes };
            assert_eq!(value(1).bytes(), value(1).bytes());
            assert_eq!(value(1).bytes().len(), bytes as usize);
            let read = value(1).bytes();
            let changes = (0..20).map(|seed| {
                let written = value(seed).changed(&read);
                assert_eq!(written.len(), read.len());
                read.iter().zip(&written).filter(|(read, written)| read != written).count()
            });
            let most = changes.max().unwrap();
            assert!(0 < most && most <= read.len().div_ceil(10), "{bytes}: {most}");
        }
        assert_ne!(Value { seed: 1, bytes: 10 }.bytes(), Value { seed: 2, bytes: 10 }.bytes());
        assert_eq!(Value { seed: 1, bytes: 10 }.changed(b""), b"");
    }
}
