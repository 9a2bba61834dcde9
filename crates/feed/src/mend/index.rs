//! Checks index rows: each record has exactly its rows.

use std::collections::BTreeSet;

use rows::{RowsMut, Scan, Table};

use super::{From, Rows, STEP_ROWS, at};
use crate::due::DueWork;
use crate::facts::Facts;
use crate::ids::UserId;
use crate::index::{self, IndexRow, Source};
use crate::tables::source;

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Writes the rows of a record that are missing or wrong.
    pub(crate) fn put_index(
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

    /// Checks `row`, whose counterpart `other` must exist. If `other` is missing and `may_be` is true, writes it; if it
    /// is wrong or may not be, removes `row`.
    pub(crate) fn put_other(&mut self, [other, row]: [IndexRow; 2], may_be: bool) {
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

    /// Removes index rows that no record has. Earlier passes have added the missing rows of all records.
    pub(crate) fn index(&mut self, table: Table, from: &From) -> Option<From> {
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
        let (source, proves_loss) = source(table, row);
        let found = source.and_then(|source| self.facts().has_row(source, row));
        let is_hidden =
            || row.shared_by().is_some_and(|user| self.in_shared_lists(user) == Some(false));
        let exists = |user: UserId| self.user(user.0.into()).is_some();
        if found == Some(true) && row.user().is_none_or(exists) && !is_hidden() {
            return;
        }
        match row {
            IndexRow::Member(table, owner, item, _) if proves_loss && found.is_none() => {
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
    pub(crate) fn in_shared_lists(&self, user: UserId) -> Option<bool> {
        let changes = self.pending.contains(&DueWork::Relist { user });
        (!changes && !self.is_deleted(user)).then(|| !self.facts().is_disabled(user))
    }
}

impl<R: rows::Rows + ?Sized> Facts<'_, R> {
    /// Whether a record has this index row; `None` if the record does not exist.
    pub(crate) fn has_row(&self, source: Source, row: &IndexRow) -> Option<bool> {
        let is_row = |found: IndexRow| found.allows(row);
        Some(match source {
            Source::Account(user) => index::of_account(user, &self.account(user)?).any(is_row),
            Source::App(id) => {
                self.app(id)?;
                index::of_app(id, self.app_uses(id)).is_some_and(is_row)
            }
            Source::Erasing(user) => is_row(IndexRow::due(self.erasure_of(user)?)),
            Source::Grant(id) => index::of_grant(id, &self.grant(id)?).any(is_row),
            Source::Media(id) => index::of_media(id, &self.media(id)?).into_iter().any(is_row),
            Source::Mute(user, other) => {
                index::of_mute(user, other, self.mute(user, other)?).is_some_and(is_row)
            }
            Source::Post(id) => index::of_post(id, &self.stored_post(id)?).into_iter().any(is_row),
            Source::Sample(id) => {
                let set = self.sample_set(&self.sample(id)?.set);
                set.is_some_and(|set| is_row(index::of_sample(id, set.id)))
            }
            Source::Scheduled(user, id) => {
                index::of_scheduled(user, id, &self.scheduled(user, id)?).into_iter().any(is_row)
            }
            Source::Story(id) => {
                index::of_story(id, &self.stored_story(id)?).into_iter().any(is_row)
            }
        })
    }
}
