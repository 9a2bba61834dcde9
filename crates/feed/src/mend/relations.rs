//! Follows and friendships: each has a row for both users.

use rows::{RowsMut, Scan, SetTable};

use super::Rows;

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// A row of one table, of which the other has the opposite direction.
    pub(super) fn relation(
        &mut self,
        (table, opposite): (SetTable, SetTable),
        owner: u64,
        item: u64,
    ) {
        let users = self.user(owner).zip(self.user(item)).filter(|(user, other)| user != other);
        let is_possible =
            users.is_some_and(|(user, other)| !self.is_gone(user) && !self.is_gone(other));
        if !is_possible {
            self.derived(format!(
                "{table:?} {owner}, {item}: one of the two is no user, or deleted"
            ));
            self.set(table, owner, item, None);
            self.set(opposite, item, owner, None);
        } else if self.set(table, owner, item, Some(0)) | self.set(opposite, item, owner, Some(0)) {
            self.derived(format!(
                "{table:?} {owner}, {item}: the row of the other direction is missing"
            ));
        }
    }
}
