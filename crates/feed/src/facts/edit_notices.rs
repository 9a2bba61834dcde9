//! Edits of boosted posts of which not all who boosted are notified: see [`crate::notification`].
//!
//! **Invariant:** only the last edit of a post has such a row, and only while the post is stored.

use rows::{Rows, Stamp};

use super::{Facts, Txn};
use crate::due::DueWork;
use crate::ids::{PostId, UserId};
use crate::limits::{EDIT_NOTICES_MAX, EDIT_NOTICES_QUIET_MS};
use crate::reaction::Reaction;
use crate::records::Post;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// The smallest id of a user who may have boosted a post and is not notified of its last edit; none if all are.
    fn edit_notified_up_to(&self, id: PostId, post: &Post) -> Option<u64> {
        self.due_from(DueWork::NotifyOfEdit { post: id }.since(post.edited?))
    }

    /// Users from `from` on who boosted a post, in ascending order of ids, as many as a command notifies of an edit.
    #[must_use]
    pub fn boosted_from(&self, post: PostId, from: u64) -> Vec<UserId> {
        let span = rows::Span { low: from, limit: EDIT_NOTICES_MAX, ..rows::Span::ALL };
        self.reacted_by(post, Reaction::Boost, span)
    }
}

impl Txn<'_> {
    /// Leaves it to later commands to notify those who boosted a post that it was edited: not of one of many edits within
    /// an hour, of which the first is announced. If not all are notified of the edit before, the others are notified of this
    /// one.
    pub(crate) fn announce_edit(&mut self, id: PostId, old: &Post, edit: Stamp) {
        let pending = self.facts().edit_notified_up_to(id, old);
        if let (Some(before), Some(_)) = (old.edited, pending) {
            self.put_due(DueWork::NotifyOfEdit { post: id }.since(before), None);
        }
        let is_quiet = |before: Stamp| before.unix_ms() + EDIT_NOTICES_QUIET_MS <= edit.unix_ms();
        let next = pending.or_else(|| old.edited.is_none_or(is_quiet).then_some(0));
        if next.is_some() && self.facts().stored_post_counts(id).boosts > 0 {
            self.put_due(DueWork::NotifyOfEdit { post: id }.since(edit), next);
        }
    }

    /// Removes who is notified next of the last edit of a post.
    pub(super) fn forget_edit_notices(&mut self, id: PostId, post: &Post) {
        if let Some(edit) = post.edited
            && self.facts().edit_notified_up_to(id, post).is_some()
        {
            self.put_due(DueWork::NotifyOfEdit { post: id }.since(edit), None);
        }
    }
}
