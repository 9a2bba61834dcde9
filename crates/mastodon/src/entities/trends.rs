//! Trends: hashtags that several users have used recently.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use feed::post_lists::PublicList;
use feed::{Order, Span, Tag, UserId};

use super::Entities;

/// Maximum number of the newest rows of the public timeline that are scanned, and of their posts that are read.
const ROWS_READ_MAX: usize = 20_000;
const POSTS_READ_MAX: usize = 1_000;
/// Maximum number of posts read per user, so that users who post a lot do not displace others.
const USER_POSTS_MAX: usize = 20;
/// Maximum age of the posts, in milliseconds: the days that a hashtag's history shows.
const AGE_MS: u64 = 7 * 86_400_000;
/// Minimum number of users of a trending hashtag, so that a single user cannot make a trend.
const USERS_MIN: usize = 2;
/// Maximum number of trending hashtags.
pub(crate) const TRENDS_MAX: usize = 40;

impl Entities<'_> {
    /// Hashtags used by the most users in the newest public posts; the same for every reader.
    pub(crate) fn trending_tags(&self, now_ms: u64) -> Vec<Tag> {
        let everybody = Entities::new(self.renderer, None);
        // Number of posts of each author that may still be read.
        let mut left: HashMap<UserId, usize> = HashMap::new();
        let mut is_read = |author| {
            let all = || if everybody.is_visible(author) { USER_POSTS_MAX } else { 0 };
            let left = left.entry(author).or_insert_with(all);
            let is_read = *left > 0;
            *left = left.saturating_sub(1);
            is_read
        };
        let mut uses: HashMap<Tag, (HashSet<UserId>, usize)> = HashMap::new();
        let facts = everybody.facts();
        let newest = Span { limit: ROWS_READ_MAX, order: Order::Descending, ..Span::ALL };
        let posts = facts.public_posts(PublicList::Posts, newest).into_iter();
        let recent = posts.take_while(|(id, _)| id.unix_ms() + AGE_MS >= now_ms);
        let read = recent.filter(|(_, author)| is_read(*author)).take(POSTS_READ_MAX);
        for (id, author) in read {
            let Some(post) = facts.post(id) else { continue };
            for tag in post.tags() {
                let (users, times) = uses.entry(tag).or_default();
                users.insert(author);
                *times += 1;
            }
        }
        let found = uses.into_iter().map(|(tag, (users, times))| (users.len(), times, tag));
        let mut found: Vec<_> = found.filter(|(users, ..)| *users >= USERS_MIN).collect();
        found.sort_unstable_by_key(|(users, times, tag)| (Reverse((*users, *times)), tag.clone()));
        found.truncate(TRENDS_MAX);
        found.into_iter().map(|(.., tag)| tag).collect()
    }
}
