//! Facts about posts: their own rows, and those by author, mentioned user and parent post.

use rows::{PointTable, Rows, SetTable, Span};

use crate::facts::{Facts, Txn, adjust_count};
use crate::follows::HomeAuthors;
use crate::ids::{PostId, UserId};
use crate::index::{self, IndexRow};
use crate::media::MediaUse;
use crate::posts::version::PostVersion;
use crate::posts::{Listed, Loaded, Post, Posted, Visibility};
use crate::reactions::Boost;
use crate::whole::POST_VERSIONS;

/// Maximum number of posts of an author to read in search of the newest public or unlisted one.
const NEWEST_READ: usize = 1_000;

/// Number of posts per read after the first in the search for the newest public or unlisted post.
const NEWEST_READ_AT_ONCE: usize = 100;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Post that was not deleted. A boost is deleted with the boosted post.
    #[must_use]
    pub fn post(&self, post: PostId) -> Option<Post> {
        let shows = |boost: &Boost| {
            let row = self.rows.point(PointTable::Post, boost.post.0);
            row.is_some() && !self.is_being_erased(boost.author)
        };
        self.stored_post(post)
            .filter(|post| !self.is_being_erased(post.author) && post.boost.iter().all(shows))
    }

    /// Stored post. Its author and the boosted post may be deleted.
    #[must_use]
    pub fn stored_post(&self, post: PostId) -> Option<Post> {
        self.rows.point(PointTable::Post, post.0).map(|row| rows::decode::<Post>(&row))
    }

    /// Calls `each` with every stored post, in the order of ids. Reads all of them in one scan. Authors may be deleted.
    pub fn each_stored_post(&self, mut each: impl FnMut(PostId, Post)) {
        let each = &mut |id, row: &[u8]| each(PostId(id), rows::decode::<Post>(row));
        self.rows.each_point(PointTable::Post, each);
    }

    /// Whether the post exists. Not for boosts, which are deleted with the boosted post: see [`Facts::post`].
    #[must_use]
    pub fn has_post(&self, post: PostId) -> bool {
        if self.rows.totals().users_erasing > 0 {
            return self.post(post).is_some();
        }
        self.rows.point(PointTable::Post, post.0).is_some()
    }

    /// Whether `reply` is a reply to `parent` and was not deleted.
    #[must_use]
    pub fn is_reply(&self, parent: PostId, reply: PostId) -> bool {
        self.rows.member(SetTable::Replies, parent.0, reply.0).is_some()
    }

    /// Replies to `parent` within `span` of post ids, each with its visibility. Includes replies to a deleted post and
    /// replies by deleted authors while they are stored.
    #[must_use]
    pub fn replies_to(&self, parent: PostId, span: Span) -> Vec<(PostId, Visibility)> {
        let rows = self.rows.members(SetTable::Replies, parent.0, span);
        let reply = |(reply, number)| (PostId(reply), Visibility::of_number(number));
        rows.into_iter().map(reply).collect()
    }

    /// Whether the post exists and is by `author`. Does not read the post.
    pub(crate) fn is_by(&self, author: UserId, post: PostId) -> bool {
        self.rows.member(SetTable::AuthorPosts, author.0.into(), post.0).is_some()
    }

    /// List entry of a post by `author`, who may be deleted.
    #[must_use]
    pub fn listed_post(&self, author: UserId, post: PostId) -> Option<Posted> {
        let number = self.rows.member(SetTable::AuthorPosts, author.0.into(), post.0)?;
        Some((post, Listed::of_number(number)))
    }

    /// Posts of `author` within `span` of post ids, each with its list entry, of any visibility: see
    /// [`Viewer::visible_posted`](crate::Viewer::visible_posted).
    #[must_use]
    pub fn posts_by(&self, author: UserId, span: Span) -> Vec<Posted> {
        if self.is_being_erased(author) {
            return Vec::new();
        }
        let rows = self.rows.members(SetTable::AuthorPosts, author.0.into(), span);
        rows.into_iter().map(|(post, number)| (PostId(post), Listed::of_number(number))).collect()
    }

    /// Newest public or unlisted post by `author`, if it is among their newest 1,000.
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

    /// Newest posts by all users that are older than `before`, newest first: up to `limit` rows. Also returns the post
    /// before which to continue; `None` at the end.
    #[must_use]
    pub fn posts_before(&self, before: PostId, limit: usize) -> (Vec<Loaded>, Option<PostId>) {
        let mut posts = Vec::new();
        let next = self.each_post_before(before, limit, |id, post| {
            if !self.is_being_erased(post.author) {
                let (author, posted) = (post.author, (id, post.listed()));
                posts.push(Loaded { author, posted, users: post.home_users() });
            }
        });
        (posts, next)
    }

    /// Newest stored posts that are older than `before`, in the same way as [`Facts::posts_before`]. Authors and
    /// boosted posts may be deleted.
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

    /// Whether the post mentions `user`.
    #[must_use]
    pub fn is_mentioned(&self, user: UserId, post: PostId) -> bool {
        self.rows.member(SetTable::Mentions, user.0.into(), post.0).is_some()
    }

    /// Whether the [`home_users`](Post::home_users) of the post permit it in the home timeline of `reader`.
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

    /// Posts that mention `user`, within `span` of post ids. Authors may be deleted: see [`Facts::has_post`].
    #[must_use]
    pub fn mentions_of(&self, user: UserId, span: Span) -> Vec<PostId> {
        let rows = self.rows.members(SetTable::Mentions, user.0.into(), span);
        rows.into_iter().map(|(post, _)| PostId(post)).collect()
    }

    /// All versions of a post including the current one, oldest first. Does not check the visibility of the post.
    #[must_use]
    pub fn post_history(&self, id: PostId, post: &Post) -> Vec<PostVersion> {
        let mut versions = match post.edited {
            Some(_) => self.post_versions(id),
            None => Vec::new(),
        };
        versions.push(PostVersion::of(id, post));
        versions
    }
}

impl Txn<'_> {
    /// Writes a post and its index rows.
    pub fn put_post(&mut self, id: PostId, post: &Post) {
        self.replace_post(id, None, Some(post));
    }

    /// Replaces a post and its index rows.
    pub(crate) fn replace_post(&mut self, id: PostId, old: Option<&Post>, new: Option<&Post>) {
        let is_disabled = new.is_some_and(|new| self.facts().is_disabled(new.author));
        let has = |row: &IndexRow| !is_disabled || row.shared_by().is_none();
        let rows = &mut *self.rows;
        rows.put_point(PointTable::Post, id.0, new.map(rows::encode));
        match (old, new) {
            (Some(old), Some(new)) => {
                let mut new = index::of_post(id, new);
                new.retain(has);
                index::replace(rows, &index::of_post(id, old), &new);
            }
            (None, Some(new)) => index::each_of_post(id, new, |row| {
                if has(&row) {
                    row.put(rows);
                }
            }),
            (Some(old), None) => index::each_of_post(id, old, |row| row.remove(rows)),
            (None, None) => {}
        }
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

    /// Removes a post and its rows. Replies keep referring to it; reactions are removed later.
    pub fn remove_post(&mut self, id: PostId, post: &Post) {
        if post.edited.is_some() {
            post.mentioned_others().for_each(|user| self.remove_mention_notice(user, id));
        }
        self.replace_post(id, Some(post), None);
        for media in &post.content.media {
            let used = self.facts().media(*media).map(|media| media.used);
            // A picture detached by the same command stays.
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

    /// Stores the current version of a post before an edit.
    pub(crate) fn keep_version(&mut self, id: PostId, post: &Post) {
        let mut versions = self.facts().post_versions(id);
        PostVersion::keep(&mut versions, PostVersion::of(id, post));
        self.put_whole(&POST_VERSIONS, id, &versions);
    }

    /// Counts or uncounts a post of an author.
    pub(crate) fn count_post(&mut self, author: UserId, visibility: Visibility, up: bool) {
        let is_closed = !visibility.is_open();
        self.count(author, |counts| {
            adjust_count(&mut counts.posts, up);
            if is_closed {
                adjust_count(&mut counts.closed, up);
            }
        });
        self.total(|totals| {
            adjust_count(&mut totals.posts, up);
            if is_closed {
                adjust_count(&mut totals.posts_closed, up);
            }
        });
    }
}
