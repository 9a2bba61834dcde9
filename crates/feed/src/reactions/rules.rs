//! Favourites, bookmarks, pins and boosts.

use rows::Stamp;

use crate::done::{Done, Outcome};
use crate::effect::{Act, Effect, PostChange};
use crate::facts::Txn;
use crate::ids::{PostId, UserId, UserRef};
use crate::limits::{ERASE_ROWS_MAX, PINS_MAX};
use crate::notifications::Stored;
use crate::notifications::rules::notify;
use crate::posts::rules::boosted;
use crate::posts::{self, Post, Visibility};
use crate::reactions::Reaction;
use crate::refusal::Refusal;
use crate::users::rules::resolve;
use crate::visible::Viewer;

pub(crate) fn set(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (user, id): (&UserRef, PostId),
    (reaction, on): (Reaction, bool),
    effects: &mut Vec<Effect>,
) -> Outcome {
    let user = resolve(txn, user)?;
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
        Reaction::Bookmark | Reaction::Pin | Reaction::Less => None,
    };
    let notified = notified.filter(|_| post.author != user);
    match before {
        None if on => {
            if reaction == Reaction::Boost {
                check_boost(txn, user, &post)?;
                posts::rules::boost(txn, stamp, user, (id, &post), effects);
            } else {
                if reaction == Reaction::Pin {
                    check_pin(txn, user, &post)?;
                }
                txn.put_reaction(user, id, reaction, stamp.0);
                effects.push(reacted(user, id, reaction, true));
            }
            if let Some(stored) = notified {
                notify(txn, post.author, stamp, stored, effects);
            }
        }
        Some(before) if !on && reaction == Reaction::Boost => {
            posts::rules::delete(txn, PostId(before), effects)?;
        }
        Some(before) if !on => {
            txn.remove_reaction(user, id, reaction, before);
            effects.push(reacted(user, id, reaction, false));
            if notified.is_some() {
                txn.remove_notification(post.author, before);
            }
        }
        _ => {}
    }
    Ok(Done::Reacted)
}

fn reacted(user: UserId, post: PostId, reaction: Reaction, on: bool) -> Effect {
    Effect::Act { user, act: Act::Reacted { post, reaction, on } }
}

fn check_boost(txn: &Txn<'_>, user: UserId, post: &Post) -> Result<(), Refusal> {
    if !post.visibility.allows_boost(post.author == user) {
        return Err(Refusal::BoostNotOpen);
    }
    posts::rules::check_count(txn, user)
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
pub(crate) fn sweep(
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
