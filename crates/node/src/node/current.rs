//! Validity of cached entities, and questions that are answered from memory alone. Nothing here waits for a disk.

use feed::{Post, PostId, UserId};
use rows::{PointTable, Rows as _, SetTable, Subject};

use super::Node;
use crate::views::{Entity, EntityKey, MadeOf};

impl Node {
    /// Returns a post that was published during the caller's request, if it is in memory and has no replies, quotes and
    /// reactions.
    #[must_use]
    pub fn try_new_post(&self, post: PostId) -> Option<Post> {
        let store = &self.shared.store;
        let has = |table| store.has_members_in_memory(table, post.0);
        let is_untouched = store.point_in_memory(PointTable::PostCounts, post.0).is_none()
            && !has(SetTable::Reactions)
            && !has(SetTable::Replies)
            && !has(SetTable::Quotes);
        // The post is read last. Rows leave memory in the order of their changes, so while the post is in memory, later
        // rows about it would be too.
        let row = store.point_in_memory(PointTable::Post, post.0)?;
        is_untouched
            .then(|| rows::decode::<Post>(&row))
            .filter(|post| !self.is_deleted(post.author))
    }

    /// Whether the user's counts are in memory.
    #[must_use]
    pub fn has_counts_in_memory(&self, user: UserId) -> bool {
        self.shared.store.point_in_memory(PointTable::Counts, user.0.into()).is_some()
    }

    /// Whether no block or mute of `user` exists; false also if memory alone cannot decide.
    #[must_use]
    pub fn surely_has_no_blocks_or_mutes(&self, user: UserId) -> bool {
        let (store, totals) = (&self.shared.store, self.shared.store.totals());
        let has = |table| store.may_have_members(table, user.0.into());
        (totals.blocks == 0 || !has(SetTable::Blocks) && !has(SetTable::BlockedBy))
            && (totals.mutes == 0 || !has(SetTable::Mutes))
    }

    /// Returns the revisions of `subjects`, for an entity that the caller then makes from rows that it reads after this
    /// call. `hidings` is the value of [`rows::Totals::hidings`] that the caller has read.
    #[must_use]
    pub fn made_of(&self, hidings: u64, subjects: impl IntoIterator<Item = Subject>) -> MadeOf {
        let revision = |subject| self.shared.store.revision(subject);
        MadeOf::after(hidings).and(subjects.into_iter().map(revision))
    }

    /// Returns a cached entity if it is current.
    #[must_use]
    pub fn entity(&self, key: EntityKey) -> Option<Entity> {
        self.views().entities.get(key, &self.shared.store)
    }

    /// Returns a cached entity with counts if it is current and valid at this value of [`rows::Totals::hidings`]. If
    /// the value has changed since the entity was last checked, `is_unconcerned` decides whether the entity remains
    /// valid although users are being removed.
    pub fn counted_entity(
        &self,
        key: EntityKey,
        hidings: u64,
        is_unconcerned: impl FnOnce(&Entity) -> bool,
    ) -> Option<Entity> {
        self.entity(key).filter(|entity| entity.is_right_after(hidings, is_unconcerned))
    }

    /// Caches an entity if there is room.
    pub fn keep_entity(&self, key: EntityKey, entity: &Entity) {
        self.views().entities.keep(key, entity.clone());
    }
}
