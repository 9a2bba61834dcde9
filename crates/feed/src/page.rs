//! Pages of items in the order of ids: the start of a page, and its items.

use rows::{Order, Span};

use crate::ids::PostId;

/// Rows that are read for one page before it ends at the next border: see [`Borders`].
pub(crate) const ROWS_MAX: usize = 4_096;
/// Most rows of one read after the first.
const READ_ROWS_MAX: usize = 512;
/// Most pages that are read for one of which posts are hidden, and fewest and most posts on each of them but the first.
const READS_MAX: usize = 10;
const FILLED_READ_MIN: usize = 64;
const FILLED_READ_MAX: usize = 1_024;
/// Sizes of blocks of ids, in bits: about 70 minutes, a second, 16 milliseconds, and [`ROWS_MAX`] ids.
const BLOCK_BITS: [u32; 4] = [44, 32, 26, 12];
const _: () = assert!(matches!(BLOCK_BITS, [.., bits] if 1 << bits <= ROWS_MAX));

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

impl<T> Default for PageOf<T> {
    fn default() -> Self {
        Self { items: Vec::new(), more: false }
    }
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visible {
    /// The posts.
    pub posts: PageOf<PostId>,
    /// Where the next page begins if it is not the last post: only after many posts that are not shown.
    pub end: Option<PostId>,
}

impl Visible {
    /// Of a page [`Cursor::After`], the id up to which it has all posts, if there are more.
    #[must_use]
    pub fn reach(&self) -> Option<PostId> {
        self.end.or_else(|| self.posts.items.first().copied().filter(|_| self.posts.more))
    }

    /// As [`Visible::reach`], of any page of this cursor: the id of the last post that it surely has.
    fn reach_of(&self, cursor: Cursor) -> Option<PostId> {
        match cursor {
            Cursor::After(_) => self.reach(),
            _ => self.end.or_else(|| self.posts.items.last().copied().filter(|_| self.posts.more)),
        }
    }

    /// The page without posts after `newest`. If it had any, a page [`Cursor::After`] reaches up to `newest`, and there are
    /// more: who waits for posts must hear of these.
    fn up_to(mut self, newest: PostId, cursor: Cursor) -> Self {
        let reach = self.reach_of(cursor);
        let first = self.posts.items.first().copied().max(reach);
        match cursor {
            Cursor::After(after) if first > Some(newest) => {
                (self.posts.more, self.end) = (true, Some(newest.max(after)));
            }
            _ => self.end = reach,
        }
        self.posts.items.retain(|post| *post <= newest);
        self
    }

    /// The page of the posts that are in one or both of two lists, of each of which it takes the same page.
    ///
    /// The lists were read one after the other, and posts may have come meanwhile: of an earlier one in the list that was
    /// read first the page knows nothing. So it has no posts after `newest`, which was there before both reads.
    #[must_use]
    pub fn merged(self, other: Self, page: &Page, newest: PostId) -> Self {
        let both = [self, other].map(|list| list.up_to(newest, page.cursor));
        let reaches = both.each_ref().map(|list| list.reach_of(page.cursor));
        let reaches = reaches.into_iter().flatten();
        let is_up = matches!(page.cursor, Cursor::After(_));
        // What one list has beyond the reach of the other one is on the next page.
        let end = if is_up { reaches.min() } else { reaches.max() };
        let is_within =
            |post: &PostId| end.is_none_or(|end| if is_up { *post <= end } else { *post >= end });
        let posts = both.into_iter().flat_map(|list| list.posts.items);
        let mut items: Vec<_> = posts.filter(is_within).collect();
        items.sort_unstable();
        items.dedup();
        if !is_up {
            items.reverse();
        }
        let is_full = items.len() > page.limit;
        let last = items.last().copied();
        let mut posts = PageOf::from_scan(items, page);
        posts.more |= end.is_some();
        Self { posts, end: end.filter(|end| !is_full && last != Some(*end)) }
    }
}

/// Where a page ends that has few of the rows that were read for it: between two blocks of ids, since the reader must not
/// learn the ids of the others. The first block is long. If it has too many rows itself, the page ends at the border of a
/// shorter one, which still has many of them.
///
/// **Invariant:** the rows of a page are bounded, also if all have been made within a millisecond: a list has an id once.
#[derive(Debug)]
pub(crate) struct Borders {
    bits: std::slice::Iter<'static, u32>,
    end: Option<u64>,
}

impl Borders {
    pub(crate) fn new() -> Self {
        Self { bits: BLOCK_BITS.iter(), end: None }
    }

    /// The cursor of what follows the page, if it ends at a border.
    pub(crate) fn end(&self) -> Option<u64> {
        self.end
    }

    /// The part of `rest` that is still read, now that [`ROWS_MAX`] rows more have been read.
    pub(crate) fn shorten(&mut self, rest: Span) -> Span {
        let Some(bits) = self.bits.next() else { return rest };
        let within = (1 << bits) - 1;
        let (part, border) = match rest.order {
            Order::Descending => {
                let low = rest.low.max(rest.high & !within);
                (Span { low, ..rest }, low)
            }
            Order::Ascending => {
                let high = rest.high.min(rest.low | within);
                (Span { high, ..rest }, high)
            }
        };
        if part != rest {
            self.end = Some(border);
        }
        part
    }
}

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

/// The items of a span that are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownItems<T> {
    /// Items in the order of the span, at most as many as were wanted.
    pub items: Vec<T>,
    /// The id after which reading goes on, if it ended before there were as many as wanted.
    pub end: Option<u64>,
}

impl<T> ShownItems<T> {
    /// The first `wanted` items of a span that `is_shown` accepts. `read` returns the items of a span, in its order; all its
    /// items have different ids. Hidden items are passed over, within a bound of some thousands.
    pub fn read(
        span: Option<Span>,
        wanted: usize,
        mut read: impl FnMut(Span) -> Vec<T>,
        id: impl Fn(&T) -> u64,
        is_shown: impl Fn(&T) -> bool,
    ) -> Self {
        let read = |span: Span| {
            let items = read(span);
            let last = items.last().filter(|_| items.len() >= span.limit).map(&id);
            Batch { rows: items.len(), last, items }
        };
        let shown = |item: &T| if is_shown(item) { Shown::Yes } else { Shown::Hidden };
        scan(span, wanted, read, &id, shown)
    }

    /// These items as a page, of which one more was wanted than its limit.
    pub fn into_page<I>(self, page: &Page<I>) -> (PageOf<T>, Option<u64>) {
        let mut items = PageOf::from_scan(self.items, page);
        items.more |= self.end.is_some();
        (items, self.end)
    }
}

/// A page of the posts that `read` returns and `shown` shows. `read` returns the first items of a span, in its order;
/// spans follow each other.
pub(crate) fn visible<T>(
    page: &Page,
    read: impl FnMut(Span) -> Batch<T>,
    id: impl Fn(&T) -> PostId,
    shown: impl FnMut(&T) -> Shown,
) -> Visible {
    let wanted = page.limit + 1;
    let ShownItems { items, end } = scan(page.span(wanted), wanted, read, |it| id(it).0, shown);
    let items = items.iter().map(id).collect();
    let (posts, end) = ShownItems { items, end }.into_page(page);
    Visible { posts, end: end.map(PostId) }
}

fn scan<T>(
    mut rest: Option<Span>,
    wanted: usize,
    mut read: impl FnMut(Span) -> Batch<T>,
    id: impl Fn(&T) -> u64,
    mut shown: impl FnMut(&T) -> Shown,
) -> ShownItems<T> {
    let (mut items, mut rows, mut borders) = (Vec::new(), 0, Borders::new());
    // The last item that the viewer may learn of.
    let (mut known, mut end) = (None, None);
    while let Some(span) = rest {
        let batch = read(span);
        rows += batch.rows;
        for item in batch.items {
            let shown = shown(&item);
            known = Some(id(&item)).filter(|_| shown != Shown::Hidden).or(known);
            items.extend((shown == Shown::Yes).then_some(item));
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
    let end = end.or(borders.end()).filter(|_| items.len() < wanted);
    ShownItems { items, end }
}

impl Visible {
    /// A page of the posts that `is_shown` accepts of a list of which `read` returns pages. While there are too few it reads
    /// larger and larger pages, each of which costs little more than a small one: up to `READS_MAX`, and until
    /// `ROWS_MAX` posts were looked at. Then the page ends early, and leads on.
    pub fn filled(
        page: &Page,
        mut read: impl FnMut(&Page) -> Self,
        is_shown: impl Fn(PostId) -> bool,
    ) -> Self {
        let (mut items, mut next, mut looked_at) = (Vec::new(), *page, 0);
        for _ in 0..READS_MAX {
            let found = read(&next);
            let reach = found.reach_of(page.cursor);
            let mut posts = found.posts.items;
            if matches!(page.cursor, Cursor::After(_)) {
                posts.reverse();
            }
            looked_at += posts.len();
            items.extend(posts.into_iter().filter(|post| is_shown(*post)));
            let Some(reach) = reach.filter(|_| items.len() <= page.limit) else {
                return Self { posts: PageOf::from_scan(items, page), end: None };
            };
            next.cursor = match page.cursor {
                Cursor::After(_) => Cursor::After(reach),
                Cursor::Newest | Cursor::Before(_) => Cursor::Before(reach),
            };
            if items.len() == page.limit || looked_at >= ROWS_MAX {
                break;
            }
            next.limit = (2 * next.limit).clamp(FILLED_READ_MIN, FILLED_READ_MAX);
        }
        let end = match next.cursor {
            Cursor::After(end) | Cursor::Before(end) => Some(end),
            Cursor::Newest => None,
        };
        let last = items.last().copied();
        let mut posts = PageOf::from_scan(items, page);
        posts.more = end.is_some();
        Self { posts, end: end.filter(|_| last != end) }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn pages_end_at_the_borders_of_shorter_and_shorter_blocks() {
        let mut down = Borders::new();
        let mut rest = Span::below(Some(5 << 44 | 7 << 32 | 9 << 26 | 3 << 12 | 5), 9).unwrap();
        for border in [
            5 << 44,
            5 << 44 | 7 << 32,
            5 << 44 | 7 << 32 | 9 << 26,
            5 << 44 | 7 << 32 | 9 << 26 | 3 << 12,
        ] {
            rest = down.shorten(rest);
            assert_eq!((rest.low, down.end()), (border, Some(border)));
        }
        assert_eq!(down.shorten(rest), rest);

        let mut up = Borders::new();
        let mut rest = Span::above(5 << 44, 9).unwrap();
        for bits in BLOCK_BITS {
            rest = up.shorten(rest);
            let border = (5 << 44) + (1 << bits) - 1;
            assert_eq!((rest.high, up.end()), (border, Some(border)));
        }
    }

    /// What a stream waits for, which hears of each post once.
    #[test]
    fn what_came_during_the_reads_of_a_page_is_on_the_next_one() {
        const NEWEST: u64 = 5;
        let list = |newest_first: &[u64], more| {
            let items = newest_first.iter().copied().map(PostId).collect();
            Visible { posts: PageOf { items, more }, end: None }
        };
        let up = Cursor::After(PostId(1));
        for (cursor, one, other, (items, more, end)) in [
            (up, list(&[4, 3], false), list(&[4, 2], false), (&[4, 3, 2][..], false, None)),
            (up, list(&[5], false), list(&[5], false), (&[5], false, None)),
            (up, list(&[6, 4], false), list(&[4], false), (&[4], true, Some(NEWEST))),
            (up, list(&[4], false), list(&[6], false), (&[4], true, Some(NEWEST))),
            (up, list(&[6], false), list(&[6], false), (&[], true, Some(NEWEST))),
            (Cursor::After(PostId(6)), list(&[7], false), list(&[], false), (&[], true, Some(6))),
            (up, list(&[7, 6, 5], true), list(&[4], false), (&[5, 4], true, None)),
            (up, list(&[4, 3, 2], true), list(&[6], false), (&[4, 3, 2], true, None)),
            (Cursor::Newest, list(&[6, 4], false), list(&[5], false), (&[5, 4], false, None)),
            (Cursor::Newest, list(&[6, 4], true), list(&[3], false), (&[4], true, None)),
        ] {
            let page = Page { cursor, limit: 3 };
            let case = format!("{one:?} {other:?}");
            let merged = one.merged(other, &page, PostId(NEWEST));
            let items: Vec<_> = items.iter().copied().map(PostId).collect();
            let expected = Visible { posts: PageOf { items, more }, end: end.map(PostId) };
            assert_eq!(merged, expected, "{case}");
        }
    }

    #[test]
    fn a_page_is_filled_in_few_reads_and_leads_to_all_that_is_shown() {
        // Ids of posts in the list, of which one of so many is shown, the newest and the oldest of those first.
        for (posts, one_of, limit) in [
            (100, 1, 20),
            (5_000, 7, 20),
            (5_000, 900, 20),
            (30_000, 25_000, 40),
            (3_000, 9_000, 1),
        ] {
            let is_shown = |post: PostId| post.0 % one_of == one_of / 2;
            let expected: Vec<_> = (1..=posts).map(PostId).filter(|post| is_shown(*post)).collect();
            for is_up in [false, true] {
                let (mut found, mut pages) = (Vec::new(), 0);
                let mut cursor = if is_up { Cursor::After(PostId(0)) } else { Cursor::Newest };
                loop {
                    let page = Page { cursor, limit };
                    let (reads, rows) = (Cell::new(0), Cell::new(0));
                    let read = |page: &Page| {
                        let ids: Vec<_> = match page.cursor {
                            Cursor::Newest => (1..=posts).rev().take(page.limit + 1).collect(),
                            Cursor::Before(id) => (1..id.0).rev().take(page.limit + 1).collect(),
                            Cursor::After(id) => (id.0 + 1..=posts).take(page.limit + 1).collect(),
                        };
                        reads.set(reads.get() + 1);
                        rows.set(rows.get() + ids.len());
                        let ids = ids.into_iter().map(PostId).collect();
                        Visible { posts: PageOf::from_scan(ids, page), end: None }
                    };
                    let visible = Visible::filled(&page, read, is_shown);
                    assert!(reads.get() <= READS_MAX && rows.get() <= ROWS_MAX + FILLED_READ_MAX);
                    let reach = visible.reach_of(cursor);
                    let mut items = visible.posts.items;
                    if is_up {
                        items.reverse();
                    }
                    assert!(items.len() <= limit);
                    assert!(items.len() == limit || reach.is_none() || rows.get() >= ROWS_MAX);
                    found.extend(items);
                    pages += 1;
                    assert!(pages < 10_000, "it goes on for ever");
                    let Some(reach) = reach else { break };
                    cursor = if is_up { Cursor::After(reach) } else { Cursor::Before(reach) };
                }
                found.sort_unstable();
                assert_eq!(found, expected, "1 of {one_of}, up: {is_up}");
            }
        }
    }

    #[test]
    fn a_page_with_all_that_is_left_ends_at_no_border() {
        for order in [Order::Ascending, Order::Descending] {
            let rest = Span { low: 3 << 44, high: (3 << 44) + (1 << 40), limit: 9, order };
            let mut borders = Borders::new();
            assert_eq!((borders.shorten(rest), borders.end()), (rest, None));
        }
    }
}
