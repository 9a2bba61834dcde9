//! Polls: votes, and the notifications at the end.

use rows::Stamp;

use crate::done::{Done, Outcome};
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::{PostId, UserId, UserRef};
use crate::limits::POLL_NOTICES_MAX;
use crate::notifications::Stored;
use crate::polls::PollChoices;
use crate::posts::Post;
use crate::refusal::Refusal;
use crate::users::rules::resolve;
use crate::visible::Viewer;

pub(crate) fn vote(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (user, post): (&UserRef, PostId),
    choices: PollChoices,
) -> Outcome {
    let user = resolve(txn, user)?;
    let may_see = |post: &Post| Viewer::new(txn.facts(), Some(user)).visible(post);
    let post = txn.facts().post(post).filter(may_see).ok_or(Refusal::PollNotFound)?;
    let poll = post.poll.ok_or(Refusal::PollNotFound)?;
    if post.author == user {
        return Err(Refusal::OwnPoll);
    }
    if poll.is_over(stamp.unix_ms()) {
        return Err(Refusal::PollEnded);
    }
    let before = txn.facts().vote(poll.id, user).filter(|_| !rows::has_bug("vote-twice"));
    if before.is_some_and(|before| !poll.multiple || before.has_any_of(choices)) {
        return Err(Refusal::AlreadyVoted);
    }
    choices.check(&poll)?;
    txn.put_vote(poll.id, user, before, choices);
    Ok(Done::Voted)
}

/// Notifies the author of an ended poll, then its voters in the order of their ids, from `from` on. Returns the first
/// user who may be a voter to notify; `None` if all are notified.
pub(crate) fn end(
    txn: &mut Txn<'_>,
    (stamp, ends_ms): (Stamp, u64),
    (id, from): (PostId, u64),
    effects: &mut Vec<Effect>,
) -> Option<u64> {
    let post = txn.facts().stored_post(id)?;
    let poll = post.poll.as_ref().filter(|poll| poll.ends_ms == ends_ms)?;
    if txn.facts().is_being_erased(post.author) {
        // The polls of a deleted author are removed later; nobody is notified of them.
        return None;
    }
    if from == 0 {
        notify(txn, stamp, post.author, (id, &post), effects);
    }
    let voters = txn.facts().poll_votes(poll.id, from, POLL_NOTICES_MAX);
    for (voter, _) in &voters {
        notify(txn, stamp, *voter, (id, &post), effects);
    }
    let may_be_more = voters.len() == POLL_NOTICES_MAX && !rows::has_bug("notify-first-voters");
    let last = voters.last().filter(|_| may_be_more);
    last.map(|(last, _)| u64::from(last.0) + 1)
}

/// Notifies a user of the end of a poll, unless they are deleted, or a block or a mute hides it. A user can have one
/// notification per stamp, so each command notifies of one poll only.
fn notify(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    user: UserId,
    (id, post): (PostId, &Post),
    effects: &mut Vec<Effect>,
) {
    let viewer = Viewer::new(txn.facts(), Some(user));
    if txn.facts().exists(user) && viewer.visible(post) && viewer.notified_by(post.author) {
        txn.put_notification(user, stamp.0, Stored::Poll(id));
        effects.push(Effect::Notified { user });
    }
}
