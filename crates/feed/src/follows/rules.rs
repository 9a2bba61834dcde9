//! Following and unfollowing, and requests to follow locked users.

use rows::{Stamp, WORK_PER_ROW};

use crate::done::{Done, Outcome};
use crate::effect::{Effect, Input, Tie};
use crate::facts::Txn;
use crate::follows::follow_options::FollowWith;
use crate::ids::{UserId, UserRef};
use crate::limits;
use crate::notifications::{self, Stored};
use crate::refusal::Refusal;
use crate::relation::{FOLLOWS, REQUESTS};
use crate::users::rules::{resolve, resolve_other, resolve_two};
use crate::whole::FOLLOW_OPTIONS;

pub(crate) fn set(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (user, other): (&UserRef, &UserRef),
    follows: bool,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = resolve_two(txn, user, other, Refusal::SelfFollow)?;
    if !follows {
        txn.end_with_effects(&REQUESTS, (user, other), effects);
        txn.end_with_effects(&FOLLOWS, (user, other), effects);
        return Ok(Done::Unfollowed);
    }
    refuse_blocked(txn, user, other)?;
    if txn.facts().follows(user, other) {
        return Ok(Done::Followed);
    }
    let (is_locked, asks) = (txn.facts().is_locked(other), txn.facts().requests(user, other));
    if is_locked && asks {
        return Ok(Done::FollowRequested);
    }
    let counts = txn.facts().stored_counts(user);
    if !asks && counts.following + counts.requested >= limits::FOLLOWING_MAX {
        return Err(Refusal::TooManyFollows);
    }
    let stored = match is_locked {
        true => {
            txn.relate(&REQUESTS, user, other, 0);
            Stored::FollowRequest(user)
        }
        false => {
            if asks {
                txn.unrelate(&REQUESTS, user, other);
            }
            txn.relate(&FOLLOWS, user, other, 0);
            effects.push(Effect::Follow { user, other, follows });
            Stored::Follow(user)
        }
    };
    announce(txn, stamp, other, stored, effects);
    Ok(if is_locked { Done::FollowRequested } else { Done::Followed })
}

/// Follows a user or sends a follow request, and sets options of the follow.
pub(crate) fn set_with(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    new: &FollowWith,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = resolve_two(txn, &new.user, &new.other, Refusal::SelfFollow)?;
    let mut all = txn.facts().all_follow_options(user);
    let before = txn.facts().follow_options(user, other);
    let options = new.applied_to(before, stamp);
    if options == before {
        return set(txn, stamp, (&new.user, &new.other), true, effects);
    }
    options.put_among(&mut all, other)?;
    let followed = txn.facts().follows(user, other);
    let done = set(txn, stamp, (&new.user, &new.other), true, effects)?;
    txn.put_whole(&FOLLOW_OPTIONS, user, &all);
    if followed && options.hides_boosts != before.hides_boosts {
        effects.push(Effect::Input { user, input: Input::Hidden });
    }
    Ok(done)
}

/// Accepts or rejects the request of `other` to follow `user`. Accepting notifies `user` of the follow.
pub(crate) fn answer(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (user, other): (&UserRef, &UserRef),
    accept: bool,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = resolve_two(txn, user, other, Refusal::RequestNotFound)?;
    if !txn.facts().requests(other, user) {
        return Err(Refusal::RequestNotFound);
    }
    if !accept {
        txn.end(&REQUESTS, other, user);
        return Ok(Done::RequestAnswered);
    }
    txn.unrelate(&REQUESTS, other, user);
    if !txn.facts().follows(other, user) {
        txn.relate(&FOLLOWS, other, user, 0);
        effects.push(Effect::Follow { user: other, other: user, follows: true });
        announce(txn, stamp, user, Stored::Follow(other), effects);
    }
    Ok(Done::RequestAnswered)
}

/// Notifies a user of a follow or follow request, unless their newest notifications include it.
fn announce(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    user: UserId,
    stored: Stored,
    effects: &mut Vec<Effect>,
) {
    if !txn.facts().is_announced(user, &[stored]) {
        notifications::rules::notify(txn, user, stamp, stored, effects);
    }
}

/// Follows all of `others`, or none if one is refused, without notifications. Users who are followed already, or named
/// twice, are skipped.
pub(crate) fn many(
    txn: &mut Txn<'_>,
    user: &UserRef,
    others: &[UserRef],
    effects: &mut Vec<Effect>,
) -> Outcome {
    let user = resolve(txn, user)?;
    let others = others.iter().map(|other| resolve_other(txn, other));
    let mut others: Vec<UserId> = others.collect::<Result<_, _>>()?;
    if others.contains(&user) {
        return Err(Refusal::SelfFollow);
    }
    others.sort_unstable();
    others.dedup();
    others.iter().try_for_each(|other| refuse_blocked(txn, user, *other))?;
    let counts = txn.facts().stored_counts(user);
    if counts.following > 0 {
        others.retain(|other| !txn.facts().follows(user, *other));
    }
    let has_asked = |other: &UserId| counts.requested > 0 && txn.facts().requests(user, *other);
    let (mut locked, open): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|other| txn.facts().is_locked(*other));
    locked.retain(|other| !has_asked(other));
    // These users were locked when `user` asked to follow, and no longer are.
    let asked: Vec<_> = open.iter().copied().filter(has_asked).collect();
    let new = locked.len() + open.len() - asked.len();
    if (counts.following + counts.requested) as usize + new > limits::FOLLOWING_MAX as usize {
        return Err(Refusal::TooManyFollows);
    }
    asked.iter().for_each(|other| txn.unrelate(&REQUESTS, user, *other));
    txn.put_follows(user, &open);
    locked.iter().for_each(|other| txn.relate(&REQUESTS, user, *other, 0));
    // A follow among many takes half the time of a separate command.
    txn.add_work(open.len() * WORK_PER_ROW / 2);
    if !open.is_empty() {
        effects.push(Effect::Input { user, input: Input::Follows });
        effects.extend(open.iter().map(|other| Effect::tie(user, *other, Tie::Follow, true)));
    }
    Ok(Done::Followed)
}

/// Refuses a relation between two users if one blocks the other. To a blocked user, the blocking user does not exist.
pub(crate) fn refuse_blocked(txn: &Txn<'_>, user: UserId, other: UserId) -> Result<(), Refusal> {
    if txn.facts().blocks(other, user) {
        return Err(Refusal::OtherNotFound);
    }
    if txn.facts().blocks(user, other) { Err(Refusal::Blocked) } else { Ok(()) }
}
