//! Facts about scheduled posts.

use rows::{NameTable, Rows, Stamp, decode};

use crate::facts::{Facts, Txn};
use crate::ids::{ScheduledId, UserId};
use crate::index;
use crate::limits;
use crate::media::{MediaId, MediaUse};
use crate::schedule::ScheduledPost;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Scheduled post of `user` with this id.
    #[must_use]
    pub fn scheduled(&self, user: UserId, id: ScheduledId) -> Option<ScheduledPost> {
        let row = self.rows.name(NameTable::Scheduled, &write::scheduled_key(user, id));
        row.map(|row| decode(&row))
    }

    /// Scheduled posts of `user` from `from` on, in the order of scheduling: at most `limit`.
    #[must_use]
    pub fn scheduled_of(&self, user: UserId, from: ScheduledId, limit: usize) -> Vec<ScheduledId> {
        let (owner, from) = (user.0.to_be_bytes(), from.0.to_be_bytes());
        let names = self.rows.names_under(NameTable::Scheduled, &owner, &from, limit);
        let id = |name: &Vec<u8>| Some(ScheduledId(u64::from_be_bytes(*name.first_chunk()?)));
        names.iter().filter_map(id).collect()
    }
}

impl Txn<'_> {
    /// Stores a scheduled post, which reserves its pictures.
    pub(crate) fn put_scheduled(&mut self, user: UserId, id: ScheduledId, post: &ScheduledPost) {
        write::scheduled(self.rows, user, id, post);
        for media in &post.draft.content.media {
            let Some(mut found) = self.facts().media(*media) else { continue };
            found.used = MediaUse::Scheduled(id);
            self.put_media(*media, &found);
        }
    }

    /// Changes the time of a scheduled post.
    pub(crate) fn move_scheduled(
        &mut self,
        (user, id): (UserId, ScheduledId),
        (before, after): (&ScheduledPost, &ScheduledPost),
    ) {
        let [old, new] = [before, after].map(|post| index::of_scheduled(user, id, post));
        // The record is written first, so that readers always find the post.
        write::scheduled(self.rows, user, id, after);
        index::replace(self.rows, &old, &new);
    }

    /// Removes a scheduled post, but not its pictures.
    pub(crate) fn remove_scheduled(&mut self, user: UserId, id: ScheduledId, post: &ScheduledPost) {
        self.rows.put_name(NameTable::Scheduled, &write::scheduled_key(user, id), None);
        index::replace(self.rows, &index::of_scheduled(user, id, post), &[]);
    }

    /// Makes the pictures of a removed scheduled post unattached, up to their owner's limit, and removes the others.
    pub(crate) fn release_media(&mut self, media: &[MediaId], since: Stamp) {
        self.detach_media(media, since);
        for id in media {
            let found = self.facts().media(*id);
            if found.is_some_and(|media| matches!(media.used, MediaUse::Scheduled(_))) {
                self.remove_media(*id);
            }
        }
    }

    /// Removes up to `limit` scheduled posts of a deleted user, from `from` on. Their pictures are removed with the
    /// user's other pictures.
    pub(crate) fn erase_scheduled(&mut self, user: UserId, from: ScheduledId, limit: usize) {
        for id in self.facts().scheduled_of(user, from, limit.min(limits::SCHEDULED_MAX)) {
            if let Some(post) = self.facts().scheduled(user, id) {
                self.remove_scheduled(user, id, &post);
            }
        }
    }
}
