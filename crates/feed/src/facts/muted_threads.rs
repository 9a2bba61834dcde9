//! The threads that users have muted: of what happens in them these are not notified.
//!
//! **Invariant:** all threads that a user has muted are one row, whose length is bounded.

use rows::{NameTable, Rows, decode};

use super::{Facts, Txn};
use crate::ids::{PostId, UserId};
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// The first posts of the threads that a user has muted, in the order in which they did. Some may be deleted.
    #[must_use]
    pub fn muted_threads(&self, user: UserId) -> Vec<PostId> {
        let row = self.rows.name(NameTable::MutedThreads, &user.0.to_be_bytes());
        row.map_or_else(Vec::new, |row| decode(&row))
    }
}

impl Txn<'_> {
    /// Stores all threads that a user has muted.
    pub(crate) fn put_muted_threads(&mut self, user: UserId, threads: &[PostId]) {
        write::muted_threads(self.rows, user, threads);
    }
}
