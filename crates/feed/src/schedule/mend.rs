//! Checks scheduled posts: their authors must exist, and due rows follow from them.

use rows::{NameTable, RowsMut, Scan, try_decode};

use crate::ids::{ScheduledId, UserId, UserRef};
use crate::index;
use crate::media::MediaUse;
use crate::mend::{From, Mend, Rows, at};
use crate::schedule::ScheduledPost;
use crate::write;

impl Mend {
    /// Checks scheduled posts, whose authors and pictures must exist.
    pub(crate) fn scheduled<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        from: &[u8],
    ) -> Option<From> {
        let last_stamp = &mut self.counted.last_stamp;
        step.each_name(NameTable::Scheduled, from, |step, name, value| {
            let found = read_key(name).zip(try_decode::<ScheduledPost>(value));
            let Some(((user, id), post)) = found else { return };
            *last_stamp = (*last_stamp).max(id.0);
            step.one_scheduled((user, id), &post);
        })
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    fn one_scheduled(&mut self, (user, id): (UserId, ScheduledId), post: &ScheduledPost) {
        let what = format!("scheduled post {} of user {}", at(id.0), user.0);
        let exists = self.user(user.0.into()).is_some_and(|user| !self.is_erased(user));
        if !exists || post.draft.author != UserRef::Id(user) {
            self.lost(format!("{what}: there is no such user"));
            self.remove_scheduled((user, id), post);
            return;
        }
        let is_held = |media: &crate::media::MediaId| {
            let found = self.facts().media(*media);
            found.is_some_and(|found| found.owner == user && found.used == MediaUse::Scheduled(id))
        };
        let media = &post.draft.content.media;
        let held: Vec<_> = media.iter().copied().filter(is_held).collect();
        let lost = media.len() - held.len();
        // The pictures of a deleted user may be removed already.
        if lost > 0 && !self.is_deleted(user) {
            self.lost(format!("{what}: {lost} pictures"));
            let mut kept = post.clone();
            kept.draft.content.media = held;
            if kept.draft.check().is_err() {
                self.remove_scheduled((user, id), post);
                return;
            }
            write::scheduled(self.rows, user, id, &kept);
        }
        self.put_index(|| what, index::of_scheduled(user, id, post));
    }

    fn remove_scheduled(&mut self, (user, id): (UserId, ScheduledId), post: &ScheduledPost) {
        self.rows.put_name(NameTable::Scheduled, &write::scheduled_key(user, id), None);
        index::replace(self.rows, &index::of_scheduled(user, id, post), &[]);
    }
}

fn read_key(name: &[u8]) -> Option<(UserId, ScheduledId)> {
    let (user, id) = name.split_first_chunk()?;
    let id = u64::from_be_bytes(id.try_into().ok()?);
    Some((UserId(u32::from_be_bytes(*user)), ScheduledId(id)))
}
