//! Expected hashtags. Those of posts are found by searching all texts.

use std::collections::BTreeMap;

use feed::limits::{FEATURED_TAGS_MAX, FOLLOWED_TAGS_MAX};
use feed::{Done, Outcome, Page, PageOf, PostId, Refusal, Tag, UserRef, Visibility};

use super::feed::Feed;
use super::page_of;
use super::posts::ModelPost;

impl Feed {
    pub(super) fn feature_tag(
        &mut self,
        stamp: u64,
        user: &UserRef,
        tag: &Tag,
        on: bool,
    ) -> Outcome {
        let user = self.resolve(user)?;
        let is_kept =
            set(&mut self.featured_tags, (user, tag), on.then_some(stamp), FEATURED_TAGS_MAX);
        is_kept.then_some(Done::TagFeatured).ok_or(Refusal::TooManyTags)
    }

    pub(super) fn follow_tag(
        &mut self,
        stamp: u64,
        user: &UserRef,
        tag: &Tag,
        on: bool,
    ) -> Outcome {
        let user = self.resolve(user)?;
        let is_kept =
            set(&mut self.followed_tags, (user, tag), on.then_some(stamp), FOLLOWED_TAGS_MAX);
        is_kept.then_some(Done::TagFollowed).ok_or(Refusal::TooManyFollowedTags)
    }

    /// Hashtags that a user follows, in order, with the stamp of each follow.
    pub(crate) fn followed_tags_of(&self, user: u32) -> impl Iterator<Item = (&str, u64)> {
        let all = self.followed_tags.iter().filter(move |((one, _), _)| *one == user);
        all.map(|((_, tag), since)| (tag.as_str(), *since))
    }

    /// Whether a post is public and has a hashtag, and `reader` neither hides nor mutes its author.
    pub(super) fn is_tagged(&self, reader: u32, post: &ModelPost, tag: &str) -> bool {
        let author = post.author;
        post.visibility == Visibility::Public
            && post.boost.is_none()
            && !self.are_hidden(reader, author)
            && !self.mutes.contains_key(&(reader, author))
            && post
                .content
                .text
                .as_str()
                .to_lowercase()
                .split_whitespace()
                .any(|word| hashtag(word) == Some(tag))
    }

    /// Page of the posts that have any of some hashtags, all of others, and none of others, as a user sees them.
    pub(crate) fn tagged(
        &self,
        user: u32,
        [any, all, none]: [&[String]; 3],
        page: &Page,
    ) -> PageOf<PostId> {
        let is_found = |post: &ModelPost| {
            let has = |tag: &String| self.is_tagged(user, post, tag);
            any.iter().any(has) && all.iter().all(has) && !none.iter().any(has)
        };
        let newest_first = self.posts.iter().rev().filter(|(_, post)| is_found(post));
        page_of(newest_first.map(|(id, _)| *id), page)
    }
}

/// Returns the hashtag in a word of a text. Punctuation may surround it.
fn hashtag(word: &str) -> Option<&str> {
    word.trim_matches(['(', ')', '.', '!']).strip_prefix(['#', '\u{ff03}'])
}

/// Adds a hashtag with a stamp for a user, or removes it. Returns false if the user already has `most` other hashtags.
fn set(
    tags: &mut BTreeMap<(u32, String), u64>,
    (user, tag): (u32, &Tag),
    since: Option<u64>,
    most: usize,
) -> bool {
    let key = (user, tag.as_str().to_owned());
    let Some(since) = since else {
        tags.remove(&key);
        return true;
    };
    let of_user = tags.keys().filter(|(one, _)| *one == user).count();
    if !tags.contains_key(&key) && of_user >= most {
        return false;
    }
    tags.entry(key).or_insert(since);
    true
}
