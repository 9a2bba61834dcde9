//! The posts of one user as another one may see them.
//!
//! **Invariant:** a page says nothing about posts that the viewer may not see: they take no place on it, and its ends are
//! posts on it, or whole hours. So a page after many hidden posts is a bounded read, but for those of one hour.

use rows::{Rows, Span};

use crate::ids::{PostId, UserId};
use crate::page::{Page, PageOf, ROWS_MAX, Visible, up_to_hour};
use crate::post::Posted;
use crate::visible::Viewer;

/// Most rows of one read.
const READ_ROWS_MAX: usize = 512;

/// A page of the posts by `author` that the viewer may see. `read` returns the posts within a span, in its order.
pub fn posts<R: Rows + ?Sized>(
    viewer: &Viewer<'_, R>,
    author: UserId,
    page: &Page,
    read: impl FnMut(Span) -> Vec<Posted>,
) -> Visible {
    visible(page, read, |posted| posted.0, |posted| viewer.visible_posted(author, *posted))
}

/// A page of what `read` returns, as far as `is_shown`. `read` returns the items within a span, in its order.
pub(crate) fn visible<T>(
    page: &Page,
    mut read: impl FnMut(Span) -> Vec<T>,
    id: impl Fn(&T) -> PostId,
    is_shown: impl Fn(&T) -> bool,
) -> Visible {
    let wanted = page.limit + 1;
    let (mut items, mut rows, mut end) = (Vec::new(), 0, None);
    let mut rest = page.span(wanted);
    while let Some(span) = rest {
        let found = read(span);
        rows += found.len();
        items.extend(found.iter().filter(|item| is_shown(item)).map(&id));
        let last = found.last().filter(|_| found.len() >= span.limit && items.len() < wanted);
        rest = last.and_then(|item| span.beyond(id(item).0, READ_ROWS_MAX));
        if rows >= ROWS_MAX
            && end.is_none()
            && let Some(span) = rest
        {
            let (part, next) = up_to_hour(span);
            (rest, end) = (Some(part), next.map(PostId));
        }
    }
    end = end.filter(|_| items.len() <= page.limit);
    let mut posts = PageOf::from_scan(items, page);
    posts.more |= end.is_some();
    Visible { posts, end }
}
