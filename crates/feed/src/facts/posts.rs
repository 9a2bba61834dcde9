//! Facts about posts: their own rows, and those by author, by mentioned user and by the post replied to.

use rows::{PointTable, Rows, SetTable, Span};

use super::whole::POST_VERSIONS;
use super::{Facts, Txn};
use crate::boost::Boost;
use crate::home_authors::HomeAuthors;
use crate::ids::{PostId, UserId};
use crate::index;
use crate::media::MediaUse;
use crate::post::{Listed, Loaded, Posted, Visibility};
use crate::records::Post;

/// Posts of an author that are read to find the newest one that everybody may see.
const NEWEST_READ: usize = 1_000;
/// Number of these that are read at a time after the first.
const NEWEST_READ_AT_ONCE: usize = 100;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// A post that was not deleted. A boost is deleted with the boosted post.
    #[must_use]
    pub fn post(&self, post: PostId) -> Option<Post> {
        let shows = |boost: &Boost| {
            let row = self.rows.point(PointTable::Post, boost.post.0);
            row.is_some() && !self.is_hidden(boost.author)
        };
        self.stored_post(post)
            .filter(|post| !self.is_hidden(post.author) && post.boost.iter().all(shows))
    }

    /// A post that is stored. Its author may be deleted, and so may be what it boosts.
    #[must_use]
    pub fn stored_post(&self, post: PostId) -> Option<Post> {
        self.rows.point(PointTable::Post, post.0).map(|row| rows::decode::<Post>(&row))
    }

    /// Calls `each` with every post that is stored, in the order of ids. Reads all of them in one scan. Authors may
    /// be deleted.
    pub fn each_stored_post(&self, mut each: impl FnMut(PostId, Post)) {
        let each = &mut |id, row: &[u8]| each(PostId(id), rows::decode::<Post>(row));
        self.rows.each_point(PointTable::Post, each);
    }

    /// Whether this post exists. Not for boosts, which are deleted with what they show: see [`Facts::post`].
    #[must_use]
    pub fn has_post(&self, post: PostId) -> bool {
        if self.rows.totals().users_erasing > 0 {
            return self.post(post).is_some();
        }
        self.rows.point(PointTable::Post, post.0).is_some()
    }

    /// Whether `reply` is a reply to `parent` that was not deleted.
    #[must_use]
    pub fn is_reply(&self, parent: PostId, reply: PostId) -> bool {
        self.rows.member(SetTable::Replies, parent.0, reply.0).is_some()
    }

    /// Replies to `parent` within `span` of post ids, each with who may see it. Replies to a deleted post are still stored,
    /// and so may be replies by a deleted author.
    #[must_use]
    pub fn replies_to(&self, parent: PostId, span: Span) -> Vec<(PostId, Visibility)> {
        let rows = self.rows.members(SetTable::Replies, parent.0, span);
        let reply = |(reply, number)| (PostId(reply), Visibility::of_number(number));
        rows.into_iter().map(reply).collect()
    }

    /// Whether a post exists and is by `author`, without reading it.
    pub(crate) fn is_by(&self, author: UserId, post: PostId) -> bool {
        self.rows.member(SetTable::AuthorPosts, author.0.into(), post.0).is_some()
    }

    /// What lists know about a post by `author`, who may be deleted.
    #[must_use]
    pub fn listed_post(&self, author: UserId, post: PostId) -> Option<Posted> {
        let number = self.rows.member(SetTable::AuthorPosts, author.0.into(), post.0)?;
        Some((post, Listed::of_number(number)))
    }

    /// Posts of `author` within `span` of post ids, each with what lists know about it. Not all of them are for
    /// everybody: see [`Viewer::visible_posted`](crate::Viewer::visible_posted).
    #[must_use]
    pub fn posts_by(&self, author: UserId, span: Span) -> Vec<Posted> {
        if self.is_hidden(author) {
            return Vec::new();
        }
        let rows = self.rows.members(SetTable::AuthorPosts, author.0.into(), span);
        rows.into_iter().map(|(post, number)| (PostId(post), Listed::of_number(number))).collect()
    }

    /// The newest post by `author` that everybody may see, if it is among their newest 1,000.
    #[must_use]
    pub fn newest_open_post(&self, author: UserId) -> Option<PostId> {
        if self.stored_counts(author).open_posts() == 0 {
            return None;
        }
        let (mut rest, mut left) = (Span::below(None, 1), NEWEST_READ);
        while let Some(span) = rest {
            let posts = self.posts_by(author, span);
            let is_open = |(_, listed): &&Posted| listed.visibility().is_open();
            if let Some((post, _)) = posts.iter().find(is_open) {
                return Some(*post);
            }
            left = left.saturating_sub(posts.len());
            let last = posts.last().filter(|_| posts.len() >= span.limit && left > 0);
            rest = last.and_then(|(last, _)| span.beyond(last.0, NEWEST_READ_AT_ONCE));
        }
        None
    }

    /// The newest posts by all users that are older than `before`, newest first, each with its author: up to
    /// `limit` rows. Also returns the post before which the next rows are; `None` if there are none.
    #[must_use]
    pub fn posts_before(&self, before: PostId, limit: usize) -> (Vec<Loaded>, Option<PostId>) {
        let mut posts = Vec::new();
        let next = self.each_post_before(before, limit, |id, post| {
            if !self.is_hidden(post.author) {
                let (author, posted) = (post.author, (id, post.listed()));
                posts.push(Loaded { author, posted, users: post.home_users() });
            }
        });
        (posts, next)
    }

    /// As [`Facts::posts_before`], but each post as it is stored. Authors may be deleted, and so may be what is boosted.
    #[must_use]
    pub fn stored_posts_before(
        &self,
        before: PostId,
        limit: usize,
    ) -> (Vec<(PostId, Post)>, Option<PostId>) {
        let mut posts = Vec::new();
        let next = self.each_post_before(before, limit, |id, post| posts.push((id, post)));
        (posts, next)
    }

    fn each_post_before(
        &self,
        before: PostId,
        limit: usize,
        mut each: impl FnMut(PostId, Post),
    ) -> Option<PostId> {
        let (mut rows, mut last) = (0, None);
        self.rows.points_below(PointTable::Post, before.0, limit, &mut |id, row| {
            each(PostId(id), rows::decode::<Post>(row));
            rows += 1;
            last = Some(PostId(id));
        });
        last.filter(|_| rows == limit)
    }

    /// Whether a post mentions `user`.
    #[must_use]
    pub fn is_mentioned(&self, user: UserId, post: PostId) -> bool {
        self.rows.member(SetTable::Mentions, user.0.into(), post.0).is_some()
    }

    /// Whether a post that has [`home_users`](Post::home_users) is at home of `reader` as far as these decide it.
    pub(crate) fn allows(
        &self,
        reader: UserId,
        home: &HomeAuthors,
        (post, listed): Posted,
    ) -> bool {
        if !listed.is_boost() {
            return self.is_mentioned(reader, post);
        }
        let users = self.stored_post(post).and_then(|post| post.home_users());
        users.is_none_or(|users| listed.allows(reader, home, &users))
    }

    /// Posts that mention `user`, within `span` of post ids. Their authors may be deleted: see
    /// [`Facts::has_post`].
    #[must_use]
    pub fn mentions_of(&self, user: UserId, span: Span) -> Vec<PostId> {
        let rows = self.rows.members(SetTable::Mentions, user.0.into(), span);
        rows.into_iter().map(|(post, _)| PostId(post)).collect()
    }
}

impl Txn<'_> {
    /// Writes a post with its rows.
    pub fn put_post(&mut self, id: PostId, post: &Post) {
        self.replace_post(id, None, Some(post));
    }

    /// Replaces a post, and its rows in indexes.
    pub(crate) fn replace_post(&mut self, id: PostId, old: Option<&Post>, new: Option<&Post>) {
        let rows_of = |post: Option<&Post>| -> Vec<_> {
            post.into_iter().flat_map(|post| index::of_post(id, post)).collect()
        };
        let (old, mut rows) = (rows_of(old), rows_of(new));
        if new.is_some_and(|new| self.facts().is_disabled(new.author)) {
            rows.retain(|row| row.shared_by().is_none());
        }
        self.rows.put_point(PointTable::Post, id.0, new.map(rows::encode));
        index::replace(self.rows, &old, &rows);
    }

    /// Replaces `old` by `new`, which has the same author, parent and visibility.
    pub fn edit_post(&mut self, id: PostId, old: &Post, new: &Post) {
        self.keep_version(id, old);
        for user in old.mentioned_others().filter(|user| !new.mentions.contains(user)) {
            self.remove_mention_notice(user, id);
        }
        self.replace_post(id, Some(old), Some(new));
        let poll = |post: &Post| post.poll.as_ref().map(|poll| poll.id);
        poll(old)
            .filter(|_| poll(old) != poll(new))
            .into_iter()
            .for_each(|old| self.forget_votes(old));
    }

    /// Removes a post with its rows. Replies to it stay, and still refer to it; reactions are removed later.
    pub fn remove_post(&mut self, id: PostId, post: &Post) {
        if post.edited.is_some() {
            post.mentioned_others().for_each(|user| self.remove_mention_notice(user, id));
        }
        self.replace_post(id, Some(post), None);
        for media in &post.media {
            let used = self.facts().media(*media).map(|media| media.used);
            // One that is unattached since just now stays.
            if used == Some(MediaUse::Post(id)) {
                self.remove_media(*media);
            }
        }
        post.poll.iter().for_each(|poll| self.forget_votes(poll.id));
        if post.edited.is_some() {
            POST_VERSIONS.put(self.rows, id, &[]);
            self.forget_edit_notices(id, post);
        }
        match &post.boost {
            Some(boost) => self.uncount_boost(post.author, boost.post),
            None => self.forget_reactions(id, post.author),
        }
    }
}
