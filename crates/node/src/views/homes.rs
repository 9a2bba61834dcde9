//! Reads of home timelines and of the posts of one author: from timelines in memory, or from the list of the newest
//! posts, and older posts from the facts.
//!
//! A home timeline has posts by authors, whose ids are cached as a timeline, and posts with followed hashtags, which
//! are read from the facts each time. Most users follow no hashtags, and their cached timelines record that.

use std::sync::atomic::Ordering;

use feed::HomeAuthors;
use feed::Posted;
use feed::tagged::{self, TagQuery};
use feed::{Batch, Facts, Page, PageOf, PostId, Shown, UserId, Viewer, merged, scan, timeline};
use rows::{Rows, Span};

use super::Views;
use super::entities::Revisions;
use super::newest::Position;
use super::timeline::{Found, KEPT, Timeline};

/// Maximum number of times that a timeline is gathered for a page, if the user's follows change meanwhile. After that,
/// the page is read without a timeline.
const GATHER_ATTEMPTS: usize = 3;
/// Number of older rows that are loaded per step. A step takes a few milliseconds of reading, and 0.1 ms of the
/// writer's time.
const LOAD_ROWS: usize = 2_048;
/// Lists that make up a home timeline.
enum List {
    ByAuthors,
    Tagged,
}

/// Number of names, or of posts to render, that are read per step. They take 3 MiB if all have the maximum length.
const RENDER_ITEMS: usize = 256;

impl Views {
    /// Appends a page of the user's home timeline to `out`, newest first; returns whether there are more posts. `None`
    /// if it is not in memory.
    pub(crate) fn try_home(
        &self,
        user: UserId,
        page: &Page,
        out: &mut Vec<PostId>,
    ) -> Option<bool> {
        let start = out.len();
        match self.cached(user, page, out)? {
            Found::Page { more, follows_tags: false } => Some(more),
            _ => {
                out.truncate(start);
                None
            }
        }
    }

    /// Reads a page of the user's cached timeline, if there is one.
    fn cached(&self, user: UserId, page: &Page, out: &mut Vec<PostId>) -> Option<Found> {
        let found = self.timelines.reader().get(&user)?.page(&self.newest, page, out);
        match found {
            Found::Page { .. } => self.hits.fetch_add(1, Ordering::Relaxed),
            Found::Beyond => 0,
            Found::Stale => {
                self.timelines.evict(user, Timeline::is_stale);
                return None;
            }
        };
        Some(found)
    }

    /// Returns a page of the user's home timeline, and caches the timeline if there is room. The facts and the views
    /// have all posts up to `newest`. May read the facts.
    pub(crate) fn home<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
        page: &Page,
        newest: PostId,
    ) -> PageOf<PostId> {
        if !facts.follows_tags(user) {
            return self.by_authors(facts, user, page);
        }
        let viewer = Viewer::new(facts, Some(user));
        let query = TagQuery::followed(facts, user);
        let mut tagged = tagged::source(&viewer, &query);
        let both = merged([List::ByAuthors, List::Tagged].into_iter(), |list, span| match list {
            List::ByAuthors => {
                let part = Page::of(span);
                Batch::of_page(self.by_authors(facts, user, &part), &part)
            }
            List::Tagged => tagged(span),
        });
        // The lists are read one after the other, so a post that arrives meanwhile may be missing from the first list.
        // The page therefore ends at `newest`.
        scan(page, both, Shown::Yes).up_to(newest.0, page)
    }

    /// Returns the authors in the user's home timeline, and whether the user follows hashtags: those of the cached
    /// timeline, or of the facts. May read the facts.
    pub(crate) fn home_authors<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
    ) -> (HomeAuthors, bool) {
        let timelines = self.timelines.reader();
        match timelines.get(&user).filter(|timeline| !timeline.is_stale()) {
            Some(timeline) => (timeline.home.clone(), timeline.follows_tags()),
            None => (facts.home_authors(user), facts.follows_tags(user)),
        }
    }

    /// Returns a page of the home timeline without posts that only match hashtags, and caches the timeline.
    fn by_authors<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
        page: &Page,
    ) -> PageOf<PostId> {
        let mut items = Vec::new();
        match self.cached(user, page, &mut items) {
            Some(Found::Page { more, .. }) => return PageOf::newest_first(items, more, page),
            // Gathering the timeline again would not help.
            Some(_) => return self.page(facts, user, page),
            None => {}
        }
        for _ in 0..GATHER_ATTEMPTS {
            let mut items = Vec::new();
            let (found, is_current) = self.timelines.get_or_read(
                user,
                || self.timeline(facts, user, page.limit, self.newest.position()),
                |timeline| timeline.page(&self.newest, page, &mut items),
            );
            match found {
                Found::Page { more, .. } if is_current => {
                    return PageOf::newest_first(items, more, page);
                }
                // The cached timeline may contain a post that was made after the user unfollowed, muted or blocked its
                // author.
                Found::Page { .. } => {}
                Found::Beyond => break,
                Found::Stale => self.timelines.evict(user, Timeline::is_stale),
            }
        }
        self.page(facts, user, page)
    }

    /// Gathers the user's timeline, with more than `enough` posts if there are so many. `position` was read before this
    /// call, so everything that the facts do not show yet is published after `position`.
    pub(super) fn timeline<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
        enough: usize,
        position: Position,
    ) -> Timeline {
        self.rebuilds.fetch_add(1, Ordering::Relaxed);
        let home = facts.home_authors(user);
        let follows_tags = facts.follows_tags(user);
        // The watcher is indexed before a read finds the timeline, so that a post that comes after the read wakes the
        // watcher.
        if self.watchers.any().is_some_and(|table| table.watches(user)) {
            self.watchers.watch_posts(user, &home);
        }
        let (gathered, is_enough) =
            self.gather(facts, user, &home, &Page::newest(KEPT), Some(enough));
        let is_full = is_enough || gathered.items.len() >= KEPT;
        let ended_early = gathered.next.is_some() && !is_full;
        Timeline::new(user, (home, follows_tags), (&gathered, ended_early), position)
    }

    /// Returns a page of the home timeline without posts that only match hashtags, without caching a timeline.
    fn page<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
        page: &Page,
    ) -> PageOf<PostId> {
        self.gather(facts, user, &facts.home_authors(user), page, None).0
    }

    /// Gathers a page of the user's home timeline. If more than `enough` posts are in memory, it may stop before the
    /// limit and then returns true. May read the facts.
    pub(super) fn gather<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
        authors: &HomeAuthors,
        page: &Page,
        enough: Option<usize>,
    ) -> (PageOf<PostId>, bool) {
        let (mut older, mut is_enough) = (timeline::source(facts, user, authors), false);
        let source = |span| {
            let mut items = Vec::new();
            let rest = self.newest.home(user, authors, span, &mut items);
            is_enough = rest.is_some() && enough.is_some_and(|enough| items.len() > enough);
            match rest.filter(|_| !is_enough) {
                Some(rest) => {
                    let mut older = older(rest);
                    items.append(&mut older.items);
                    Batch { items, ..older }
                }
                None => Batch::of(items, span),
            }
        };
        let found = scan(page, source, Shown::Yes);
        match is_enough {
            true => (PageOf::newest_first(found.items, true, page), true),
            false => (found, false),
        }
    }

    /// Returns the posts of one author within `span`. May read the facts.
    pub(crate) fn posts_by<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        author: UserId,
        span: Span,
    ) -> Vec<Posted> {
        let mut found = Vec::new();
        if facts.is_deleted(author) {
            return found;
        }
        if let Some(rest) = self.newest.posts_by(author, span, &mut found) {
            found.extend(facts.posts_by(author, rest));
        }
        found
    }

    /// Loads older posts into memory; returns false if none are left or the budget is used up. One thread at a time.
    /// May read the facts.
    pub(crate) fn load_posts<R: Rows + ?Sized>(&self, facts: Facts<'_, R>) -> bool {
        let Some(before) = self.newest.begin_load() else { return false };
        let (posts, next) = facts.posts_before(before, LOAD_ROWS);
        self.newest.end_load(before, &posts, next);
        true
    }

    /// Caches names of the users before `before`, with revisions that were read before them; returns where to continue
    /// if there are more and there is room. May read the facts.
    pub(crate) fn load_names<R: Rows + ?Sized>(
        &self,
        revisions: &impl Revisions,
        facts: Facts<'_, R>,
        before: UserId,
    ) -> Option<UserId> {
        self.entities.load_names(revisions, facts, before, RENDER_ITEMS)
    }

    /// Renders the newest posts before `before`, to fill the cache after a start; returns where to continue if there
    /// are more and there is room. May read the facts.
    pub(crate) fn render_posts<R: Rows + ?Sized>(
        &self,
        revisions: &impl Revisions,
        facts: Facts<'_, R>,
        before: PostId,
    ) -> Option<PostId> {
        self.entities.load_posts(revisions, facts, before, RENDER_ITEMS)
    }
}
