//! Tests of the store against ordered maps in memory. After any sequence of writes, freezes, checkpoints and
//! reopenings, reads give the same answers as the maps; after reopening, those of the last checkpoint.

use kv::limits::NUMBERED_BUCKETS;
use kv::{Bucket, BucketId, KeyParts, KeyRow, KeyRows, KeyRowsMut, Space, WalkLimit};
use proptest::prelude::*;
use rows::{NameTable, Order, PointTable, SetTable, Span, Stamp, Totals, Value};
use store::{Checkpoint, Store, StoreOptions, StoreWriter};
use tempfile::TempDir;
use testkit::MemoryRows;

/// Options with too little memory for the keys, so that some are dropped and read from disk again.
const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 4 << 20, bucket_bytes: 6 << 10 };

#[derive(Clone, Debug)]
enum Step {
    Point(PointTable, u64, Option<Vec<u8>>),
    Member(SetTable, u64, u64, Option<u64>),
    /// Many items at once, so that sets need several chunks: owner, first item, step, count, value.
    Members(SetTable, u64, u64, u64, usize, Option<u64>),
    Name(NameTable, Vec<u8>, Option<Vec<u8>>),
    Totals(u32),
    /// Removes the first names one by one, as a sweep does.
    Sweep(NameTable, usize),
    /// Keys of a space, from a first number on: count, and their value or removal.
    Keys(u32, u64, u64, Option<Vec<u8>>),
    Bucket(u32, Option<u64>),
    /// Changes of a command, and whether they are undone.
    Command(Vec<Step>, bool),
    /// Space, and rows and bytes per step.
    Walk(u32, usize, usize),
    Warm,
    Freeze,
    Run,
    Reopen,
    ReadRow(u64, u64, Vec<u8>),
    ReadPoints(PointTable),
    ReadPointsBelow(u64, usize),
    ReadSpan(SetTable, u64, Span),
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0..12u64, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1), 1 => Just(1u64 << 40)]
}

fn value() -> impl Strategy<Value = Option<Vec<u8>>> {
    proptest::option::weighted(0.7, proptest::collection::vec(any::<u8>(), 0..60))
}

fn set_value() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![
        4 => Just(Some(0)), 1 => (1..300u64).prop_map(Some), 1 => Just(Some(u64::MAX - 1)), 3 => Just(None)
    ]
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(b'a'), Just(255)], 0..4)
}

fn span() -> impl Strategy<Value = Span> {
    let limit = prop_oneof![0..5usize, Just(20), Just(700), Just(usize::MAX)];
    let bound = || prop_oneof![number(), 0..3_000u64];
    let order = prop_oneof![Just(Order::Ascending), Just(Order::Descending)];
    (bound(), bound(), limit, order, any::<bool>()).prop_map(|(a, b, limit, order, all)| {
        let (low, high) = if all { (0, u64::MAX) } else { (a, b) };
        Span { low, high, limit, order }
    })
}

fn change() -> impl Strategy<Value = Step> {
    let points = || proptest::sample::select(PointTable::ALL.to_vec());
    let sets = || proptest::sample::select(SetTable::ALL.to_vec());
    let names = || proptest::sample::select(NameTable::ALL.to_vec());
    prop_oneof![
        4 => (points(), number(), value()).prop_map(|(t, k, v)| Step::Point(t, k, v)),
        8 => (sets(), number(), number(), set_value()).prop_map(|(t, o, i, v)| Step::Member(t, o, i, v)),
        2 => (sets(), 0..3u64, 0..2_000u64, prop_oneof![Just(1), Just(7), Just(u64::MAX - 2)], 1..900usize, set_value())
            .prop_map(|(t, o, first, by, count, v)| Step::Members(t, o, first, by, count, v)),
        4 => (names(), name(), value()).prop_map(|(t, k, v)| Step::Name(t, k, v)),
        1 => any::<u32>().prop_map(Step::Totals),
        1 => (names(), 1..6usize).prop_map(|(t, n)| Step::Sweep(t, n)),
        8 => (0..3u32, 0..40u64, prop_oneof![Just(1), Just(60)], value())
            .prop_map(|(s, first, count, v)| Step::Keys(s, first, count, v)),
        1 => (0..40u32, proptest::option::of(any::<u64>())).prop_map(|(b, v)| Step::Bucket(b, v)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let points = || proptest::sample::select(PointTable::ALL.to_vec());
    let sets = || proptest::sample::select(SetTable::ALL.to_vec());
    prop_oneof![
        29 => change(),
        6 => (proptest::collection::vec(change(), 1..8), any::<bool>())
            .prop_map(|(changes, kept)| Step::Command(changes, kept)),
        4 => (0..3u32, prop_oneof![1..3usize, Just(20), Just(500)], prop_oneof![1..200usize, Just(4_000)])
            .prop_map(|(space, rows, bytes)| Step::Walk(space, rows, bytes)),
        1 => Just(Step::Warm),
        2 => Just(Step::Freeze),
        2 => Just(Step::Run),
        1 => Just(Step::Reopen),
        4 => (number(), number(), name()).prop_map(|(a, b, n)| Step::ReadRow(a, b, n)),
        2 => points().prop_map(Step::ReadPoints),
        3 => (number(), prop_oneof![0..4usize, Just(20)])
            .prop_map(|(below, limit)| Step::ReadPointsBelow(below, limit)),
        6 => (sets(), prop_oneof![0..3u64, number()], span()).prop_map(|(t, o, s)| Step::ReadSpan(t, o, s)),
    ]
}

struct World {
    dir: TempDir,
    /// Writer; `None` only during a reopening.
    writer: Option<StoreWriter>,
    model: MemoryRows,
    frozen: Option<(Checkpoint, u64, MemoryRows)>,
    stored: (u64, MemoryRows),
    position: u64,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (writer, applied) = Store::open(dir.path(), OPTIONS).unwrap();
        assert_eq!(applied, 0);
        let (writer, model) = (Some(writer), MemoryRows::default());
        Self { dir, writer, model, frozen: None, stored: Default::default(), position: 0 }
    }

    fn write(&mut self, change: impl Fn(&mut dyn KeyRowsMut)) {
        self.position += 1;
        change(self.writer.as_mut().unwrap());
        change(&mut self.model);
    }

    /// Compares the answers of the writer and of a reader with that of the model.
    fn check<T: PartialEq + std::fmt::Debug>(&self, question: impl Fn(&dyn KeyRows) -> T) {
        let writer = self.writer.as_ref().unwrap();
        let expected = question(&self.model);
        assert_eq!(question(&writer.store()), expected, "a reader's answer");
        assert_eq!(question(writer), expected, "the writer's answer");
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Point(table, key, value) => {
                self.write(|rows| rows.put_point(table, key, value.clone().map(Value::from_vec)));
            }
            Step::Member(table, owner, item, value) => {
                self.write(|rows| rows.put_member(table, owner, item, value));
            }
            Step::Members(table, owner, first, by, count, value) => self.write(|rows| {
                for place in 0..count as u64 {
                    let item = first.wrapping_add(place.wrapping_mul(by));
                    rows.put_member(table, owner, item, value);
                }
            }),
            Step::Name(table, key, value) => {
                self.write(|rows| rows.put_name(table, &key, value.clone().map(Value::from_vec)));
            }
            Step::Totals(users) => {
                let last_stamp = Some(Stamp(u64::from(users)));
                self.write(|rows| {
                    rows.put_totals(Totals { users, last_stamp, ..Totals::default() });
                });
            }
            Step::Sweep(table, count) => self.write(|rows| {
                for _ in 0..count {
                    if let Some(key) = rows.first_name(table, &[]) {
                        rows.put_name(table, &key, None);
                    }
                }
            }),
            Step::Keys(space, first, count, value) => {
                self.write_keys(space, first, count, value.as_ref());
            }
            Step::Bucket(id, keys) => self.write(|rows| {
                let bucket = |keys| Bucket { keys, bytes: keys / 2, ..Bucket::empty(Space(id)) };
                let keys = if id < NUMBERED_BUCKETS { keys.or(Some(0)) } else { keys };
                rows.put_bucket(BucketId(id.into()), keys.map(bucket));
            }),
            Step::Command(changes, is_kept) => self.take_as_one(changes, is_kept),
            Step::Walk(space, rows, bytes) => {
                let visits = if rows % 2 == 0 { rows } else { usize::MAX };
                let is_small = bytes % 2 == 0;
                let limit = WalkLimit { rows, bytes, visits, is_small, ..WalkLimit::NONE };
                self.walk(Space(space), limit);
            }
            Step::Warm => self.writer.as_ref().unwrap().store().warm_keys(|| false),
            Step::Freeze => self.freeze(),
            Step::Run => self.run(),
            Step::Reopen => self.reopen(),
            Step::ReadRow(a, b, name) => self.read_row(a, b, &name),
            Step::ReadPoints(table) => self.check(|rows| {
                let mut found = Vec::new();
                rows.each_point(table, &mut |key, value| found.push((key, value.to_vec())));
                found
            }),
            Step::ReadPointsBelow(below, limit) => {
                self.check(|rows| points_below(rows, below, limit));
            }
            Step::ReadSpan(table, owner, span) => {
                self.check(|rows| rows.members(table, owner, span));
            }
        }
    }

    fn take_as_one(&mut self, changes: Vec<Step>, is_kept: bool) {
        let before = self.model.clone();
        self.writer.as_mut().unwrap().save();
        changes.into_iter().for_each(|change| self.take(change));
        if is_kept {
            self.writer.as_mut().unwrap().keep();
        } else {
            self.writer.as_mut().unwrap().undo();
            self.model = before;
            self.read_all();
        }
    }

    fn write_keys(&mut self, space: u32, first: u64, count: u64, value: Option<&Vec<u8>>) {
        let version = Stamp(self.position);
        self.write(|rows| {
            for key in (first..first + count).map(|number| number.to_string()) {
                let (space, key) = (Space(space), key.as_bytes());
                rows.put_key(match value {
                    Some(value) => {
                        let expires_ms = (value.len() % 3 == 0).then_some(value.len() as u64);
                        KeyRow::new(KeyParts { space, key, value, expires_ms, version })
                    }
                    None => KeyRow::removed(space, key, version),
                });
            }
        });
    }

    /// Checks the keys of a walk, which may be read in pieces of any size, and that each piece respects its limit.
    fn walk(&self, space: Space, limit: WalkLimit) {
        self.check(|rows| {
            let (mut found, mut next) = (Vec::new(), Some(0));
            while let Some(cursor) = next {
                let (piece, after) = rows.keys(space, cursor, limit);
                assert!(after.is_none_or(|after| after > cursor), "a walk comes to an end");
                assert!(after.is_none_or(|after| after % kv::CURSOR_STEP == 0), "a cursor");
                assert!(piece.len() <= limit.rows);
                let (_, most) =
                    piece.split_last().map_or((None, &[][..]), |(last, most)| (Some(last), most));
                let bytes: u64 = most.iter().map(KeyRow::data_bytes).sum();
                assert!(bytes < limit.bytes as u64, "all but the last row are within the limit");
                found.extend(piece);
                next = after;
            }
            found.sort_by(|a, b| a.key().cmp(b.key()));
            found
        });
    }

    fn freeze(&mut self) {
        let checkpoint = self.writer.as_mut().unwrap().freeze(self.position);
        assert_eq!(checkpoint.is_none(), self.frozen.is_some(), "one checkpoint at a time");
        if let Some(checkpoint) = checkpoint {
            self.frozen = Some((checkpoint, self.position, self.model.clone()));
        }
    }

    fn run(&mut self) {
        if let Some((checkpoint, position, model)) = self.frozen.take() {
            assert_eq!(checkpoint.run().unwrap().applied, position);
            self.stored = (position, model);
        }
    }

    fn reopen(&mut self) {
        self.frozen = None;
        self.writer = None;
        let (writer, applied) = Store::open(self.dir.path(), OPTIONS).unwrap();
        assert_eq!(applied, self.stored.0);
        self.writer = Some(writer);
        self.position = applied;
        self.model = self.stored.1.clone();
        self.read_all();
    }

    fn read_row(&self, a: u64, b: u64, name: &[u8]) {
        for table in PointTable::ALL {
            self.check(|rows| rows.point(table, a));
        }
        for table in SetTable::ALL {
            self.check(|rows| rows.member(table, a, b));
        }
        for table in NameTable::ALL {
            self.check(|rows| rows.name(table, name));
            self.check(|rows| rows.first_name(table, name));
            self.check(|rows| rows.first_names(table, name, 300));
            for at in 0..=name.len().min(2) {
                let (prefix, from) = name.split_at(at);
                self.check(|rows| rows.names_under(table, prefix, from, 300));
                self.check(|rows| rows.names_under(table, prefix, &[], 2));
            }
        }
        self.check(|rows| rows.totals());
    }

    fn read_keys(&self) {
        for space in (0..3).map(Space) {
            self.walk(space, WalkLimit { rows: 7, bytes: 300, visits: 30, ..WalkLimit::NONE });
            self.walk(space, WalkLimit::NONE);
            self.walk(space, WalkLimit { rows: 7, visits: 30, is_small: true, ..WalkLimit::NONE });
            for key in (0..100u64).map(|number| number.to_string()) {
                self.check(|rows| rows.key(space, key.as_bytes()));
                // Memory need not know a row, but must not be wrong.
                let known =
                    self.writer.as_ref().unwrap().store().key_in_memory(space, key.as_bytes());
                let expected = self.model.key(space, key.as_bytes());
                assert!(known.is_none_or(|known| known == expected));
            }
        }
        self.check(|rows| (0..40).map(|id| rows.bucket(BucketId(id))).collect::<Vec<_>>());
        self.check(|rows| rows.bucket_count());
    }

    fn read_all(&self) {
        self.read_keys();
        self.check(|rows| points_below(rows, u64::MAX, 1_000));
        for number in (0..12).chain([u64::MAX, u64::MAX - 1, 1 << 40]) {
            self.read_row(number, number, &[]);
            for table in SetTable::ALL {
                self.check(|rows| rows.members(table, number, Span::ALL));
            }
        }
        for table in NameTable::ALL {
            self.check(|rows| {
                let mut names = Vec::new();
                let mut from = Vec::new();
                while let Some(name) = rows.first_name(table, &from) {
                    from = [&name[..], &[0]].concat();
                    names.push((rows.name(table, &name), name));
                }
                names
            });
        }
    }
}

/// Returns the points of all tables whose keys are less than `below`.
fn points_below(rows: &dyn KeyRows, below: u64, limit: usize) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    for table in PointTable::ALL {
        rows.points_below(table, below, limit, &mut |key, row| found.push((key, row.to_vec())));
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn rows_equal_plain_maps_across_layers_checkpoints_and_reopening(
        steps in proptest::collection::vec(step(), 1..90)
    ) {
        let mut world = World::new();
        for step in steps {
            world.take(step);
        }
        world.read_all();
        world.run();
        world.read_all();
        world.freeze();
        world.run();
        world.reopen();
    }
}

/// Returns changes before a checkpoint: items of few owners, so that an owner has many deltas.
fn small_changes() -> impl Strategy<Value = Vec<Step>> {
    let tables = || proptest::sample::select(vec![SetTable::Following, SetTable::AuthorPosts]);
    let item = || prop_oneof![0..50u64, 0..5_000u64, any::<u64>()];
    let number =
        || prop_oneof![9 => Just(Some(0)), 3 => (1..300u64).prop_map(Some), 1 => Just(None)];
    let change = prop_oneof![
        20 => (tables(), 0..3u64, item(), number()).prop_map(|(t, o, i, v)| Step::Member(t, o, i, v)),
        1 => (tables(), 0..3u64, 0..9_000u64, 1..9u64, 1..700usize, number())
            .prop_map(|(t, o, first, by, count, v)| Step::Members(t, o, first, by, count, v)),
    ];
    proptest::collection::vec(change, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn packed_sets_equal_plain_maps_while_deltas_pile_up_and_are_folded(
        checkpoints in proptest::collection::vec((small_changes(), span(), 0..60u64), 1..60)
    ) {
        let mut world = World::new();
        for (changes, span, item) in checkpoints {
            changes.into_iter().for_each(|change| world.take(change));
            world.freeze();
            world.run();
            for (table, owner) in [(SetTable::Following, 0), (SetTable::AuthorPosts, 1)] {
                world.check(|rows| rows.members(table, owner, span));
                world.check(|rows| rows.members(table, owner, Span::ALL));
                world.check(|rows| rows.member(table, owner, item));
            }
        }
        world.reopen();
    }
}
