//! Facts about locked users, whom others must ask before they follow, and about these requests.

use rows::{Rows, SetTable};

use super::relation::REQUESTS;
use super::{Facts, Txn};
use crate::ids::UserId;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Whether others must ask this user before they follow.
    #[must_use]
    pub fn is_locked(&self, user: UserId) -> bool {
        self.rows.member(SetTable::LockedUsers, user.0.into(), 0).is_some()
    }

    /// Whether `user` asks to follow `other`.
    #[must_use]
    pub fn requests(&self, user: UserId, other: UserId) -> bool {
        self.related(&REQUESTS, user, other).is_some()
    }
}

impl Txn<'_> {
    /// Locks or unlocks a user. Requests stay as they are.
    pub(crate) fn lock(&mut self, user: UserId, locked: bool) {
        write::locked(self.rows, user, locked);
    }
}
