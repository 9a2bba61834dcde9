//! Edits of boosted posts of which some boosters are not notified yet: see [`crate::notification`].
//!
//! **Invariant:** only the last edit of a post has due notices, and only while the post is stored.

use rows::{Rows, Stamp};

use super::{Facts, Txn};
use crate::due::DueWork;
use crate::ids::{PostId, UserId};
use crate::limits::{EDIT_NOTICES_MAX, EDIT_NOTICES_QUIET_MS};
use crate::reaction::Reaction;
use crate::records::Post;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Smallest id of a user who may be a booster to notify of the post's last edit; `None` if all are notified.
    fn edit_notified_up_to(&self, id: PostId, post: &Post) -> Option<u64> {
        self.due_from(DueWork::NotifyOfEdit { post: id }.since(post.edited?))
    }

    /// Boosters of a post from the user `from` on, in ascending order of ids, as many as one command notifies of an
    /// edit.
    #[must_use]
    pub fn boosted_from(&self, post: PostId, from: u64) -> Vec<UserId> {
        let span = rows::Span { low: from, limit: EDIT_NOTICES_MAX, ..rows::Span::ALL };
        self.reacted_by(post, Reaction::Boost, span)
    }
}

impl Txn<'_> {
    /// Schedules the notification of boosters of an edited post, unless the edit before was less than an hour ago. If
    /// some boosters are not notified of the edit before, they are notified of this one.
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

    /// Cancels the remaining notifications of the post's last edit.
    pub(super) fn forget_edit_notices(&mut self, id: PostId, post: &Post) {
        if let Some(edit) = post.edited
            && self.facts().edit_notified_up_to(id, post).is_some()
        {
            self.put_due(DueWork::NotifyOfEdit { post: id }.since(edit), None);
        }
    }
}
