//! Reading homes, and the posts of one author: from timelines in memory, else from the list of the newest
//! posts, and from the facts what is older.
//!
//! A home has the posts of authors, which timelines keep, and those with followed hashtags, which are read from the facts
//! each time. Most users follow no hashtags, and their timelines know it.

use std::sync::atomic::Ordering;

use feed::HomeAuthors;
use feed::Posted;
use feed::tagged::{self, TagQuery};
use feed::timeline::gather;
use feed::{Cursor, Facts, Page, PageOf, PostId, UserId, Viewer, Visible};
use rows::{Rows, Span};

use super::Views;
use super::entities::Revisions;
use super::newest::Position;
use super::timeline::{Found, KEPT, Timeline};

/// How often a timeline is gathered because the user's follows changed meanwhile, before a page is answered without one.
const GATHER_ATTEMPTS: usize = 3;
/// Older rows that are loaded at once: a few milliseconds of reading, and 0.1 ms of the writer.
const LOADED: usize = 2_048;
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
    ) -> Visible {
        let mut items = Vec::new();
        let (by_authors, follows_tags) = match self.cached(user, page, &mut items) {
            Some(Found::Page { more, follows_tags }) => {
                (Visible { posts: PageOf { items, more }, end: None }, follows_tags)
            }
            // Gathering the timeline again would not help.
            Some(_) => (self.page(facts, user, page), facts.follows_tags(user)),
            None => (self.by_authors(facts, user, page), facts.follows_tags(user)),
        };
        if !follows_tags {
            return by_authors;
        }
        let viewer = Viewer::new(facts, Some(user));
        let tagged = tagged::posts(&viewer, &TagQuery::followed(facts, user), page);
        by_authors.merged(tagged, page, newest)
    }

    /// Gathers the timeline of the user, and returns a page of it, without posts that are at home because of their hashtags
    /// alone.
    fn by_authors<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
        page: &Page,
    ) -> Visible {
        for _ in 0..GATHER_ATTEMPTS {
            let mut items = Vec::new();
            let (found, is_current) = self.timelines.get_or_read(
                user,
                || self.timeline(facts, user, page.limit, self.newest.position()),
                |timeline| timeline.page(&self.newest, page, &mut items),
            );
            match found {
                Found::Page { more, .. } if is_current => {
                    return Visible { posts: PageOf { items, more }, end: None };
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
        let newest = Page { cursor: Cursor::Newest, limit: KEPT };
        let gathered = self.gather(facts, user, &home, &newest, Some(enough));
        Timeline::new(user, (home, follows_tags), &gathered, position)
    }

    /// A page of home(user) without a timeline, and without posts that are at home because of their hashtags alone.
    fn page<R: Rows + ?Sized>(&self, facts: Facts<'_, R>, user: UserId, page: &Page) -> Visible {
        self.gather(facts, user, &facts.home_authors(user), page, None)
    }

    /// Gathers a page of home(user). If more than `enough` posts are in memory, it may have fewer posts than
    /// its limit though there are more. May read the facts.
    pub(super) fn gather<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
        authors: &HomeAuthors,
        page: &Page,
        enough: Option<usize>,
    ) -> Visible {
        let mut items = Vec::new();
        let Some(rest) = self.newest.home(user, authors, page, &mut items) else {
            return Visible { posts: PageOf::from_scan(items, page), end: None };
        };
        if enough.is_some_and(|enough| items.len() > enough) {
            let posts = PageOf { more: true, ..PageOf::from_scan(items, page) };
            return Visible { posts, end: None };
        }
        let older = gather(facts, user, authors, &rest);
        items.extend(older.posts.items);
        Visible { posts: PageOf { items, more: older.posts.more }, end: older.end }
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
