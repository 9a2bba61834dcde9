//! The entities `Tag` and `FeaturedTag`.

use std::collections::HashSet;

use feed::facts::{Tagged, UserTag};
use feed::{PostId, Tag, UserId};
use serde_json::{Value, json};

use super::time::day;
use super::{Entities, html};

/// Newest posts with a hashtag that its history counts.
const POSTS_COUNTED: usize = 400;
/// Newest posts with a hashtag of which the reader must see one to find the hashtag.
const POSTS_LOOKED_AT: usize = 40;
/// Newest posts of a user with a hashtag that are counted.
const OWN_POSTS_COUNTED: usize = 1_000;
/// Days of a history, today included.
const DAYS: u64 = 7;
const DAY_MS: u64 = 86_400_000;

/// The newest posts with a hashtag that the reader may see.
pub(crate) struct VisibleTagged {
    posts: Vec<Tagged>,
    /// The last post that was read, if there may be more.
    rest: Option<PostId>,
}

impl Entities<'_> {
    /// A hashtag, with the posts and users of each of the last days among its newest posts.
    pub(crate) fn tag(&self, tag: &Tag, now_ms: u64) -> Value {
        self.tag_of(tag, &self.visible_tagged(tag, PostId(u64::MAX)), now_ms)
    }

    /// Those of the newest posts with a hashtag that the reader may see; none if there is none. Passes over posts that are
    /// hidden from the reader as long as `rest` lasts, from which it takes them.
    pub(crate) fn used_tag(&self, tag: &Tag, rest: &mut usize) -> Option<VisibleTagged> {
        let mut found = self.visible_tagged(tag, PostId(u64::MAX));
        while found.posts.is_empty() {
            let last = found.rest?;
            *rest = rest.checked_sub(POSTS_LOOKED_AT)?;
            found = self.visible_tagged(tag, last);
        }
        Some(found)
    }

    fn visible_tagged(&self, tag: &Tag, before: PostId) -> VisibleTagged {
        let mut posts = self.facts().tagged(tag, before, POSTS_LOOKED_AT);
        let rest = posts.last().filter(|_| posts.len() >= POSTS_LOOKED_AT).map(|(post, _)| *post);
        posts.retain(|(_, author)| self.is_visible(*author));
        VisibleTagged { posts, rest }
    }

    /// The entity of a hashtag with these newest posts.
    pub(crate) fn tag_of(&self, tag: &Tag, found: &VisibleTagged, now_ms: u64) -> Value {
        let rest = found.rest.map_or_else(Vec::new, |last| {
            self.facts().tagged(tag, last, POSTS_COUNTED - POSTS_LOOKED_AT)
        });
        let rest = rest.into_iter().filter(|(_, author)| self.is_visible(*author));
        let posts: Vec<Tagged> = found.posts.iter().copied().chain(rest).collect();
        let today = now_ms / DAY_MS;
        let history = (0..DAYS).filter_map(|ago| today.checked_sub(ago)).map(|day| {
            let of_day = posts.iter().filter(|(post, _)| post.unix_ms() / DAY_MS == day);
            let accounts: HashSet<_> = of_day.clone().map(|(_, author)| author).collect();
            json!({
                "day": (day * DAY_MS / 1_000).to_string(),
                "uses": of_day.count().to_string(),
                "accounts": accounts.len().to_string(),
            })
        });
        json!({
            "id": tag.as_str(),
            "name": tag.as_str(),
            "url": html::tag_url(self.base(), tag.as_str()),
            "history": history.collect::<Vec<_>>(),
            "following": self.reader.is_some_and(|reader| self.facts().follows_tag(reader, tag)),
            "featuring": self.reader.is_some_and(|reader| self.facts().features_tag(reader, tag)),
        })
    }

    /// A hashtag that the profile of a user shows.
    pub(crate) fn featured_tag(&mut self, user: UserId, featured: &UserTag) -> Option<Value> {
        let handle = self.handle(user)?;
        let newest = PostId(u64::MAX);
        let posts = self.facts().tagged_by(user, &featured.tag, newest, OWN_POSTS_COUNTED);
        let name = featured.tag.as_str();
        let tag: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
        Some(json!({
            "id": featured.since.0.to_string(),
            "name": name,
            "url": format!("{}/@{handle}/tagged/{tag}", self.base()),
            "statuses_count": posts.len().to_string(),
            "last_status_at": posts.first().map(|post| day(post.unix_ms())),
        }))
    }
}
