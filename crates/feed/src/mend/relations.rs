//! Follows and friendships: each has a row for both users.
//!
//! To look up the other row of each would take ten minutes for ten million follows. So sums of hashes of all rows of both
//! directions are compared first: they are equal if the rows agree, and otherwise differ but for a chance of
//! 2^-64. Rows are looked up one by one only if they differ.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use rows::{RowsMut, Scan, SetTable};

use super::{From, Mend, Rows, STEP_ROWS};

/// What the comparison of all rows has found so far.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// Hashes of the rows of one direction, less those of the other.
    sum: u64,
    /// Whether a row was met that no command writes.
    is_wrong: bool,
}

impl Compared {
    /// Whether both directions have the same rows, and no wrong one. Once all tables are compared.
    pub(super) fn agree(&self) -> bool {
        self.sum == 0 && !self.is_wrong
    }
}

impl Mend {
    /// Adds some rows of a table to the comparison.
    pub(super) fn compare<R: Scan + RowsMut>(
        &mut self,
        table: SetTable,
        step: &mut Rows<'_, R>,
        from: (u64, u64),
    ) -> Option<From> {
        let (found, next) = step.rows.members_from(table, from, STEP_ROWS);
        let Compared { sum, is_wrong } = &mut self.relations;
        for (owner, item, number) in found {
            *is_wrong |= number != 0 || !step.is_possible(owner, item);
            if table != SetTable::Followers {
                *sum = sum.wrapping_add(hash((table == SetTable::Friends, owner, item)));
            }
            if table != SetTable::Following {
                *sum = sum.wrapping_sub(hash((table == SetTable::Friends, item, owner)));
            }
        }
        next.map(|place| From { place, ..From::default() })
    }
}

fn hash(row: (bool, u64, u64)) -> u64 {
    let mut hasher = DefaultHasher::new();
    row.hash(&mut hasher);
    hasher.finish()
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// A row of one table, of which the other has the opposite direction.
    pub(super) fn relation(
        &mut self,
        (table, opposite): (SetTable, SetTable),
        owner: u64,
        item: u64,
    ) {
        if !self.is_possible(owner, item) {
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

    /// Whether two users can have a relation.
    fn is_possible(&self, owner: u64, item: u64) -> bool {
        let users = self.user(owner).zip(self.user(item)).filter(|(user, other)| user != other);
        users.is_some_and(|(user, other)| !self.is_gone(user) && !self.is_gone(other))
    }
}
