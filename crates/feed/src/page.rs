//! Pages of items in the order of ids: the start of a page, and its items.

use rows::{Order, Span, Stamp};

use crate::ids::PostId;

const HOUR_MS: u64 = 3_600_000;
/// Rows that are read for one page before it ends at the next whole hour.
pub(crate) const ROWS_MAX: usize = 4_096;

/// The start of a page of posts (or of stories, with their ids).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor<I = PostId> {
    /// The newest.
    Newest,
    /// The newest that are older than this one, which need not exist any more.
    Before(I),
    /// The oldest that are newer than this one: the adjacent page, so that paging up skips none.
    After(I),
}

/// The requested part of a timeline. Pages are newest first whatever the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<I = PostId> {
    /// The start of the page.
    pub cursor: Cursor<I>,
    /// Most items on the page; at least 1.
    pub limit: usize,
}

impl<I: Copy + Into<u64>> Page<I> {
    /// The ids a scan for `limit` items of this page must cover; `None` if there can be none.
    #[must_use]
    pub fn span(&self, limit: usize) -> Option<Span> {
        match self.cursor {
            Cursor::Newest => Span::below(None, limit),
            Cursor::Before(id) => Span::below(Some(id.into()), limit),
            Cursor::After(id) => Span::above(id.into(), limit),
        }
    }
}

/// Items of a page, and whether there are more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOf<T> {
    /// Newest first.
    pub items: Vec<T>,
    /// Whether there are more in the direction of reading (older ones, or newer ones for a page
    /// [`Cursor::After`]).
    pub more: bool,
}

impl<T> PageOf<T> {
    /// Makes a page from up to `limit + 1` items in scan order.
    #[must_use]
    pub fn from_scan<I>(mut items: Vec<T>, page: &Page<I>) -> Self {
        let more = items.len() > page.limit;
        items.truncate(page.limit);
        if matches!(page.cursor, Cursor::After(_)) {
            items.reverse();
        }
        Self { items, more }
    }
}

/// The posts on a page that the reader may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visible {
    /// The posts.
    pub posts: PageOf<PostId>,
    /// Where the next page begins if it is not the last post: only after many hidden posts.
    pub end: Option<PostId>,
}

impl Visible {
    /// Of a page [`Cursor::After`], the id up to which it has all posts, if there are more.
    #[must_use]
    pub fn reach(&self) -> Option<PostId> {
        self.end.or_else(|| self.posts.items.first().copied().filter(|_| self.posts.more))
    }
}

/// The part of a span of ids up to the next whole hour, and the cursor of the rest, if there is a rest: so that a page can
/// end after ids that the reader must not learn.
pub(crate) fn up_to_hour(span: Span) -> (Span, Option<u64>) {
    let hour = |ms: u64| Stamp::first_of(ms / HOUR_MS * HOUR_MS).0;
    let (end, next) = match span.order {
        Order::Descending => {
            let start = hour(Stamp(span.high).unix_ms());
            (start - 1, start)
        }
        Order::Ascending => {
            let end = hour(Stamp(span.low).unix_ms() + HOUR_MS);
            (end, end - 1)
        }
    };
    span.until(end).map_or((span, None), |part| (part, (part != span).then_some(next)))
}
