//! Expected notes.

use feed::limits::NOTES_MAX;
use feed::{Done, Note, Outcome, Refusal, UserRef};

use super::feed::Feed;

impl Feed {
    pub(super) fn set_note(&mut self, user: &UserRef, other: &UserRef, note: &Note) -> Outcome {
        let (user, other) = (self.resolve(user)?, self.resolve_other(other)?);
        let removes = note.as_str().is_empty() && self.notes.contains_key(&(user, other));
        if self.blocks.contains(&(other, user)) && !removes {
            return Err(Refusal::OtherNotFound);
        }
        if note.as_str().is_empty() {
            self.notes.remove(&(user, other));
            return Ok(Done::NoteSet);
        }
        let is_new = !self.notes.contains_key(&(user, other));
        let of_user = self.notes.keys().filter(|(one, _)| *one == user);
        if is_new && of_user.count() >= NOTES_MAX as usize {
            return Err(Refusal::TooManyNotes);
        }
        self.notes.insert((user, other), note.as_str().to_owned());
        Ok(Done::NoteSet)
    }
}
