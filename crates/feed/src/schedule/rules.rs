//! Scheduling posts, and publishing them when they are due.

use rows::Stamp;

use crate::done::{Done, Outcome};
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::{ScheduledId, UserId, UserRef};
use crate::limits::SCHEDULED_MAX;
use crate::posts;
use crate::refusal::Refusal;
use crate::schedule::{ScheduleCommand, ScheduleDone, ScheduledPost, is_ahead};
use crate::users::rules::resolve;

pub(crate) fn apply(txn: &mut Txn<'_>, stamp: Stamp, command: &ScheduleCommand) -> Outcome {
    let done = match command {
        ScheduleCommand::Create(new) => ScheduleDone::Saved(create(txn, stamp, new)?),
        ScheduleCommand::Move { user, id, due_ms } => {
            let (user, before) = find(txn, user, *id)?;
            if !is_ahead(*due_ms, stamp.unix_ms()) {
                return Err(Refusal::BadScheduledTime);
            }
            let after = ScheduledPost { due_ms: *due_ms, ..before.clone() };
            txn.move_scheduled((user, *id), (&before, &after));
            ScheduleDone::Saved(*id)
        }
        ScheduleCommand::Cancel { user, id } => {
            let (user, post) = find(txn, user, *id)?;
            txn.remove_scheduled(user, *id, &post);
            txn.release_media(&post.draft.content.media, stamp);
            ScheduleDone::Cancelled
        }
    };
    Ok(Done::Schedule(done))
}

fn find(
    txn: &Txn<'_>,
    user: &UserRef,
    id: ScheduledId,
) -> Result<(UserId, ScheduledPost), Refusal> {
    let user = resolve(txn, user)?;
    let found = txn.facts().scheduled(user, id).ok_or(Refusal::ScheduledNotFound)?;
    Ok((user, found))
}

fn create(txn: &mut Txn<'_>, stamp: Stamp, new: &ScheduledPost) -> Result<ScheduledId, Refusal> {
    if !is_ahead(new.due_ms, stamp.unix_ms()) {
        return Err(Refusal::BadScheduledTime);
    }
    let author = posts::rules::check(txn, &new.draft, &[])?.author;
    if txn.facts().scheduled_of(author, ScheduledId(0), SCHEDULED_MAX).len() >= SCHEDULED_MAX {
        return Err(Refusal::TooManyScheduled);
    }
    let mut post = new.clone();
    post.draft.author = UserRef::Id(author);
    let id = ScheduledId(stamp.0);
    txn.put_scheduled(author, id, &post);
    Ok(id)
}

/// Publishes a due post as a post of this moment. Removes it if its author may no longer publish it, because nobody
/// waits for an answer, and releases its pictures as a cancellation does.
pub(crate) fn publish(
    txn: &mut Txn<'_>,
    (stamp, due_ms): (Stamp, u64),
    (user, id): (UserId, ScheduledId),
    effects: &mut Vec<Effect>,
) {
    let scheduled = txn.facts().scheduled(user, id).filter(|post| post.due_ms == due_ms);
    let Some(post) = scheduled else { return };
    txn.remove_scheduled(user, id, &post);
    let draft = post.draft;
    let is_active = txn.facts().is_active(user);
    // The pictures of a deleted user stay unchanged, and are removed with the user.
    let exists = txn.facts().exists(user);
    let published = exists
        && is_active
        && posts::rules::publish(txn, stamp, (&draft, &draft.content.media), effects).is_ok();
    if exists && !published {
        txn.release_media(&draft.content.media, stamp);
    }
}
