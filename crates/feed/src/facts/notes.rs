//! Facts about notes: what a user writes down about others, for nobody else.
//!
//! **Invariant:** a note has a text, a row in the list of its author, and one in that of the user whom it is about.

use rows::{PointTable, Rows, decode, encode};

use super::relation::{NOTES, Relation};
use super::{Facts, Txn};
use crate::ids::UserId;
use crate::text::Note;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// The note of `user` about `other`.
    #[must_use]
    pub fn note(&self, user: UserId, other: UserId) -> Option<Note> {
        let row = self.rows.point(PointTable::Note, Relation::key(user, other));
        row.map(|row| decode(&row))
    }

    /// Whether `user` has a note about `other`.
    pub fn has_note(&self, user: UserId, other: UserId) -> bool {
        self.related(&NOTES, user, other).is_some()
    }
}

impl Txn<'_> {
    /// Stores, replaces or removes a note; without text it is removed.
    pub(crate) fn put_note(&mut self, user: UserId, other: UserId, note: &Note) {
        if note.as_str().is_empty() {
            self.end(&NOTES, user, other);
            return;
        }
        let key = Relation::key(user, other);
        self.rows.put_point(PointTable::Note, key, Some(encode(note)));
        if !self.facts().has_note(user, other) {
            self.relate(&NOTES, user, other, 0);
        }
    }
}
