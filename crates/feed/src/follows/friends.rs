//! Adding and removing friends.

use crate::done::{Done, Outcome};
use crate::effect::{Effect, Input, Tie};
use crate::facts::Txn;
use crate::follows::rules::refuse_blocked;
use crate::ids::UserRef;
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
        txn.end_with_effects(&FRIENDS, (user, other), effects);
        return Ok(Done::Unfriended);
    }
    refuse_blocked(txn, user, other)?;
    if !txn.facts().are_friends(user, other) {
        txn.refuse_full(&FRIENDS, user)?;
        txn.refuse_full(&FRIENDS, other)?;
        txn.relate(&FRIENDS, user, other, 0);
        effects.extend([user, other].map(|user| Effect::Input { user, input: Input::Friends }));
        effects.push(Effect::tie(user, other, Tie::Friend, true));
    }
    Ok(Done::Befriended)
}
