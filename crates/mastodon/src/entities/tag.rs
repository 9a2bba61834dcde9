//! Entities `Tag` and `FeaturedTag`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use feed::facts::UserTag;
use feed::{FEATURED_TAGS, FOLLOWED_TAGS, PostId, Tag, UserId};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::time::day;
use super::{Entities, html};

/// Maximum number of posts that a hashtag's history counts: the newest public ones.
const POSTS_COUNTED: usize = 400;
/// Maximum number of posts that are read for a history, as a multiple of the counted ones.
const COUNTED_READS_MAX: usize = 4;
/// Number of posts with a hashtag that are checked at a time, until one is visible to the reader.
const POSTS_LOOKED_AT: usize = 40;
/// Number of posts that are checked first.
const FIRST_LOOKED_AT: usize = 4;
/// Maximum number of hidden posts that are checked per hashtag. After that, all hashtags of a request share another
/// maximum.
const OWN_LOOKED_AT: usize = 164;
/// Maximum number of posts of a user with a hashtag that are counted: the newest.
const OWN_POSTS_COUNTED: usize = 1_000;
/// Number of days of a history, including today.
const DAYS: usize = 7;
const DAY_MS: u64 = 86_400_000;

/// Time for which a history is cached, in milliseconds, if no new post has its hashtag.
const KEPT_MS: u64 = 60_000;
/// Maximum number of cached histories, of about 250 bytes each.
const KEPT_MAX: usize = 1_024;

/// Uses of a hashtag on one day: number of posts, and of users who wrote them.
type Uses = [usize; 2];

/// Cached histories of hashtags, the same for all readers.
#[derive(Default)]
pub(crate) struct Histories(Mutex<HashMap<Tag, History>>);

#[derive(Clone)]
struct History {
    /// Id of the newest post with the hashtag at the time of counting.
    newest: PostId,
    counted_ms: u64,
    days: Arc<[Uses]>,
}

impl Histories {
    fn find(&self, tag: &Tag, newest: PostId, now_ms: u64) -> Option<Arc<[Uses]>> {
        let histories = self.0.lock();
        let kept = histories.get(tag).filter(|kept| kept.newest == newest)?;
        kept.is_current(now_ms).then(|| Arc::clone(&kept.days))
    }

    fn keep(&self, tag: &Tag, history: History) {
        let mut histories = self.0.lock();
        if histories.len() >= KEPT_MAX {
            histories.retain(|_, kept| kept.is_current(history.counted_ms));
        }
        if histories.len() >= KEPT_MAX {
            histories.clear();
        }
        histories.insert(tag.clone(), history);
    }
}

impl History {
    fn is_current(&self, now_ms: u64) -> bool {
        now_ms.abs_diff(self.counted_ms) < KEPT_MS && now_ms / DAY_MS == self.counted_ms / DAY_MS
    }
}

impl Entities<'_> {
    /// Whether the reader may see a post with a hashtag. Checks [`OWN_LOOKED_AT`] posts, then as many more as `rest`
    /// allows, and subtracts those from `rest`.
    pub(crate) fn is_used(&self, tag: &Tag, rest: &mut usize) -> bool {
        // One of the first few posts is almost always visible.
        let (mut before, mut limit) = (PostId(u64::MAX), FIRST_LOOKED_AT);
        let mut own = OWN_LOOKED_AT;
        loop {
            if self.is_abandoned() {
                return false;
            }
            let posts = self.facts().tagged(tag, before, limit);
            if posts.iter().any(|(_, author)| self.is_visible(*author)) {
                return true;
            }
            let last = posts.last().filter(|_| posts.len() >= limit);
            let left = if own >= limit { &mut own } else { &mut *rest };
            let (Some((last, _)), Some(less)) = (last, left.checked_sub(limit)) else {
                return false;
            };
            *left = less;
            (before, limit) = (*last, POSTS_LOOKED_AT);
        }
    }

    /// Entity of a hashtag, with the numbers of posts and users of each of the last days, among its newest public
    /// posts.
    pub(crate) fn tag(&self, tag: &Tag, now_ms: u64) -> Value {
        let days = self.days(tag, now_ms);
        let today = now_ms / DAY_MS;
        let history = days.iter().zip(0..).filter_map(|([posts, users], ago)| {
            let day = today.checked_sub(ago)?;
            Some(json!({
                "day": (day * DAY_MS / 1_000).to_string(),
                "uses": posts.to_string(),
                "accounts": users.to_string(),
            }))
        });
        let is_in =
            |tags| self.reader.is_some_and(|reader| self.facts().has_user_tag(&tags, reader, tag));
        json!({
            "id": tag.as_str(),
            "name": tag.as_str(),
            "url": html::tag_url(self.base(), tag.as_str()),
            "history": history.collect::<Vec<_>>(),
            "following": is_in(FOLLOWED_TAGS),
            "featuring": is_in(FEATURED_TAGS),
        })
    }

    /// Uses of a hashtag today and on the days before.
    fn days(&self, tag: &Tag, now_ms: u64) -> Arc<[Uses]> {
        let newest = self.facts().tagged(tag, PostId(u64::MAX), 1);
        let Some((newest, _)) = newest.first().copied() else { return Arc::new([[0; 2]; DAYS]) };
        let histories = &self.renderer.histories;
        histories.find(tag, newest, now_ms).unwrap_or_else(|| {
            let days = self.count_uses(tag, now_ms).into();
            histories.keep(tag, History { newest, counted_ms: now_ms, days: Arc::clone(&days) });
            days
        })
    }

    fn count_uses(&self, tag: &Tag, now_ms: u64) -> [Uses; DAYS] {
        let everybody = Entities::new(self.renderer, None);
        let mut shown: HashMap<UserId, bool> = HashMap::new();
        let mut days: [(usize, HashSet<UserId>); DAYS] = Default::default();
        let (mut before, mut left) = (PostId(u64::MAX), POSTS_COUNTED);
        for _ in 0..COUNTED_READS_MAX {
            let read = self.facts().tagged(tag, before, POSTS_COUNTED);
            for (post, author) in &read {
                let ago = (now_ms / DAY_MS).checked_sub(post.unix_ms() / DAY_MS);
                let day = ago.and_then(|ago| days.get_mut(usize::try_from(ago).ok()?));
                let Some((posts, users)) = day.filter(|_| left > 0) else { continue };
                if *shown.entry(*author).or_insert_with(|| everybody.is_visible(*author)) {
                    *posts += 1;
                    users.insert(*author);
                    left -= 1;
                }
            }
            let is_last = read.len() < POSTS_COUNTED || left == 0;
            let Some((last, _)) = read.last().filter(|_| !is_last) else { break };
            before = *last;
        }
        days.map(|(posts, users)| [posts, users.len()])
    }

    /// Entity of a hashtag that a user features on the profile.
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
