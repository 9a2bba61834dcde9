//! Becoming friends and ceasing to be.

use crate::command::{Done, Effect, Outcome, Refusal, UserRef};
use crate::facts::Txn;

pub(super) fn set(
    txn: &mut Txn<'_>,
    user: &UserRef,
    other: &UserRef,
    stands: bool,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = super::resolve_two(txn, user, other, Refusal::SelfFriend)?;
    if txn.facts().are_friends(user, other) != stands {
        txn.put_friends(user, other, stands);
        txn.count(user, |counts| super::step(&mut counts.friends, stands));
        txn.count(other, |counts| super::step(&mut counts.friends, stands));
        txn.total(|totals| {
            totals.friendships =
                if stands { totals.friendships + 1 } else { totals.friendships - 1 };
        });
        effects.push(Effect::FriendsChanged { user, other });
    }
    Ok(if stands { Done::Befriended } else { Done::Unfriended })
}
