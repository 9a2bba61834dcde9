//! Facts about notes: what a user writes down about others, for nobody else.
//!
//! **Invariant:** a note has a text, a row in the list of its author, and one in that of the user whom it is about.

use rows::{PointTable, Rows, SetTable, decode};

use super::{Facts, Txn, step};
use crate::ids::UserId;
use crate::text::Note;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// The note of `user` about `other`.
    #[must_use]
    pub fn note(&self, user: UserId, other: UserId) -> Option<Note> {
        let row = self.rows.point(PointTable::Note, write::note_key(user, other));
        row.map(|row| decode(&row))
    }

    /// Whether `user` has a note about `other`.
    pub fn has_note(&self, user: UserId, other: UserId) -> bool {
        self.rows.member(SetTable::Notes, user.0.into(), other.0.into()).is_some()
    }
}

impl Txn<'_> {
    /// Stores or replaces a note; one without text is removed. Counts it for its author.
    pub(crate) fn put_note(&mut self, user: UserId, other: UserId, note: &Note) {
        let (before, after) = (self.facts().has_note(user, other), !note.as_str().is_empty());
        write::note(self.rows, user, other, note);
        // The counts of a deleted user may be removed already.
        if before != after && !self.facts().is_deleted(user) {
            self.count(user, |counts| step(&mut counts.notes, after));
        }
    }
}
