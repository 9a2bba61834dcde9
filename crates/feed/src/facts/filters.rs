//! Facts about filters.
//!
//! **Invariant:** all filters of a user are one row, so a reader sees them as one command left them, and a user without
//! filters costs a reader one look-up. Its length is bounded by the limits on titles, keywords and posts.

use rows::{NameTable, Rows, decode};

use super::{Facts, Txn};
use crate::filter::Filter;
use crate::ids::UserId;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// The filters of `user`, the oldest first. They may have posts that are deleted, or that the user may not see any more.
    #[must_use]
    pub fn filters(&self, user: UserId) -> Vec<Filter> {
        let row = self.rows.name(NameTable::Filters, &user.0.to_be_bytes());
        row.map_or_else(Vec::new, |row| decode(&row))
    }
}

impl Txn<'_> {
    /// Stores the filters of a user.
    pub(crate) fn put_filters(&mut self, user: UserId, filters: &[Filter]) {
        write::filters(self.rows, user, filters);
    }
}
