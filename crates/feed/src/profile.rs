//! The posts of one user as another one may see them.
//!
//! **Invariant:** a page says nothing about posts that the viewer may not see: they take no place on it, and it ends at
//! an item that the viewer may learn of, or at one of the `page::Borders`. The rows that are read for it are bounded.

use rows::{Rows, Span};

use crate::ids::{PostId, UserId};
use crate::page::{Borders, Page, PageOf, ROWS_MAX, Visible};
use crate::post::Posted;
use crate::visible::Viewer;

/// Most rows of one read.
const READ_ROWS_MAX: usize = 512;

/// What a viewer learns of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// It is on the page.
    Yes,
    /// It is not on the page, but may be known.
    LeftOut,
    /// Nothing.
    Hidden,
}

/// Items of a list that follow each other.
pub(crate) struct Batch<T> {
    pub(crate) items: Vec<T>,
    /// The id up to which these are all; `None` if nothing follows them in the span.
    pub(crate) last: Option<u64>,
    /// Rows and look-ups that they cost.
    pub(crate) rows: usize,
}

/// A page of the posts by `author` that the viewer may see. `read` returns the posts within a span, in its order.
pub fn posts<R: Rows + ?Sized>(
    viewer: &Viewer<'_, R>,
    author: UserId,
    page: &Page,
    mut read: impl FnMut(Span) -> Vec<Posted>,
) -> Visible {
    let read = |span: Span| {
        let items = read(span);
        let last = items.last().filter(|_| items.len() >= span.limit).map(|(post, _)| post.0);
        Batch { rows: items.len(), last, items }
    };
    visible(
        page,
        read,
        |posted| posted.0,
        |posted| {
            if viewer.visible_posted(author, *posted) { Shown::Yes } else { Shown::Hidden }
        },
    )
}

/// A page of the items that `read` returns and `shown` shows. `read` returns the first items of a span, in its order;
/// spans follow each other.
pub(crate) fn visible<T>(
    page: &Page,
    mut read: impl FnMut(Span) -> Batch<T>,
    id: impl Fn(&T) -> PostId,
    shown: impl Fn(&T) -> Shown,
) -> Visible {
    let wanted = page.limit + 1;
    let (mut items, mut rows, mut borders) = (Vec::new(), 0, Borders::new());
    // The last item that the viewer may learn of.
    let (mut known, mut end) = (None, None);
    let mut rest = page.span(wanted);
    while let Some(span) = rest {
        let batch = read(span);
        rows += batch.rows;
        for item in &batch.items {
            let shown = shown(item);
            known = Some(id(item)).filter(|_| shown != Shown::Hidden).or(known);
            items.extend((shown == Shown::Yes).then(|| id(item)));
            if items.len() >= wanted {
                break;
            }
        }
        let last = batch.last.filter(|_| items.len() < wanted);
        rest = last.and_then(|last| span.beyond(last, READ_ROWS_MAX));
        if rows >= ROWS_MAX
            && let Some(span) = rest
        {
            if known.is_some() {
                end = known;
                break;
            }
            rest = Some(borders.shorten(span));
            rows = 0;
        }
    }
    let end = end.or(borders.end().map(PostId)).filter(|_| items.len() < wanted);
    let mut posts = PageOf::from_scan(items, page);
    posts.more |= end.is_some();
    Visible { posts, end }
}
