//! Rendering in advance after a start, from scans of the rows, which take a tenth of the time of reading each row
//! separately.

use feed::{Facts, PostId, UserId};
use rows::{Rows, Subject};

use super::{Entities, Read, Revisions, content_of};
use crate::pictures::pictures_of;
use crate::views::entities::Kind;

/// Fraction of the budget of users, and of posts, that rendering in advance may fill.
const LOADED_PART: f64 = 0.6;

impl Entities {
    /// Caches the names of at most `limit` users before `before`, greatest id first, in one scan. The revisions are
    /// read before the names. Returns where to continue if there are more users and there is room.
    pub(in crate::views) fn load_names<R: Rows + ?Sized>(
        &self,
        revisions: &impl Revisions,
        facts: Facts<'_, R>,
        before: UserId,
        limit: usize,
    ) -> Option<UserId> {
        let users = facts.users_before(before, limit);
        for (id, user) in &users {
            let revision = revisions.revision(Subject::Profile(id.0.into()));
            self.add_names(*id, revision.count, user);
        }
        users.last().map(|(id, _)| *id).filter(|_| self.has_room(Kind::Users, LOADED_PART))
    }

    /// Renders at most `limit` posts before `before`, newest first, in one scan. The revisions are read before the
    /// posts. Returns where to continue if there are more posts and there is room.
    pub(in crate::views) fn load_posts<R: Rows + ?Sized>(
        &self,
        revisions: &impl Revisions,
        facts: Facts<'_, R>,
        before: PostId,
        limit: usize,
    ) -> Option<PostId> {
        let names = |user| self.names_of(revisions, facts, user);
        let parent = |id| Some(facts.post(id));
        let (posts, next) = facts.stored_posts_before(before, limit);
        let mut out = Vec::new();
        for (id, item) in posts {
            // Boosts are skipped, because the boosted post may be deleted.
            if item.boost.is_none() && !facts.is_deleted(item.author) {
                out.clear();
                let pictures = pictures_of(facts, &item);
                let post = Read { content: content_of(revisions, id), item };
                self.render_post(revisions, (id, &post), parent, &pictures, names, &mut out);
            }
        }
        next.filter(|_| self.has_room(Kind::Posts, LOADED_PART))
    }
}
