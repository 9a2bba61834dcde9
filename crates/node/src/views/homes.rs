//! Reading homes, and the posts of one author: from timelines in memory, else from the list of the newest
//! posts, and from the facts what is older.
//!
//! A home is the posts by authors, of which there are timelines, and those with followed hashtags, which are read from the
//! facts each time. Of most users there are none of the latter, and their timelines know it.

use std::sync::atomic::Ordering;

use feed::HomeAuthors;
use feed::Posted;
use feed::tagged::{self, TagQuery};
use feed::timeline::gather;
use feed::{Cursor, Facts, Page, PageOf, PostId, UserId, Viewer, Visible};
use rows::{Rows, Span};

use super::Views;
use super::rendered::Revisions;
use super::timeline::{CachedPage, KEPT, Timeline};

/// Steps of catching up that a reader does: a few tens of microseconds at most.
const READER_STEPS: usize = 512;
/// How often a timeline is gathered anew because the user's follows changed meanwhile, before a page is
/// answered from the facts alone.
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
        let found = self.try_by_authors(user, page, out)?;
        if found.follows_tags {
            out.truncate(start);
            return None;
        }
        Some(found.more)
    }

    /// As [`Views::try_home`], without posts that are at home because of their hashtags alone.
    fn try_by_authors(
        &self,
        user: UserId,
        page: &Page,
        out: &mut Vec<PostId>,
    ) -> Option<CachedPage> {
        let found = {
            let mut shard = self.shard(user).lock();
            shard.catch_up(&self.stream, READER_STEPS);
            shard.page(&self.stream, user, page, out)?
        };
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(found)
    }

    /// A page of home(user); makes the user active if there is room, or at the second read. The facts and the views have
    /// all posts up to `newest`. May read the facts.
    pub(crate) fn home<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
        page: &Page,
        newest: PostId,
    ) -> Visible {
        let mut items = Vec::new();
        let (by_authors, follows_tags) = match self.try_by_authors(user, page, &mut items) {
            Some(CachedPage { more, follows_tags }) => {
                (Visible { posts: PageOf { items, more }, end: None }, follows_tags)
            }
            None => (self.by_authors(facts, user, page), facts.follows_tags(user)),
        };
        if !follows_tags {
            return by_authors;
        }
        let viewer = Viewer::new(facts, Some(user));
        let tagged = tagged::posts(&viewer, &TagQuery::followed(facts, user), page);
        by_authors.merged(tagged, page, newest)
    }

    /// As [`Views::home`], without posts that are at home because of their hashtags alone.
    fn by_authors<R: Rows + ?Sized>(
        &self,
        facts: Facts<'_, R>,
        user: UserId,
        page: &Page,
    ) -> Visible {
        let mut items = Vec::new();
        if page.cursor != Cursor::Newest && self.shard(user).lock().is_active(user) {
            // Beyond what is kept of an active timeline: gathering it anew would not help.
            return self.gather(facts, user, &facts.home_authors(user), page, None);
        }
        for _ in 0..GATHER_ATTEMPTS {
            // First the position, then the facts: what the facts do not show yet is published after the
            // position.
            let position = self.stream.head();
            let authors = facts.home_authors(user);
            let follows_tags = facts.follows_tags(user);
            let is_kept = self.shard(user).lock().admits(user, &authors, self.shard_bytes_max);
            let limit = if is_kept { KEPT } else { page.limit };
            let newest = Page { cursor: Cursor::Newest, limit };
            let newest = self.gather(facts, user, &authors, &newest, Some(page.limit));
            let mut timeline = Timeline::new(user, authors, &newest.posts, position);
            timeline.follows_tags = follows_tags;
            if timeline.catch_up(&self.stream, position).invalidated {
                continue;
            }
            self.rebuilds.fetch_add(1, Ordering::Relaxed);
            let more = timeline.page(page, &mut items);
            if is_kept {
                self.shard(user).lock().insert(&self.stream, timeline, self.shard_bytes_max);
            }
            match more {
                Some(more) => return Visible { posts: PageOf { items, more }, end: None },
                None => break,
            }
        }
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
        self.rendered.load_names(revisions, facts, before, RENDERED)
    }

    /// Renders the newest posts before `before`, as after a start nothing is rendered; returns before which to continue, if
    /// there are more and there is room. May read the facts.
    pub(crate) fn render_posts<R: Rows + ?Sized>(
        &self,
        revisions: &impl Revisions,
        facts: Facts<'_, R>,
        before: PostId,
    ) -> Option<PostId> {
        self.rendered.load_posts(revisions, facts, before, RENDERED)
    }
}
