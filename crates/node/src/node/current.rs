//! What those ask who keep something that was made from the facts: whether it is current, and what is known from memory alone.
//! Nothing here waits for a disk.

use feed::{Post, PostId, UserId};
use rows::{PointTable, Rows as _, SetTable, Subject};

use super::Node;

impl Node {
    /// A post that was published during the request of the caller, if it is in memory and nobody has replied or reacted to it.
    #[must_use]
    pub fn try_new_post(&self, post: PostId) -> Option<Post> {
        let store = &self.shared.store;
        let has = |table| store.has_members_in_memory(table, post.0);
        let is_untouched = store.point_in_memory(PointTable::PostCounts, post.0).is_none()
            && !has(SetTable::Reactions)
            && !has(SetTable::Replies);
        // Afterwards: rows leave memory in the order of their changes, so those of a later change were in memory, too.
        let row = store.point_in_memory(PointTable::Post, post.0)?;
        is_untouched.then(|| Post::decode(&row)).filter(|post| !self.is_deleted(post.author))
    }

    /// Whether the counts of a user are in memory.
    #[must_use]
    pub fn has_counts_in_memory(&self, user: UserId) -> bool {
        self.shared.store.point_in_memory(PointTable::Counts, user.0.into()).is_some()
    }

    /// Whether no block and no mute can hide anything from `user`; false if only the facts can say.
    #[must_use]
    pub fn surely_hides_nobody(&self, user: UserId) -> bool {
        let (store, totals) = (&self.shared.store, self.shared.store.totals());
        let has = |table| store.may_have_members(table, user.0.into());
        (totals.blocks == 0 || !has(SetTable::Blocks) && !has(SetTable::BlockedBy))
            && (totals.mutes == 0 || !has(SetTable::Mutes))
    }

    /// As [`Store::revision`](crate::Store::revision).
    #[must_use]
    pub fn revision(&self, subject: Subject) -> u32 {
        self.shared.store.revision(subject)
    }
}
