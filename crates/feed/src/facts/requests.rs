//! Facts about locked users, whom others must ask before they follow, and about these requests.

use rows::{Rows, SetTable};

use super::{Facts, Txn, step};
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
        self.rows.member(SetTable::Requested, user.0.into(), other.0.into()).is_some()
    }
}

impl Txn<'_> {
    /// Locks or unlocks a user. Requests stay as they are.
    pub(crate) fn lock(&mut self, user: UserId, locked: bool) {
        write::locked(self.rows, user, locked);
    }

    /// Stores or removes (`requests`) that `user` asks to follow `other`, and counts it. The counts of deleted users may be
    /// removed already.
    pub(crate) fn put_request(&mut self, user: UserId, other: UserId, requests: bool) {
        write::request(self.rows, user, other, requests);
        if !self.facts().is_deleted(user) {
            self.count(user, |counts| step(&mut counts.requested, requests));
        }
        if !self.facts().is_deleted(other) {
            self.count(other, |counts| step(&mut counts.requests, requests));
        }
    }
}
