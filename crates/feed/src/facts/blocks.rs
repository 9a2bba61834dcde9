//! Facts about blocks and mutes.
//!
//! **Invariant:** no follow and no friendship exists between two users of whom one blocks the other.

use rows::{Rows, SetTable, Span};

use super::{Facts, Txn, step, step_total};
use crate::ids::UserId;
use crate::mute::Mute;
use crate::records::Counts;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Whether `user` blocks `other`.
    #[must_use]
    pub fn blocks(&self, user: UserId, other: UserId) -> bool {
        self.rows.totals().blocks > 0
            && self.rows.member(SetTable::Blocks, user.0.into(), other.0.into()).is_some()
    }

    /// Whether one of the two blocks the other.
    #[must_use]
    pub fn is_blocked_between(&self, user: UserId, other: UserId) -> bool {
        self.blocks(user, other) || self.blocks(other, user)
    }

    /// The mute of `other` by `user`.
    #[must_use]
    pub fn mute(&self, user: UserId, other: UserId) -> Option<Mute> {
        let number = self.rows.member(SetTable::Mutes, user.0.into(), other.0.into());
        number.map(Mute::of_number)
    }

    /// Whether `table` has any user for `user`.
    pub(crate) fn has_users_in(&self, table: SetTable, user: UserId) -> bool {
        let one = Span { limit: 1, ..Span::ALL };
        !self.rows.members(table, user.0.into(), one).is_empty()
    }
}

impl Txn<'_> {
    /// Stores or removes (`blocks`) that `user` blocks `other`, and counts it.
    pub fn put_block(&mut self, user: UserId, other: UserId, blocks: bool) {
        write::block(self.rows, user, other, blocks);
        self.total(|totals| step_total(&mut totals.blocks, blocks));
    }

    /// Stores that `user` mutes `other`, whom they do not mute, and counts it.
    pub fn put_mute(&mut self, user: UserId, other: UserId, mute: Mute) {
        write::mute(self.rows, user, other, mute);
        self.total(|totals| step_total(&mut totals.mutes, true));
    }

    /// Removes a mute, and counts it.
    pub fn remove_mute(&mut self, user: UserId, other: UserId, mute: Mute) {
        write::unmute(self.rows, user, other, mute);
        self.total(|totals| step_total(&mut totals.mutes, false));
    }

    /// Counts one more or one less block or mute of a user; the counts of a deleted user may be removed already.
    pub(crate) fn count_hidden(&mut self, user: UserId, up: bool, count: HiddenCount) {
        if !self.facts().is_deleted(user) {
            self.count(user, |counts| step(count(counts), up));
        }
    }
}

/// Chooses the count of blocks or that of mutes.
pub(crate) type HiddenCount = fn(&mut Counts) -> &mut u32;
