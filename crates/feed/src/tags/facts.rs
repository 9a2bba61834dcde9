//! Facts about hashtags: those of public posts, those that profiles show, and those that users follow.
//!
//! **Invariant:** the rows of posts follow from public posts, so they take at most twice the bytes of hashtags in
//! texts, and a deleted post leaves none.

use rows::{NameTable, PutRows, Rows, Stamp, Value, decode, encode};

use crate::facts::{Facts, Txn};
use crate::ids::{PostId, UserId};
use crate::index;
use crate::limits::{FEATURED_TAGS_MAX, FOLLOWED_TAGS_MAX};
use crate::refusal::Refusal;
use crate::similar::similar;
use crate::tags::{Tag, Tagged, UserTag};

/// Declaration of a list of hashtags of a user.
#[derive(Debug)]
pub struct UserTags {
    table: NameTable,
    /// Maximum number of hashtags of one user.
    pub max: usize,
    /// Refusal of a hashtag above the limit.
    pub too_many: Refusal,
}

/// Hashtags that profiles show.
pub const FEATURED_TAGS: UserTags = UserTags {
    table: NameTable::FeaturedTag,
    max: FEATURED_TAGS_MAX,
    too_many: Refusal::TooManyTags,
};

/// Hashtags that users follow.
pub const FOLLOWED_TAGS: UserTags = UserTags {
    table: NameTable::FollowedTag,
    max: FOLLOWED_TAGS_MAX,
    too_many: Refusal::TooManyFollowedTags,
};

impl UserTags {
    /// Adds a hashtag of a user since this stamp, or with `None` removes it.
    pub fn put(
        &self,
        rows: &mut (impl PutRows + ?Sized),
        user: UserId,
        tag: &Tag,
        since: Option<Stamp>,
    ) {
        rows.put_name(self.table, &key(user, tag), since.map(|since| encode(&since.0)));
    }
}

fn key(user: UserId, tag: &Tag) -> Value {
    let mut key = Value::from_slice(&user.0.to_be_bytes());
    key.extend_from_slice(tag.as_str().as_bytes());
    key
}

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Newest public posts with a hashtag that are older than `before`, at most `limit`. Authors may be deleted: see
    /// [`Facts::is_being_erased`].
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
        let Some(last) = before.0.checked_sub(1).filter(|_| !self.is_being_erased(author)) else {
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
        self.user_tags(&FEATURED_TAGS, user)
    }

    /// Hashtags that a user follows, in their order.
    #[must_use]
    pub fn followed_tags(&self, user: UserId) -> Vec<UserTag> {
        self.user_tags(&FOLLOWED_TAGS, user)
    }

    /// Whether a user has a hashtag in this list.
    #[must_use]
    pub fn has_user_tag(&self, tags: &UserTags, user: UserId, tag: &Tag) -> bool {
        self.rows.name(tags.table, &key(user, tag)).is_some()
    }

    /// Whether a user follows any hashtag.
    #[must_use]
    pub fn follows_tags(&self, user: UserId) -> bool {
        let start = user.0.to_be_bytes();
        !self.rows.names_under(NameTable::FollowedTag, &start, &[], 1).is_empty()
    }

    /// Hashtags of a user, in their order.
    pub(crate) fn user_tags(&self, all: &UserTags, user: UserId) -> Vec<UserTag> {
        let start = user.0.to_be_bytes();
        let tags = self.rows.names_under(all.table, &start, &[], all.max);
        // The row may have been removed meanwhile.
        let found = |tag: &Vec<u8>| {
            let name = [&start[..], tag].concat();
            let since = Stamp(decode(&self.rows.name(all.table, &name)?));
            Some(UserTag { tag: Tag::of_row(tag)?, since })
        };
        tags.iter().filter_map(found).collect()
    }
}

impl Txn<'_> {
    /// Adds a hashtag of a user since this stamp, or with `None` removes it.
    pub(crate) fn put_user_tag(
        &mut self,
        tags: &UserTags,
        user: UserId,
        tag: &Tag,
        since: Option<Stamp>,
    ) {
        tags.put(self.rows, user, tag, since);
    }

    /// Removes all hashtags that a user's profile shows or that the user follows.
    pub(crate) fn remove_user_tags(&mut self, user: UserId) {
        for tags in [FEATURED_TAGS, FOLLOWED_TAGS] {
            for found in self.facts().user_tags(&tags, user) {
                self.put_user_tag(&tags, user, &found.tag, None);
            }
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
