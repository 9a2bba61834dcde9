//! The expected hashtags: those of posts are looked for in all texts.

use feed::limits::FEATURED_TAGS_MAX;
use feed::{Done, Outcome, Page, PageOf, PostId, Refusal, Tag, UserRef, Visibility};

use super::feed::Feed;
use super::page_of;

impl Feed {
    pub(super) fn feature_tag(
        &mut self,
        stamp: u64,
        user: &UserRef,
        tag: &Tag,
        on: bool,
    ) -> Outcome {
        let user = self.resolve(user)?;
        let key = (user, tag.as_str().to_owned());
        if !on {
            self.featured_tags.remove(&key);
            return Ok(Done::TagFeatured);
        }
        let of_user = self.featured_tags.keys().filter(|(one, _)| *one == user).count();
        if !self.featured_tags.contains_key(&key) && of_user >= FEATURED_TAGS_MAX {
            return Err(Refusal::TooManyTags);
        }
        self.featured_tags.entry(key).or_insert(stamp);
        Ok(Done::TagFeatured)
    }

    /// A page of the posts with a hashtag as a user sees them.
    pub(crate) fn tagged(&self, user: u32, tag: &str, page: &Page) -> PageOf<PostId> {
        let is_shown = |author: u32| {
            !self.are_hidden(author, user) && !self.mutes.contains_key(&(user, author))
        };
        let has_tag = |text: &str| {
            let words = text.to_lowercase();
            words.split_whitespace().any(|word| word.strip_prefix('#') == Some(tag))
        };
        let newest_first = self.posts.iter().rev().filter(|(_, post)| {
            post.visibility == Visibility::Public && is_shown(post.author) && has_tag(&post.text)
        });
        page_of(newest_first.map(|(id, _)| *id), page)
    }
}
