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
    follows: bool,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = super::resolve_two(txn, user, other, Refusal::SelfFollow)?;
    if txn.facts().follows(user, other) != follows {
        if follows && txn.facts().stored_counts(user).following >= limits::FOLLOWING_MAX {
            return Err(Refusal::TooManyFollows);
        }
        txn.put_follow(user, other, follows);
        txn.count(user, |counts| super::step(&mut counts.following, follows));
        txn.count(other, |counts| super::step(&mut counts.followers, follows));
        txn.total(|totals| super::step_total(&mut totals.follows, follows));
        effects.push(Effect::FollowingChanged { user, other, follows });
    }
    Ok(if follows { Done::Followed } else { Done::Unfollowed })
}
