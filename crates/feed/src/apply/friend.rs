//! Adding and removing friends.

use crate::command::{Done, Outcome};
use crate::effect::{Effect, Input};
use crate::facts::Txn;
use crate::ids::{UserId, UserRef};
use crate::limits;
use crate::refusal::Refusal;

pub(super) fn set(
    txn: &mut Txn<'_>,
    user: &UserRef,
    other: &UserRef,
    friends: bool,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = super::resolve_two(txn, user, other, Refusal::SelfFriend)?;
    if !friends {
        if end(txn, user, other) {
            effects.extend(changed(user, other));
        }
        return Ok(Done::Unfriended);
    }
    super::refuse_blocked(txn, user, other)?;
    if !txn.facts().are_friends(user, other) {
        let full = |user| txn.facts().stored_counts(user).friends >= limits::FRIENDS_MAX;
        if full(user) || full(other) {
            return Err(Refusal::TooManyFriends);
        }
        put(txn, user, other, true);
        effects.extend(changed(user, other));
    }
    Ok(Done::Befriended)
}

/// Ends a friendship; returns whether it existed.
pub(super) fn end(txn: &mut Txn<'_>, user: UserId, other: UserId) -> bool {
    let existed = txn.facts().are_friends(user, other);
    if existed {
        put(txn, user, other, false);
    }
    existed
}

/// The effects of a friendship that began or ended.
pub(super) fn changed(user: UserId, other: UserId) -> [Effect; 2] {
    [user, other].map(|user| Effect::Input { user, input: Input::Friends })
}

fn put(txn: &mut Txn<'_>, user: UserId, other: UserId, friends: bool) {
    txn.put_friends(user, other, friends);
    txn.count(user, |counts| super::step(&mut counts.friends, friends));
    txn.count(other, |counts| super::step(&mut counts.friends, friends));
    txn.total(|totals| super::step_total(&mut totals.friendships, friends));
}
