//! Hashtag timelines: the public posts with a hashtag, newest first.
//!
//! Rows of a hashtag are read from the newest down. A page upwards looks for the time before which it has enough of them,
//! so it begins directly above its cursor without reading what is above the page.

use std::cell::Cell;
use std::cmp::Reverse;

use rows::{Order, Rows, Span};

use crate::facts::{Facts, Tagged};
use crate::ids::PostId;
use crate::page::{Page, Visible};
use crate::profile::visible;
use crate::tag::Tag;
use crate::visible::Viewer;

/// The first time span of a page upwards, in stamps: about a second. Each next one is 16 times as long.
const FIRST_WIDTH: u64 = 1 << 32;
/// Most reads for a page upwards: 8 until there are enough rows, and 63 halves of the last time span.
const PROBES_MAX: usize = 80;

/// The posts of a timeline. Hashtags are looked up for each post, so a caller bounds their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagQuery {
    /// Posts have one of these.
    pub any: Vec<Tag>,
    /// And all of these.
    pub all: Vec<Tag>,
    /// And none of these.
    pub none: Vec<Tag>,
}

impl TagQuery {
    /// All posts with a hashtag.
    #[must_use]
    pub fn of(tag: Tag) -> Self {
        Self { any: vec![tag], all: Vec::new(), none: Vec::new() }
    }

    /// Whether a public post by a user who exists is in the timeline as the viewer sees it.
    fn shows<R: Rows + ?Sized>(&self, viewer: &Viewer<'_, R>, tagged: Tagged) -> bool {
        let facts = viewer.facts();
        let has = |tag: &Tag| facts.has_tag(tag, tagged);
        !facts.is_hidden(tagged.1)
            && viewer.wants_public_by(tagged.1)
            && self.all.iter().all(has)
            && !self.none.iter().any(has)
    }
}

/// A page of the public posts that a query finds and that the viewer may see and has not muted. May end early, see
/// [`Visible::end`].
pub fn posts<R: Rows + ?Sized>(viewer: &Viewer<'_, R>, query: &TagQuery, page: &Page) -> Visible {
    let width = Cell::new(FIRST_WIDTH);
    let read = |span| read(viewer.facts(), (&query.any, &width), span);
    visible(page, read, |tagged| tagged.0, |tagged| query.shows(viewer, *tagged))
}

/// The posts with one of the hashtags within a span, in its order.
fn read<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    (any, width): (&[Tag], &Cell<u64>),
    span: Span,
) -> Vec<Tagged> {
    let of_tag = |tag| match span.order {
        Order::Descending => below(facts, tag, span),
        Order::Ascending => above(facts, (tag, width), span),
    };
    let mut found: Vec<_> = any.iter().flat_map(of_tag).collect();
    match span.order {
        Order::Descending => found.sort_unstable_by_key(|tagged| Reverse(*tagged)),
        Order::Ascending => found.sort_unstable(),
    }
    found.dedup();
    found.truncate(span.limit);
    found
}

fn below<R: Rows + ?Sized>(facts: Facts<'_, R>, tag: &Tag, span: Span) -> Vec<Tagged> {
    let mut found = facts.tagged(tag, PostId(span.high.saturating_add(1)), span.limit);
    found.retain(|(post, _)| post.0 >= span.low);
    found
}

/// The first rows of a span that is read upwards. A span of time that begins with it is made longer until it has enough
/// rows, and then shorter until they fit one read. The next read begins with a span of time of the same `length`.
fn above<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    (tag, length): (&Tag, &Cell<u64>),
    span: Span,
) -> Vec<Tagged> {
    let rows_max = span.limit.saturating_mul(2).saturating_add(64);
    let (mut found, mut width) = (Vec::new(), length.get());
    // The latest end with too few rows, and the earliest one with too many.
    let (mut short, mut long) = (span.low, None);
    let mut end = span.low.saturating_add(width).min(span.high);
    for _ in 0..PROBES_MAX {
        found = below(facts, tag, Span { high: end, limit: rows_max, ..span });
        if found.len() >= rows_max {
            long = Some(end);
        } else if found.len() >= span.limit || end >= span.high {
            length.set((end - span.low).max(1));
            break;
        } else {
            short = end;
        }
        end = match long {
            Some(long) => u64::midpoint(short, long),
            None => {
                width = width.saturating_mul(16);
                short.saturating_add(width).min(span.high)
            }
        };
    }
    found.reverse();
    found.truncate(span.limit);
    found
}
