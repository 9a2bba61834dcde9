//! Rows of polls and of scheduled posts: see [`super`].

use rows::{NameTable, PointTable, PutRows, SetTable, Value, encode};

use crate::ids::ScheduledId;
use crate::ids::{PostId, UserId};
use crate::poll::{PollChoices, PollCounts, PollId};
use crate::schedule::ScheduledPost;

/// The vote of a user in a poll; or, without choices, that there is none. The poll counts it.
pub fn vote(
    rows: &mut (impl PutRows + ?Sized),
    poll: PollId,
    user: UserId,
    choices: Option<PollChoices>,
) {
    let number = choices.map(PollChoices::number);
    rows.put_member(SetTable::PollVotes, poll.0, user.0.into(), number);
    rows.put_member(SetTable::Votes, user.0.into(), poll.0, number);
}

/// Votes of a poll.
pub fn poll_counts(rows: &mut (impl PutRows + ?Sized), poll: PollId, counts: &PollCounts) {
    let row = (counts.voters > 0).then(|| encode(counts));
    rows.put_point(PointTable::PollCounts, poll.0, row);
}

/// That the poll of a post ends then, and which user is notified of it next: first the author, who is none. Or that all are
/// notified.
pub fn poll_end(
    rows: &mut (impl PutRows + ?Sized),
    (post, ends_ms): (PostId, u64),
    next: Option<Option<u64>>,
) {
    let value = next.map(|next| next.map_or_else(Value::new, |next| encode(&next)));
    rows.put_name(NameTable::PollEnd, &poll_end_key(ends_ms, post), value);
}

pub(crate) fn poll_end_key(ends_ms: u64, post: PostId) -> Value {
    let mut bytes = Value::from_slice(&ends_ms.to_be_bytes());
    bytes.extend_from_slice(&post.0.to_be_bytes());
    bytes
}

/// Reverses [`poll_end_key`].
pub(crate) fn read_poll_end(key: &[u8]) -> Option<(u64, PostId)> {
    let (ends_ms, post) = key.split_first_chunk()?;
    Some((u64::from_be_bytes(*ends_ms), PostId(u64::from_be_bytes(post.try_into().ok()?))))
}

/// A scheduled post, and when it is due. Its pictures say that they are held for it.
pub fn scheduled(
    rows: &mut (impl PutRows + ?Sized),
    user: UserId,
    id: ScheduledId,
    post: &ScheduledPost,
) {
    rows.put_name(NameTable::Scheduled, &scheduled_key(user, id), Some(encode(post)));
    let due = due_key(post.due_ms, user, id);
    rows.put_name(NameTable::ScheduledDue, &due, Some(Value::new()));
}

pub(crate) fn remove_scheduled(
    rows: &mut (impl PutRows + ?Sized),
    user: UserId,
    id: ScheduledId,
    due_ms: u64,
) {
    rows.put_name(NameTable::Scheduled, &scheduled_key(user, id), None);
    rows.put_name(NameTable::ScheduledDue, &due_key(due_ms, user, id), None);
}

pub(crate) fn scheduled_key(user: UserId, id: ScheduledId) -> Value {
    let mut bytes = Value::from_slice(&user.0.to_be_bytes());
    bytes.extend_from_slice(&id.0.to_be_bytes());
    bytes
}

pub(crate) fn due_key(due_ms: u64, user: UserId, id: ScheduledId) -> Value {
    let mut bytes = Value::from_slice(&due_ms.to_be_bytes());
    bytes.extend_from_slice(&scheduled_key(user, id));
    bytes
}

/// Reverses [`due_key`].
pub(crate) fn read_due(key: &[u8]) -> Option<(u64, UserId, ScheduledId)> {
    let (due_ms, rest) = key.split_first_chunk()?;
    let (user, id) = rest.split_first_chunk()?;
    let id = ScheduledId(u64::from_be_bytes(id.try_into().ok()?));
    Some((u64::from_be_bytes(*due_ms), UserId(u32::from_be_bytes(*user)), id))
}
