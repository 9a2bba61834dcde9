//! Reading homes, and the posts of one author: from timelines in memory, else from the list of the newest
//! posts, and from the facts what is older.
//!
//! A home has the posts of authors, which timelines keep, and those with followed hashtags, which are read from the facts
//! each time. Most users follow no hashtags, and their timelines know it.

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

/// How often a timeline is gathered because the user's follows changed meanwhile, before a page is answered without one.
const GATHER_ATTEMPTS: usize = 3;
/// Older rows that are loaded at once: a few milliseconds of reading, and 0.1 ms of the writer.
const LOADED: usize = 2_048;
/// The lists of which a home is made.
enum List {
    ByAuthors,
    Tagged,
}

/// Names, or posts to render, that are read at once: 3 MiB if all are the longest.
const RENDERED: usize = 256;

impl Views {
    /// A page of home(user), newest first, appended to `out`, if it is in memory. Returns whether there are
    /// more.
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

    /// A page of the user's timeline in memory, if there is one.
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

    /// A page of home(user); makes the user active if there is room. The facts and the views have
    /// all posts up to `newest`. May read the facts.
    pub(crate) fn home<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
        page: &Page,
        newest: PostId,
    ) -> PageOf<PostId> {
        let mut items = Vec::new();
        let cached = self.cached(user, page, &mut items);
        if let Some(Found::Page { more, follows_tags: false }) = cached {
            return PageOf::newest_first(items, more, page);
        }
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
        // The lists are read one after the other, and posts may come meanwhile: of an earlier one in the list that was read
        // first the page knows nothing.
        scan(page, both, Shown::Yes).up_to(newest.0, page)
    }

    /// A page of home(user) without posts that are there because of their hashtags alone; makes the user active.
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
                // It may have a post that was made after the user had unfollowed, muted or blocked its author.
                Found::Page { .. } => {}
                Found::Beyond => break,
                Found::Stale => self.timelines.evict(user, Timeline::is_stale),
            }
        }
        self.page(facts, user, page)
    }

    /// Gathers the timeline of the user, with more than `enough` posts if there are so many. What the facts do not show is
    /// published after `position`: it is of before this call.
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
        // Before a read finds the timeline: a post that comes after the read wakes the watcher.
        if self.watchers.any().is_some_and(|table| table.watches(user)) {
            self.watchers.watch_posts(user, &home);
        }
        let (gathered, is_enough) =
            self.gather(facts, user, &home, &Page::newest(KEPT), Some(enough));
        let is_full = is_enough || gathered.items.len() >= KEPT;
        let ended_early = gathered.next.is_some() && !is_full;
        Timeline::new(user, (home, follows_tags), (&gathered, ended_early), position)
    }

    /// A page of home(user) without a timeline, and without posts that are at home because of their hashtags alone.
    fn page<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
        page: &Page,
    ) -> PageOf<PostId> {
        self.gather(facts, user, &facts.home_authors(user), page, None).0
    }

    /// Gathers a page of home(user). If more than `enough` posts are in memory, it may have fewer posts than
    /// its limit though there are more: then it returns true, too. May read the facts.
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

    /// Posts of one author within `span`. May read the facts.
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

    /// Reads older posts into memory; false if none are left or there is no more room. One thread at a
    /// time. May read the facts.
    pub(crate) fn load_posts<R: Rows + ?Sized>(&self, facts: Facts<'_, R>) -> bool {
        let Some(before) = self.newest.begin_load() else { return false };
        let (posts, next) = facts.posts_before(before, LOADED);
        self.newest.end_load(before, &posts, next);
        true
    }

    /// Reads names of users before `before` and keeps them, with revisions from before; returns before which to continue, if there are more and there
    /// is room. May read the facts.
    pub(crate) fn load_names<R: Rows + ?Sized>(
        &self,
        revisions: &impl Revisions,
        facts: Facts<'_, R>,
        before: UserId,
    ) -> Option<UserId> {
        self.entities.load_names(revisions, facts, before, RENDERED)
    }

    /// Renders the newest posts before `before`, as after a start nothing is rendered; returns before which to continue, if
    /// there are more and there is room. May read the facts.
    pub(crate) fn render_posts<R: Rows + ?Sized>(
        &self,
        revisions: &impl Revisions,
        facts: Facts<'_, R>,
        before: PostId,
    ) -> Option<PostId> {
        self.entities.load_posts(revisions, facts, before, RENDERED)
    }
}
