//! Following and unfollowing.

use rows::{Stamp, WORK_PER_ROW};

use crate::command::{Done, Outcome};
use crate::effect::Effect;
use crate::facts::Txn;
use crate::ids::{UserId, UserRef};
use crate::limits;
use crate::notification::Stored;
use crate::refusal::Refusal;

pub(super) fn set(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (user, other): (&UserRef, &UserRef),
    follows: bool,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = super::resolve_two(txn, user, other, Refusal::SelfFollow)?;
    if !follows {
        if end(txn, user, other) {
            effects.push(Effect::FollowingChanged { user, other, follows });
        }
        return Ok(Done::Unfollowed);
    }
    super::refuse_blocked(txn, user, other)?;
    if !txn.facts().follows(user, other) {
        if txn.facts().stored_counts(user).following >= limits::FOLLOWING_MAX {
            return Err(Refusal::TooManyFollows);
        }
        put(txn, user, other, true);
        effects.push(Effect::FollowingChanged { user, other, follows });
        if !txn.facts().is_follow_announced(other, user) {
            super::reaction::notify(txn, other, stamp, Stored::Follow(user), effects);
        }
    }
    Ok(Done::Followed)
}

/// Ends a follow; returns whether it existed.
pub(super) fn end(txn: &mut Txn<'_>, user: UserId, other: UserId) -> bool {
    let existed = txn.facts().follows(user, other);
    if existed {
        put(txn, user, other, false);
    }
    existed
}

fn put(txn: &mut Txn<'_>, user: UserId, other: UserId, follows: bool) {
    txn.put_follow(user, other, follows);
    txn.count(user, |counts| super::step(&mut counts.following, follows));
    txn.count(other, |counts| super::step(&mut counts.followers, follows));
    txn.total(|totals| super::step_total(&mut totals.follows, follows));
}

/// Follows all of `others`, or none of them if one is refused, and notifies none of them. Those who are followed already, or named
/// twice, stay as they are.
pub(super) fn many(
    txn: &mut Txn<'_>,
    user: &UserRef,
    others: &[UserRef],
    effects: &mut Vec<Effect>,
) -> Outcome {
    let user = super::resolve(txn, user)?;
    let others = others.iter().map(|other| super::resolve(txn, other));
    let mut others: Vec<UserId> = others.collect::<Result<_, _>>()?;
    if others.contains(&user) {
        return Err(Refusal::SelfFollow);
    }
    others.sort_unstable();
    others.dedup();
    others.iter().try_for_each(|other| super::refuse_blocked(txn, user, *other))?;
    let following = txn.facts().stored_counts(user).following;
    if following > 0 {
        others.retain(|other| !txn.facts().follows(user, *other));
    }
    if following as usize + others.len() > limits::FOLLOWING_MAX as usize {
        return Err(Refusal::TooManyFollows);
    }
    txn.put_follows(user, &others);
    // As one of many, a follow takes half of the time of a separate command.
    txn.add_work(others.len() * WORK_PER_ROW / 2);
    if !others.is_empty() {
        effects.push(Effect::FollowedMany { user });
    }
    Ok(Done::Followed)
}
