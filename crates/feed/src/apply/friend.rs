//! Becoming friends and ceasing to be.

use crate::command::{Done, Outcome, UserRef};
use crate::effect::Effect;
use crate::facts::Txn;
use crate::limits;
use crate::refusal::Refusal;

pub(super) fn set(
    txn: &mut Txn<'_>,
    user: &UserRef,
    other: &UserRef,
    stands: bool,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = super::resolve_two(txn, user, other, Refusal::SelfFriend)?;
    if txn.facts().are_friends(user, other) != stands {
        let full = |user| txn.facts().counts(user).friends >= limits::FRIENDS_MAX;
        if stands && (full(user) || full(other)) {
            return Err(Refusal::TooManyFriends);
        }
        txn.put_friends(user, other, stands);
        txn.count(user, |counts| super::step(&mut counts.friends, stands));
        txn.count(other, |counts| super::step(&mut counts.friends, stands));
        txn.total(|totals| super::step_total(&mut totals.friendships, stands));
        effects.push(Effect::FriendsChanged { user, other, friends: stands });
    }
    Ok(if stands { Done::Befriended } else { Done::Unfriended })
}
