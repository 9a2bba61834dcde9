//! Import of mutes, and of notes about other users.

use feed::Note;
use feed::relation::{MUTES, NOTES, put_note};
use rows::{EPOCH_MS, Stamp};
use store::Loader;

use super::Wrong;
use super::users::Users;
use crate::export::lines::{Mute, Time};
use crate::export::user_lines::Note as NoteLine;

impl Users {
    pub(super) fn mute(&mut self, loader: &mut Loader, line: &Mute) -> Result<(), Wrong> {
        let (user, other) = (self.find(&line.user)?, self.find(&line.mutes)?);
        if other == user {
            return Err(MUTES.to_self.into());
        }
        self.count(&MUTES, user, other)?;
        let ends_ms = line.ends.map(|Time(ms)| ms);
        if ends_ms.is_some_and(|ms| ms < EPOCH_MS || ms > Stamp::MAX.unix_ms()) {
            return Err("a mute must end after 2024 and before 2093".into());
        }
        let mute = feed::Mute { mentions: line.mentions, ends_ms };
        MUTES.put(loader, user, other, Some(mute.number()));
        Ok(())
    }

    pub(super) fn note(&mut self, loader: &mut Loader, line: &NoteLine<'_>) -> Result<(), Wrong> {
        let (user, about) = (self.find(&line.user)?, self.find(&line.about)?);
        let note = Note::parse(&line.text)?;
        if note == Note::default() {
            return Err("a note must have a text".into());
        }
        self.count(&NOTES, user, about)?;
        put_note(loader, user, about, &note);
        Ok(())
    }
}
