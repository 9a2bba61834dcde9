//! Blocking and muting users.

use rows::Stamp;

use super::{follow, friend};
use crate::command::{Done, Outcome};
use crate::effect::{Effect, Input};
use crate::facts::Txn;
use crate::ids::{UserId, UserRef};
use crate::lifetime::MuteTime;
use crate::limits;
use crate::mute::Mute;
use crate::refusal::Refusal;

pub(super) fn block(
    txn: &mut Txn<'_>,
    user: &UserRef,
    other: &UserRef,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = super::resolve_two(txn, user, other, Refusal::SelfBlock)?;
    if txn.facts().blocks(user, other) {
        return Ok(Done::Blocked);
    }
    if txn.facts().stored_counts(user).blocks >= limits::BLOCKS_MAX {
        return Err(Refusal::TooManyBlocks);
    }
    let has_followed = follow::end(txn, user, other);
    let was_followed = follow::end(txn, other, user);
    let were_friends = !rows::has_bug("stay-friends-of-blocked") && friend::end(txn, user, other);
    txn.put_block(user, other, true);
    txn.count(user, |counts| super::step(&mut counts.blocks, true));
    effects.push(Effect::Input { user, input: Input::Hidden });
    if has_followed {
        effects.push(Effect::Follow { user, other, follows: false });
    }
    // The blocked user gets the end of a relation, and nothing else that would give the block away.
    if was_followed {
        effects.push(Effect::Follow { user: other, other: user, follows: false });
    }
    if were_friends {
        effects.extend(friend::changed(user, other));
    }
    Ok(Done::Blocked)
}

/// Follows and friendship do not come back.
pub(super) fn unblock(txn: &mut Txn<'_>, user: &UserRef, other: &UserRef) -> Outcome {
    let (user, other) = super::resolve_two(txn, user, other, Refusal::SelfBlock)?;
    if txn.facts().blocks(user, other) {
        txn.put_block(user, other, false);
        txn.count(user, |counts| super::step(&mut counts.blocks, false));
    }
    Ok(Done::Unblocked)
}

pub(super) fn mute(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (user, other): (&UserRef, &UserRef),
    mentions: bool,
    time: Option<MuteTime>,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = super::resolve_two(txn, user, other, Refusal::SelfMute)?;
    let before = txn.facts().mute(user, other);
    let mute = Mute { mentions, ends_ms: time.map(|time| stamp.unix_ms() + time.ms()) };
    if before == Some(mute) {
        return Ok(Done::Muted);
    }
    match before {
        Some(before) => txn.remove_mute(user, other, before),
        None if txn.facts().stored_counts(user).mutes >= limits::MUTES_MAX => {
            return Err(Refusal::TooManyMutes);
        }
        None => txn.count(user, |counts| super::step(&mut counts.mutes, true)),
    }
    txn.put_mute(user, other, mute);
    effects.push(Effect::Input { user, input: Input::Hidden });
    Ok(Done::Muted)
}

pub(super) fn unmute(
    txn: &mut Txn<'_>,
    user: &UserRef,
    other: &UserRef,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = super::resolve_two(txn, user, other, Refusal::SelfMute)?;
    if let Some(mute) = txn.facts().mute(user, other) {
        end(txn, (user, other), mute, effects);
    }
    Ok(Done::Unmuted)
}

/// Ends a mute whose time is over.
pub(super) fn end_mute(
    txn: &mut Txn<'_>,
    (user, other): (UserId, UserId),
    ends_ms: u64,
    effects: &mut Vec<Effect>,
) {
    let mute = txn.facts().mute(user, other).filter(|mute| mute.ends_ms == Some(ends_ms));
    if let Some(mute) = mute {
        end(txn, (user, other), mute, effects);
    }
}

fn end(txn: &mut Txn<'_>, (user, other): (UserId, UserId), mute: Mute, effects: &mut Vec<Effect>) {
    txn.remove_mute(user, other, mute);
    txn.count_hidden(user, false, |counts| &mut counts.mutes);
    effects.push(Effect::Input { user, input: Input::Hidden });
}
