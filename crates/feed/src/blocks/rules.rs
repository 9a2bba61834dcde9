//! Blocking and muting users, and reads of blocks and mutes.

use rows::{Rows, Stamp};

use crate::blocks::{Mute, MuteTime};
use crate::done::{Done, Outcome};
use crate::effect::{Effect, Input, Tie};
use crate::facts::{Facts, Txn};
use crate::ids::{UserId, UserRef};
use crate::refusal::Refusal;
use crate::relation::{BLOCKS, MUTES, RELATIONS, Relation};
use crate::users::rules::resolve_two;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Whether `user` blocks `other`.
    #[must_use]
    pub fn blocks(&self, user: UserId, other: UserId) -> bool {
        self.rows.totals().blocks > 0 && self.related(&BLOCKS, user, other).is_some()
    }

    /// Whether either user blocks the other.
    #[must_use]
    pub fn is_blocked_between(&self, user: UserId, other: UserId) -> bool {
        self.blocks(user, other) || self.blocks(other, user)
    }

    /// The mute of `other` by `user`, if it exists.
    #[must_use]
    pub fn mute(&self, user: UserId, other: UserId) -> Option<Mute> {
        self.related(&MUTES, user, other).map(Mute::of_number)
    }
}

pub(crate) fn block(
    txn: &mut Txn<'_>,
    user: &UserRef,
    other: &UserRef,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = resolve_two(txn, user, other, Refusal::SelfBlock)?;
    if txn.facts().blocks(user, other) {
        return Ok(Done::Blocked);
    }
    txn.refuse_full(&BLOCKS, user)?;
    effects.push(Effect::Input { user, input: Input::Hidden });
    let stays = |of: &Relation| of.is_mutual() && rows::has_bug("stay-friends-of-blocked");
    // The blocked user receives the effects of ended relations, which do not reveal the block.
    for relation in RELATIONS.into_iter().filter(|of| !of.is_across_blocks && !stays(of)) {
        txn.end_with_effects(relation, (user, other), effects);
        txn.end_with_effects(relation, (other, user), effects);
    }
    txn.relate(&BLOCKS, user, other, 0);
    effects.push(Effect::tie(user, other, Tie::Block, true));
    Ok(Done::Blocked)
}

/// Unblocks a user. Does not restore follows and friendship.
pub(crate) fn unblock(
    txn: &mut Txn<'_>,
    user: &UserRef,
    other: &UserRef,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = resolve_two(txn, user, other, Refusal::SelfBlock)?;
    txn.end_with_effects(&BLOCKS, (user, other), effects);
    Ok(Done::Unblocked)
}

pub(crate) fn mute(
    txn: &mut Txn<'_>,
    stamp: Stamp,
    (user, other): (&UserRef, &UserRef),
    mentions: bool,
    time: Option<MuteTime>,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = resolve_two(txn, user, other, Refusal::SelfMute)?;
    let before = txn.facts().mute(user, other);
    let mute = Mute { mentions, ends_ms: time.map(|time| stamp.unix_ms() + time.ms()) };
    if before == Some(mute) {
        return Ok(Done::Muted);
    }
    if !txn.end(&MUTES, user, other) {
        txn.refuse_full(&MUTES, user)?;
    }
    txn.relate(&MUTES, user, other, mute.number());
    effects.push(Effect::Input { user, input: Input::Hidden });
    effects.push(Effect::tie(user, other, Tie::Mute, true));
    Ok(Done::Muted)
}

pub(crate) fn unmute(
    txn: &mut Txn<'_>,
    user: &UserRef,
    other: &UserRef,
    effects: &mut Vec<Effect>,
) -> Outcome {
    let (user, other) = resolve_two(txn, user, other, Refusal::SelfMute)?;
    txn.end_with_effects(&MUTES, (user, other), effects);
    Ok(Done::Unmuted)
}

/// Ends a mute whose time is over.
pub(crate) fn end_mute(
    txn: &mut Txn<'_>,
    (user, other): (UserId, UserId),
    ends_ms: u64,
    effects: &mut Vec<Effect>,
) {
    if txn.facts().mute(user, other).and_then(|mute| mute.ends_ms) == Some(ends_ms) {
        txn.end_with_effects(&MUTES, (user, other), effects);
    }
}
