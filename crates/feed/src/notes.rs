//! Notes of users about other users.
//!
//! **Invariant:** a note has a text, a row in the list of its author, and a row in the list of the user it describes.

use rows::{Cost, PointTable, Rows, decode, encode};

use crate::done::{Done, Outcome};
use crate::facts::{Facts, Txn};
use crate::ids::{UserId, UserRef};
use crate::limits::NOTE_BYTES_MAX;
use crate::refusal::Refusal;
use crate::relation::{NOTES, Relation};
use crate::text::Note;
use crate::users::rules::{resolve, resolve_other};

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
    /// Stores or replaces a note, or removes it if its text is empty.
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

pub(crate) fn set(txn: &mut Txn<'_>, user: &UserRef, other: &UserRef, note: &Note) -> Outcome {
    let (user, other) = (resolve(txn, user)?, resolve_other(txn, other)?);
    let before = txn.facts().note(user, other);
    // A note about a user who is hidden by now can still be removed.
    let removes = before.is_some() && note.as_str().is_empty();
    if !removes && txn.facts().blocks(other, user) {
        return Err(Refusal::OtherNotFound);
    }
    let is_new = before.is_none() && !note.as_str().is_empty();
    if is_new {
        txn.refuse_full(&NOTES, user)?;
    }
    if before.unwrap_or_default() != *note {
        txn.put_note(user, other, note);
    }
    Ok(Done::NoteSet)
}

pub(crate) fn note_cost(note: &Note) -> Cost {
    let cost = Cost::of_rows(10, note.as_str().len() + 128);
    // The old note is read.
    Cost { work: cost.work + NOTE_BYTES_MAX, ..cost }
}
