//! Reads pages of lists. This module alone decides the number of rows read for a page, the items to skip, the end of a
//! page, and the merging of lists.
//!
//! A **source** is a function that returns the items of a span as a [`Batch`]. It is called with consecutive spans in
//! one direction. A **rule** decides how much of each item the viewer learns. [`merged`] combines many sources into
//! one; [`of_all`] makes a source of a list in memory.
//!
//! **Invariant:** a page reveals nothing about items hidden from the viewer: they take no place on it, and it ends at
//! an item that the viewer may know, or at one of the [`Borders`].
//!
//! **Invariant:** the number of rows read for a page is bounded, even if all of them were made within a millisecond,
//! because a list contains an id only once.

use rows::{Order, Span};

use crate::page::{Item, Page, PageOf};

/// Rows read for one page before it ends at the next border: see [`Borders`].
pub(crate) const ROWS_MAX: usize = 4_096;
/// Bounds of the number of rows of each read after the first.
const READ_ROWS_MIN: usize = 64;
pub(crate) const READ_ROWS_MAX: usize = 512;
/// Maximum number of items of the first read of one of many lists, each of which has few items on the page.
const FIRST_READ_MAX: usize = 8;
/// Maximum number of lists whose first reads each fetch a whole page.
const FEW_LISTS: usize = 4;
/// Maximum number of items for which memory is reserved before many lists are read.
const ROOM: usize = 512;
/// Sizes of blocks of ids, in bits: about 70 minutes, a second, 16 milliseconds, and [`ROWS_MAX`] ids.
const BLOCK_BITS: [u32; 4] = [44, 32, 26, 12];
const _: () = assert!(matches!(BLOCK_BITS, [.., bits] if 1 << bits <= ROWS_MAX));

/// Decision of a rule about an item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown<T> {
    /// Put this on the page.
    Yes(T),
    /// Leave the item out; the viewer may know that it exists.
    LeftOut,
    /// Hide the item; the viewer must not learn that it exists.
    Hidden,
}

impl<T> Shown<T> {
    /// Shows `item` if `is_shown`, else hides it.
    pub fn when(is_shown: bool, item: T) -> Self {
        if is_shown { Self::Yes(item) } else { Self::Hidden }
    }
}

impl<T> From<Option<T>> for Shown<T> {
    fn from(item: Option<T>) -> Self {
        item.map_or(Self::Hidden, Self::Yes)
    }
}

/// Consecutive items of a list.
#[derive(Debug)]
pub struct Batch<T> {
    /// Items in the order of the span.
    pub items: Vec<T>,
    /// Id up to which the items are complete; `None` if the span is complete.
    pub last: Option<u64>,
    /// Number of rows and lookups that were read.
    pub rows: usize,
    /// Whether the read has used up the cost of a page. The page ends at `last`, which the viewer may know.
    pub ends_page: bool,
}

impl<T: Item> Batch<T> {
    /// Result of a read of `span`: complete unless the number of items reaches the limit.
    #[must_use]
    pub fn of(items: Vec<T>, span: Span) -> Self {
        let last = items.last().filter(|_| items.len() >= span.limit).map(Item::id);
        Self { rows: items.len(), last, items, ends_page: false }
    }

    /// Items of a page that was read as a source. If that page ended early, so does the page that uses it.
    #[must_use]
    pub fn of_page(PageOf { mut items, next }: PageOf<T>, page: &Page) -> Self {
        if page.is_up {
            items.reverse();
        }
        let ends_page = next.is_some() && items.len() < page.limit;
        Self { rows: items.len(), last: next, items, ends_page }
    }

    /// Maps the items; an item mapped to `None` is hidden.
    pub(crate) fn filter_map<U>(self, map: impl FnMut(T) -> Option<U>) -> Batch<U> {
        let items = self.items.into_iter().filter_map(map).collect();
        Batch { items, last: self.last, rows: self.rows, ends_page: self.ends_page }
    }
}

/// Reads a page: applies `rule` to the items of `source`.
///
/// Reads on in larger steps while too few items are shown. After some thousands of rows the page ends early, at the
/// last item that the viewer may know, or else at one of the `Borders`; see [`PageOf::next`].
pub fn scan<T: Item, U>(
    page: &Page,
    source: impl FnMut(Span) -> Batch<T>,
    rule: impl FnMut(T) -> Shown<U>,
) -> PageOf<U> {
    scan_within(ROWS_MAX, page, source, rule)
}

/// Reads a page as [`scan`] does, with another limit of rows.
pub fn scan_within<T: Item, U>(
    rows_max: usize,
    page: &Page,
    mut source: impl FnMut(Span) -> Batch<T>,
    mut rule: impl FnMut(T) -> Shown<U>,
) -> PageOf<U> {
    let (wanted, mut limit) = (page.wanted(), page.wanted());
    let (mut items, mut rows, mut borders) = (Vec::new(), 0, Borders::new());
    // The last item that the viewer may know.
    let (mut known, mut end) = (None, None);
    let mut rest = page.span(limit);
    while let Some(span) = rest {
        let batch = source(span);
        rows += batch.rows;
        for item in batch.items {
            let id = item.id();
            match rule(item) {
                Shown::Yes(item) => {
                    known = Some(id);
                    items.push((id, item));
                }
                Shown::LeftOut => known = Some(id),
                Shown::Hidden => {}
            }
            if items.len() >= wanted {
                break;
            }
        }
        limit = limit.saturating_mul(2).clamp(READ_ROWS_MIN, READ_ROWS_MAX);
        let last = batch.last.filter(|_| items.len() < wanted);
        rest = last.and_then(|last| span.beyond(last, limit));
        // The page ends if the source has ended it or made no progress.
        if batch.ends_page
            || rest.is_some_and(|rest| (rest.low, rest.high) == (span.low, span.high))
        {
            end = last;
            break;
        }
        if rows >= rows_max
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
    let PageOf { items, next } = PageOf::from_scan(items, page, |(id, _)| *id);
    PageOf { items: items.into_iter().map(|(_, item)| item).collect(), next: next.or(end) }
}

/// Merges lists into one source.
///
/// The first read of each list returns a few items. Each further read returns up to twice as many, and happens only
/// while unread items could still be among the wanted ones. The cost is one short read per list and grows with the
/// number of wanted items, not with the length of the lists. The rows of a batch count its items and the rows that the
/// lists hide.
///
/// An item of several lists is returned once.
pub fn merged<L, T: Item>(
    lists: impl Iterator<Item = L>,
    read: impl FnMut(&mut L, Span) -> Batch<T>,
) -> impl FnMut(Span) -> Batch<T> {
    merged_within(ROWS_MAX, lists, read)
}

/// Merges lists as [`merged`] does, with another limit of hidden rows.
pub(crate) fn merged_within<L, T: Item>(
    rows_max: usize,
    lists: impl Iterator<Item = L>,
    mut read: impl FnMut(&mut L, Span) -> Batch<T>,
) -> impl FnMut(Span) -> Batch<T> {
    let (mut unread, mut unfinished, mut limit) = (Some(lists), Vec::<(L, u64)>::new(), 0);
    let mut pool = Pool::default();
    move |span| {
        let rank = |id: u64| rank(id, span.order);
        let (near, end) = match span.order {
            Order::Descending => (span.high, span.low),
            Order::Ascending => (span.low, span.high),
        };
        (pool.rows, pool.border) = (0, None);
        match unread.take() {
            Some(lists) => {
                limit = first_limit(lists.size_hint().0, span.limit);
                pool.items.reserve((limit * lists.size_hint().0).min(ROOM));
                for mut list in lists {
                    let batch = read(&mut list, Span { limit, ..span });
                    // The rows of the first read of each list are free up to its limit.
                    unfinished.push((list, pool.add(batch, span.order, limit).unwrap_or(end)));
                }
            }
            None => {
                limit = limit.min(span.limit);
                // Items before the span are not wanted any more.
                pass_to(near, span.order, &mut pool.items, &mut unfinished);
            }
        }
        let mut found = 0;
        let reach = loop {
            let wanted = pool.wanted(&span).filter(|id| rank(*id) < rank(end));
            let ends = wanted.into_iter().chain(pool.border);
            let far = ends.min_by_key(|id| rank(*id)).unwrap_or(end);
            let due = unfinished.iter().map(|(_, reach)| *reach);
            let least = due.min_by_key(|reach| rank(*reach)).filter(|it| rank(*it) < rank(far));
            let Some(least) = least else { break far };
            if pool.rows > rows_max {
                break least;
            }
            // More items than wanted are read only while all items are hidden.
            let most = if pool.items.len() > found { span.limit } else { READ_ROWS_MAX };
            limit = limit.saturating_mul(2).min(most.max(span.limit));
            found = pool.items.len();
            // Drop lists that have ended.
            unfinished.retain(|(_, reach)| rank(*reach) < u64::MAX);
            for (list, reach) in unfinished.iter_mut().filter(|(_, it)| rank(*it) < rank(far)) {
                let rest = span.beyond(*reach, limit);
                let rest = rest.and_then(|rest| wanted.map_or(Some(rest), |end| rest.until(end)));
                let last = rest.and_then(|rest| pool.add(read(list, rest), span.order, 0));
                *reach = last.or(wanted).unwrap_or(end);
            }
        };
        pool.take(reach, end, span.order)
    }
}

/// Limit of the first read of each of `lists` lists.
fn first_limit(lists: usize, wanted: usize) -> usize {
    // Twice the average number per list, and one more to see whether the list goes on.
    let share = wanted.saturating_mul(2) / lists.max(1) + 2;
    let limit = if lists <= FEW_LISTS { wanted } else { share.min(FIRST_READ_MAX) };
    limit.min(wanted)
}

/// Items read from lists and not yet returned.
struct Pool<T> {
    items: Vec<T>,
    /// Number of rows read for the current batch, without items.
    rows: usize,
    /// Nearest id at which one of the lists ends the page.
    border: Option<u64>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { items: Vec::new(), rows: 0, border: None }
    }
}

impl<T: Item> Pool<T> {
    /// Adds the result of a read, of which `free` rows do not count. Returns the id up to which the list was read.
    fn add(&mut self, batch: Batch<T>, order: Order, free: usize) -> Option<u64> {
        self.rows += batch.rows.saturating_sub(batch.items.len().max(free));
        if batch.ends_page {
            let ends = self.border.into_iter().chain(batch.last);
            self.border = ends.min_by_key(|id| rank(*id, order));
        }
        self.items.extend(batch.items);
        batch.last
    }

    /// Id of the last item that `span` asks for, if the pool has enough items.
    fn wanted(&mut self, span: &Span) -> Option<u64> {
        let at = span.limit.checked_sub(1).filter(|at| *at < self.items.len())?;
        let key = |item: &T| rank(item.id(), span.order);
        Some(self.items.select_nth_unstable_by_key(at, key).1.id())
    }

    /// Takes the items up to `reach` out of the pool, for a span that ends at `end`.
    fn take(&mut self, reach: u64, end: u64, order: Order) -> Batch<T> {
        let is_reached = |item: &mut T| rank(item.id(), order) <= rank(reach, order);
        let mut items: Vec<T> = self.items.extract_if(.., is_reached).collect();
        let rows = self.rows + items.len();
        items.sort_unstable_by_key(|item| rank(item.id(), order));
        items.dedup_by_key(|item| item.id());
        let last = Some(reach).filter(|it| *it != end);
        Batch { items, last, rows, ends_page: self.border == Some(reach) }
    }
}

/// Drops all items before the id `near`.
fn pass_to<L, T: Item>(near: u64, order: Order, pool: &mut Vec<T>, unfinished: &mut [(L, u64)]) {
    let rank = |id| rank(id, order);
    pool.retain(|item| rank(item.id()) >= rank(near));
    let Some(passed) = rank(near).checked_sub(1) else { return };
    for (_, reach) in unfinished.iter_mut().filter(|(_, reach)| rank(*reach) < passed) {
        *reach = rank(passed);
    }
}

/// Makes a source of a list in memory, in any order.
pub fn of_all<T: Item + Clone>(all: Vec<T>) -> impl FnMut(Span) -> Batch<T> {
    move |span| {
        let is_within = |item: &&T| (span.low..=span.high).contains(&item.id());
        let mut items: Vec<T> = all.iter().filter(is_within).cloned().collect();
        items.sort_unstable_by_key(|item| rank(item.id(), span.order));
        Batch { rows: items.len(), last: None, items, ends_page: false }
    }
}

/// Position of an id in the order of reading.
fn rank(id: u64, order: Order) -> u64 {
    match order {
        Order::Descending => u64::MAX - id,
        Order::Ascending => id,
    }
}

/// Possible ends of a page that shows few of the rows read for it: borders between blocks of ids, because the reader
/// must not learn the ids of hidden items. The first block is long. If it has too many rows, the page ends at the
/// border of a shorter block.
#[derive(Debug)]
pub(crate) struct Borders {
    bits: std::slice::Iter<'static, u32>,
    end: Option<u64>,
}

impl Borders {
    pub(crate) fn new() -> Self {
        Self { bits: BLOCK_BITS.iter(), end: None }
    }

    /// Cursor of the next page, if the page ends at a border.
    pub(crate) fn end(&self) -> Option<u64> {
        self.end
    }

    /// Shortens the rest of a page after another [`ROWS_MAX`] rows were read.
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::page::Cursor;

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

    #[test]
    fn a_page_with_all_that_is_left_ends_at_no_border() {
        for order in [Order::Ascending, Order::Descending] {
            let rest = Span { low: 3 << 44, high: (3 << 44) + (1 << 40), limit: 9, order };
            let mut borders = Borders::new();
            assert_eq!((borders.shorten(rest), borders.end()), (rest, None));
        }
    }

    /// Reads a span of the list of these ids.
    fn read(ids: impl Iterator<Item = u64>, span: Span) -> Vec<u64> {
        let mut items: Vec<_> = ids.filter(|id| (span.low..=span.high).contains(id)).collect();
        items.sort_unstable_by_key(|id| rank(*id, span.order));
        items.truncate(span.limit);
        items
    }

    /// Reads `lists` merged lists where one of `one_of` ids is shown, and the others are known or hidden.
    #[test]
    fn a_page_is_filled_in_few_reads_and_leads_to_all_that_is_shown() {
        const READS_MAX: usize = 5 * 16;
        for (last, lists, one_of, limit, is_known) in [
            (100, 1, 1, 20, false),
            (5_000, 1, 7, 20, false),
            (5_000, 3, 7, 20, true),
            (5_000, 2, 900, 20, false),
            (30_000, 1, 25_000, 40, true),
            (30_000, 4, 25_000, 40, false),
            (3_000, 1, 9_000, 1, false),
        ] {
            let is_shown = |id: u64| id % one_of == one_of / 2;
            let expected: Vec<_> = (1..=last).filter(|id| is_shown(*id)).collect();
            for cursor in [Cursor::Newest, Cursor::After(0)] {
                let (mut found, mut pages, mut page) = (Vec::new(), 0, Page::at(cursor, limit));
                loop {
                    let (reads, rows) = (Cell::new(0), Cell::new(0));
                    let source = merged(0..lists, |list, span: Span| {
                        let of_list = (1..=last).filter(|id| id % lists == *list);
                        let items = read(of_list, span);
                        reads.set(reads.get() + 1);
                        rows.set(rows.get() + items.len());
                        Batch::of(items, span)
                    });
                    let PageOf { mut items, next } = scan(&page, source, |id| match is_shown(id) {
                        true => Shown::Yes(id),
                        false if is_known => Shown::LeftOut,
                        false => Shown::Hidden,
                    });
                    assert!(reads.get() <= READS_MAX, "{} reads", reads.get());
                    assert!(rows.get() <= 5 * (ROWS_MAX + READ_ROWS_MAX), "{} rows", rows.get());
                    assert!(items.len() <= limit);
                    assert!(items.len() == limit || next.is_none() || rows.get() >= ROWS_MAX);
                    if page.is_up {
                        items.reverse();
                    }
                    found.extend(items);
                    pages += 1;
                    assert!(pages < 10_000, "it goes on for ever");
                    let Some(next) = next else { break };
                    let cursor =
                        if page.is_up { Cursor::After(next) } else { Cursor::Before(next) };
                    page = Page::at(cursor, limit);
                }
                found.sort_unstable();
                assert_eq!(found, expected, "1 of {one_of} in {lists} lists, {cursor:?}");
            }
        }
    }

    #[test]
    fn a_page_between_two_ids_has_what_is_between_them() {
        let all = || of_all((1..=9).collect::<Vec<u64>>());
        for (below, above, is_up, items, next) in [
            (Some(8), Some(5), false, &[7, 6][..], None),
            (Some(8), Some(5), true, &[7, 6], None),
            (Some(8), Some(4), false, &[7, 6], Some(6)),
            (Some(8), Some(4), true, &[6, 5], Some(6)),
            (None, Some(8), false, &[9], None),
            (Some(6), Some(5), false, &[], None),
            (Some(5), Some(6), true, &[], None),
        ] {
            let page = Page { below, above, is_up, limit: 2 };
            let expected = PageOf { items: items.to_vec(), next };
            assert_eq!(scan(&page, all(), Shown::Yes), expected, "{page:?}");
        }
    }

    #[test]
    fn a_source_that_goes_no_further_ends_the_page_which_leads_on() {
        let stuck =
            |_| Batch::<u64> { items: Vec::new(), last: Some(6), rows: 0, ends_page: false };
        let page = Page::at(Cursor::After(6_u64), 9);
        assert_eq!(scan(&page, stuck, Shown::Yes), PageOf { items: Vec::new(), next: Some(6) });
    }

    /// A stream relies on this: it receives each item once.
    #[test]
    fn what_came_during_the_reads_of_a_page_is_on_the_next_one() {
        let up = |above| Page { below: None, above: Some(above), is_up: true, limit: 3 };
        for (page, items, next, expected) in [
            (up(1), &[4, 3, 2][..], None, (&[4, 3, 2][..], None)),
            (up(1), &[5, 4], None, (&[5, 4], None)),
            (up(1), &[6, 4], None, (&[4], Some(5))),
            (up(1), &[6], None, (&[], Some(5))),
            (up(6), &[7], None, (&[], Some(6))),
            (up(1), &[4, 3, 2], Some(4), (&[4, 3, 2], Some(4))),
            (up(1), &[7, 6, 5], Some(7), (&[5], Some(5))),
            (up(1), &[4], Some(7), (&[4], Some(5))),
            (Page::newest(3), &[6, 5, 4], None, (&[5, 4], None)),
            (Page::newest(3), &[6, 5, 4], Some(4), (&[5, 4], Some(4))),
        ] {
            let found = PageOf { items: items.to_vec(), next }.up_to(5_u64, &page);
            assert_eq!((&found.items[..], found.next), expected, "{items:?} {next:?}");
        }
    }

    /// One list shows nothing, and each of its reads costs a whole page, so its pages end early. Another list has all
    /// ids.
    #[test]
    fn a_page_ends_where_a_page_that_it_is_made_of_ended_early() {
        for with_other in [false, true] {
            let mut reads = 0;
            let mut early = |span: Span| {
                reads += 1;
                let items = Vec::<u64>::new();
                Batch::of_page(PageOf { items, next: Some(span.high - 10) }, &Page::of(span))
            };
            let lists = if with_other { vec![false, true] } else { vec![false] };
            let source = merged(lists.into_iter(), |is_other, span| match *is_other {
                true => Batch::of(read(0..2_000, span), span),
                false => early(span),
            });
            let page = Page::at(Cursor::Before(1_000_u64), 20);
            let found = scan(&page, source, Shown::Yes);
            let expected: Vec<u64> = if with_other { (989..1_000).rev().collect() } else { vec![] };
            assert_eq!((found.items, found.next), (expected, Some(989)));
            assert_eq!(reads, 1);
        }
    }
}
