//! Facts about hashtags: those of public posts, those that profiles show, and those that users follow.
//!
//! **Invariant:** the rows of posts follow from public posts, so they take at most twice the bytes of hashtags in
//! texts, and a deleted post leaves none.

use rows::{NameTable, Rows, Stamp, decode};

use crate::facts::{Facts, Txn};
use crate::ids::{PostId, UserId};
use crate::index;
use crate::limits::{FEATURED_TAGS_MAX, FOLLOWED_TAGS_MAX};
use crate::similar::similar;
use crate::tags::{Tag, Tagged, UserTag};
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Newest public posts with a hashtag that are older than `before`, at most `limit`. Authors may be deleted: see
    /// [`Facts::is_hidden`].
    #[must_use]
    pub fn tagged(&self, tag: &Tag, before: PostId, limit: usize) -> Vec<Tagged> {
        let Some(last) = before.0.checked_sub(1) else { return Vec::new() };
        let (tag, from) = ([tag.as_str().as_bytes(), &[0]].concat(), (!last).to_be_bytes());
        let posts = self.rows.names_under(NameTable::TagPost, &tag, &from, limit);
        let found = posts.iter().filter_map(|post| {
            let (post, author) = post.split_first_chunk()?;
            let author = u32::from_be_bytes(*author.first_chunk()?);
            Some((PostId(!u64::from_be_bytes(*post)), UserId(author)))
        });
        found.collect()
    }

    /// Whether a public post by `author` has the hashtag.
    #[must_use]
    pub fn has_tag(&self, tag: &Tag, (post, author): Tagged) -> bool {
        let [of_tag, _] = index::of_tag(tag, (post, author));
        of_tag.is_at(self.rows)
    }

    /// Newest public posts of one author with a hashtag that are older than `before`, at most `limit`.
    #[must_use]
    pub fn tagged_by(
        &self,
        author: UserId,
        tag: &Tag,
        before: PostId,
        limit: usize,
    ) -> Vec<PostId> {
        let Some(last) = before.0.checked_sub(1).filter(|_| !self.is_hidden(author)) else {
            return Vec::new();
        };
        let start = [&author.0.to_be_bytes()[..], tag.as_str().as_bytes(), &[0]].concat();
        let from = (!last).to_be_bytes();
        let posts = self.rows.names_under(NameTable::AuthorTag, &start, &from, limit);
        let ids = posts.iter().filter_map(|id| Some(!u64::from_be_bytes(*id.first_chunk()?)));
        ids.map(PostId).collect()
    }

    /// Hashtags of public posts with a prefix similar to `start`, not `start` itself: at most `limit`, with at most 500
    /// reads.
    #[must_use]
    pub fn tags_similar(&self, start: &str, limit: usize) -> Vec<Tag> {
        let found = similar(start, limit, |begins, from| self.first_tag(begins, from));
        found.iter().filter_map(|tag| Tag::of_row(tag.as_bytes())).collect()
    }

    /// First hashtag of a public post that begins with `prefix` and whose remaining bytes are not below `from`.
    pub(crate) fn first_tag(&self, prefix: &str, from: &[u8]) -> Option<String> {
        let found = self.rows.names_under(NameTable::TagPost, prefix.as_bytes(), from, 1).pop()?;
        let rest = found.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8([prefix.as_bytes(), rest].concat()).ok()
    }

    /// Hashtags that a profile shows, in their order.
    #[must_use]
    pub fn featured_tags(&self, user: UserId) -> Vec<UserTag> {
        self.user_tags(NameTable::FeaturedTag, user, FEATURED_TAGS_MAX)
    }

    /// Hashtags that a user follows, in their order.
    #[must_use]
    pub fn followed_tags(&self, user: UserId) -> Vec<UserTag> {
        self.user_tags(NameTable::FollowedTag, user, FOLLOWED_TAGS_MAX)
    }

    /// Whether a user follows a hashtag.
    #[must_use]
    pub fn follows_tag(&self, user: UserId, tag: &Tag) -> bool {
        self.rows.name(NameTable::FollowedTag, &write::user_tag_key(user, tag)).is_some()
    }

    /// Whether a user's profile shows a hashtag.
    #[must_use]
    pub fn features_tag(&self, user: UserId, tag: &Tag) -> bool {
        self.rows.name(NameTable::FeaturedTag, &write::user_tag_key(user, tag)).is_some()
    }

    /// Whether a user follows any hashtag.
    #[must_use]
    pub fn follows_tags(&self, user: UserId) -> bool {
        let start = user.0.to_be_bytes();
        !self.rows.names_under(NameTable::FollowedTag, &start, &[], 1).is_empty()
    }

    fn user_tags(&self, table: NameTable, user: UserId, limit: usize) -> Vec<UserTag> {
        let start = user.0.to_be_bytes();
        let tags = self.rows.names_under(table, &start, &[], limit);
        // The row may have been removed meanwhile.
        let found = |tag: &Vec<u8>| {
            let name = [&start[..], tag].concat();
            let since = Stamp(decode(&self.rows.name(table, &name)?));
            Some(UserTag { tag: Tag::of_row(tag)?, since })
        };
        tags.iter().filter_map(found).collect()
    }
}

impl Txn<'_> {
    /// Adds a hashtag to a profile since this stamp, or with `None` removes it.
    pub(crate) fn put_featured_tag(&mut self, user: UserId, tag: &Tag, since: Option<Stamp>) {
        write::featured_tag(self.rows, user, tag, since.map(|since| since.0));
    }

    /// Makes a user follow a hashtag since this stamp, or with `None` unfollow it.
    pub(crate) fn put_followed_tag(&mut self, user: UserId, tag: &Tag, since: Option<Stamp>) {
        write::followed_tag(self.rows, user, tag, since.map(|since| since.0));
    }

    /// Removes all hashtags that a user's profile shows or that the user follows.
    pub(crate) fn remove_user_tags(&mut self, user: UserId) {
        for featured in self.facts().featured_tags(user) {
            self.put_featured_tag(user, &featured.tag, None);
        }
        for followed in self.facts().followed_tags(user) {
            self.put_followed_tag(user, &followed.tag, None);
        }
    }
}

impl<'r, R: Rows + ?Sized> Facts<'r, R> {
    /// Hashtags of public posts that begin with `prefix`, in order. Each takes one short read when the iterator reaches
    /// it.
    pub fn tags_by_prefix(self, prefix: &str) -> impl Iterator<Item = Tag> + use<'r, R> {
        let (prefix, mut from) = (prefix.to_owned(), Vec::new());
        let names = std::iter::from_fn(move || {
            let name = self.first_tag(&prefix, &from)?;
            // Lower bound above all posts with this hashtag, and below longer hashtags.
            from = [name.as_bytes().get(prefix.len()..).unwrap_or_default(), &[1]].concat();
            Some(name)
        });
        names.filter_map(|name| Tag::of_row(name.as_bytes()))
    }
}
