//! Checks that each due row follows from the record that it is about. The checks of these records add missing due rows.
//! For deleted posts, polls and stories, and for changed accounts, only the due row stores the time.

use rows::{NameTable, RowsMut, Scan, Value};

use crate::due::{Due, DueWork};
use crate::index::IndexRow;
use crate::mend::{From, Mend, Rows};

impl Mend {
    /// Removes due rows that no record justifies. Restarts each removal at its first row: rows that it removed may have
    /// come back from an older file, and only the removal finds them.
    pub(crate) fn due<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        from: &[u8],
    ) -> Option<From> {
        step.each_name(NameTable::Due, from, |step, name, progress| {
            match Due::of_name(name).filter(|due| self.is_due(step, *due)) {
                None => step.remove_named(NameTable::Due, name),
                Some(due) if due.work.removes() && !progress.is_empty() => {
                    step.rows.put_name(NameTable::Due, name, Some(Value::new()));
                }
                Some(_) => {}
            }
        })
    }

    fn is_due<R: Scan + RowsMut>(&self, step: &Rows<'_, R>, due: Due) -> bool {
        let facts = step.facts();
        match due.work {
            DueWork::NotifyOfEdit { post } => {
                let edit = facts.stored_post(post).and_then(|post| post.edited);
                edit.is_some_and(|edit| due.work.since(edit) == due)
            }
            DueWork::SweepReactions { post } => facts.stored_post(post).is_none(),
            DueWork::SweepVotes { poll } => !self.has_poll(step, poll.0),
            DueWork::Relist { user } => step.user(user.0.into()).is_some(),
            // A deleted story no longer stores its due time.
            DueWork::RemoveStory { story }
                if facts.stored_story(story).is_some_and(|story| story.expires_ms == 0) =>
            {
                true
            }
            work => {
                let row = IndexRow::due(due);
                work.source().and_then(|source| facts.has_row(source, &row)) == Some(true)
            }
        }
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Collects due work that no record stores.
    pub(crate) fn note_pending(&mut self, name: &[u8]) {
        let Some(Due { work, .. }) = Due::of_name(name) else { return };
        let is_pending = match work {
            DueWork::SweepReactions { .. }
            | DueWork::SweepVotes { .. }
            | DueWork::Relist { .. } => true,
            DueWork::RemoveStory { story } => {
                self.facts().stored_story(story).is_some_and(|story| story.expires_ms == 0)
            }
            DueWork::EndMute { .. }
            | DueWork::EndPoll { .. }
            | DueWork::Publish { .. }
            | DueWork::RemoveMedia { .. }
            | DueWork::NotifyOfEdit { .. }
            | DueWork::Erase { .. }
            | DueWork::ExpireGrant { .. } => false,
        };
        // An account may have been changed more than once.
        if is_pending && !self.pending.insert(work) && !matches!(work, DueWork::Relist { .. }) {
            self.remove_named(NameTable::Due, name);
        }
    }

    /// Adds due work if it is missing. Returns whether it was.
    pub(crate) fn put_due(&mut self, due: Due) -> bool {
        let is_missing = self.rows.name(NameTable::Due, &due.name()).is_none();
        if is_missing {
            self.rows.put_name(NameTable::Due, &due.name(), Some(Value::new()));
        }
        is_missing
    }

    /// Makes work due now that no record stores, if it is missing. Returns whether it was.
    pub(crate) fn put_pending(&mut self, work: DueWork) -> bool {
        let is_missing = self.pending.insert(work);
        if is_missing {
            self.put_due(self.facts().since_now(work));
        }
        is_missing
    }
}
