//! Checks of index rows against records.

use rows::{Rows, SetTable};

use super::Facts;
use crate::index::{self, IndexRow, Source};

impl<R: Rows + ?Sized> Facts<'_, R> {
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
                set.is_some_and(|set| {
                    is_row(IndexRow::Member(SetTable::Samples, set.id.0, id.0, 0))
                })
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
