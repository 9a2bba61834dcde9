//! Ranked feeds: the thread that keeps their view current, and pages of a feed with reasons.
//!
//! The first read of a ranked feed loads the newest posts into the view and starts the thread, which loads the others;
//! so a server on which nobody reads one does no work for them. A read shows all earlier changes, unless there are too
//! many, or another read applies them for more than 50 ms.
//!
//! **Invariant:** a page has only posts that [`Viewer::wanted`] accepts when the page is read, and no direct posts. A
//! post by an author whom the viewer does not follow is public; unless a followed user boosted it or it has a followed
//! hashtag, it is also not sensitive, without a warning, and by an author who may be suggested to others.
//!
//! Whether the viewer follows the author, whether the post is still in the home timeline, and the users and hashtags of
//! a reason are checked when the page is read; the other reasons are as of the ranking.

mod by_ids;
mod definitions;
mod feedback;
mod reasons;
#[cfg(test)]
mod tests;
mod trends;

use std::sync::Arc;
use std::time::Duration;

use feed::limits::PAGE_MAX;
use feed::{Facts, Page, PageOf, PostCounts, PostId, UserId, Viewer, Visibility};
use hashbrown::{HashMap, HashSet};
use rank::{Candidate, Feature, Features, Feed, Ranked, Source, Sources, rank};
use rows::{SetTable, Span};
use store::{Store, unless_unreadable};

use self::feedback::less;
use self::reasons::PageReader;
pub use self::reasons::Reason;
use super::Node;
use crate::shared::Shared;
use crate::threads::spawn;
use crate::views::ranked::{AtHome, Item, Snapshot, Taste, tag_number};

/// Interval of the thread.
const INTERVAL: Duration = Duration::from_millis(100);
/// Time after which a load that failed is tried again, in milliseconds.
const LOADED_AGAIN_MS: u64 = 60_000;
/// Maximum number of pages of the home timeline that are read for candidates.
const HOME_PAGES_MAX: usize = 3;
/// Number of candidates of the home timeline from which on no further page is read: only the first is in memory.
const ENOUGH_AT_HOME: usize = 25;
/// Maximum number of candidates of the home timeline by one author or boosted by one user, in feeds that limit the
/// posts of an author to fewer.
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
    /// Whether the posts have their scores and features.
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
    /// Score and features, if requested: those of the ranking for its first page, later those of the read.
    pub explained: Option<(f32, Features)>,
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
        let (viewer, now_ms) = (self.viewer(Some(user)), self.now_ms());
        let snapshots = self.views().ranked.snapshots();
        let (snapshot, start, explained) = match page.place {
            Some(place) => {
                let snapshot = snapshots.get(user, name, place.snapshot, now_ms)?;
                (snapshot, place.index, Explained::default())
            }
            None => {
                let (snapshot, explained) = self.ranking(&viewer, user, (name, feed), None);
                (snapshots.keep(snapshot), 0, explained)
            }
        };
        let home = self.views().home_authors(viewer.facts(), user);
        let reader = PageReader::new(self, &viewer, (user, feed), home);
        let (mut posts, mut sources, mut index) = (Vec::new(), Vec::new(), start);
        while posts.len() < page.limit
            && let Some(item) = snapshot.item(index)
        {
            let explained = explained.of(index).filter(|_| page.explains);
            index += 1;
            let reasons = reader.reasons(&item, &snapshot).filter(|reasons| !reasons.is_empty());
            if let Some(reasons) = reasons {
                posts.push(RankedPost { post: item.post, reasons, explained });
                sources.push(item.sources);
            }
        }
        if page.explains && page.place.is_some() {
            self.explain(&viewer, (user, feed), &mut posts, &sources);
        }
        snapshot.has_read(index);
        let place = RankedPlace { snapshot: snapshot.number, index };
        Some((posts, Some(place).filter(|_| index < snapshot.len())))
    }

    /// Adds scores and features to posts of a later page, whose sources are `sources`.
    fn explain(
        &self,
        viewer: &Viewer<'_, Store>,
        (user, feed): (UserId, &Feed),
        posts: &mut [RankedPost],
        sources: &[Sources],
    ) {
        let facts = viewer.facts();
        let now_ms = self.now_ms();
        let mut taste = self.taste(viewer, user, now_ms);
        let view = &self.views().ranked;
        let ids: Vec<_> = posts.iter().map(|found| found.post).collect();
        // Posts that the view does not have are from the home timeline.
        taste.home = self.at_home(user, &ids);
        let candidate = |(found, sources): (&RankedPost, &Sources)| {
            let author = facts.post(found.post)?.author;
            let (post, features) = (found.post.0, Features::default());
            Some(Candidate { post, author: author.0, sources: *sources, features })
        };
        let mut candidates: Vec<_> = posts.iter().zip(sources).filter_map(candidate).collect();
        view.describe(&mut candidates, &taste);
        self.set_seen(&mut candidates, (user, now_ms));
        let scores = feed.score().values(candidates.iter().map(|found| &found.features));
        for (Candidate { post, features, .. }, score) in candidates.into_iter().zip(scores) {
            let found = posts.iter_mut().find(|found| found.post.0 == post);
            if let Some(found) = found {
                found.explained = Some((score as f32, features));
            }
        }
    }

    /// Sets the feature `seen`.
    fn set_seen(&self, candidates: &mut [Candidate], (user, now_ms): (UserId, u64)) {
        let posts = candidates.iter().map(|candidate| PostId(candidate.post));
        let seen = self.views().ranked.seen_by(user, posts, now_ms);
        for candidate in candidates {
            let count = seen.get(&PostId(candidate.post)).copied().unwrap_or_default();
            candidate.features.set(Feature::Seen, count.into());
        }
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
        let home = self.views().home_authors(viewer.facts(), user);
        let reader = PageReader::new(self, &viewer, (user, feed), home);
        let (ranking, explained) =
            self.ranking(&viewer, user, (name, feed), Some((posts, &reader)));
        let ranked = (0..ranking.len()).filter_map(|place| {
            let item = ranking.item(place)?;
            let (post, reasons) = (item.post, reader.reasons(&item, &ranking)?);
            Some(RankedPost { post, reasons, explained: explained.of(place) })
        });
        ranked.collect()
    }

    /// Remembers that a user has seen posts, in memory and within bounds. Ids of no posts do no harm.
    pub fn report_seen(&self, user: UserId, posts: &[PostId]) {
        self.views().ranked.seen().report(user, posts, self.now_ms());
    }

    /// Loads the view for ranked feeds completely, which a server does in the background.
    #[cfg(test)]
    fn load_ranked(&self) {
        self.catch_up_ranked();
        load(&self.shared);
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

    /// Posts of the home timeline up to the quota of the feed, newest first, of which a few are by one author or
    /// boosted by one user if the feed limits the posts of an author. So users who write much displace nobody: if the
    /// newest page has too few, the next ones are read.
    fn candidates_at_home(&self, user: UserId, feed: &Feed) -> Vec<AtHome> {
        let quota = feed.quota(Source::Following);
        let per_user_max = match feed.per_author_max() {
            0 => usize::MAX,
            max => max.max(AT_HOME_PER_USER),
        };
        let (mut found, mut counts) = (Vec::new(), HashMap::<UserId, usize>::new());
        let mut page = Page::newest(quota.min(PAGE_MAX));
        for _ in 0..HOME_PAGES_MAX {
            if found.len() >= quota.min(ENOUGH_AT_HOME) {
                break;
            }
            let PageOf { items, next } = self.home_ids(user, &page);
            for at_home in self.at_home(user, &items) {
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

    /// Reads posts of the home timeline, without those of the user, direct and deleted ones.
    fn at_home(&self, user: UserId, items: &[PostId]) -> Vec<AtHome> {
        let (facts, view) = (self.facts(), &self.views().ranked);
        let (mut found, mut others) = (Vec::with_capacity(items.len()), Vec::new());
        for (post, author) in view.authors(items) {
            let at_home = match author {
                Some(author) => Some(AtHome { post, author, booster: None, counts: None }),
                None => outsider(facts, post),
            };
            let Some(at_home) = at_home.filter(|it| it.author != user) else { continue };
            if author.is_none() {
                others.push(at_home.post);
            }
            found.push(at_home);
        }
        // The view has the counts of all other posts.
        let unknown = view.authors(&others).into_iter().filter(|(_, author)| author.is_none());
        let unknown: HashSet<_> = unknown.map(|(post, _)| post).collect();
        for at_home in found.iter_mut().filter(|it| unknown.contains(&it.post)) {
            let PostCounts { favourites, boosts, .. } = facts.post_counts(at_home.post);
            at_home.counts = Some([favourites, boosts, 0]);
        }
        found
    }

    /// Facts about a viewer, without the home timeline.
    fn taste(&self, viewer: &Viewer<'_, Store>, user: UserId, now_ms: u64) -> Taste {
        let facts = self.facts();
        let read = |span| self.views().posts_by(facts, user, span);
        let own = Span::below(None, OWN_READ).map_or_else(Vec::new, read);
        let (home, follows_tags) = self.views().home_authors(facts, user);
        let tags = if follows_tags { facts.followed_tags(user) } else { Vec::new() };
        Taste {
            viewer: user,
            hidden: hidden(viewer, user),
            not_interested: facts.not_interested(user),
            less: less(facts, user, &self.views().ranked),
            following: home.users,
            tags: tags.iter().map(|followed| tag_number(&followed.tag)).collect(),
            own: own.into_iter().map(|(post, _)| post).collect(),
            home: Vec::new(),
            is_given: false,
            now_ms,
        }
    }

    /// Ranks the candidates of a feed, or given posts. Also returns the scores and the features of the ranked posts.
    /// Given posts that the reader does not show take no place of others.
    fn ranking(
        &self,
        viewer: &Viewer<'_, Store>,
        user: UserId,
        (name, feed): (&str, &Feed),
        given: Option<(&[PostId], &PageReader<'_>)>,
    ) -> (Snapshot, Explained) {
        let now_ms = self.now_ms();
        let home = match given {
            Some((posts, _)) => self.at_home(user, posts),
            None => self.candidates_at_home(user, feed),
        };
        let is_given = given.is_some();
        let taste = Taste { home, is_given, ..self.taste(viewer, user, now_ms) };
        let mut gathered = self.views().ranked.gather(feed, &taste);
        if !viewer.hides_no_author() {
            // Of users with very many blocks, and of authors who are disabled.
            gathered.candidates.retain(|found| viewer.wants_public_by(UserId(found.author)));
        }
        let boosters = taste.home.iter().filter_map(|it| Some((it.post, it.booster?)));
        let boosters: HashMap<_, _> = boosters.collect();
        if let Some((_, reader)) = given {
            gathered.candidates.retain(|found| {
                let (post, sources) = (PostId(found.post), found.sources);
                let booster = boosters.get(&post).copied();
                reader.shows(&Item { post, sources, explores: false, likers: None, booster })
            });
        }
        self.set_seen(&mut gathered.candidates, (user, now_ms));
        let candidates = &gathered.candidates;
        let item = |ranked: &Ranked| {
            let found = candidates.get(ranked.candidate)?;
            let post = PostId(found.post);
            Some(Item {
                post,
                sources: found.sources,
                explores: ranked.explores,
                likers: gathered.likers(post),
                booster: boosters.get(&post).copied(),
            })
        };
        let ranked = rank(feed, candidates);
        let items: Vec<_> = ranked.iter().filter_map(item).collect();
        let snapshot = Snapshot::new(user, name, (&items, gathered.tags), now_ms);
        (snapshot, Explained { ranked, candidates: gathered.candidates })
    }
}

/// Scores and features of the posts of a ranking.
#[derive(Default)]
struct Explained {
    ranked: Vec<Ranked>,
    candidates: Vec<Candidate>,
}

impl Explained {
    /// Score and features of the post at a place.
    fn of(&self, place: usize) -> Option<(f32, Features)> {
        let ranked = self.ranked.get(place)?;
        Some((ranked.score as f32, self.candidates.get(ranked.candidate)?.features))
    }
}

/// Loads the view, and keeps it current until the node stops. Unreadable rows are left out; if they prevent the load,
/// it is tried again later.
fn follow(shared: &Shared) {
    let (mut next, mut load_at_ms) = (0, Some(0));
    while !shared.stopped() {
        let now_ms = shared.time.now_ms();
        if load_at_ms.is_some_and(|at_ms| at_ms <= now_ms) {
            load_at_ms = load(shared).is_none().then_some(now_ms + LOADED_AGAIN_MS);
        }
        unless_unreadable(|| {
            let (facts, views) = (Facts::new(&shared.store), &shared.views);
            views.catch_up_ranked(facts, shared.time.now_ms());
            views.group_users(facts, &mut next);
        });
        std::thread::park_timeout(INTERVAL);
    }
}

/// Loads the view; returns `None` if rows that are needed are unreadable.
fn load(shared: &Shared) -> Option<()> {
    let (facts, now_ms) = (Facts::new(&shared.store), shared.time.now_ms());
    unless_unreadable(|| shared.views.load_ranked(facts, now_ms, || shared.stopped()))
}

/// Users whose posts the viewer may not see or does not want.
fn hidden(viewer: &Viewer<'_, Store>, user: UserId) -> HashSet<UserId> {
    if viewer.has_no_blocks_or_mutes() {
        return HashSet::new();
    }
    let span = Span { limit: HIDDEN_READ, ..Span::ALL };
    let users = |table| viewer.facts().users_in(table, user, span).into_iter();
    // A mute may be over.
    let muted = users(SetTable::Mutes).filter(|other| !viewer.wants_public_by(*other));
    users(SetTable::Blocks).chain(users(SetTable::BlockedBy)).chain(muted).collect()
}

/// Reads a post of the home timeline that is not a recent public post, without its counts; `None` if it is direct or
/// deleted.
fn outsider(facts: Facts<'_, Store>, id: PostId) -> Option<AtHome> {
    let found = facts.post(id).filter(|post| post.visibility != Visibility::Direct)?;
    let (author, post, booster) = match &found.boost {
        Some(boost) => (boost.author, boost.post, Some(found.author)),
        None => (found.author, id, None),
    };
    Some(AtHome { post, author, booster, counts: None })
}
