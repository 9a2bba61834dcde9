//! Favourites, bookmarks and pins; notifications that are cleared or dismissed.

use rows::Stamp;

use crate::command::{Done, Outcome};
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::{PostId, UserId, UserRef};
use crate::limits::{ERASE_ROWS_MAX, PINS_MAX};
use crate::notification::{Notice, NotificationId, Stored};
use crate::post::Visibility;
use crate::reaction::Reaction;
use crate::records::Post;
use crate::refusal::Refusal;
use crate::visible::Viewer;

/// Rows of a reaction that is swept.
const REACTION_ROWS: usize = 2;

pub(super) fn set(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (user, id): (&UserRef, PostId),
    (reaction, on): (Reaction, bool),
    effects: &mut Vec<Effect>,
) -> Outcome {
    let user = super::resolve(txn, user)?;
    let post = txn.facts().post(id).ok_or(Refusal::PostNotFound)?;
    let before = txn.facts().reaction(user, id, reaction);
    // A reaction to a post that is hidden since then can be ended.
    let may_see = || Viewer::new(txn.facts(), Some(user)).visible(&post);
    if before.is_none() && !may_see() {
        return Err(Refusal::PostNotFound);
    }
    let is_notified = reaction == Reaction::Favourite && post.author != user;
    match before {
        None if on => {
            if reaction == Reaction::Pin {
                check_pin(txn, user, &post)?;
            }
            txn.put_reaction(user, id, reaction, stamp.0);
            if is_notified {
                notify(txn, post.author, stamp, Stored::Favourite(user), effects);
            }
        }
        Some(before) if !on => {
            txn.remove_reaction(user, id, reaction, before);
            if is_notified {
                txn.remove_notification(post.author, before);
            }
        }
        _ => {}
    }
    Ok(Done::Reacted)
}

/// Notifies a user of what another one did, unless a mute or a block hides what that one does.
pub(super) fn notify(
    txn: &mut Txn<'_>,
    user: UserId,
    stamp: Stamp,
    stored: Stored,
    effects: &mut Vec<Effect>,
) {
    let (Stored::Favourite(actor) | Stored::Follow(actor) | Stored::FollowRequest(actor)) = stored
    else {
        return;
    };
    if Viewer::new(txn.facts(), Some(user)).notified_by(actor) {
        txn.put_notification(user, stamp.0, stored);
        effects.push(Effect::Notified { user });
    }
}

fn check_pin(txn: &Txn<'_>, user: UserId, post: &Post) -> Result<(), Refusal> {
    if post.author != user {
        return Err(Refusal::PinNotOwn);
    }
    if post.visibility == Visibility::Direct {
        return Err(Refusal::PinDirect);
    }
    if txn.facts().pins(user).len() >= PINS_MAX {
        return Err(Refusal::TooManyPins);
    }
    Ok(())
}

/// Removes some reactions to a deleted post.
pub(super) fn sweep(txn: &mut Txn<'_>, post: PostId, from: u64) -> Done {
    if txn.facts().is_swept(post) {
        txn.sweep_reactions(post, from, ERASE_ROWS_MAX / REACTION_ROWS);
    }
    Done::ReactionsSwept
}

pub(super) fn clear_notifications(txn: &mut Txn<'_>, stamp: Stamp, user: &UserRef) -> Outcome {
    let user = super::resolve(txn, user)?;
    txn.clear_notifications(user, stamp);
    Ok(Done::NotificationsCleared)
}

pub(super) fn dismiss_notification(
    txn: &mut Txn<'_>,
    user: &UserRef,
    id: NotificationId,
) -> Outcome {
    let user = super::resolve(txn, user)?;
    let found = Viewer::new(txn.facts(), Some(user)).notification(id);
    match found.ok_or(Refusal::NotificationNotFound)?.notice {
        Notice::Mention(_) => txn.dismiss_mention(user, id.0),
        Notice::Favourite(_) | Notice::Follow | Notice::FollowRequest => {
            txn.remove_notification(user, id.0);
        }
    }
    Ok(Done::NotificationDismissed)
}
