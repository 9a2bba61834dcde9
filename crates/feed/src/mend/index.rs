//! Checks index rows: each record has exactly its rows.

use std::collections::BTreeSet;

use rows::{RowsMut, Scan, Table};

use super::{From, Rows, STEP_ROWS, at};
use crate::due::DueWork;
use crate::facts::tables::source;
use crate::ids::UserId;
use crate::index::IndexRow;

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Writes the rows of a record that are missing or wrong.
    pub(super) fn put_index(
        &mut self,
        of: impl FnOnce() -> String,
        rows: impl IntoIterator<Item = IndexRow>,
    ) {
        let is_wrong = |row: &IndexRow| !row.is_in(&*self.rows);
        let wrong: Vec<_> = rows.into_iter().filter(is_wrong).collect();
        if wrong.is_empty() {
            return;
        }
        let tables: BTreeSet<_> = wrong.iter().map(IndexRow::table_name).collect();
        let tables: Vec<_> = tables.into_iter().collect();
        self.derived(format!("{}: rows are missing or wrong: {}", of(), tables.join(", ")));
        wrong.iter().for_each(|row| row.put(self.rows));
    }

    /// Checks `row`, whose counterpart `other` must exist. Writes the counterpart if it is missing and `may_be`;
    /// otherwise removes `row`.
    pub(super) fn put_other(&mut self, [other, row]: [IndexRow; 2], may_be: bool) {
        if other.is_in(&*self.rows) {
            return;
        }
        self.derived(format!("{row:?}: the other row is missing or wrong"));
        if may_be && !other.is_at(&*self.rows) {
            other.put(self.rows);
        } else {
            row.remove(self.rows);
        }
    }

    /// Removes index rows that no record has. The rows of all records exist by then.
    pub(super) fn index(&mut self, table: Table, from: &From) -> Option<From> {
        match table {
            Table::Set(set) => {
                let (found, next) = self.rows.members_from(set, from.place, STEP_ROWS);
                for (owner, item, number) in found {
                    self.index_row(table, &IndexRow::Member(set, owner, item, number));
                }
                next.map(|place| From { place, ..From::default() })
            }
            Table::Name(names) => self.each_name(names, &from.name, |step, name, value| {
                step.index_row(table, &IndexRow::Name(names, name.into(), value.into()));
            }),
            Table::Point(_) => None,
        }
    }

    fn index_row(&mut self, table: Table, row: &IndexRow) {
        let (source, is_list) = source(table, row);
        let found = source.and_then(|source| self.facts().has_row(source, row));
        let is_hidden =
            || row.shared_by().is_some_and(|user| self.in_shared_lists(user) == Some(false));
        let exists = |user: UserId| self.user(user.0.into()).is_some();
        if found == Some(true) && row.user().is_none_or(exists) && !is_hidden() {
            return;
        }
        match row {
            IndexRow::Member(table, owner, item, _) if is_list && found.is_none() => {
                let [of, what] = [0, 1].map(|at| table.words().get(at).unwrap_or(&"row"));
                self.lost(format!("{of} {owner}: {what} {} is lost", at(*item)));
            }
            IndexRow::Member(table, owner, item, _) => {
                self.derived(format!("{table:?} {owner}, {item}: no record has this row"));
            }
            IndexRow::Name(table, name, _) => {
                self.derived(format!("{table:?} {}: no record has this row", name.escape_ascii()));
            }
        }
        row.remove(self.rows);
    }

    /// Whether posts of the user must be in lists shared by many authors; `None` if both is valid: for a deleted user,
    /// or while posts are being removed from lists or added again.
    pub(super) fn in_shared_lists(&self, user: UserId) -> Option<bool> {
        let changes = self.pending.contains(&DueWork::Relist { user });
        (!changes && !self.is_deleted(user)).then(|| !self.facts().is_disabled(user))
    }
}
