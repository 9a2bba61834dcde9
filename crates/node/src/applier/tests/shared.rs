//! Tests of several appliers on one log: which groups count, and that all appliers end with the same rows.

use bytes::Bytes as Payload;
use commitlog::NodeId;
use feed::filters::{
    FilterChange, FilterCommand, FilterEdit, FilterId, FilterText, Keyword, KeywordChange,
};
use feed::{Draft, PostText, UserId, UserRef, Warning, limits};
use knn::{LABEL_BYTES, SAMPLE_BYTES};
use kv::KeyRowsMut as _;
use rows::{NameTable, PutRows as _, RowsMut as _, encode};

use super::*;
use crate::applier::SHARED_PAYLOAD_MIN;
use crate::applier::producers::{Producer, counts, last_digest, last_group, note};
use crate::applier::shared::{LEAP_MS_MAX, credible_ms};
use crate::clock::LATEST_MS;
use crate::submission::KeyReplies;
use crate::submission::entry::Status;
use crate::submission::versions::{COMMANDS, rules};
use crate::views::samples::{TAUGHT_BYTES, taught_bytes};

/// A message of the log; its index is its position less 1.
#[derive(Clone)]
struct Message {
    id: GroupId,
    time_ms: u64,
    payload: Vec<u8>,
}

fn arrived(message: &Message, position: u64, is_own: bool) -> Arrived {
    let Message { id, time_ms, ref payload } = *message;
    let payload = Payload::from(payload.clone());
    let sent_ms = START_MS;
    Arrived { position: Position(position), time_ms, sent_ms, id, is_own, payload }
}

fn group(id: GroupId, position: u64) -> Arrived {
    arrived(&Message { id, time_ms: 9, payload: b"x".to_vec() }, position, false)
}

/// A node with at most one pending group, until its log returns it.
struct Node {
    node: NodeId,
    epoch: u64,
    /// Number of the last group.
    number: u64,
    applier: Applier<MemoryRows, usize>,
    under_way: Option<Vec<u8>>,
    /// Number of messages that the node has read.
    read: usize,
    /// Result of each submission: a sum, a number of successes, or as a negative number the number of refusals.
    answers: BTreeMap<usize, i64>,
    refusals_allowed: bool,
    effects: usize,
}

impl Node {
    fn new(node: u128) -> Self {
        Self {
            node: NodeId(node),
            epoch: 1,
            number: 0,
            applier: Applier::new(MemoryRows::default(), MemoryBudget::new(1 << 20), 0),
            under_way: None,
            read: 0,
            answers: BTreeMap::new(),
            refusals_allowed: false,
            effects: 0,
        }
    }

    fn step(&mut self, input: Input<usize>) {
        let output = self.applier.step(input, START_MS);
        self.note(output.answers);
        if let Some(payload) = output.append {
            self.number += 1;
            self.under_way = Some(payload);
        }
    }

    fn note(&mut self, answers: Vec<(usize, Answer)>) {
        for (ticket, answer) in answers {
            let sum = match answer {
                Answer::Keys(KeyReplies { answers, .. }) => match answers[..] {
                    [KeyAnswer::Number(sum)] => sum,
                    ref answers if self.refusals_allowed => {
                        let refused = |answer: &&KeyAnswer| matches!(answer, KeyAnswer::Refused(_));
                        -(answers.iter().filter(refused).count() as i64)
                    }
                    ref other => panic!("{other:?}"),
                },
                Answer::Requests(replies) => i64::from(replies[0].outcome.is_ok()),
            };
            assert_eq!(self.answers.insert(ticket, sum), None, "answered once");
        }
    }

    /// Returns the message of the pending group.
    fn message(&self, time_ms: u64) -> Option<Message> {
        let id = GroupId { node: self.node, epoch: self.epoch, number: self.number };
        Some(Message { id, time_ms, payload: self.under_way.clone()? })
    }

    /// Reads up to `count` messages.
    fn read(&mut self, log: &[Message], count: usize) {
        for message in log.iter().skip(self.read).take(count) {
            let id = GroupId { node: self.node, epoch: self.epoch, number: self.number };
            let is_own = message.id == id && self.under_way.is_some();
            self.read += 1;
            let group = arrived(message, self.read as u64, is_own);
            let mut before = 0;
            let output = self.applier.apply_group(&group, |last_ms, _| before = last_ms).unwrap();
            let last = self.applier.facts().totals().last_stamp.map_or(0, Stamp::unix_ms);
            assert!(output.commands == 0 || before >= last, "readers know the time first");
            assert!(output.append.is_none());
            self.effects += output.effects.len();
            self.note(output.answers);
            if is_own {
                self.under_way = None;
                self.step(Input::Tick);
            }
        }
    }

    /// Restarts from a checkpoint, losing what is only in memory.
    fn restart(&mut self) {
        let rows = self.applier.rows.inner.clone();
        self.applier = Applier::new(rows, MemoryBudget::new(1 << 20), 0);
        (self.epoch, self.number, self.under_way) = (self.epoch + 1, 0, None);
    }
}

fn add(ticket: usize) -> Submission<usize> {
    let op = KeyOp::Add { bucket: ZERO, key: Bytes::new(b"sum"), by: 1 };
    let changes = Changes::Keys { ops: [op].into_iter().collect(), reads: Vec::new() };
    Submission { changes, ticket }
}

#[test]
fn a_group_counts_once_and_only_in_its_place() {
    let mut rows = MemoryRows::default();
    let (mut digest, mut position) = (0, 0);
    // Node, epoch, number; whether the group counts.
    for (node, epoch, number, expected) in [
        (1, 5, 2, false),
        (1, 5, 1, true),
        (1, 5, 1, false),
        (1, 5, 3, false),
        (1, 5, 2, true),
        (1, 5, 1, false),
        (2, 1, 1, true),
        (1, 5, 3, true),
        (1, 4, 1, false),
        (1, 4, 4, false),
        (1, 7, 2, false),
        (1, 7, 1, true),
        (1, 5, 4, false),
        (1, 7, 2, true),
        (2, 1, 2, true),
    ] {
        position += 1;
        let id = GroupId { node: NodeId(node), epoch, number };
        let before = digest;
        let group = group(id, position);
        assert_eq!(counts(&rows, &group).unwrap(), expected, "{id:?}");
        if expected {
            digest = note(&mut rows, digest, &group, 0);
            assert_ne!(digest, before);
            assert_eq!(last_group(&rows), Some((group.position, id)));
        }
        assert_eq!(last_digest(&rows), digest);
    }
}

#[test]
fn the_digest_depends_on_everything_that_a_group_is() {
    let id = GroupId { node: NodeId(1), epoch: 1, number: 1 };
    let group = group(id, 3);
    let digest = |group: &Arrived| note(&mut MemoryRows::default(), 7, group, 0);
    assert_ne!(note(&mut MemoryRows::default(), 7, &group, 1), digest(&group), "other rows");
    let same = digest(&Arrived { is_own: true, ..group.clone() });
    assert_eq!(digest(&group), same, "all nodes have the same, the one that appended it too");
    for other in [
        Arrived { id: GroupId { node: NodeId(2), ..id }, ..group.clone() },
        Arrived { id: GroupId { epoch: 2, ..id }, ..group.clone() },
        Arrived { position: Position(4), ..group.clone() },
        Arrived { time_ms: 8, ..group.clone() },
        Arrived { sent_ms: 8, ..group.clone() },
        Arrived { payload: Payload::from_static(b"y"), ..group.clone() },
    ] {
        assert_ne!(digest(&other), same, "{other:?}");
    }
}

/// A group that cannot be applied stops the node with an error that names it.
#[test]
fn groups_that_cannot_be_applied_are_named() {
    let mut node = Node::new(1);
    let producer = Producer { epoch: 9, number: 1, position: 3, digest: 1 };
    let name = node.node.0.to_be_bytes();
    node.applier.rows.inner.put_name(NameTable::ClusterNode, &name, Some(encode(&producer)));
    node.step(Input::Submit(vec![add(0)]));
    let message = node.message(START_MS).unwrap();
    let mut refused = |group: &Arrived| {
        node.applier.apply_group(group, |_, _| ()).err().expect("it is refused").to_string()
    };
    let of_old_epoch = refused(&arrived(&message, 7, true));
    assert!(
        of_old_epoch.starts_with("group 7 of the log comes from this node but"),
        "{of_old_epoch}"
    );
    let id = GroupId { node: NodeId(1), epoch: 9, number: 2 };
    assert_eq!(refused(&group(id, 3)), "the log gave group 3 after group 3");
    let unreadable = refused(&group(id, 8));
    assert!(unreadable.starts_with("group 8 of the log cannot be read"), "{unreadable}");
    // One operation, with a number that no operation has.
    let payload = Payload::from_static(&[0, 127, 1, 1, 100]);
    let unknown = refused(&Arrived { payload, ..group(id, 8) });
    assert!(unknown.starts_with("group 8 of the log cannot be read: a newer"), "{unknown}");
    assert_eq!(last_group(&node.applier.rows.inner).unwrap().0, Position(3), "nothing has changed");
}

/// A copy is cheap when it is accepted, and costly when another node has made the value long meanwhile.
#[test]
fn what_has_become_too_large_is_refused_by_all_nodes_alike() {
    let [mut one, mut other, mut fresh] = [1, 2, 3].map(Node::new);
    let keys = ["a", "b", "c", "d"].map(|key| Bytes::new(key.as_bytes()));
    let copies: KeyOps = keys
        .iter()
        .map(|to| {
            let key = Bytes::new(b"long");
            KeyOp::Copy { bucket: ZERO, key, to_bucket: ZERO, to, replace: true }
        })
        .collect();
    let changes = Changes::Keys { ops: copies, reads: Vec::new() };
    one.step(Input::Submit(vec![Submission { changes, ticket: 0 }, add(1)]));
    let grow: KeyOps = [set_range("long", VALUE_BYTES_MAX - 1)].into_iter().collect();
    let changes = Changes::Keys { ops: grow, reads: Vec::new() };
    other.step(Input::Submit(vec![Submission { changes, ticket: 0 }]));
    let log = [other.message(START_MS).unwrap(), one.message(START_MS).unwrap()];
    one.refusals_allowed = true;
    [&mut one, &mut other, &mut fresh].into_iter().for_each(|node| node.read(&log, 2));
    assert_eq!(one.answers, BTreeMap::from([(0, -4), (1, 1)]), "four copies refused, one sum");
    for node in [&one, &other, &fresh] {
        assert_eq!(node.applier.rows.inner, one.applier.rows.inner);
        assert!(node.applier.keys().key(kv::Space(0), b"a").is_none());
        assert!(node.applier.keys().key(kv::Space(0), b"sum").is_some());
    }
    // Later changes have the same stamps everywhere.
    other.step(Input::Submit(vec![add(1)]));
    let log = [log.to_vec(), vec![other.message(START_MS).unwrap()]].concat();
    [&mut one, &mut other, &mut fresh].into_iter().for_each(|node| node.read(&log, 1));
    assert_eq!(one.applier.rows.inner, other.applier.rows.inner);
    assert_eq!(one.applier.rows.inner, fresh.applier.rows.inner);
}

/// A log of short messages gets no longer ones.
#[test]
fn a_group_is_no_longer_than_the_log_accepts() {
    let mut node = Node::new(1);
    node.applier.share(node.node, 64 << 10);
    let value = vec![b'v'; 40_000];
    let put = |key: &'static str, value: &[u8]| {
        let (key, value) = (Bytes::new(key.as_bytes()), Bytes::new(value));
        let (expiry, only) = (Expiry::Never, Only::Always);
        let op = KeyOp::Put { bucket: ZERO, key, value, expiry, only, old: false };
        Changes::Keys { ops: [op].into_iter().collect(), reads: Vec::new() }
    };
    let submit = |ticket, changes| Submission { changes, ticket };
    node.refusals_allowed = true;
    node.step(Input::Submit(vec![
        submit(0, put("a", &value)),
        submit(1, put("b", &value)),
        submit(2, put("c", &[b'v'; 70_000])),
    ]));
    let mut log = Vec::new();
    while let Some(message) = node.message(START_MS) {
        assert!(message.payload.len() <= 64 << 10, "{}", message.payload.len());
        log.push(message);
        node.read(&log, usize::MAX);
    }
    assert_eq!(log.len(), 2);
    assert_eq!(node.answers, BTreeMap::from([(0, 0), (1, 0), (2, -1)]));
}

#[test]
fn effects_of_all_nodes_are_for_the_views_of_each() {
    let (mut one, mut other) = (Node::new(1), Node::new(2));
    let mut log = Vec::new();
    let requests = [
        register("anna"),
        Request::from(Command::post(UserRef::Id(UserId(0)), PostText::parse("hello").unwrap())),
    ];
    for (ticket, request) in requests.into_iter().enumerate() {
        let changes = Changes::Requests([request].into_iter().collect());
        one.step(Input::Submit(vec![Submission { changes, ticket }]));
        log.push(one.message(START_MS).unwrap());
        one.read(&log, 1);
        other.read(&log, 1);
    }
    assert_eq!(one.answers, BTreeMap::from([(0, 1), (1, 1)]));
    assert!(one.effects > 0);
    assert_eq!((one.effects, &one.applier.rows.inner), (other.effects, &other.applier.rows.inner));
}

/// A wrong clock alone does not make everything expire, neither the broker's nor a node's.
#[test]
fn a_leap_of_time_needs_the_clocks_of_the_broker_and_of_the_node() {
    const HOUR_MS: u64 = 3_600_000;
    const YEAR_MS: u64 = 8_766 * HOUR_MS;
    // Time of the broker, time of the node, last stamp, resulting time of the group; in milliseconds after the start.
    for (time, sent, last, expected) in [
        (10, 5, 0, 10),
        (LEAP_MS_MAX, 0, 0, LEAP_MS_MAX),
        (LEAP_MS_MAX + 1, 0, 0, 0),
        (YEAR_MS, HOUR_MS, 7, HOUR_MS),
        (YEAR_MS, HOUR_MS, 2 * HOUR_MS, 2 * HOUR_MS),
        (HOUR_MS, YEAR_MS, 0, HOUR_MS),
        (YEAR_MS, YEAR_MS + 5, 0, YEAR_MS),
        (5, HOUR_MS, 2 * HOUR_MS, 5),
    ] {
        let found = credible_ms(START_MS + time, START_MS + sent, START_MS + last);
        assert_eq!(found - START_MS, expected, "{time} {sent} {last}");
    }
    assert_eq!(credible_ms(u64::MAX, u64::MAX, START_MS), LATEST_MS);
}

/// All nodes agree on the time, including the one that appended the group, and keys live on.
#[test]
fn a_broker_whose_clock_is_years_ahead_expires_nothing() {
    let mut nodes = [1, 2].map(Node::new);
    let (expiry, only) = (Expiry::In(1_000_000), Only::Always);
    let (key, value) = (Bytes::new(b"sum"), Bytes::new(b"7"));
    let put = KeyOp::Put { bucket: ZERO, key, value, expiry, only, old: false };
    let changes = Changes::Keys { ops: [put].into_iter().collect(), reads: Vec::new() };
    nodes[0].refusals_allowed = true;
    nodes[0].step(Input::Submit(vec![Submission { changes, ticket: 0 }]));
    let mut log = vec![nodes[0].message(START_MS).unwrap()];
    nodes.iter_mut().for_each(|node| node.read(&log, 1));
    nodes[1].step(Input::Submit(vec![add(1)]));
    log.push(nodes[1].message(u64::MAX / 2).unwrap());
    nodes.iter_mut().for_each(|node| node.read(&log, 1));
    assert_eq!(nodes[1].answers, BTreeMap::from([(1, 8)]), "the key had not expired");
    assert_eq!(nodes[0].applier.rows.inner, nodes[1].applier.rows.inner);
    let last = nodes[0].applier.facts().totals().last_stamp.unwrap();
    assert_eq!(last.unix_ms(), START_MS);
}

/// A node whose clock is ahead of the log sees that a key has expired before the log does.
#[test]
fn a_sweep_that_finds_nothing_is_not_proposed_again_at_once() {
    let mut node = Node::new(1);
    let (expiry, only) = (Expiry::In(10), Only::Always);
    let (key, value) = (Bytes::new(b"a"), Bytes::new(b"7"));
    let put = KeyOp::Put { bucket: ZERO, key, value, expiry, only, old: false };
    let changes = Changes::Keys { ops: [put].into_iter().collect(), reads: Vec::new() };
    node.refusals_allowed = true;
    node.step(Input::Submit(vec![Submission { changes, ticket: 0 }]));
    let mut log = vec![node.message(START_MS).unwrap()];
    node.read(&log, 1);
    // By the clock of the node everything has expired; by that of the log nothing has.
    let mut proposed = |node: &mut Node, now_ms| {
        let output = node.applier.step(Input::Tick, now_ms);
        let Some(payload) = output.append else { return false };
        node.number += 1;
        node.under_way = Some(payload);
        log.push(node.message(START_MS + 1).unwrap());
        node.read(&log, 1);
        true
    };
    assert!(proposed(&mut node, START_MS + 100));
    for now_ms in START_MS + 100..START_MS + 200 {
        assert!(!proposed(&mut node, now_ms));
    }
    assert!(proposed(&mut node, START_MS + 1_000), "later it is");
}

fn sample(byte: u8) -> Changes {
    let set = feed::SetName::parse("birds").unwrap();
    let (label, bits) = (feed::Label::parse("wren").unwrap(), Box::new([byte; 128].into()));
    let command = Command::AddSample { set, label, bits };
    Changes::Requests([Request::from(command)].into_iter().collect())
}

/// Each node has room for one more, and both take it.
#[test]
fn samples_that_two_nodes_add_at_a_time_stay_within_the_limit() {
    let with_room_for = |node, samples: usize| {
        let mut node = Node::new(node);
        let (rows, budget) = (MemoryRows::default(), MemoryBudget::new(1 << 20));
        node.applier = Applier::new(rows, budget, samples * TAUGHT_BYTES);
        node.applier.share(node.node, 1 << 20);
        node
    };
    let mut nodes = [with_room_for(1, 2), with_room_for(2, 2), with_room_for(3, 9)];
    let mut log = Vec::new();
    for (ticket, node) in nodes.iter_mut().take(2).enumerate() {
        let samples = [2 * ticket, 2 * ticket + 1]
            .map(|ticket| Submission { changes: sample(ticket as u8), ticket });
        node.step(Input::Submit(samples.into()));
        log.push(node.message(START_MS).unwrap());
    }
    nodes.iter_mut().for_each(|node| node.read(&log, 2));
    assert_eq!(nodes[0].answers, BTreeMap::from([(0, 1), (1, 1)]));
    assert_eq!(nodes[1].answers, BTreeMap::from([(2, 0), (3, 0)]), "there was no room any more");
    for node in &nodes {
        assert_eq!(node.applier.rows.inner, nodes[0].applier.rows.inner);
        assert_eq!(taught_bytes(node.applier.facts()), 2 * SAMPLE_BYTES + LABEL_BYTES);
    }
}

/// Nodes send their digests; one with rows that differ from the others' detects it, even if only contents differ.
#[test]
fn a_node_whose_rows_differ_stops_and_the_others_go_on() {
    let counted = |node: &mut Node| {
        let mut totals = node.applier.rows.inner.totals();
        totals.friendships += 1;
        node.applier.rows.inner.put_totals(totals);
    };
    let valued = |node: &mut Node| {
        let facts = node.applier.keys();
        let row = facts.key(kv::Space(0), b"sum").expect("it was made");
        let row = kv::KeyRow::new(kv::KeyParts { value: b"8", ..row.parts() });
        node.applier.rows.inner.put_key(row);
    };
    for (name, change) in [("counted", &counted as &dyn Fn(&mut Node)), ("valued", &valued)] {
        let (stopped, trims) = three_nodes(2_000, change);
        assert!(!stopped.is_empty() && trims > 0, "{name}");
        for (node, error) in &stopped {
            assert_eq!(*node, 2, "{name}: {error}");
            let expected =
                "the rows of this node differ from those of most other nodes since a group after ";
            let range =
                error.strip_prefix(expected).and_then(|rest| rest.split_once(':')).unwrap().0;
            let (after, up_to) = range.split_once(" and up to ").unwrap();
            let (after, up_to): (usize, usize) = (after.parse().unwrap(), up_to.parse().unwrap());
            assert!(after <= 2_000 && up_to > 2_000 && up_to - after < 1_500, "{name}: {error}");
        }
    }
    let (stopped, trims) = three_nodes(2_000, &|_| ());
    assert!(stopped.is_empty() && trims > 0, "{stopped:?}");
}

/// Returns the nodes of three that stop after the last one was changed, with their errors, and the number of times that
/// the log could be trimmed.
fn three_nodes(changed_at: usize, change: &dyn Fn(&mut Node)) -> (Vec<(usize, String)>, usize) {
    let mut nodes = [1, 2, 3].map(Node::new);
    let mut log = Vec::new();
    for node in &mut nodes {
        node.applier.share(node.node, 1 << 20);
        node.applier.set_checkpoint(Position(1 << 17));
    }
    let (mut stopped, mut trims) = (Vec::new(), 0);
    for round in 0..6_000 {
        let node = round % 3;
        if round == changed_at {
            change(&mut nodes[2]);
        }
        nodes[node].step(Input::Submit(vec![add(round)]));
        // The rounds take some hours in total, because the log is kept for one hour for joining nodes.
        log.extend(nodes[node].message(START_MS + 2_500 * round as u64));
        let position = log.len() as u64;
        for (at, node) in nodes.iter_mut().enumerate() {
            let message = &log[log.len() - 1];
            let is_own = message.id.node == node.node;
            match node.applier.apply_group(&arrived(message, position, is_own), |_, _| ()) {
                Ok(output) => trims += usize::from(output.trim.is_some()),
                Err(error) => stopped.push((at, error.to_string())),
            }
            if is_own {
                node.under_way = None;
            }
        }
    }
    let found = nodes[0].applier.rows.inner.first_names(NameTable::ClusterNode, &[], 10);
    assert_eq!(found.len(), 7, "two rows of each node, and one of what they have in common");
    let [one, other, changed] = nodes.map(|node| node.applier.digest);
    assert_eq!((one, one == changed), (other, stopped.is_empty()));
    (stopped, trims)
}

/// Rows that differ because of another release's rules stop no node once all nodes have the same rules again.
#[test]
fn the_digest_begins_anew_when_all_nodes_have_the_same_rules_again() {
    let [mut one, mut other] = [1, 2].map(Node::new);
    [&mut one, &mut other].into_iter().for_each(|node| node.applier.share(node.node, 1 << 20));
    let status = |node: u128, number, rules| {
        let status = Status { checkpoint: 0, position: 0, digest: 0, commands: COMMANDS, rules };
        let id = GroupId { node: NodeId(node), epoch: 1, number };
        let payload = Entry::Status(status).write(Vec::new());
        Message { id, time_ms: START_MS, payload }
    };
    let mut log = vec![status(8, 1, rules()), status(9, 1, rules())];
    [&mut one, &mut other].into_iter().for_each(|node| node.read(&log, 2));
    assert_eq!(one.applier.digest, other.applier.digest);
    // The other node runs a release that computes another digest of the same group.
    log.push(status(9, 2, 7));
    [&mut one, &mut other].into_iter().for_each(|node| node.read(&log, 1));
    other.applier.digest += 1;
    log.push(status(8, 2, rules()));
    [&mut one, &mut other].into_iter().for_each(|node| node.read(&log, 1));
    assert_ne!(one.applier.digest, other.applier.digest);
    log.extend([status(9, 3, rules()), status(8, 3, rules())]);
    [&mut one, &mut other].into_iter().for_each(|node| node.read(&log, 1));
    assert_eq!((one.applier.digest, other.applier.digest), (0, 0));
    [&mut one, &mut other].into_iter().for_each(|node| node.read(&log, 1));
    assert_ne!(one.applier.digest, 0);
    assert_eq!(last_digest(&one.applier.rows.inner), other.applier.digest);
}

/// An idle node sends its status after others have made many changes, and nothing else.
#[test]
fn an_idle_node_sends_its_status_periodically() {
    let (mut one, mut idle) = (Node::new(1), Node::new(2));
    idle.applier.share(idle.node, 1 << 20);
    let (mut log, mut statuses) = (Vec::new(), 0);
    for round in 0..3_000 {
        one.step(Input::Submit(vec![add(round)]));
        log.extend(one.message(START_MS));
        one.read(&log, usize::MAX);
        idle.read(&log, usize::MAX);
        if idle.applier.has_work() {
            idle.step(Input::Tick);
            log.extend(idle.message(START_MS));
            [&mut one, &mut idle].into_iter().for_each(|node| node.read(&log, usize::MAX));
            statuses += 1;
        }
    }
    assert_eq!(statuses, 3, "once at its start");
    assert_eq!(one.applier.rows.inner, idle.applier.rows.inner);
}

#[derive(Clone, Debug)]
enum Happening {
    /// A client of a node adds 1.
    Submit(usize),
    /// A node sends its pending group, possibly again. Its time may go back.
    Send(usize, u64),
    /// A node reads some messages.
    Read(usize, usize),
    /// A node is killed and starts again from its checkpoint; its messages may arrive much later.
    Restart(usize),
    /// A message of a dead process arrives.
    Late,
}

fn happening() -> impl Strategy<Value = Happening> {
    let node = 0..3_usize;
    prop_oneof![
        4 => node.clone().prop_map(Happening::Submit),
        5 => (node.clone(), 0..100_u64).prop_map(|(node, ms)| Happening::Send(node, ms)),
        5 => (node.clone(), 1..5_usize).prop_map(|(node, count)| Happening::Read(node, count)),
        1 => node.prop_map(Happening::Restart),
        1 => Just(Happening::Late),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever is sent twice or late and whichever node is killed, every node ends with the same rows, and each
    /// acknowledged change happened once.
    #[test]
    fn all_nodes_end_with_the_same_rows(
        happenings in proptest::collection::vec(happening(), 1..120)
    ) {
        let mut nodes = [1, 2, 3].map(Node::new);
        let (mut log, mut late) = (Vec::<Message>::new(), Vec::new());
        let mut submitted = 0;
        for happening in happenings {
            match happening {
                Happening::Submit(node) => {
                    nodes[node].step(Input::Submit(vec![add(submitted)]));
                    submitted += 1;
                }
                Happening::Send(node, ms) => log.extend(nodes[node].message(START_MS + ms)),
                Happening::Read(node, count) => nodes[node].read(&log, count),
                Happening::Restart(node) => {
                    late.extend(nodes[node].message(START_MS));
                    nodes[node].restart();
                }
                Happening::Late => log.extend(late.pop()),
            }
        }
        // At the end all pending messages arrive.
        while nodes.iter().any(|node| node.under_way.is_some() || node.read < log.len()) {
            for node in &mut nodes {
                node.read(&log, usize::MAX);
                log.extend(node.message(START_MS));
            }
        }
        let mut fresh = Node::new(4);
        fresh.read(&log, usize::MAX);
        let mut sums: Vec<i64> = Vec::new();
        for node in &nodes {
            prop_assert_eq!(&node.applier.rows.inner, &fresh.applier.rows.inner);
            prop_assert_eq!(node.applier.digest, fresh.applier.digest);
            sums.extend(node.answers.values());
        }
        let answered = sums.len();
        sums.sort_unstable();
        sums.dedup();
        prop_assert_eq!(sums.len(), answered, "each acknowledged change has a sum of its own");
        let sum = fresh.applier.keys().key(kv::Space(0), b"sum");
        let sum = sum.map_or(0, |row| String::from_utf8_lossy(row.value()).parse::<i64>().unwrap());
        prop_assert!(sums.last().is_none_or(|last| *last <= sum));
        prop_assert!(answered as i64 <= sum && sum <= submitted as i64, "{} {}", answered, sum);
    }
}

#[test]
fn a_group_of_the_longest_commands_fits_a_message_of_the_log() {
    let mut node = Node::new(1);
    node.applier.share(NodeId(1), SHARED_PAYLOAD_MIN);
    // 500 characters of 16 bytes each.
    let longest = format!("\u{e9}{}", "\u{301}".repeat(7));
    let longest = longest.repeat(limits::POST_BYTES_MAX / 16);
    let author = UserRef::Id(UserId(0));
    let mut new = Draft::new(author.clone(), PostText::parse(&longest).unwrap());
    new.content.warning = Warning::parse(&longest).unwrap();
    assert_eq!(new.content.text.as_str().len(), limits::POST_BYTES_MAX);
    let handle = "h".repeat(limits::HANDLE_CHARS_MAX);
    let others = vec![UserRef::Handle(Handle::parse(&handle).unwrap()); limits::FOLLOW_MANY_MAX];
    let keyword = format!("a{}", "\u{301}".repeat(limits::FILTER_TEXT_BYTES_MAX / 2 - 1));
    let keyword = Keyword { text: FilterText::parse(&keyword).unwrap(), whole_word: true };
    let keywords = vec![KeywordChange::Add(keyword); limits::KEYWORD_CHANGES_MAX];
    let change = FilterChange::Edit(FilterEdit { keywords, ..FilterEdit::new(FilterId(1)) });
    let commands = [
        Command::Publish(Box::new(new)),
        Command::Filter(Box::new(FilterCommand { user: author.clone(), change })),
        Command::FollowMany { user: author.clone(), others: others.clone() },
        Command::FollowMany { user: author, others },
    ];
    let commands = commands.iter().cycle().take(30).cloned();
    let requests: Vec<Request> = commands.map(Request::from).collect();
    let changes = Changes::Requests(requests.into());
    node.refusals_allowed = true;
    node.step(Input::Submit(vec![Submission { changes, ticket: 0 }]));
    let (mut log, mut longest) = (Vec::new(), 0);
    while let Some(message) = node.message(START_MS) {
        longest = longest.max(message.payload.len());
        assert!(message.payload.len() <= SHARED_PAYLOAD_MIN, "{} bytes", message.payload.len());
        log.push(message);
        let read = log.len();
        node.read(&log, read);
    }
    assert!(longest > SHARED_PAYLOAD_MIN / 2, "groups are filled: {longest} bytes");
    assert!(node.answers.contains_key(&0), "all of them are in the log");
}

#[test]
fn nodes_agree_about_a_command_whose_rule_panics() {
    crate::applier::fault::of_thread::TEXT.set(Some("boom"));
    let digests = [None, Some("boom")].map(|key| {
        let (mut first, mut second) = (Node::new(1), Node::new(2));
        first.refusals_allowed = true;
        let mut log = Vec::new();
        for (ticket, key) in [(0, Some("a")), (1, key), (2, Some("b"))] {
            let Some(key) = key else { continue };
            let changes =
                Changes::Keys { ops: [put(key, b"1")].into_iter().collect(), reads: vec![] };
            first.step(Input::Submit(vec![Submission { changes, ticket }]));
            log.extend(first.message(START_MS));
            first.read(&log, 1);
            second.read(&log, 1);
        }
        assert_eq!(first.applier.rows.inner, second.applier.rows.inner);
        assert_eq!(first.applier.digest(), second.applier.digest());
        assert_eq!(first.applier.failures(), second.applier.failures());
        let keys = |node: &Node| {
            ["a", "boom", "b"]
                .map(|key| node.applier.keys().key(kv::Space(0), key.as_bytes()).is_some())
        };
        assert_eq!(keys(&second), [true, false, true]);
        second.applier.digest()
    });
    assert_ne!(digests[0], digests[1]);
}
