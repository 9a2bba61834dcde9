//! The entities `Tag` and `FeaturedTag`.

use std::collections::HashSet;

use feed::facts::UserTag;
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

impl Entities<'_> {
    /// A hashtag, with the posts and users of each of the last days among its newest posts.
    pub(crate) fn tag(&self, tag: &Tag, now_ms: u64) -> Value {
        let mut posts = self.facts().tagged(tag, PostId(u64::MAX), POSTS_COUNTED);
        posts.retain(|(_, author)| self.is_visible(*author));
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
        let is_shown = |reader| {
            let shown = self.facts().featured_tags(reader);
            shown.iter().any(|featured| featured.tag == *tag)
        };
        json!({
            "id": tag.as_str(),
            "name": tag.as_str(),
            "url": html::tag_url(self.base(), tag.as_str()),
            "history": history.collect::<Vec<_>>(),
            "following": self.reader.is_some_and(|reader| self.facts().follows_tag(reader, tag)),
            "featuring": self.reader.is_some_and(is_shown),
        })
    }

    /// Whether the reader may see one of the newest posts with a hashtag.
    pub(crate) fn is_used(&self, tag: &Tag) -> bool {
        let posts = self.facts().tagged(tag, PostId(u64::MAX), POSTS_LOOKED_AT);
        posts.iter().any(|(_, author)| self.is_visible(*author))
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
