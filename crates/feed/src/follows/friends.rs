//! Adding and removing friends.

use crate::done::{Done, Outcome};
use crate::effect::{Effect, Input};
use crate::facts::Txn;
use crate::follows::rules::refuse_blocked;
use crate::ids::{UserId, UserRef};
use crate::refusal::Refusal;
use crate::relation::FRIENDS;
use crate::users::rules::resolve_two;

pub(crate) fn set(
    txn: &mut Txn<'_>,
    user: &UserRef,
    other: &UserRef,
    friends: bool,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = resolve_two(txn, user, other, Refusal::SelfFriend)?;
    if !friends {
        if txn.end(&FRIENDS, user, other) {
            effects.extend(changed(user, other));
        }
        return Ok(Done::Unfriended);
    }
    refuse_blocked(txn, user, other)?;
    if !txn.facts().are_friends(user, other) {
        txn.refuse_full(&FRIENDS, user)?;
        txn.refuse_full(&FRIENDS, other)?;
        txn.relate(&FRIENDS, user, other, 0);
        effects.extend(changed(user, other));
    }
    Ok(Done::Befriended)
}

/// Effects of the beginning or end of a friendship.
pub(crate) fn changed(user: UserId, other: UserId) -> [Effect; 2] {
    [user, other].map(|user| Effect::Input { user, input: Input::Friends })
}
