//! Following and unfollowing.

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
    let (user, other) = super::resolve_two(txn, user, other, Refusal::SelfFollow)?;
    if txn.facts().follows(user, other) != stands {
        if stands && txn.facts().counts(user).following >= limits::FOLLOWING_MAX {
            return Err(Refusal::TooManyFollows);
        }
        txn.put_follow(user, other, stands);
        txn.count(user, |counts| super::step(&mut counts.following, stands));
        txn.count(other, |counts| super::step(&mut counts.followers, stands));
        txn.total(|totals| super::step_total(&mut totals.follows, stands));
        effects.push(Effect::FollowingChanged { user, other, follows: stands });
    }
    Ok(if stands { Done::Followed } else { Done::Unfollowed })
}
