//! Hashtag timelines: public posts with given hashtags, newest first.
//!
//! A timeline of several hashtags is merged from the rows of each. If posts must have all of several hashtags, only the
//! rows of the rarest are read. Rows of a hashtag can be read only from the newest down. A page upwards searches for a
//! time span that has enough of them, so it begins directly above its cursor without reading the rows above the page.

use std::ops::RangeInclusive;

use rows::{Order, Rows, Span};

use crate::facts::Facts;
use crate::ids::{PostId, UserId};
use crate::page::{Page, PageOf};
use crate::scan::{Batch, Shown, merged, scan};
use crate::tags::{Tag, Tagged};
use crate::visible::Viewer;

/// Factor by which a time span with too few or too many rows is extended or shortened.
const STEP: u64 = 16;
/// Maximum number of bisections between a time span with too few rows and one with too many.
const HALVES_MAX: usize = 4;
/// Maximum number of posts that one read upwards asks for.
const UPWARDS_MAX: usize = 128;
/// Rows of one read upwards in addition to twice the wanted ones.
const SPARE_ROWS: usize = 64;
/// Rows of each hashtag compared to find the rarest.
const COMPARED_ROWS: usize = 64;

/// Query of a hashtag timeline. Each hashtag costs a lookup per post, so callers limit their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagQuery {
    /// Posts must have at least one of these hashtags.
    pub any: Vec<Tag>,
    /// Posts must have all of these hashtags.
    pub all: Vec<Tag>,
    /// Posts must have none of these hashtags.
    pub none: Vec<Tag>,
    /// Whether posts must have pictures.
    pub only_pictures: bool,
}

impl TagQuery {
    /// Creates a query for all posts with a hashtag.
    #[must_use]
    pub fn of(tag: Tag) -> Self {
        Self { any: vec![tag], all: Vec::new(), none: Vec::new(), only_pictures: false }
    }

    /// Creates a query for the posts with any hashtag that a user follows.
    #[must_use]
    pub fn followed<R: Rows + ?Sized>(facts: Facts<'_, R>, user: UserId) -> Self {
        let followed = facts.followed_tags(user).into_iter();
        let any = followed.map(|followed| followed.tag).collect();
        Self { any, all: Vec::new(), none: Vec::new(), only_pictures: false }
    }

    /// Hashtags whose rows together include all posts of the timeline.
    fn walked<R: Rows + ?Sized>(&self, facts: Facts<'_, R>) -> Vec<&Tag> {
        let mut any: Vec<_> = self.any.iter().filter(|tag| !self.none.contains(tag)).collect();
        any.sort_unstable();
        any.dedup();
        let is_empty = any.is_empty() || self.all.iter().any(|tag| self.none.contains(tag));
        if is_empty || self.all.is_empty() {
            return if is_empty { Vec::new() } else { any };
        }
        let one_of_any = any.iter().copied().filter(|_| any.len() == 1);
        let age = |tag: &&Tag| {
            let newest = facts.tagged(tag, PostId(u64::MAX), COMPARED_ROWS);
            newest.get(COMPARED_ROWS - 1).map_or(0, |(post, _)| post.0)
        };
        self.all.iter().chain(one_of_any).min_by_key(age).into_iter().collect()
    }

    /// Decides whether to show the viewer a public post with a walked hashtag.
    fn shown<R: Rows + ?Sized>(&self, viewer: &Viewer<'_, R>, tagged: Tagged) -> Shown<PostId> {
        let facts = viewer.facts();
        if facts.is_being_erased(tagged.1) || !viewer.wants_public_by(tagged.1) {
            return Shown::Hidden;
        }
        let has = |tag: &Tag| facts.has_tag(tag, tagged);
        let has_any = || self.all.is_empty() || self.any.iter().any(has);
        let has_pictures = || !self.only_pictures || facts.has_pictures(tagged);
        let has_tags = self.all.iter().all(has) && has_any() && !self.none.iter().any(has);
        let is_found = has_tags && has_pictures();
        if is_found { Shown::Yes(tagged.0) } else { Shown::LeftOut }
    }
}

/// Returns a page of the posts that match `query` and that the viewer may see and has not muted.
pub fn posts<R: Rows + ?Sized>(
    viewer: &Viewer<'_, R>,
    query: &TagQuery,
    page: &Page,
) -> PageOf<PostId> {
    let walked = walked(viewer.facts(), query);
    scan(page, walked, |tagged| query.shown(viewer, tagged))
}

/// Creates a source of the posts that match `query` and that the viewer may see and has not muted.
pub fn source<R: Rows + ?Sized>(
    viewer: &Viewer<'_, R>,
    query: &TagQuery,
) -> impl FnMut(Span) -> Batch<PostId> {
    let mut walked = walked(viewer.facts(), query);
    move |span| {
        walked(span).filter_map(|tagged| match query.shown(viewer, tagged) {
            Shown::Yes(post) => Some(post),
            Shown::LeftOut | Shown::Hidden => None,
        })
    }
}

/// Creates a source of the posts with any of the walked hashtags.
fn walked<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    query: &TagQuery,
) -> impl FnMut(Span) -> Batch<Tagged> {
    let lists: Vec<_> = query.walked(facts).into_iter().map(List::new).collect();
    merged(lists.into_iter(), move |list: &mut List<'_>, span| list.read(facts, span))
}

/// Posts with one hashtag.
struct List<'q> {
    tag: &'q Tag,
    /// Length of the time span of a read upwards, in stamps.
    width: u64,
}

impl<'q> List<'q> {
    fn new(tag: &'q Tag) -> Self {
        Self { tag, width: u64::MAX }
    }

    fn read<R: Rows + ?Sized>(&mut self, facts: Facts<'_, R>, span: Span) -> Batch<Tagged> {
        if span.order == Order::Ascending {
            return self.read_up(facts, span);
        }
        let mut rows = 0;
        let items = newest(facts, self.tag, span.low..=span.high, span.limit, &mut rows);
        Batch { rows, ..Batch::of(items, span) }
    }

    /// Reads about `span.limit` posts upwards. Extends the time span until it has enough posts, and shortens it while
    /// they do not fit one read. The first span covers everything left: usually few posts are newer than those a client
    /// has.
    fn read_up<R: Rows + ?Sized>(&mut self, facts: Facts<'_, R>, span: Span) -> Batch<Tagged> {
        let limit = span.limit.min(UPWARDS_MAX);
        let rows_max = limit.saturating_mul(2).saturating_add(SPARE_ROWS);
        let (mut low, mut rows, mut halves) = (span.low, 0, 0);
        // The latest end with too few posts, with these posts, and the earliest end with too many.
        let (mut short, mut long): (Option<(u64, Vec<Tagged>)>, Option<u64>) = (None, None);
        let mut end = low.saturating_add(self.width).min(span.high);
        loop {
            let found = newest(facts, self.tag, low..=end, rows_max, &mut rows);
            if found.len() < rows_max {
                let is_enough = found.len() >= limit || end >= span.high;
                short = Some((end, found));
                if is_enough {
                    break;
                }
            } else {
                let [oldest, newest] =
                    [found.last(), found.first()].map(|row| row.map_or(end, |row| row.0.0));
                let is_gap = short.as_ref().is_none_or(|(_, found)| found.is_empty());
                if is_gap && long.is_none() {
                    let from = short.take().map_or(low, |(end, _)| end.saturating_add(1));
                    low = first(facts, self.tag, from..=oldest, &mut rows);
                }
                long = Some(newest);
            }
            end = match (&short, long) {
                (Some((short, _)), None) => {
                    let width = (short - low).max(1).saturating_mul(STEP);
                    low.saturating_add(width).min(span.high)
                }
                (None, long) => low + (long.unwrap_or(end) - low) / STEP,
                (Some((short, _)), Some(long)) if halves >= HALVES_MAX || *short >= long => break,
                (Some((short, _)), Some(long)) => {
                    halves += 1;
                    u64::midpoint(*short, long)
                }
            };
        }
        let (end, mut items) = short.unwrap_or((span.high, Vec::new()));
        items.reverse();
        self.width = (end - low).max(1);
        Batch { items, last: Some(end).filter(|end| *end < span.high), rows, ends_page: false }
    }
}

/// Returns the newest posts with a hashtag and an id in `ids`, newest first. Adds the number of rows and lookups to
/// `rows`.
fn newest<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    tag: &Tag,
    ids: RangeInclusive<u64>,
    limit: usize,
    rows: &mut usize,
) -> Vec<Tagged> {
    let mut found = facts.tagged(tag, PostId(ids.end().saturating_add(1)), limit);
    *rows += found.len() + 1;
    found.retain(|(post, _)| post.0 >= *ids.start());
    found
}

/// Finds the oldest post with a hashtag in `ids`, whose end is one. Does at most one lookup for each bit of the time
/// span.
fn first<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    tag: &Tag,
    ids: RangeInclusive<u64>,
    rows: &mut usize,
) -> u64 {
    let (mut low, mut first) = ids.into_inner();
    while low < first {
        let middle = u64::midpoint(low, first);
        match newest(facts, tag, low..=middle, 1, rows).first() {
            Some((post, _)) => first = post.0,
            None => low = middle + 1,
        }
    }
    first
}
