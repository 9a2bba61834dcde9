//! Tests of the applier without threads, files and clocks: admission, order and answers.

use std::collections::BTreeMap;

use commitlog::{Arrived, GroupId, Position};
use feed::{Bio, Command, Done, ErasurePhase, Handle, Name, Refusal, Request, UserId, UserRef};
use kv::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use kv::{BucketId, Bytes, Expiry, KeyAnswer, KeyOp, KeyOps, KeyRefusal, Only, Watched};
use proptest::prelude::*;
use rows::{CHANGE_BYTES_MAX, EPOCH_MS, Rows, Stamp};
use testkit::MemoryRows;

use super::{Applier, Input};
use crate::submission::entry::Entry;
use crate::submission::{Answer, Changes, ReadAt, Submission};
use budget::MemoryBudget;

mod caught;
mod samples;
mod shared;

const ZERO: BucketId = BucketId(0);
const START_MS: u64 = EPOCH_MS + 1_000_000;

/// An applier with a log in memory.
struct World {
    applier: Applier<MemoryRows, usize>,
    budget: MemoryBudget,
    log: Vec<(u64, Vec<u8>)>,
    now_ms: u64,
    /// Answers by ticket, with the number of groups that were logged before.
    answers: BTreeMap<usize, (usize, Answer)>,
    tickets: usize,
}

impl World {
    fn new(answer_bytes: usize) -> Self {
        Self::with_samples(answer_bytes, usize::MAX)
    }

    fn with_samples(answer_bytes: usize, taught_bytes_max: usize) -> Self {
        let budget = MemoryBudget::new(answer_bytes);
        let applier = Applier::new(MemoryRows::default(), budget.clone(), taught_bytes_max);
        let (log, answers) = (Vec::new(), BTreeMap::new());
        Self { applier, budget, log, now_ms: START_MS, answers, tickets: 0 }
    }

    fn submission(&mut self, changes: Changes) -> Submission<usize> {
        self.tickets += 1;
        Submission { changes, ticket: self.tickets - 1 }
    }

    fn keys(&mut self, ops: &[KeyOp<'_>], reads: Vec<ReadAt>) -> Submission<usize> {
        let ops: KeyOps = ops.iter().cloned().collect();
        self.submission(Changes::Keys { ops, reads })
    }

    /// Applies everything that waits.
    fn work(&mut self, submissions: Vec<Submission<usize>>) {
        let mut logged = self.group(Input::Submit(submissions));
        while logged || self.applier.has_queue() {
            logged = self.group(Input::Tick);
        }
    }

    /// Applies the next group; returns whether there is one.
    fn group(&mut self, input: Input<usize>) -> bool {
        let output = self.applier.step(input, self.now_ms);
        self.note(output.answers);
        let Some(payload) = output.append else { return false };
        let position = Position(self.log.len() as u64 + 1);
        self.log.push((self.now_ms, payload));
        let group = arrived(position, self.log.last().unwrap(), true);
        let output = self.applier.apply_group(&group, |_, _| ()).unwrap();
        assert!(output.append.is_none(), "one group at a time");
        self.note(output.answers);
        true
    }

    fn note(&mut self, answers: Vec<(usize, Answer)>) {
        for (ticket, answer) in answers {
            let before = self.answers.insert(ticket, (self.log.len(), answer));
            assert!(before.is_none(), "whatever is submitted is answered once");
        }
    }

    fn run(&mut self, ops: &[KeyOp<'_>]) -> Vec<KeyAnswer> {
        let submission = self.keys(ops, Vec::new());
        let ticket = submission.ticket;
        self.work(vec![submission]);
        self.key_answers(ticket)
    }

    fn key_answers(&self, ticket: usize) -> Vec<KeyAnswer> {
        match &self.answers.get(&ticket).unwrap().1 {
            Answer::Keys(replies) => replies.answers.clone(),
            Answer::Requests(_) => panic!("these are keys"),
        }
    }

    /// Returns the rows after a replay of the log.
    fn replayed(&self) -> MemoryRows {
        let mut applier =
            Applier::<_, usize>::new(MemoryRows::default(), MemoryBudget::new(1 << 20), 0);
        for (position, group) in (1..).map(Position).zip(&self.log) {
            applier.apply_group(&arrived(position, group, false), |_, _| ()).unwrap();
        }
        applier.rows.inner
    }
}

/// Returns a group of a log of one node with this time and payload.
fn arrived(position: Position, (time_ms, payload): &(u64, Vec<u8>), is_own: bool) -> Arrived {
    let (time_ms, payload) = (*time_ms, payload.clone().into());
    Arrived { position, time_ms, sent_ms: time_ms, id: GroupId::ALONE, is_own, payload }
}

fn put<'a>(key: &'a str, value: &'a [u8]) -> KeyOp<'a> {
    let (key, value) = (Bytes::new(key.as_bytes()), Bytes::new(value));
    let (expiry, only) = (Expiry::Never, Only::Always);
    KeyOp::Put { bucket: ZERO, key, value, expiry, only, old: false }
}

fn set_range(key: &str, offset: usize) -> KeyOp<'_> {
    let (key, bytes) = (Bytes::new(key.as_bytes()), Bytes::new(b"x"));
    KeyOp::SetRange { bucket: ZERO, key, offset: offset as u64, bytes }
}

fn register(handle: &str) -> Request {
    let (name, bio) = (Name::parse("").unwrap(), Bio::parse("").unwrap());
    Request::from(Command::Register { handle: Handle::parse(handle).unwrap(), name, bio })
}

#[test]
fn operations_whose_results_are_long_are_spread_over_groups() {
    let mut world = World::new(1 << 20);
    let keys: Vec<String> = (0..20).map(|number| format!("k{number}")).collect();
    let ops: Vec<_> = keys.iter().map(|key| set_range(key, VALUE_BYTES_MAX - 1)).collect();
    let answers = world.run(&ops);
    assert_eq!(answers, vec![KeyAnswer::Number(VALUE_BYTES_MAX as i64); 20]);
    assert!(world.log.len() >= 20 / (CHANGE_BYTES_MAX / VALUE_BYTES_MAX), "{}", world.log.len());
}

#[test]
fn a_transaction_that_would_change_too_much_is_refused_before_it_is_logged() {
    let mut world = World::new(1 << 20);
    let begin = KeyOp::Begin { watched: Vec::new(), then: 4 };
    let long = |key| set_range(key, VALUE_BYTES_MAX - 1);
    let ops = [put("a", b"1"), begin, long("b"), long("c"), long("d"), long("e"), put("f", b"1")];
    let answers = world.run(&ops);
    assert_eq!(answers[1..6], vec![KeyAnswer::Refused(KeyRefusal::TooLarge); 5]);
    assert!(matches!(answers[0], KeyAnswer::Written { .. }));
    assert!(matches!(answers[6], KeyAnswer::Written { .. }));
    assert_eq!(world.applier.keys().bucket(ZERO).unwrap().keys, 2);
    assert_eq!(world.replayed(), world.applier.rows.inner);

    let many: Vec<String> = (0..100_000).map(|number| number.to_string()).collect();
    let keys: Vec<_> = many.iter().map(|key| Bytes::new(key.as_bytes())).collect();
    let logged = world.log.len();
    let answers = world.run(&[KeyOp::Remove { bucket: ZERO, keys }]);
    assert_eq!(answers, [KeyAnswer::Refused(KeyRefusal::TooLarge)]);
    assert_eq!(world.log.len(), logged, "nothing is logged that does nothing");
}

#[test]
fn a_refused_transaction_has_answers_to_its_reads_too() {
    let mut world = World::new(1 << 20);
    let long: Vec<_> = ["a", "b", "c", "d"].map(|key| set_range(key, VALUE_BYTES_MAX - 1)).into();
    let begin = KeyOp::Begin { watched: Vec::new(), then: 4 };
    let ops: Vec<_> = [vec![begin], long].concat();
    let read = ReadAt { before: 2, bucket: ZERO, keys: vec![b"a"[..].into()] };
    let submission = world.keys(&ops, vec![read]);
    world.work(vec![submission]);
    let Answer::Keys(replies) = &world.answers[&0].1 else { panic!() };
    assert!(replies.reads.len() == 1 && replies.reads[0].rows.is_none());
}

#[test]
fn repeated_changes_of_long_values_delay_no_other_submissions() {
    let mut world = World::new(1 << 20);
    world.run(&[set_range("big", VALUE_BYTES_MAX - 1)]);
    let mut submissions = Vec::new();
    for _ in 0..40 {
        submissions.push(world.keys(&[set_range("big", 5), set_range("big", 5)], Vec::new()));
    }
    let others: Vec<_> = (0..5)
        .map(|number| {
            let submission =
                world.keys(&[put(["a", "b", "c", "d", "e"][number], b"1")], Vec::new());
            let ticket = submission.ticket;
            submissions.push(submission);
            ticket
        })
        .collect();
    let before = world.log.len();
    world.work(submissions);
    for ticket in others {
        assert_eq!(world.answers[&ticket].0, before + 1, "in the first group");
    }
    assert!(world.log.len() > before + 20);
}

#[test]
fn costly_changes_take_every_second_group_while_others_wait() {
    let mut world = World::new(1 << 20);
    world.run(&[set_range("big", VALUE_BYTES_MAX - 1)]);
    let costly = [0; 4].map(|_| world.keys(&[set_range("big", 5)], Vec::new()));
    let costly_tickets: Vec<_> = costly.iter().map(|submission| submission.ticket).collect();
    let first = world.log.len() + 1;
    world.group(Input::Submit(costly.into()));
    let mut cheap_tickets = Vec::new();
    for _ in 0..8 {
        let cheap = world.keys(&[put("a", b"1")], Vec::new());
        cheap_tickets.push(cheap.ticket);
        world.group(Input::Submit(vec![cheap]));
    }
    world.work(Vec::new());
    let groups = |tickets: &[usize]| -> Vec<usize> {
        tickets.iter().map(|ticket| world.answers[ticket].0 - first).collect()
    };
    assert_eq!(groups(&costly_tickets), [0, 2, 4, 6]);
    // Changes that came during a group of a costly change share the next one.
    assert_eq!(groups(&cheap_tickets), [1, 3, 3, 5, 5, 7, 7, 8]);
}

/// Costly commands are those that name many users, and erasures, which the node itself submits.
#[test]
fn costly_commands_take_every_second_group_and_keep_their_place_in_a_submission() {
    let id = |user| UserRef::Id(UserId(user));
    let follows =
        || Command::FollowMany { user: id(0), others: vec![id(1); feed::limits::FOLLOW_MANY_MAX] };
    let erase = || Command::EraseUser { user: UserId(0), phase: ErasurePhase::first(), from: 0 };
    for command in [&follows as &dyn Fn() -> Command, &erase] {
        let mut world = World::new(1 << 20);
        let mut tickets = Vec::new();
        let mut all = Vec::new();
        for nth in 0..4 {
            let [before, after] = ["b", "a"].map(|name| register(&format!("{name}{nth}")));
            let requests = [before, command().into(), after.clone(), after].into_iter().collect();
            all.push(world.submission(Changes::Requests(requests)));
            tickets.push(all[nth].ticket);
        }
        let short = world.keys(&[put("a", b"1")], Vec::new());
        let ticket = short.ticket;
        world.work(all.into_iter().chain([short]).collect());
        assert_eq!(world.answers[&ticket].0, 1, "in the first group");
        for (nth, ticket) in tickets.iter().enumerate() {
            let (group, Answer::Requests(replies)) = &world.answers[ticket] else { panic!() };
            assert_eq!(*group, nth + 3, "its end shares a group with the next costly command");
            let done: Vec<_> = replies.iter().map(|reply| reply.outcome).collect();
            let taken = Err(Refusal::HandleTaken);
            assert!(matches!(done[..], [Ok(Done::Registered(_)), _, Ok(Done::Registered(_)), _]));
            assert_eq!(done[3], taken);
        }
        assert_eq!(world.replayed(), world.applier.rows.inner);
    }
}

#[test]
fn costly_changes_that_are_held_delay_no_others() {
    let mut world = World::new(1 << 20);
    world.run(&[set_range("big", VALUE_BYTES_MAX - 1)]);
    world.applier.hold_costly(true);
    let costly = world.keys(&[set_range("big", 5)], Vec::new());
    let held = costly.ticket;
    assert!(!world.group(Input::Submit(vec![costly])));
    for _ in 0..8 {
        let cheap = world.keys(&[put("a", b"1")], Vec::new());
        let ticket = cheap.ticket;
        assert!(world.group(Input::Submit(vec![cheap])));
        assert!(world.answers.contains_key(&ticket));
    }
    assert!(!world.applier.has_work() && world.applier.has_queue());
    assert!(!world.answers.contains_key(&held));
    world.applier.hold_costly(false);
    assert!(world.applier.has_work() && world.group(Input::Tick));
    assert!(world.answers.contains_key(&held));
}

#[test]
fn long_operations_that_are_held_delay_no_other_costly_changes() {
    let mut world = World::new(1 << 20);
    world.run(&[set_range("big", VALUE_BYTES_MAX - 1)]);
    world.applier.hold_long(true);
    let value = vec![7; VALUE_BYTES_MAX];
    let held = [0; 2].map(|_| world.keys(&[put("long", &value)], Vec::new()));
    let held_tickets: Vec<_> = held.iter().map(|submission| submission.ticket).collect();
    assert!(!world.group(Input::Submit(held.into())));
    for _ in 0..3 {
        let costly = world.keys(&[set_range("big", 5)], Vec::new());
        let ticket = costly.ticket;
        assert!(world.group(Input::Submit(vec![costly])));
        assert!(world.answers.contains_key(&ticket));
    }
    assert!(!world.applier.has_work() && world.applier.has_queue());
    world.applier.hold_long(false);
    world.work(Vec::new());
    let groups: Vec<_> = held_tickets.iter().map(|ticket| world.answers[ticket].0).collect();
    assert!(groups.is_sorted(), "{groups:?}");
}

#[test]
fn rows_kept_for_answers_stay_within_their_memory() {
    let mut world = World::new(3_000_000);
    let value = vec![7; 1_000_000];
    world.run(&[put("a", &value)]);
    let read = |key: &'static str| KeyOp::Expire {
        bucket: ZERO,
        key: Bytes::new(key.as_bytes()),
        expiry: Expiry::In(5_000),
        only: kv::OnlyExpiry::Always,
        read: true,
    };
    let answers = world.run(&[read("a"), read("a"), read("a"), read("a")]);
    let rows = answers.iter().filter(|answer| matches!(answer, KeyAnswer::Row(_))).count();
    let busy = KeyAnswer::Refused(KeyRefusal::Busy);
    assert_eq!((rows, answers.iter().filter(|answer| **answer == busy).count()), (2, 2));
    assert!(world.budget.used() > 2_000_000, "as long as the answer is not sent");
    world.answers.clear();
    assert_eq!(world.budget.used(), 0);
    assert!(matches!(world.run(&[read("a")])[..], [KeyAnswer::Row(_)]));
}

#[test]
fn an_operation_that_waits_for_the_next_group_holds_no_memory_for_its_answer() {
    const LONG: usize = 12 << 20;
    // Memory for two answers; the second operation does not fit into the group of the first.
    let mut world = World::new(2 * LONG + (1 << 20));
    world.run(&[set_range("a", LONG - 1)]);
    let read = KeyOp::Expire {
        bucket: ZERO,
        key: Bytes::new(b"a"),
        expiry: Expiry::In(5_000),
        only: kv::OnlyExpiry::Always,
        read: true,
    };
    let logged = world.log.len();
    let answers = world.run(&[read.clone(), read]);
    assert!(matches!(answers[..], [KeyAnswer::Row(_), KeyAnswer::Row(_)]), "{answers:.80?}");
    assert_eq!(world.log.len(), logged + 2);
}

#[test]
fn the_same_length_is_not_counted_on_when_keys_are_exchanged_in_the_group() {
    let mut world = World::new(1 << 20);
    world.run(&[set_range("big", VALUE_BYTES_MAX - 1), put("small", b"1")]);
    // In bucket 1, `big` is short until the buckets are exchanged.
    let other = BucketId(1);
    let append =
        |bucket| KeyOp::Append { bucket, key: Bytes::new(b"big"), bytes: Bytes::new(b"x") };
    let begin = KeyOp::Begin { watched: Vec::new(), then: 5 };
    let swap = KeyOp::Swap { a: ZERO, b: other };
    let ops = [begin, append(other), swap, append(other), append(other), append(other)];
    let answers = world.run(&ops);
    assert_eq!(answers, vec![KeyAnswer::Refused(KeyRefusal::TooLarge); 6]);
}

#[test]
fn what_others_do_in_the_same_group_makes_no_transaction_too_large() {
    let mut world = World::new(1 << 20);
    world.run(&[put("small", b"1")]);
    let swap = world.keys(&[KeyOp::Swap { a: BucketId(1), b: BucketId(2) }], Vec::new());
    let (key, to) = (Bytes::new(b"small"), Bytes::new(b"copy"));
    let copy = KeyOp::Copy { bucket: ZERO, key, to_bucket: ZERO, to, replace: true };
    let begin = KeyOp::Begin { watched: Vec::new(), then: 4 };
    let copies = [begin, copy.clone(), copy.clone(), copy.clone(), copy];
    let copies = world.keys(&copies, Vec::new());
    let ticket = copies.ticket;
    world.work(vec![swap, copies]);
    let [KeyAnswer::Done, done @ ..] = &world.key_answers(ticket)[..] else { panic!("refused") };
    assert_eq!(done, vec![KeyAnswer::Number(1); 4]);
}

#[test]
fn expired_keys_are_eventually_removed_even_if_the_clock_stops() {
    let mut world = World::new(1 << 20);
    let (key, value) = (Bytes::new(b"a"), Bytes::new(b"1"));
    let (expiry, only) = (Expiry::In(1_000), Only::Always);
    world.run(&[KeyOp::Put { bucket: ZERO, key, value, expiry, only, old: false }]);
    assert!(world.applier.expects_sweep());
    world.now_ms += 1_000;
    for _ in 0..3 {
        world.work(Vec::new());
    }
    assert_eq!(world.applier.keys().bucket(ZERO).unwrap().keys, 0);
    assert!(!world.applier.expects_sweep(), "no further sweep is expected");
}

#[test]
fn many_keys_that_expire_at_once_are_removed_in_bounded_pieces() {
    let mut world = World::new(1 << 20);
    let keys: Vec<String> = (0..3_000).map(|number| format!("key{number}")).collect();
    let ops: Vec<_> = keys
        .iter()
        .map(|key| {
            let (key, value) = (Bytes::new(key.as_bytes()), Bytes::new(b"v"));
            let (expiry, only) = (Expiry::At(START_MS + 5), Only::Always);
            KeyOp::Put { bucket: ZERO, key, value, expiry, only, old: false }
        })
        .collect();
    world.run(&ops);
    let logged = world.log.len();
    world.now_ms += 5;
    world.work(Vec::new());
    assert_eq!(world.applier.keys().bucket(ZERO).unwrap().keys, 0);
    assert_eq!(world.log.len() - logged, 3_000_usize.div_ceil(512));
    assert_eq!(world.replayed(), world.applier.rows.inner);
}

#[test]
fn a_key_that_is_empty_or_too_long_is_never_written_and_never_exists() {
    let mut world = World::new(1 << 20);
    world.run(&[put("a", b"1")]);
    let logged = world.log.len();
    for key in [vec![b'k'; KEY_BYTES_MAX + 1], Vec::new()] {
        let (key, other) = (Bytes::new(&key), Bytes::new(b"a"));
        let watched = vec![Watched { bucket: ZERO, key, version: None }];
        for op in [
            KeyOp::Rename { bucket: ZERO, from: other, to: key, only_new: false },
            KeyOp::Copy { bucket: ZERO, key: other, to_bucket: ZERO, to: key, replace: true },
            KeyOp::Add { bucket: ZERO, key, by: 1 },
            KeyOp::PutAll {
                bucket: ZERO,
                pairs: vec![(other, other), (key, other)],
                only_new: false,
            },
        ] {
            let answers = world.run(std::slice::from_ref(&op));
            assert_eq!(answers, [KeyAnswer::Refused(KeyRefusal::BadKey)], "{op:?}");
            assert_eq!(world.log.len(), logged);
        }
        for (op, answer) in [
            (KeyOp::Remove { bucket: ZERO, keys: vec![key] }, KeyAnswer::Number(0)),
            (KeyOp::Move { bucket: ZERO, key, to_bucket: BucketId(1) }, KeyAnswer::Number(0)),
            (
                KeyOp::Rename { bucket: ZERO, from: key, to: other, only_new: false },
                KeyAnswer::Refused(KeyRefusal::KeyNotFound),
            ),
            (KeyOp::Begin { watched, then: 0 }, KeyAnswer::Done),
        ] {
            assert_eq!(world.run(std::slice::from_ref(&op)), [answer], "{op:?}");
        }
        assert_eq!(world.replayed(), world.applier.rows.inner);
        world.log.truncate(logged);
        world.applier = Applier::new(world.replayed(), world.budget.clone(), usize::MAX);
    }
}

#[test]
fn a_long_submission_leaves_others_their_share_of_every_group() {
    let mut world = World::new(1 << 20);
    let keys: Vec<String> = (0..30_000).map(|number| format!("k{number}")).collect();
    let ops: Vec<_> = keys.iter().map(|key| set_range(key, 3)).collect();
    let long = [world.keys(&ops, Vec::new()), world.keys(&ops, Vec::new())];
    let short = world.keys(&[put("a", b"1")], Vec::new());
    let ticket = short.ticket;
    world.work(long.into_iter().chain([short]).collect());
    assert_eq!(world.answers[&ticket].0, 1, "in the first group");
    assert!(world.log.len() > 10);
    assert_eq!(world.replayed(), world.applier.rows.inner);
}

#[test]
fn a_group_with_a_short_change_of_another_client_has_a_share_of_a_long_submission() {
    let first_group = |short: bool| {
        let mut world = World::new(1 << 20);
        let requests = (0..4_000).map(|number| register(&format!("u{number}"))).collect();
        let long = world.submission(Changes::Requests(requests));
        let mut all = vec![long];
        if short {
            all.push(world.keys(&[put("a", b"1")], Vec::new()));
        }
        world.work(all);
        assert!(!short || world.answers[&1].0 == 1, "in the first group");
        assert_eq!(world.replayed(), world.applier.rows.inner);
        world.log[0].1.len()
    };
    let [alone, beside] = [false, true].map(first_group);
    assert!(2 * beside < alone, "{beside} and {alone} bytes");
    // A submission that is taken to its end leaves room in its last group, which another long submission fills.
    let mut world = World::new(1 << 20);
    let [one, two] = [0, 1].map(|nth| {
        let requests = (0..4_000).map(|number| register(&format!("u{nth}_{number}"))).collect();
        world.submission(Changes::Requests(requests))
    });
    world.work(vec![one, two]);
    let shortest = world.log.iter().rev().skip(1).map(|(_, payload)| payload.len()).min();
    assert!(shortest > Some(alone / 2), "{shortest:?} and {alone} bytes");
}

#[test]
fn an_answer_that_does_not_fit_a_full_group_waits_for_the_next() {
    let mut world = World::new(VALUE_BYTES_MAX + (1 << 20));
    world.run(&[put("a", b"1"), put("b", b"2"), put("c", b"3")]);
    // After an exchange in the same group every value may be long.
    let take = |key: &'static str| KeyOp::Take {
        bucket: ZERO,
        key: Bytes::new(key.as_bytes()),
        only: Only::Always,
    };
    let swap = KeyOp::Swap { a: BucketId(14), b: BucketId(15) };
    let submissions = [
        world.keys(&[swap], Vec::new()),
        world.keys(&[take("a")], Vec::new()),
        world.keys(&[take("b")], Vec::new()),
        world.keys(&[take("c")], Vec::new()),
    ];
    let tickets: Vec<usize> = submissions.iter().map(|submission| submission.ticket).collect();
    world.work(submissions.into());
    for ticket in &tickets[1..] {
        assert!(matches!(world.key_answers(*ticket)[..], [KeyAnswer::Row(_)]));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, usize),
    Range(u8, usize),
    Append(u8, usize),
    Expire(u8, u64),
    Rename(u8, u8),
    Transaction(Vec<(u8, usize)>),
    Swap,
    Register(u16),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let length = || prop_oneof![4 => 0..200_usize, 1 => (1_usize << 20)..(4 << 20)];
    prop_oneof![
        4 => (0..5_u8, length()).prop_map(|(key, length)| Step::Put(key, length)),
        2 => (0..5_u8, length()).prop_map(|(key, length)| Step::Range(key, length)),
        2 => (0..5_u8, length()).prop_map(|(key, length)| Step::Append(key, length)),
        2 => (0..5_u8, 0..2_000_u64).prop_map(|(key, life)| Step::Expire(key, life)),
        1 => (0..5_u8, 0..5_u8).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => proptest::collection::vec((0..5_u8, length()), 0..6).prop_map(Step::Transaction),
        1 => Just(Step::Swap),
        2 => (0..300_u16).prop_map(Step::Register),
        2 => (0..900_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// All submissions are answered once, in whatever portions they come; a replay of the log results in the same
    /// facts; and stamps rise.
    #[test]
    fn a_replay_makes_the_facts_that_were_made_live(
        portions in proptest::collection::vec(proptest::collection::vec(step(), 1..8), 1..12)
    ) {
        let names = ["a", "b", "c", "d", "e"].map(|name| Bytes::new(name.as_bytes()));
        let key = |at: u8| names[usize::from(at)];
        let zeros = vec![0; 4 << 20];
        let mut world = World::new(8 << 20);
        for portion in portions {
            let mut submissions = Vec::new();
            for step in portion {
                let append = |at: u8, length: usize| {
                    KeyOp::Append { bucket: ZERO, key: key(at), bytes: Bytes::new(&zeros[..length]) }
                };
                let ops = match step {
                    Step::Wait(ms) => {
                        world.now_ms += ms;
                        continue;
                    }
                    Step::Register(number) => {
                        let requests = [register(&format!("user{number}"))].into();
                        submissions.push(world.submission(Changes::Requests(requests)));
                        continue;
                    }
                    Step::Put(at, length) => {
                        let (value, expiry) = (Bytes::new(&zeros[..length]), Expiry::Keep);
                        let (key, only) = (key(at), Only::Always);
                        vec![KeyOp::Put { bucket: ZERO, key, value, expiry, only, old: true }]
                    }
                    Step::Range(at, offset) => {
                        let (key, offset) = (key(at), offset as u64);
                        vec![KeyOp::SetRange { bucket: ZERO, key, offset, bytes: names[0] }]
                    }
                    Step::Append(at, length) => vec![append(at, length), append(at, 3)],
                    Step::Expire(at, life) => vec![KeyOp::Expire {
                        bucket: ZERO,
                        key: key(at),
                        expiry: Expiry::In(life),
                        only: kv::OnlyExpiry::Always,
                        read: life % 2 == 0,
                    }],
                    Step::Rename(from, to) => {
                        let (from, to) = (key(from), key(to));
                        vec![KeyOp::Rename { bucket: ZERO, from, to, only_new: false }]
                    }
                    Step::Transaction(appends) => {
                        let watched = vec![Watched { bucket: ZERO, key: names[4], version: None }];
                        let then = appends.len() as u32;
                        let begin = KeyOp::Begin { watched, then };
                        let appends = appends.into_iter().map(|(at, length)| append(at, length));
                        [begin].into_iter().chain(appends).collect()
                    }
                    Step::Swap => vec![KeyOp::Swap { a: ZERO, b: BucketId(1) }],
                };
                submissions.push(world.keys(&ops, Vec::new()));
            }
            world.work(submissions);
            world.answers.retain(|_, (_, answer)| match answer {
                Answer::Keys(replies) => { replies.held.clear(); true }
                Answer::Requests(_) => true,
            });
        }
        prop_assert_eq!(world.answers.len(), world.tickets);
        prop_assert!(world.replayed() == world.applier.rows.inner);
        prop_assert_eq!(world.budget.used(), 0);
        let last = world.applier.rows.inner.totals().last_stamp;
        prop_assert!(world.log.is_empty() || last >= Some(Stamp::first_of(START_MS)));
    }
}
