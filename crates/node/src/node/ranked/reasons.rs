//! Reasons for the posts of a page, checked when the page is read.

use feed::{FOLLOWED_TAGS, HomeAuthors, Post, PostId, Reaction, Tag, UserId, Viewer, Visibility};
use rank::{Feed, Source};
use store::Store;

use super::Node;
use super::feedback::Feedback;
use crate::views::ranked::{Item, Likers, Snapshot, language_number, tag_number};

/// Reason why a post is in a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The viewer follows the author.
    Followed,
    /// A followed user boosted the post, so that it is in the home timeline, or the post has a followed hashtag.
    AtHome,
    /// Followed users favourited or boosted the post.
    LikedByFollowed {
        /// Some of them; empty if the feed names no users.
        users: Vec<UserId>,
        /// Number of further users.
        others: u32,
    },
    /// The post is popular and has a hashtag that the viewer follows or uses.
    Hashtag(Tag),
    /// The post is popular in an interest group of the viewer.
    Group,
    /// The post is popular in its language, which the viewer uses.
    PopularInLanguage(String),
    /// The post is popular.
    Popular,
    /// The author has few posts.
    NewAuthor,
}

/// Reader of posts for a feed of a viewer.
pub(super) struct PageReader<'a> {
    node: &'a Node,
    viewer: &'a Viewer<'a, Store>,
    user: UserId,
    feed: &'a Feed,
    /// Authors in the viewer's home timeline.
    home: HomeAuthors,
    follows_tags: bool,
    feedback: Feedback,
}

impl<'a> PageReader<'a> {
    pub(super) fn new(
        node: &'a Node,
        viewer: &'a Viewer<'a, Store>,
        (user, feed): (UserId, &'a Feed),
        (home, follows_tags): (HomeAuthors, bool),
    ) -> Self {
        let feedback = Feedback::of(viewer.facts(), user);
        Self { node, viewer, user, feed, home, follows_tags, feedback }
    }

    /// Whether the feed may show a post to the viewer.
    pub(super) fn shows(&self, item: &Item) -> bool {
        self.shown(item).is_some()
    }

    /// Reads a post, and says whether the viewer follows the author, and else whether it is in the home timeline.
    /// `None` if the viewer may not see the post in the feed.
    fn shown(&self, item: &Item) -> Option<(Post, bool, bool)> {
        let facts = self.viewer.facts();
        let post = facts.post(item.post).filter(|post| self.viewer.wanted(post))?;
        let is_followed = self.home.has(post.author);
        let is_at_home = !is_followed && self.is_at_home(item, &post);
        let comes_from_home = is_at_home || is_followed && item.sources.contains(Source::Following);
        if self.feedback.hides(facts, self.user, (item.post, &post), comes_from_home) {
            return None;
        }
        let is_shown = match (is_followed, is_at_home) {
            (true, _) => post.visibility != Visibility::Direct,
            (false, true) => post.visibility == Visibility::Public,
            (false, false) => self.node.may_be_suggested(&post),
        };
        is_shown.then_some((post, is_followed, is_at_home))
    }

    /// Reasons for a post of a ranking that hold now; `None` if the viewer may not see the post in the feed.
    pub(super) fn reasons(&self, item: &Item, ranking: &Snapshot) -> Option<Vec<Reason>> {
        let (post, is_followed, is_at_home) = self.shown(item)?;
        let mut reasons = Vec::new();
        if is_followed {
            reasons.push(Reason::Followed);
        } else if is_at_home {
            reasons.push(Reason::AtHome);
        }
        reasons.extend(item.likers.as_ref().and_then(|likers| self.liked(item.post, likers)));
        if item.sources.contains(Source::FollowedHashtags) {
            let tags = post.tags().into_iter();
            let mut tags = tags.filter(|tag| ranking.has_tag(tag_number(tag)));
            reasons.extend(tags.next().map(Reason::Hashtag));
        }
        if item.sources.contains(Source::Groups) {
            reasons.push(Reason::Group);
        }
        let language =
            post.content.language.as_ref().filter(|language| language_number(language) != 0);
        let language = language.filter(|_| item.sources.contains(Source::PopularInLanguage));
        reasons
            .extend(language.map(|language| Reason::PopularInLanguage(language.as_str().into())));
        if item.sources.contains(Source::Popular) {
            reasons.push(Reason::Popular);
        }
        if item.explores || item.sources.contains(Source::NewAuthors) {
            reasons.push(Reason::NewAuthor);
        }
        Some(reasons)
    }

    /// Whether a post by an author who is not followed is in the home timeline: the boost that brought it there still
    /// does, or it has a followed hashtag.
    fn is_at_home(&self, item: &Item, post: &Post) -> bool {
        if !item.sources.contains(Source::Following) {
            return false;
        }
        let facts = self.viewer.facts();
        // Another followed user may have boosted the post too.
        let likers = item.likers.iter().flat_map(Likers::named);
        let is_boosted = item.booster.into_iter().chain(likers).any(|booster| {
            (booster == self.user || self.home.has_boosts_by(booster))
                && facts.reaction(booster, item.post, Reaction::Boost).is_some()
        });
        let follows = |tag: &Tag| facts.has_user_tag(&FOLLOWED_TAGS, self.user, tag);
        is_boosted || self.follows_tags && post.tags().iter().any(follows)
    }

    /// Reason with the followed users who still react to the post and whom the viewer wants to see.
    fn liked(&self, post: PostId, likers: &Likers) -> Option<Reason> {
        let facts = self.viewer.facts();
        let reacts = |other: UserId| {
            [Reaction::Favourite, Reaction::Boost]
                .into_iter()
                .any(|reaction| facts.reaction(other, post, reaction).is_some())
        };
        let mut users: Vec<_> = likers.named().collect();
        let others = likers.count.saturating_sub(users.len() as u32);
        users.retain(|other| self.home.has(*other) && reacts(*other));
        if users.is_empty() {
            return None;
        }
        match self.feed.names_users() {
            true => Some(Reason::LikedByFollowed { users, others }),
            false => {
                let others = others + users.len() as u32;
                Some(Reason::LikedByFollowed { users: Vec::new(), others })
            }
        }
    }
}

impl Node {
    /// Whether a post may be shown to users who do not follow its author. May block.
    pub(super) fn may_be_suggested(&self, post: &Post) -> bool {
        let is_plain = post.visibility == Visibility::Public
            && post.boost.is_none()
            && !post.content.sensitive
            && post.content.warning.as_str().is_empty();
        is_plain && self.names(post.author).is_some_and(|author| !author.is_undiscoverable())
    }
}
