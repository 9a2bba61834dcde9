//! Favourites, bookmarks, pins and boosts.

use rows::Stamp;

use crate::command::{Done, Outcome};
use crate::effect::{Effect, PostChange};
use crate::facts::Txn;
use crate::ids::{PostId, UserId, UserRef};
use crate::limits::{ERASE_ROWS_MAX, PINS_MAX};
use crate::notification::Stored;
use crate::post::Visibility;
use crate::reaction::Reaction;
use crate::records::Post;
use crate::refusal::Refusal;
use crate::visible::Viewer;

pub(super) fn set(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (user, id): (&UserRef, PostId),
    (reaction, on): (Reaction, bool),
    effects: &mut Vec<Effect>,
) -> Outcome {
    let user = super::resolve(txn, user)?;
    let (id, post) = boosted(txn, id)?;
    let before = txn.facts().reaction(user, id, reaction);
    // A reaction to a post that is hidden by now can still be removed.
    let may_see = || Viewer::new(txn.facts(), Some(user)).visible(&post);
    if before.is_none() && !may_see() {
        return Err(Refusal::PostNotFound);
    }
    let notified = match reaction {
        Reaction::Favourite => Some(Stored::Favourite(user)),
        Reaction::Boost => Some(Stored::Boost(user)),
        Reaction::Bookmark | Reaction::Pin => None,
    };
    let notified = notified.filter(|_| post.author != user);
    match before {
        None if on => {
            if reaction == Reaction::Boost {
                check_boost(txn, user, &post)?;
                super::post::boost(txn, stamp, user, (id, &post), effects);
            } else {
                if reaction == Reaction::Pin {
                    check_pin(txn, user, &post)?;
                }
                txn.put_reaction(user, id, reaction, stamp.0);
            }
            if let Some(stored) = notified {
                notify(txn, post.author, stamp, stored, effects);
            }
        }
        Some(before) if !on && reaction == Reaction::Boost => {
            super::post::delete(txn, PostId(before), effects)?;
        }
        Some(before) if !on => {
            txn.remove_reaction(user, id, reaction, before);
            if notified.is_some() {
                txn.remove_notification(post.author, before);
            }
        }
        _ => {}
    }
    Ok(Done::Reacted)
}

/// Finds a post, or the boosted post if it is a boost.
pub(super) fn boosted(txn: &Txn<'_>, id: PostId) -> Result<(PostId, Post), Refusal> {
    let post = txn.facts().post(id).ok_or(Refusal::PostNotFound)?;
    let boosted = post.boosted_or(id);
    if boosted == id {
        return Ok((id, post));
    }
    Ok((boosted, txn.facts().post(boosted).ok_or(Refusal::PostNotFound)?))
}

fn check_boost(txn: &Txn<'_>, user: UserId, post: &Post) -> Result<(), Refusal> {
    if !post.visibility.allows_boost(post.author == user) {
        return Err(Refusal::BoostNotOpen);
    }
    super::post::check_count(txn, user)
}

/// Notifies a user of another user's action, unless a mute or a block hides that user.
pub(super) fn notify(
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
        // Other commands notify of these.
        Stored::Dismissed | Stored::Poll(_) | Stored::Edit(_) | Stored::Mention(_) => return,
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

/// Removes some reactions to a deleted post, including boosts, from the item `from` on. Returns the first item that is
/// left.
pub(super) fn sweep(
    txn: &mut Txn<'_>,
    (post, from): (PostId, u64),
    effects: &mut Vec<Effect>,
) -> Option<u64> {
    let (boosts, next) = txn.sweep_reactions(post, from, ERASE_ROWS_MAX);
    for (author, (post, listed)) in boosts {
        // Posts of a deleted user are not counted any more.
        if !txn.facts().is_deleted(author) {
            txn.count_post(author, listed.visibility(), false);
        }
        let (users, change) = (None, PostChange::Deleted);
        effects.push(Effect::Post { post, author, listed, users, change });
    }
    next
}
