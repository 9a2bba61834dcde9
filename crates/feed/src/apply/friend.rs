//! Adding and removing friends.

use crate::command::{Done, Outcome};
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::UserRef;
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
    if txn.facts().are_friends(user, other) != friends {
        let full = |user| txn.facts().stored_counts(user).friends >= limits::FRIENDS_MAX;
        if friends && (full(user) || full(other)) {
            return Err(Refusal::TooManyFriends);
        }
        txn.put_friends(user, other, friends);
        txn.count(user, |counts| super::step(&mut counts.friends, friends));
        txn.count(other, |counts| super::step(&mut counts.friends, friends));
        txn.total(|totals| super::step_total(&mut totals.friendships, friends));
        effects.push(Effect::FriendsChanged { user, other, friends });
    }
    Ok(if friends { Done::Befriended } else { Done::Unfriended })
}
