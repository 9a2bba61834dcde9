//! Writing notes about users.

use crate::command::{Done, Outcome};
use crate::facts::Txn;
use crate::facts::relation::NOTES;
use crate::ids::UserRef;
use crate::refusal::Refusal;
use crate::text::Note;

pub(super) fn set(txn: &mut Txn<'_>, user: &UserRef, other: &UserRef, note: &Note) -> Outcome {
    let (user, other) = (super::resolve(txn, user)?, super::resolve_other(txn, other)?);
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
