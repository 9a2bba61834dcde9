//! What is kept as one row for each user: the user exists, and follows or asks those of whose follows there are options.

use std::collections::BTreeSet;

use rows::{NameTable, RowsMut, Scan, decode, try_decode};

use super::Rows;
use crate::conversation::ConversationMark;
use crate::filter::Filter;
use crate::follow_options::{FollowOptions, OptionsOf};
use crate::ids::{PostId, UserId};
use crate::limits::{CONVERSATION_MARKS_MAX, FOLLOW_OPTIONS_MAX, MUTED_THREADS_MAX, NOTIFYING_MAX};
use crate::write;

/// Whether the bytes of a row are filters.
pub(super) fn is_record(value: &[u8]) -> bool {
    try_decode::<Vec<Filter>>(value).is_some_and(|filters| !filters.is_empty())
}

/// Whether the bytes of a row are marks of conversations, those of the newest posts first, and of each conversation one.
pub(super) fn are_marks(value: &[u8]) -> bool {
    let Some(marks) = try_decode::<Vec<ConversationMark>>(value) else { return false };
    let firsts: BTreeSet<_> = marks.iter().map(|mark| mark.first).collect();
    let is_sorted = marks.is_sorted_by(|one, other| one.read >= other.read);
    !marks.is_empty()
        && marks.len() <= CONVERSATION_MARKS_MAX
        && firsts.len() == marks.len()
        && is_sorted
}

/// Whether the bytes of a row are options of follows, none of them the default, in the order of the followed.
pub(super) fn are_options(value: &[u8]) -> bool {
    let Some(all) = try_decode::<Vec<OptionsOf>>(value) else { return false };
    let is_sorted = all.is_sorted_by(|one, other| one.other < other.other);
    let notifying = all.iter().filter(|it| it.options.notified_since.is_some()).count();
    let is_bounded = all.len() <= FOLLOW_OPTIONS_MAX && notifying <= NOTIFYING_MAX;
    let says_something = all.iter().all(|found| found.options != FollowOptions::default());
    !all.is_empty() && is_sorted && is_bounded && says_something
}

/// Whether the bytes of a row are threads that a user has muted, each once.
pub(super) fn are_threads(value: &[u8]) -> bool {
    let Some(threads) = try_decode::<Vec<PostId>>(value) else { return false };
    let different: BTreeSet<_> = threads.iter().collect();
    (1..=MUTED_THREADS_MAX).contains(&threads.len()) && different.len() == threads.len()
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// The options of the follows of a user, each of which exists, or is asked for.
    pub(super) fn follow_options(&mut self, name: &[u8], value: &[u8]) {
        self.of_user(NameTable::FollowOptions, name);
        let owner = name.first_chunk().map_or(0, |owner| u32::from_be_bytes(*owner));
        let is_left = |user: &UserId| !self.is_deleted(*user);
        let Some(user) = self.user(owner.into()).filter(is_left) else { return };
        let all: Vec<OptionsOf> = decode(value);
        let mut kept = all.clone();
        kept.retain(|it| {
            let facts = self.facts();
            facts.follows(user, it.other) || facts.requests(user, it.other)
        });
        if kept != all {
            self.derived(format!("FollowOptions {owner}: of users who are not followed"));
            write::follow_options(self.rows, user, &kept);
        }
    }

    /// The only row of a user in a table.
    pub(super) fn of_user(&mut self, table: NameTable, name: &[u8]) {
        let owner = name.first_chunk().filter(|_| name.len() == 4);
        let owner = owner.and_then(|owner| self.user(u32::from_be_bytes(*owner).into()));
        if owner.is_none_or(|owner| self.is_gone(owner)) {
            self.derived(format!("{table:?} {}: there is no such user", name.escape_ascii()));
            self.rows.put_name(table, name, None);
        }
    }
}
