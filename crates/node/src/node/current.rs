//! What those ask who keep something that was made from the facts: whether it is current, and what is known from memory alone.
//! Nothing here waits for a disk.

use feed::{Post, PostId, UserId};
use rows::{PointTable, Rows as _, SetTable, Subject};

use super::Node;
use crate::views::{Entity, EntityKey, MadeOf};

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
        is_untouched
            .then(|| rows::decode::<Post>(&row))
            .filter(|post| !self.is_deleted(post.author))
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

    /// What an entity is made of that is made from rows about `subjects` which are read later, after users were hidden so
    /// many times.
    #[must_use]
    pub fn made_of(&self, hidings: u64, subjects: impl IntoIterator<Item = Subject>) -> MadeOf {
        let revision = |subject| self.shared.store.revision(subject);
        MadeOf::after(hidings).and(subjects.into_iter().map(revision))
    }

    /// An entity that is current.
    #[must_use]
    pub fn entity(&self, key: EntityKey) -> Option<Entity> {
        self.views().entities.get(key, &self.shared.store)
    }

    /// An entity with counts that is current, and right after users were hidden so many times. If that is not known,
    /// `is_unconcerned` says whether none of the users who are being removed concerns it.
    pub fn counted_entity(
        &self,
        key: EntityKey,
        hidings: u64,
        is_unconcerned: impl FnOnce(&Entity) -> bool,
    ) -> Option<Entity> {
        self.entity(key).filter(|entity| entity.is_right_after(hidings, is_unconcerned))
    }

    /// Keeps an entity, if there is room, until it is not current any more.
    pub fn keep_entity(&self, key: EntityKey, entity: &Entity) {
        self.views().entities.keep(key, entity.clone());
    }
}
