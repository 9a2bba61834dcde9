//! Several appliers on one log: what counts, and that all of them end with the same rows.

use commitlog::{GroupId, NodeId};
use rows::{NameTable, PutRows as _, encode};

use super::*;
use crate::applier::senders::{Sender, SharedGroup, accept, last_digest};
use crate::submission::KeyReplies;

/// A message of the log; its index is its position less 1.
#[derive(Clone)]
struct Message {
    id: GroupId,
    time_ms: u64,
    payload: Vec<u8>,
}

/// A node that has one group under way at most, as long as its log has not given it back.
struct Node {
    node: NodeId,
    epoch: u64,
    /// The number of the last group.
    number: u64,
    applier: Applier<MemoryRows, usize>,
    under_way: Option<Vec<u8>>,
    /// How many messages it has read.
    read: usize,
    answers: BTreeMap<usize, i64>,
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
                    ref other => panic!("{other:?}"),
                },
                Answer::Requests(replies) => i64::from(replies[0].outcome.is_ok()),
            };
            assert_eq!(self.answers.insert(ticket, sum), None, "answered once");
        }
    }

    /// The message of the group that is under way.
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
            let group = SharedGroup {
                id: message.id,
                position: Position(self.read as u64),
                time_ms: message.time_ms,
                payload: &message.payload,
                is_own,
            };
            let output = self.applier.apply_shared(&group).unwrap();
            assert!(output.append.is_none());
            self.effects += output.effects.len();
            self.note(output.answers);
            if is_own {
                self.under_way = None;
                self.step(Input::Tick);
            }
        }
    }

    /// Loses what is in memory only, after a checkpoint.
    fn restart(&mut self) {
        let rows = self.applier.rows.clone();
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
    // Node, epoch, number; whether it counts.
    for (node, epoch, number, counts) in [
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
        let (before, position) = (digest, Position(position));
        let group = SharedGroup { id, position, time_ms: 9, payload: b"x", is_own: false };
        assert_eq!(accept(&mut rows, &mut digest, &group), counts, "{id:?}");
        assert_eq!(digest != before, counts);
        assert_eq!(last_digest(&rows), digest);
    }
}

#[test]
fn the_digest_depends_on_everything_that_a_group_is() {
    let id = GroupId { node: NodeId(1), epoch: 1, number: 1 };
    let group = SharedGroup { id, position: Position(3), time_ms: 9, payload: b"x", is_own: false };
    let digest = |group: SharedGroup<'_>| {
        let (mut rows, mut digest) = (MemoryRows::default(), 7);
        assert!(accept(&mut rows, &mut digest, &group));
        digest
    };
    let same = digest(SharedGroup { is_own: true, ..group });
    assert_eq!(digest(group), same, "all nodes have the same, the one that appended it too");
    for other in [
        SharedGroup { id: GroupId { node: NodeId(2), ..id }, ..group },
        SharedGroup { id: GroupId { epoch: 2, ..id }, ..group },
        SharedGroup { position: Position(4), ..group },
        SharedGroup { time_ms: 8, ..group },
        SharedGroup { payload: b"y", ..group },
    ] {
        assert_ne!(digest(other), same, "{other:?}");
    }
}

#[test]
#[should_panic(expected = "a group that came back counts")]
fn a_group_of_an_epoch_that_is_over_does_not_count_as_ones_own() {
    let mut node = Node::new(1);
    let sender = Sender { epoch: 9, number: 1, position: 1, digest: 1 };
    let name = node.node.0.to_be_bytes();
    node.applier.rows.put_name(NameTable::Sender, &name, Some(encode(&sender)));
    node.step(Input::Submit(vec![add(0)]));
    let log = [node.message(START_MS).unwrap()];
    node.read(&log, 1);
}

#[test]
fn effects_of_all_nodes_are_for_the_views_of_each() {
    let (mut one, mut other) = (Node::new(1), Node::new(2));
    let mut log = Vec::new();
    let requests = [
        register("anna"),
        Request::from(Command::Post {
            author: feed::UserRef::Id(feed::UserId(0)),
            text: feed::PostText::parse("hello").unwrap(),
        }),
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
    assert_eq!((one.effects, &one.applier.rows), (other.effects, &other.applier.rows));
}

#[derive(Clone, Debug)]
enum Happening {
    /// A client of a node adds 1.
    Submit(usize),
    /// A node sends what is under way, also again. Its time may go back.
    Send(usize, u64),
    /// A node reads some messages.
    Read(usize, usize),
    /// A node is killed and starts again from its checkpoint; what it has sent may arrive much later.
    Restart(usize),
    /// Something that a dead process has sent arrives.
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

    /// Whatever is sent twice or late and whoever is killed: every node ends with the same rows, and each
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
        // At the end all that is under way arrives.
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
            prop_assert_eq!(&node.applier.rows, &fresh.applier.rows);
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
