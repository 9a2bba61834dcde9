//! Ranked feeds: the thread that keeps their view current, and pages of a feed with reasons.
//!
//! The first read of a ranked feed loads the view and starts the thread, so a server on which nobody reads one does no
//! work for them. A read shows all earlier changes, unless there are too many.
//!
//! **Invariant:** a page has only posts that [`Viewer::wanted`] accepts when the page is read, and no direct posts. A
//! post by an author whom the viewer does not follow is public; unless a followed user boosted it or it has a followed
//! hashtag, it is also not sensitive, without a warning, and by an author who may be suggested to others.
//!
//! The users and hashtags of a reason are checked when the page is read; the other reasons are as of the ranking.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use feed::limits::PAGE_MAX;
use feed::{Facts, Page, PageOf, Post, PostId, Reaction, Tag, UserId, Viewer, Visibility};
use hashbrown::{HashMap, HashSet};
use rank::{Feature, Features, Feed, Feeds, Source, rank};
use rows::{SetTable, Span};
use store::{Store, unless_unreadable};

use super::Node;
use crate::shared::Shared;
use crate::threads::spawn;
use crate::views::ranked::{AtHome, Item, Likers, Snapshot, Taste, language_number, tag_number};
use feedback::{Feedback, less};

/// Interval of the thread.
const INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of pages of the home timeline that are read for candidates.
const HOME_PAGES_MAX: usize = 3;
/// Maximum number of candidates of the home timeline by one author or boosted by one user, in feeds that limit the posts
/// of an author to fewer.
const AT_HOME_PER_USER: usize = 4;
/// Maximum number of users of each kind whose posts are left out before they take a place: blocked, blocking, muted.
const HIDDEN_READ: usize = 1_000;
/// Number of newest posts of the viewer that show their interests.
const OWN_READ: usize = 20;

/// Requested page of a ranked feed.
#[derive(Clone, Copy, Debug, Default)]
pub struct RankedPage {
    /// Place at which the page begins; `None` for a new ranking.
    pub place: Option<RankedPlace>,
    /// Maximum number of posts.
    pub limit: usize,
    /// Whether a new ranking keeps the features of its posts.
    pub explains: bool,
}

/// Place in a ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankedPlace {
    /// Number of the snapshot of the ranking.
    pub snapshot: u64,
    /// Number of posts before the place.
    pub index: usize,
}

/// A post of a ranked feed.
#[derive(Clone, Debug)]
pub struct RankedPost {
    /// The post.
    pub post: PostId,
    /// Reasons for the post, the most personal first; at least one.
    pub reasons: Vec<Reason>,
    /// Score and features, if they were kept.
    pub explained: Option<(f32, Features)>,
}

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

impl Node {
    /// Reads a page of a ranked feed, and the place of the next page. Returns `None` if the snapshot of the place is no
    /// longer kept. May block.
    #[must_use]
    pub fn ranked(
        &self,
        user: UserId,
        (name, feed): (&str, &Feed),
        page: &RankedPage,
    ) -> Option<(Vec<RankedPost>, Option<RankedPlace>)> {
        self.catch_up_ranked();
        let viewer = self.viewer(Some(user));
        let snapshots = self.views().ranked.snapshots();
        let (snapshot, start) = match page.place {
            Some(place) => (snapshots.get(user, name, place.snapshot)?, place.index),
            None => {
                (snapshots.keep(self.ranking(&viewer, user, (name, feed), None, page.explains)), 0)
            }
        };
        let feedback = Feedback::of(viewer.facts(), user);
        let (mut posts, mut index) = (Vec::new(), start);
        for item in snapshot.items.get(start..).unwrap_or_default() {
            if posts.len() == page.limit {
                break;
            }
            let features = snapshot.features.get(index).map(|features| (item.score, *features));
            index += 1;
            let reasons = reasons(&viewer, (user, feed, &feedback), item, &snapshot);
            if let Some(reasons) = reasons.filter(|reasons| !reasons.is_empty()) {
                posts.push(RankedPost { post: item.post, reasons, explained: features });
            }
        }
        snapshot.read.fetch_max(index, Ordering::Relaxed);
        let place = RankedPlace { snapshot: snapshot.number, index };
        Some((posts, Some(place).filter(|_| index < snapshot.items.len())))
    }

    /// Ranks posts with the score and the diversity of a feed, with score and features of each: the first
    /// [`RANKED_MAX`](rank::RANKED_MAX). Leaves out those that the feed may not show. May block.
    #[must_use]
    pub fn rank_posts(
        &self,
        user: UserId,
        (name, feed): (&str, &Feed),
        posts: &[PostId],
    ) -> Vec<RankedPost> {
        self.catch_up_ranked();
        let viewer = self.viewer(Some(user));
        let ranking = self.ranking(&viewer, user, (name, feed), Some(posts), true);
        let feedback = Feedback::of(viewer.facts(), user);
        let items = ranking.items.iter().zip(&ranking.features);
        let ranked = items.filter_map(|(item, features)| {
            let reasons = reasons(&viewer, (user, feed, &feedback), item, &ranking)?;
            Some(RankedPost { post: item.post, reasons, explained: Some((item.score, *features)) })
        });
        ranked.collect()
    }

    /// Remembers that a user has seen posts, in memory and within bounds. Ids of no posts do no harm.
    pub fn report_seen(&self, user: UserId, posts: &[PostId]) {
        self.views().ranked.seen().report(user, posts, self.now_ms());
    }

    /// Returns the popular posts with any reaction that the viewer may see and wants, the most popular first. May block.
    #[must_use]
    pub fn popular(&self, viewer: &Viewer<'_, Store>) -> Vec<PostId> {
        self.catch_up_ranked();
        let facts = viewer.facts();
        let mut posts = self.views().ranked.popular();
        posts.retain(|post| {
            let post = facts.post(*post).filter(|post| viewer.wanted(post));
            post.is_some_and(|post| may_be_suggested(facts, &post))
        });
        posts
    }

    /// Returns users whom `user` may want to follow: the authors of the posts in the built-in feed `explore`, in its
    /// order. May block.
    #[must_use]
    pub fn suggested(&self, user: UserId) -> Vec<UserId> {
        static FEEDS: LazyLock<Feeds> = LazyLock::new(Feeds::default);
        const FEED: &str = "explore";
        self.catch_up_ranked();
        let Some(feed) = FEEDS.named(FEED) else { unreachable!("it is built in") };
        let viewer = self.viewer(Some(user));
        let facts = viewer.facts();
        let ranking = self.ranking(&viewer, user, (FEED, feed), None, false);
        let authors = ranking.items.iter().filter_map(|item| {
            let post = facts.post(item.post).filter(|post| viewer.wanted(post))?;
            let author = post.author;
            let is_known = facts.follows(user, author) || facts.requests(user, author);
            (!is_known && may_be_suggested(facts, &post)).then_some(author)
        });
        authors.collect()
    }

    /// Applies all changes so far to the view. Starts the thread that does so from now on, unless it runs.
    fn catch_up_ranked(&self) {
        self.views().catch_up_ranked(self.facts(), self.now_ms());
        if !self.views().ranked.begin() {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let thread = spawn("ranked", move || {
            follow(&shared);
            Ok(())
        });
        self.threads.lock().others.push(thread);
    }

    /// Authors and counts of given posts by others that are neither direct nor deleted.
    fn given(&self, user: UserId, posts: &[PostId]) -> Vec<AtHome> {
        let found = self.views().ranked.authors(posts).into_iter();
        let found = found.filter_map(|(id, author)| self.at_home(id, author));
        found.filter(|it| it.author != user).collect()
    }

    /// Candidate for a post of a timeline, with the author if it is a recent public post.
    fn at_home(&self, id: PostId, author: Option<UserId>) -> Option<AtHome> {
        match author {
            Some(author) => Some(AtHome { post: id, author, booster: None, counts: None }),
            None => outsider(self.facts(), id),
        }
    }

    /// Posts of the home timeline up to the quota of the feed, newest first, of which a few are by one author or boosted
    /// by one user if the feed limits the posts of an author. So users who write much displace nobody: if the newest
    /// page has too few, the next ones are read.
    fn candidates_at_home(&self, user: UserId, feed: &Feed) -> Vec<AtHome> {
        let quota = feed.quota(Source::Following);
        let per_user_max = match feed.per_author_max() {
            0 => usize::MAX,
            max => max.max(AT_HOME_PER_USER),
        };
        let (mut found, mut counts) = (Vec::new(), HashMap::<UserId, usize>::new());
        let mut page = Page::newest(quota.min(PAGE_MAX));
        for _ in 0..HOME_PAGES_MAX {
            if found.len() >= quota {
                break;
            }
            let PageOf { items, next } = self.home_ids(user, &page);
            for (id, author) in self.views().ranked.authors(&items) {
                let at_home = self.at_home(id, author).filter(|it| it.author != user);
                let Some(at_home) = at_home else { continue };
                let users = [Some(at_home.author), at_home.booster.filter(|it| *it != user)];
                let users = users.into_iter().flatten();
                let has_enough =
                    |user: UserId| counts.get(&user).is_some_and(|count| *count >= per_user_max);
                if found.len() < quota && !users.clone().any(has_enough) {
                    users.for_each(|user| *counts.entry(user).or_default() += 1);
                    found.push(at_home);
                }
            }
            match next {
                Some(below) => page.below = Some(below),
                None => break,
            }
        }
        found
    }

    /// Ranks the candidates of a feed, or given posts.
    fn ranking(
        &self,
        viewer: &Viewer<'_, Store>,
        user: UserId,
        (name, feed): (&str, &Feed),
        given: Option<&[PostId]>,
        explains: bool,
    ) -> Snapshot {
        let facts = self.facts();
        let (now_ms, view) = (self.now_ms(), &self.views().ranked);
        let home = match given {
            Some(posts) => self.given(user, posts),
            None => self.candidates_at_home(user, feed),
        };
        let own =
            Span::below(None, OWN_READ).map_or_else(Vec::new, |span| facts.posts_by(user, span));
        let taste = Taste {
            viewer: user,
            hidden: hidden(viewer, user),
            not_interested: facts.not_interested(user),
            less: less(facts, user, view),
            following: facts.home_authors(user).users.to_vec(),
            tags: facts
                .followed_tags(user)
                .iter()
                .map(|followed| tag_number(&followed.tag))
                .collect(),
            own: own.into_iter().map(|(post, _)| post).collect(),
            home,
            is_given: given.is_some(),
            now_ms,
        };
        let mut gathered = view.gather(feed, &taste);
        gathered.candidates.retain(|found| viewer.wants_public_by(UserId(found.author)));
        let posts = gathered.candidates.iter().map(|candidate| PostId(candidate.post));
        let seen = view.seen_by(user, posts);
        for candidate in &mut gathered.candidates {
            let count = seen.get(&PostId(candidate.post)).copied().unwrap_or_default();
            candidate.features.set(Feature::Seen, count.into());
        }
        let candidates = &gathered.candidates;
        let (mut items, mut features, mut likers) = (Vec::new(), Vec::new(), Vec::new());
        for ranked in rank(feed, candidates) {
            let Some(found) = candidates.get(ranked.candidate) else { continue };
            let post = PostId(found.post);
            let (score, sources, explores) = (ranked.score as f32, found.sources, ranked.explores);
            items.push(Item { post, score, sources, explores });
            likers.extend(gathered.likers.get(&post).map(|of| (post, *of)));
            if explains {
                features.push(found.features);
            }
        }
        likers.sort_unstable_by_key(|(post, _)| *post);
        let (feed, tags) = (name.into(), gathered.tags.into_iter().collect());
        Snapshot {
            user,
            feed,
            number: 0,
            made_ms: now_ms,
            items,
            read: AtomicUsize::new(0),
            likers,
            tags,
            features,
        }
    }
}

/// Keeps the view current until the node stops. Unreadable rows are left out.
fn follow(shared: &Shared) {
    let mut next = 0;
    while !shared.stopped() {
        unless_unreadable(|| {
            let (facts, views) = (Facts::new(&shared.store), &shared.views);
            views.catch_up_ranked(facts, shared.time.now_ms());
            views.group_users(facts, &mut next);
        });
        std::thread::park_timeout(INTERVAL);
    }
}

/// Users whose posts the viewer may not see or does not want.
fn hidden(viewer: &Viewer<'_, Store>, user: UserId) -> HashSet<UserId> {
    if viewer.has_no_blocks_or_mutes() {
        return HashSet::new();
    }
    let span = Span { limit: HIDDEN_READ, ..Span::ALL };
    let tables = [SetTable::Blocks, SetTable::BlockedBy, SetTable::Mutes].into_iter();
    let users = tables.flat_map(|table| viewer.facts().users_in(table, user, span));
    users.filter(|other| !viewer.wants_public_by(*other)).collect()
}

/// Reads a post of the home timeline that is not a recent public post; `None` if it is direct or deleted.
fn outsider(facts: Facts<'_, Store>, id: PostId) -> Option<AtHome> {
    let found = facts.post(id).filter(|post| post.visibility != Visibility::Direct)?;
    let (author, post, booster) = match &found.boost {
        Some(boost) => (boost.author, boost.post, Some(found.author)),
        None => (found.author, id, None),
    };
    let counts = facts.post_counts(post);
    Some(AtHome { post, author, booster, counts: Some([counts.favourites, counts.boosts, 0]) })
}

/// Reasons for a post that the viewer may see in a feed, if there are any; `None` if the viewer may not see it there.
fn reasons(
    viewer: &Viewer<'_, Store>,
    (user, feed, feedback): (UserId, &Feed, &Feedback),
    item: &Item,
    snapshot: &Snapshot,
) -> Option<Vec<Reason>> {
    let facts = viewer.facts();
    let post = facts.post(item.post).filter(|post| viewer.wanted(post))?;
    if feedback.hides(facts, user, (item, &post)) {
        return None;
    }
    let is_followed = facts.follows(user, post.author);
    let is_at_home = item.sources.contains(Source::Following);
    let is_shown = match (is_followed, is_at_home) {
        (true, _) => post.visibility != Visibility::Direct,
        (false, true) => post.visibility == Visibility::Public,
        (false, false) => may_be_suggested(facts, &post),
    };
    if !is_shown {
        return None;
    }
    let mut reasons = Vec::new();
    if is_followed {
        reasons.push(Reason::Followed);
    } else if is_at_home {
        reasons.push(Reason::AtHome);
    }
    let likers = snapshot.likers.binary_search_by_key(&item.post, |(post, _)| *post);
    let likers = likers.ok().and_then(|place| snapshot.likers.get(place));
    reasons.extend(likers.and_then(|(_, of)| liked(viewer, (user, feed), item.post, of)));
    let tag = post.tags().into_iter().find(|tag| snapshot.tags.contains(&tag_number(tag)));
    reasons.extend(
        tag.filter(|_| item.sources.contains(Source::FollowedHashtags)).map(Reason::Hashtag),
    );
    if item.sources.contains(Source::Groups) {
        reasons.push(Reason::Group);
    }
    let language = post.language.as_ref().filter(|language| language_number(language) != 0);
    let language = language.filter(|_| item.sources.contains(Source::PopularInLanguage));
    reasons.extend(language.map(|language| Reason::PopularInLanguage(language.as_str().into())));
    if item.sources.contains(Source::Popular) {
        reasons.push(Reason::Popular);
    }
    if item.explores || item.sources.contains(Source::NewAuthors) {
        reasons.push(Reason::NewAuthor);
    }
    Some(reasons)
}

/// Whether a post may be shown to users who do not follow its author.
fn may_be_suggested(facts: Facts<'_, Store>, post: &Post) -> bool {
    let is_plain = post.visibility == Visibility::Public
        && post.boost.is_none()
        && !post.sensitive
        && post.warning.as_str().is_empty();
    is_plain && facts.user(post.author).is_some_and(|author| !author.undiscoverable)
}

/// Reason with the followed users who still react to the post and whom the viewer wants to see.
fn liked(
    viewer: &Viewer<'_, Store>,
    (user, feed): (UserId, &Feed),
    post: PostId,
    likers: &Likers,
) -> Option<Reason> {
    let facts = viewer.facts();
    let reacts = |other: UserId| {
        [Reaction::Favourite, Reaction::Boost]
            .into_iter()
            .any(|reaction| facts.reaction(other, post, reaction).is_some())
    };
    let mut users: Vec<_> = likers.named().collect();
    let others = likers.count.saturating_sub(users.len() as u32);
    users.retain(|other| {
        facts.follows(user, *other) && viewer.wants_public_by(*other) && reacts(*other)
    });
    if users.is_empty() {
        return None;
    }
    match feed.names_users() {
        true => Some(Reason::LikedByFollowed { users, others }),
        false => {
            let others = others + users.len() as u32;
            Some(Reason::LikedByFollowed { users: Vec::new(), others })
        }
    }
}

mod feedback;
mod stored;
#[cfg(test)]
mod tests;
