//! Rows of polls and of scheduled posts: see [`super`].

use rows::{NameTable, PointTable, PutRows, Value, encode};

use crate::ids::{ScheduledId, UserId};
use crate::index;
use crate::poll::{PollChoices, PollCounts, PollId};
use crate::schedule::ScheduledPost;

/// Writes the vote of a user in a poll, or with `None` removes it. Does not count it.
pub fn vote(
    rows: &mut (impl PutRows + ?Sized),
    poll: PollId,
    user: UserId,
    choices: Option<PollChoices>,
) {
    let number = choices.map_or(0, PollChoices::number);
    index::set(rows, index::of_vote(poll, user.0.into(), number), choices.is_some());
}

/// Writes the counts of a poll.
pub fn poll_counts(rows: &mut (impl PutRows + ?Sized), poll: PollId, counts: &PollCounts) {
    let row = (counts.voters > 0).then(|| encode(counts));
    rows.put_point(PointTable::PollCounts, poll.0, row);
}

/// Writes a scheduled post and its due row. Does not reserve its pictures.
pub fn scheduled(
    rows: &mut (impl PutRows + ?Sized),
    user: UserId,
    id: ScheduledId,
    post: &ScheduledPost,
) {
    rows.put_name(NameTable::Scheduled, &scheduled_key(user, id), Some(encode(post)));
    index::of_scheduled(user, id, post).iter().for_each(|row| row.put(rows));
}

pub(crate) fn scheduled_key(user: UserId, id: ScheduledId) -> Value {
    let mut bytes = Value::from_slice(&user.0.to_be_bytes());
    bytes.extend_from_slice(&id.0.to_be_bytes());
    bytes
}
