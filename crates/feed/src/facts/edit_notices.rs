//! Edits of boosted posts of which not all who boosted are notified: see [`crate::notification`].
//!
//! **Invariant:** only the last edit of a post has such a row, and only while the post is stored.

use rows::{NameTable, Rows, Stamp, try_decode};

use super::{Facts, Txn};
use crate::ids::{PostId, UserId};
use crate::limits::{EDIT_NOTICES_MAX, EDIT_NOTICES_QUIET_MS};
use crate::reaction::Reaction;
use crate::records::Post;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// The first edits from the stamp `from` on of which not all are notified who boosted the post: at most `limit`.
    #[must_use]
    pub fn first_edit_notices(&self, from: u64, limit: usize) -> Vec<(Stamp, PostId)> {
        let names = self.rows.first_names(NameTable::EditNotices, &from.to_be_bytes(), limit);
        names.iter().filter_map(|name| write::read_edit_notices(name)).collect()
    }

    /// The smallest id of a user who may have boosted a post and is not notified of its last edit; none if all are.
    pub(crate) fn edit_notified_up_to(&self, id: PostId, post: &Post) -> Option<u64> {
        let key = write::edit_notices_key((post.edited?, id));
        try_decode(&self.rows.name(NameTable::EditNotices, &key)?)
    }

    /// Whom the next command about the last edit of a post notifies.
    #[must_use]
    pub fn edit_notified_next(&self, id: PostId) -> Vec<UserId> {
        let next = self.stored_post(id).and_then(|post| self.edit_notified_up_to(id, &post));
        next.map_or_else(Vec::new, |next| self.boosted_from(id, next))
    }

    /// Users from `next` on who boosted a post, in ascending order of ids, as many as a command notifies.
    pub(crate) fn boosted_from(&self, post: PostId, next: u64) -> Vec<UserId> {
        let span = rows::Span { low: next, limit: EDIT_NOTICES_MAX, ..rows::Span::ALL };
        self.reacted_by(post, Reaction::Boost, span)
    }
}

impl Txn<'_> {
    /// Stores who is notified next of an edit of a post; without `next`, that all are.
    pub(crate) fn put_edit_notices(&mut self, (edit, post): (Stamp, PostId), next: Option<u64>) {
        write::edit_notices(self.rows, (edit, post), next);
    }

    /// Leaves it to later commands to notify those who boosted a post that it was edited: not of one of many edits within
    /// an hour, of which the first is announced. If not all are notified of the edit before, the others are notified of this
    /// one.
    pub(crate) fn announce_edit(&mut self, id: PostId, old: &Post, edit: Stamp) {
        let pending = self.facts().edit_notified_up_to(id, old);
        if let (Some(before), Some(_)) = (old.edited, pending) {
            self.put_edit_notices((before, id), None);
        }
        let is_quiet = |before: Stamp| before.unix_ms() + EDIT_NOTICES_QUIET_MS <= edit.unix_ms();
        let next = pending.or_else(|| old.edited.is_none_or(is_quiet).then_some(0));
        if next.is_some() && self.facts().stored_post_counts(id).boosts > 0 {
            self.put_edit_notices((edit, id), next);
        }
    }

    /// Removes who is notified next of the last edit of a post.
    pub(super) fn forget_edit_notices(&mut self, id: PostId, post: &Post) {
        if let Some(edit) = post.edited
            && self.facts().edit_notified_up_to(id, post).is_some()
        {
            self.put_edit_notices((edit, id), None);
        }
    }
}
