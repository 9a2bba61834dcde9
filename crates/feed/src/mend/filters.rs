//! What is kept as one row for each user, filters and marks of conversations: the user exists.

use std::collections::BTreeSet;

use rows::{NameTable, RowsMut, Scan, try_decode};

use super::Rows;
use crate::conversation::ConversationMark;
use crate::filter::Filter;
use crate::limits::DIRECT_POSTS_MAX;

/// Whether the bytes of a row are filters.
pub(super) fn is_record(value: &[u8]) -> bool {
    try_decode::<Vec<Filter>>(value).is_some_and(|filters| !filters.is_empty())
}

/// Whether the bytes of a row are marks of conversations, those of the newest posts first, and of each conversation one.
pub(super) fn are_marks(value: &[u8]) -> bool {
    let Some(marks) = try_decode::<Vec<ConversationMark>>(value) else { return false };
    let firsts: BTreeSet<_> = marks.iter().map(|mark| mark.first).collect();
    let is_sorted = marks.is_sorted_by(|one, other| one.read >= other.read);
    !marks.is_empty() && marks.len() <= DIRECT_POSTS_MAX && firsts.len() == marks.len() && is_sorted
}

impl<R: Scan + RowsMut> Rows<'_, R> {
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
