//! Facts about blocks and mutes.
//!
//! **Invariant:** no follow and no friendship exists between two users of whom one blocks the other.

use rows::{Rows, SetTable, Span};

use super::Facts;
use super::relation::{BLOCKS, MUTES};
use crate::ids::UserId;
use crate::mute::Mute;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Whether `user` blocks `other`.
    #[must_use]
    pub fn blocks(&self, user: UserId, other: UserId) -> bool {
        self.rows.totals().blocks > 0 && self.related(&BLOCKS, user, other).is_some()
    }

    /// Whether one of the two blocks the other.
    #[must_use]
    pub fn is_blocked_between(&self, user: UserId, other: UserId) -> bool {
        self.blocks(user, other) || self.blocks(other, user)
    }

    /// The mute of `other` by `user`.
    #[must_use]
    pub fn mute(&self, user: UserId, other: UserId) -> Option<Mute> {
        self.related(&MUTES, user, other).map(Mute::of_number)
    }

    /// Whether `table` has any user for `user`.
    pub(crate) fn has_users_in(&self, table: SetTable, user: UserId) -> bool {
        let one = Span { limit: 1, ..Span::ALL };
        !self.rows.members(table, user.0.into(), one).is_empty()
    }
}
