//! Facts about conversations: see [`crate::conversation`].
//!
//! **Invariant:** all marks of a user are one row, whose length is bounded.

use rows::{NameTable, Rows, SetTable, Span, decode};

use super::{Facts, Txn};
use crate::conversation::ConversationMark;
use crate::ids::{PostId, UserId};
use crate::limits::{DIRECT_POSTS_MAX, DIRECT_ROWS_MAX};
use crate::write;

/// Rows of one read.
const READ_ROWS: usize = 512;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// What a user did with conversations, in the order of what was read, the newest first.
    #[must_use]
    pub fn conversation_marks(&self, user: UserId) -> Vec<ConversationMark> {
        let row = self.rows.name(NameTable::Conversations, &user.0.to_be_bytes());
        row.map_or_else(Vec::new, |row| decode(&row))
    }

    /// The newest posts in a list of a user whose numbers are wanted, newest first: some more than can be shown, of a
    /// bounded number of rows.
    pub(crate) fn newest_in(
        &self,
        table: SetTable,
        user: UserId,
        mut is_wanted: impl FnMut(u64) -> bool,
    ) -> Vec<PostId> {
        let (mut found, mut rows) = (Vec::new(), 0);
        let mut rest = Span::below(None, READ_ROWS);
        while let Some(span) = rest.filter(|_| rows < DIRECT_ROWS_MAX) {
            let page = self.rows.members(table, user.0.into(), span);
            rows += page.len();
            let last = page.last().filter(|_| page.len() >= span.limit);
            rest = last.and_then(|(post, _)| span.beyond(*post, READ_ROWS));
            let wanted = page.into_iter().filter(|(_, number)| is_wanted(*number));
            found.extend(wanted.map(|(post, _)| PostId(post)));
            if found.len() >= DIRECT_POSTS_MAX {
                break;
            }
        }
        found
    }
}

impl Txn<'_> {
    /// Stores the marks of a user.
    pub(crate) fn put_conversation_marks(&mut self, user: UserId, marks: &[ConversationMark]) {
        write::conversation_marks(self.rows, user, marks);
    }
}
