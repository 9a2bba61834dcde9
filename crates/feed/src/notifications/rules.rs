//! Clearing and dismissing notifications, muting threads, and notifications of edits.

use rows::Stamp;

use crate::done::{Done, Outcome};
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::{PostId, UserId, UserRef};
use crate::limits::{EDIT_NOTICES_MAX, MUTED_THREADS_MAX};
use crate::notifications::{NotificationId, Stored};
use crate::posts::rules::boosted;
use crate::refusal::Refusal;
use crate::users::rules::resolve;
use crate::visible::Viewer;
use crate::whole::MUTED_THREADS;

pub(crate) fn clear(txn: &mut Txn<'_>, stamp: Stamp, user: &UserRef) -> Outcome {
    let user = resolve(txn, user)?;
    txn.clear_notifications(user, stamp);
    Ok(Done::NotificationsCleared)
}

pub(crate) fn dismiss(txn: &mut Txn<'_>, user: &UserRef, id: NotificationId) -> Outcome {
    let user = resolve(txn, user)?;
    let found = Viewer::new(txn.facts(), Some(user)).notification(id);
    found.ok_or(Refusal::NotificationNotFound)?;
    txn.remove_notification(user, id.0);
    // The notification may also be a mention or a new post, whose row cannot be removed.
    if txn.facts().notice_row(user, id.0).is_some_and(|row| row.kind().is_some()) {
        txn.dismiss_beside(user, id.0);
    }
    Ok(Done::NotificationDismissed)
}

/// Mutes or unmutes the thread of a post. At the limit, a new mute replaces the earliest one.
pub(crate) fn mute_thread(txn: &mut Txn<'_>, user: &UserRef, post: PostId, on: bool) -> Outcome {
    let user = resolve(txn, user)?;
    let (id, post) = boosted(txn, post)?;
    let thread = post.thread_or(id);
    let mut threads = txn.facts().muted_threads(user);
    let before = threads.iter().position(|muted| *muted == thread);
    // A mute of a thread that is hidden by now can still be removed.
    if before.is_none() && !Viewer::new(txn.facts(), Some(user)).visible(&post) {
        return Err(Refusal::PostNotFound);
    }
    match before {
        None if on => {
            if threads.len() >= MUTED_THREADS_MAX {
                threads.remove(0);
            }
            threads.push(thread);
            txn.put_whole(&MUTED_THREADS, user, &threads);
        }
        Some(at) if !on => {
            threads.remove(at);
            txn.put_whole(&MUTED_THREADS, user, &threads);
        }
        _ => {}
    }
    Ok(Done::ThreadMuted)
}

/// Notifies some users of the last edit of a post, from the id `from` on, except those whose newest notifications
/// include an edit of the post: see [`Facts::notified_of_edit`](crate::Facts::notified_of_edit). Returns the first id
/// that is left; `None` if all are notified.
pub(crate) fn notify_of_edit(
    txn: &mut Txn<'_>,
    (stamp, edited_ms): (Stamp, u64),
    (id, from): (PostId, u64),
    effects: &mut Vec<Effect>,
) -> Option<u64> {
    let post = txn.facts().stored_post(id)?;
    let is_last = post.edited.is_some_and(|edit| edit.unix_ms() == edited_ms);
    if !is_last || txn.facts().is_being_erased(post.author) {
        return None;
    }
    let users = txn.facts().notified_of_edit(id, from);
    let last = users.last().filter(|_| users.len() >= EDIT_NOTICES_MAX);
    let next = last.map(|(last, _)| u64::from(last.0) + 1);
    for (user, posts) in users {
        let viewer = Viewer::new(txn.facts(), Some(user));
        let equal: Vec<_> = posts.iter().chain([&id]).map(|post| Stored::Edit(*post)).collect();
        if let Some(stored) = equal.first().filter(|_| user != post.author)
            && viewer.receives_updates_of(&post)
            && txn.facts().exists(user)
            && !txn.facts().is_announced(user, &equal)
        {
            txn.put_notification(user, stamp.0, *stored);
            effects.push(Effect::Notified { user });
        }
    }
    next
}

/// Notifies a user of another user's action, unless a mute or a block hides that user.
pub(crate) fn notify(
    txn: &mut Txn<'_>,
    user: UserId,
    stamp: Stamp,
    stored: Stored,
    effects: &mut Vec<Effect>,
) {
    let actor = match stored {
        Stored::Favourite(actor)
        | Stored::Boost(actor)
        | Stored::Follow(actor)
        | Stored::FollowRequest(actor) => actor,
        // These notifications come from other commands.
        Stored::Dismissed
        | Stored::Poll(_)
        | Stored::Edit(_)
        | Stored::Mention(_)
        | Stored::Quote(_) => return,
    };
    if Viewer::new(txn.facts(), Some(user)).notified_by(actor) {
        txn.put_notification(user, stamp.0, stored);
        effects.push(Effect::Notified { user });
    }
}
