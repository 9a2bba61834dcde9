//! Rendering in advance, after a start: from scans of the rows, which take a tenth of the time that it takes to read each row
//! when it is needed.

use std::sync::atomic::Ordering;

use feed::{Facts, PostId, User, UserId};
use rows::Rows;

use super::{Read, Rendered};
use crate::pictures::pictures_of;

impl Rendered {
    /// Reads the names of the users before `before`, greatest id first, in one scan: of at most `limit`. Returns where to
    /// continue, if there are more and there is room.
    pub(in crate::views) fn load_names<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        before: UserId,
        limit: usize,
    ) -> Option<UserId> {
        let invalidated = self.invalidated.load(Ordering::Acquire);
        let read = Read { invalidated, item: facts.users_before(before, limit) };
        self.keep_names(&read);
        read.item.last().map(|(id, _)| *id).filter(|_| self.names.has_room())
    }

    /// Keeps the names of users, but for those after a change.
    pub(super) fn keep_names(&self, users: &Read<Vec<(UserId, User)>>) {
        for (id, user) in &users.item {
            let revision = self.revision(*id);
            // After the revision: it may be that of a later name than the one that was read.
            if self.invalidated.load(Ordering::Acquire) == users.invalidated {
                self.names.add(*id, revision, &user.handle, &user.name);
            }
        }
    }

    /// Renders the posts before `before`, newest first, in one scan: at most `limit`. Returns where to continue, if there
    /// are more and there is room.
    pub(in crate::views) fn load_posts<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        before: PostId,
        limit: usize,
    ) -> Option<PostId> {
        let invalidated = self.invalidated.load(Ordering::Acquire);
        let names = |user| self.names(user).or_else(|| self.load_user(facts, user));
        let parent = |id| Some(facts.post(id));
        let (posts, next) = facts.stored_posts_before(before, limit);
        let mut out = Vec::new();
        for (id, post) in posts {
            // What a boost shows may be deleted.
            if post.boost.is_none() && !facts.is_deleted(post.author) {
                out.clear();
                let pictures = pictures_of(facts, &post);
                let post = Read { invalidated, item: post };
                self.render_post(id, &post, parent, &pictures, names, &mut out);
            }
        }
        next.filter(|_| self.has_room())
    }
}
