//! Notifications that are cleared or dismissed, threads that are muted, and notices of edits.

use rows::Stamp;

use crate::command::{Done, Outcome};
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::{PostId, UserRef};
use crate::limits::{EDIT_NOTICES_MAX, MUTED_THREADS_MAX};
use crate::notification::{Notice, NotificationId, Stored};
use crate::refusal::Refusal;
use crate::visible::Viewer;

pub(super) fn clear(txn: &mut Txn<'_>, stamp: Stamp, user: &UserRef) -> Outcome {
    let user = super::resolve(txn, user)?;
    txn.clear_notifications(user, stamp);
    Ok(Done::NotificationsCleared)
}

pub(super) fn dismiss(txn: &mut Txn<'_>, user: &UserRef, id: NotificationId) -> Outcome {
    let user = super::resolve(txn, user)?;
    let found = Viewer::new(txn.facts(), Some(user)).notification(id);
    match found.ok_or(Refusal::NotificationNotFound)?.notice {
        Notice::Mention(_) | Notice::Post(_) => txn.dismiss_unstored(user, id.0),
        Notice::Favourite(_)
        | Notice::Boost(_)
        | Notice::Follow
        | Notice::FollowRequest
        | Notice::Poll(_)
        | Notice::Edit(_) => txn.remove_notification(user, id.0),
    }
    Ok(Done::NotificationDismissed)
}

/// Mutes the thread of a post, or ends that. The thread that was muted first is forgotten when there are too many.
pub(super) fn mute_thread(txn: &mut Txn<'_>, user: &UserRef, post: PostId, on: bool) -> Outcome {
    let user = super::resolve(txn, user)?;
    let (id, post) = super::reaction::boosted(txn, post)?;
    let thread = post.thread_or(id);
    let mut threads = txn.facts().muted_threads(user);
    let before = threads.iter().position(|muted| *muted == thread);
    // The mute of a thread that is hidden since then can be ended.
    if before.is_none() && !Viewer::new(txn.facts(), Some(user)).visible(&post) {
        return Err(Refusal::PostNotFound);
    }
    match before {
        None if on => {
            if threads.len() >= MUTED_THREADS_MAX {
                threads.remove(0);
            }
            threads.push(thread);
            txn.put_muted_threads(user, &threads);
        }
        Some(at) if !on => {
            threads.remove(at);
            txn.put_muted_threads(user, &threads);
        }
        _ => {}
    }
    Ok(Done::ThreadMuted)
}

/// Notifies some of those who boosted a post of its last edit, in the order of their ids. The facts have how far it is, so
/// a command that was sent twice notifies nobody twice.
pub(super) fn notify_of_edit(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    id: PostId,
    effects: &mut Vec<Effect>,
) -> Done {
    let done = Done::EditNotified { more: false };
    let Some(post) = txn.facts().stored_post(id) else { return done };
    let next = txn.facts().edit_notified_up_to(id, &post);
    let (Some(edit), Some(next)) = (post.edited, next) else { return done };
    if txn.facts().is_hidden(post.author) {
        txn.put_edit_notices((edit, id), None);
        return done;
    }
    let users = txn.facts().boosted_from(id, next);
    for user in users.iter().copied().filter(|user| *user != post.author) {
        let viewer = Viewer::new(txn.facts(), Some(user));
        let is_notified = viewer.visible(&post) && viewer.notified_by(post.author);
        if txn.facts().exists(user) && is_notified {
            txn.put_notification(user, stamp.0, Stored::Edit(id));
            effects.push(Effect::Notified { user });
        }
    }
    let last = users.last().filter(|_| users.len() >= EDIT_NOTICES_MAX);
    let next = last.map(|last| u64::from(last.0) + 1);
    txn.put_edit_notices((edit, id), next);
    Done::EditNotified { more: next.is_some() }
}
