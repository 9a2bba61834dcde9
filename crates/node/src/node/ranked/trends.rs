//! Popular posts, authors and hashtags of the view for ranked feeds, without a ranking for a user.

use std::sync::LazyLock;

use feed::{PostId, Stamp, Tag, UserId, Viewer};
use hashbrown::HashMap;
use rank::Feeds;
use store::Store;

use super::Node;
use crate::views::ranked::tag_number;

/// Maximum age of the posts of a popular hashtag, in milliseconds: a week.
const TAGGED_MS: u64 = 7 * 86_400_000;

impl Node {
    /// Returns the popular posts with any reaction that the viewer may see and wants, the most popular first. May
    /// block.
    #[must_use]
    pub fn popular(&self, viewer: &Viewer<'_, Store>) -> Vec<PostId> {
        self.catch_up_ranked();
        let facts = viewer.facts();
        let mut posts = self.views().ranked.popular();
        posts.retain(|post| {
            let post = facts.post(*post).filter(|post| viewer.wanted(post));
            post.is_some_and(|post| self.may_be_suggested(&post))
        });
        posts
    }

    /// Returns at most `max` users whom `user` may want to follow: the authors of the posts in the built-in feed
    /// `explore`, in its order. May block.
    #[must_use]
    pub fn suggested(&self, user: UserId, max: usize) -> Vec<UserId> {
        static FEEDS: LazyLock<Feeds> = LazyLock::new(Feeds::default);
        const FEED: &str = "explore";
        self.catch_up_ranked();
        let Some(feed) = FEEDS.named(FEED) else { unreachable!("it is built in") };
        let viewer = self.viewer(Some(user));
        let facts = viewer.facts();
        let ranking = self.ranking(&viewer, user, (FEED, feed), None).0;
        let items = (0..ranking.len()).filter_map(|place| ranking.item(place));
        let authors = items.filter_map(|item| {
            let post = facts.post(item.post).filter(|post| viewer.wanted(post))?;
            let author = post.author;
            let is_known = facts.follows(user, author) || facts.requests(user, author);
            (!is_known && self.may_be_suggested(&post)).then_some(author)
        });
        authors.take(max).collect()
    }

    /// Whether the view for ranked feeds has all recent posts: until then, few posts are popular.
    #[must_use]
    pub fn knows_popular(&self) -> bool {
        self.views().ranked.is_loaded()
    }

    /// Returns at most `max` hashtags that at least two users have used in popular posts of the last seven days, the
    /// most popular first; the same for all viewers. Reads at most 64 posts for each of twice as many hashtags. May
    /// block.
    #[must_use]
    pub fn popular_tags(&self, max: usize) -> Vec<Tag> {
        self.catch_up_ranked();
        let everybody = Viewer::anyone(self.facts());
        let since = PostId(Stamp::first_of(self.now_ms().saturating_sub(TAGGED_MS)).0);
        let found = self.views().ranked.popular_tags(since, 2 * max).into_iter();
        found
            .filter_map(|(number, posts)| self.shared_tag(&everybody, number, &posts))
            .take(max)
            .collect()
    }

    /// Returns a hashtag with this number that two authors of the posts use. Several hashtags may have a number.
    fn shared_tag(&self, viewer: &Viewer<'_, Store>, number: u32, posts: &[PostId]) -> Option<Tag> {
        let mut users = HashMap::<Tag, UserId>::new();
        let posts = posts.iter().filter_map(|post| viewer.facts().post(*post));
        for post in posts.filter(|post| viewer.wanted(post) && self.may_be_suggested(post)) {
            for tag in post.tags().into_iter().filter(|tag| tag_number(tag) == number) {
                if *users.entry(tag.clone()).or_insert(post.author) != post.author {
                    return Some(tag);
                }
            }
        }
        None
    }
}
