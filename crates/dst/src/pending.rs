//! Submissions without a reply: which of their commands are in the log, and the expected replies.

use feed::{Command, Refusal, Reply};
use kv::{KeyAnswer, KeyOp, KeyOps, KeyRefusal};
use node::{Logged, PendingKeys, PendingRequests, Request, TakenPart};
use tokio::sync::oneshot::error::TryRecvError;

use crate::model::{self, Expected};

/// Minimum size of operations that may be refused because they change too much, in bytes.
const LARGE_BYTES: usize = 100_000;
/// Minimum number of values of maximum length that a transaction must rewrite to be refused for writing too much.
const REWRITES_MIN: usize = 3;
/// Minimum number of values of maximum length that a transaction must return to be refused for its answer.
const OLD_VALUES_MIN: usize = 2;

/// Submission without a reply.
pub(crate) struct Pending {
    /// Number of the submission.
    id: u64,
    kind: Kind,
    /// Number of commands that are already in groups.
    taken: usize,
}

enum Kind {
    Requests {
        requests: Vec<Request>,
        /// Expected replies. A command that is not logged has `None`.
        expected: Vec<Option<Reply>>,
        reply: PendingRequests,
    },
    Keys {
        ops: KeyOps,
        expected: Vec<Option<KeyAnswer>>,
        now_ms: Option<u64>,
        reply: PendingKeys,
    },
}

/// Reply to a submission, if any.
pub(crate) enum Answered {
    NotYet,
    Requests(Vec<Reply>),
    Keys,
}

/// Entries of groups, in order, with the expected replies.
pub(crate) type Entries = std::vec::IntoIter<(Logged, Expected)>;

impl Pending {
    pub(crate) fn of_requests(requests: Vec<Request>, (id, reply): (u64, PendingRequests)) -> Self {
        let expected = vec![None; requests.len()];
        Self { id, kind: Kind::Requests { requests, expected, reply }, taken: 0 }
    }

    pub(crate) fn of_keys(ops: KeyOps, (id, reply): (u64, PendingKeys)) -> Self {
        let expected = vec![None; ops.len()];
        Self { id, kind: Kind::Keys { ops, expected, now_ms: None, reply }, taken: 0 }
    }

    fn len(&self) -> usize {
        match &self.kind {
            Kind::Requests { requests, .. } => requests.len(),
            Kind::Keys { ops, .. } => ops.len(),
        }
    }

    /// Compares the entries that a group has taken with the commands of the submission.
    fn take(&mut self, part: TakenPart, entries: &mut Entries) {
        match (part, &mut self.kind) {
            (TakenPart::Requests(count), Kind::Requests { requests, expected, .. }) => {
                for _ in 0..count {
                    let Some((Logged::Feed(logged), Expected::Reply(reply))) = entries.next()
                    else {
                        panic!("a command is not in the log")
                    };
                    assert_eq!(logged, requests[self.taken], "the log has another command");
                    expected[self.taken] = Some(reply);
                    self.taken += 1;
                }
            }
            (TakenPart::Answered, Kind::Requests { .. }) => self.taken += 1,
            (TakenPart::Ops, Kind::Keys { ops, expected, now_ms, .. }) => {
                let Some((Logged::Keys(logged), Expected::Keys { answers, now_ms: at_ms })) =
                    entries.next()
                else {
                    panic!("operations on keys are not in the log")
                };
                let submitted = ops.iter().skip(self.taken).take(logged.len());
                assert!(logged.iter().eq(submitted), "the log has other operations");
                *now_ms = Some(at_ms);
                for answer in answers {
                    expected[self.taken] = Some(answer);
                    self.taken += 1;
                }
            }
            (TakenPart::RefusedOps(count), Kind::Keys { .. }) => self.taken += count,
            (part, _) => panic!("{part:?} is not of the kind of its submission"),
        }
    }

    /// Whether some operations are applied, with answers that contain values of keys, and others are not.
    pub(crate) fn holds_values(&self) -> bool {
        match &self.kind {
            Kind::Keys { ops, .. } if self.taken < ops.len() => {
                ops.iter().take(self.taken).any(|op| answers_value(&op))
            }
            _ => false,
        }
    }

    /// Compares the reply, if there is one, with the expected reply. `is_held` says whether, before the turn, an
    /// unfinished submission held memory for its answers.
    ///
    /// # Panics
    /// If they differ.
    pub(crate) fn check(&mut self, is_held: bool) -> Answered {
        let complete = self.taken == self.len();
        let absent = |error: TryRecvError| {
            assert!(error == TryRecvError::Empty, "a submission is never answered");
            assert!(!complete, "a submission is applied and not answered");
            Answered::NotYet
        };
        match &mut self.kind {
            Kind::Requests { requests, expected, reply, .. } => match reply.try_recv() {
                Ok(replies) => {
                    assert!(complete, "a submission is answered before it is applied");
                    check_replies(requests, expected, &replies);
                    Answered::Requests(replies.into_vec())
                }
                Err(error) => absent(error),
            },
            Kind::Keys { ops, expected, now_ms, reply, .. } => match reply.try_recv() {
                Ok(replies) => {
                    assert!(complete, "a submission is answered before it is applied");
                    check_answers(ops, expected, &replies.answers, is_held);
                    let now_ms = now_ms.unwrap_or(replies.now_ms);
                    assert_eq!(now_ms, replies.now_ms, "the time of an answer");
                    Answered::Keys
                }
                Err(error) => absent(error),
            },
        }
    }
}

/// Assigns the entries of groups to their submissions.
///
/// # Panics
/// If an entry was not submitted, or a part of a submission is missing.
pub(crate) fn distribute(
    pending: &mut [Pending],
    taken: &[(u64, TakenPart)],
    entries: Vec<(Logged, Expected)>,
) {
    let mut entries = entries.into_iter();
    for (id, part) in taken {
        match pending.iter_mut().find(|one| one.id == *id) {
            Some(one) => one.take(*part, &mut entries),
            None => {
                let sweep = entries.next().map(|(_, expected)| expected);
                assert_eq!(sweep, Some(Expected::Sweep), "an entry was not submitted");
            }
        }
    }
    let rest = entries.map(|(_, expected)| expected);
    rest.for_each(|rest| assert_eq!(rest, Expected::Sweep, "an entry was not submitted"));
}

/// Whether operations may be refused before they are logged, because of invalid keys or large values.
fn may_be_refused(ops: &KeyOps) -> bool {
    ops.iter().any(|op| !op.writes_possible_keys() || is_large(&op))
        || ops.bytes() > LARGE_BYTES
        || ops.iter().filter(rewrites_value).count() >= REWRITES_MIN
        || ops.iter().filter(answers_value).count() >= OLD_VALUES_MIN
}

/// Whether the answer contains the previous value of a key.
fn answers_value(op: &KeyOp<'_>) -> bool {
    matches!(
        op,
        KeyOp::Put { old: true, .. } | KeyOp::Expire { read: true, .. } | KeyOp::Take { .. }
    )
}

/// Whether the operation writes a value about as long as an existing value, which may have maximum length.
fn rewrites_value(op: &KeyOp<'_>) -> bool {
    matches!(
        op,
        KeyOp::Append { .. }
            | KeyOp::SetRange { .. }
            | KeyOp::SetBit { .. }
            | KeyOp::Expire { .. }
            | KeyOp::Rename { .. }
            | KeyOp::Copy { .. }
            | KeyOp::Move { .. }
    )
}

fn is_large(op: &KeyOp<'_>) -> bool {
    match op {
        KeyOp::SetRange { offset, .. } | KeyOp::SetBit { offset, .. } => *offset > 100_000,
        // After a swap, keys may have any values, and each change of a key may write a value of maximum length.
        KeyOp::Swap { .. } => true,
        _ => false,
    }
}

fn check_replies(requests: &[Request], expected: &[Option<Reply>], replies: &[Reply]) {
    assert_eq!(requests.len(), replies.len(), "each command has one reply");
    for ((request, expected), reply) in requests.iter().zip(expected).zip(replies) {
        let unlogged = || {
            matches!(request.command, Command::AddSample { .. })
                && (reply.replayed
                    || matches!(reply.outcome, Err(Refusal::SamplesFull | Refusal::KeyReused)))
        };
        assert!(
            expected.map_or_else(unlogged, |expected| expected == *reply),
            "{request:?} was answered {reply:?} instead of {expected:?}"
        );
    }
}

fn check_answers(
    ops: &KeyOps,
    expected: &[Option<KeyAnswer>],
    answers: &[KeyAnswer],
    is_held: bool,
) {
    assert_eq!(ops.len(), answers.len(), "each operation has one answer");
    for ((op, expected), answer) in ops.iter().zip(expected).zip(answers) {
        let refused = matches!(
            answer,
            KeyAnswer::Refused(KeyRefusal::BadKey | KeyRefusal::TooLarge | KeyRefusal::Busy)
        );
        let right = match expected {
            Some(expected) => model::same(expected, answer),
            None if is_held && *answer == KeyAnswer::Refused(KeyRefusal::Busy) => {
                ops.iter().any(|op| answers_value(&op))
            }
            None => refused && may_be_refused(ops),
        };
        assert!(
            right,
            "{op:?} was answered {answer:?} instead of {expected:?}, among {:?}",
            ops.iter().collect::<Vec<_>>()
        );
    }
}
