//! The one scan that reads pages of lists: it owns how many rows are read for a page, what is passed over, where a page ends,
//! and the merging of lists.
//!
//! A **source** is a function that returns the items of a span as a [`Batch`]. The spans that it is called with follow each
//! other in one direction. A **rule** says what the viewer learns of each item. [`merged`] makes one source of many, and
//! [`of_all`] one of a list in memory.
//!
//! **Invariant:** a page says nothing about items that the viewer may not see: they take no place on it, and it ends at one
//! that the viewer may learn of, or at one of the [`Borders`].
//!
//! **Invariant:** the rows that are read for a page are bounded, also if all have been made within a millisecond: a list has
//! an id once.

use rows::{Order, Span};

use crate::page::{Item, Page, PageOf};

/// Rows that are read for one page before it ends at the next border: see [`Borders`].
pub(crate) const ROWS_MAX: usize = 4_096;
/// Fewest and most rows of one read after the first.
const READ_ROWS_MIN: usize = 64;
pub(crate) const READ_ROWS_MAX: usize = 512;
/// Most items of the first read of one of many lists: each has few items on the page.
const FIRST_READ_MAX: usize = 8;
/// Most lists of which each may have the whole page.
const FEW_LISTS: usize = 4;
/// Most items of many lists that memory is reserved for at the start.
const ROOM: usize = 512;
/// Sizes of blocks of ids, in bits: about 70 minutes, a second, 16 milliseconds, and [`ROWS_MAX`] ids.
const BLOCK_BITS: [u32; 4] = [44, 32, 26, 12];
const _: () = assert!(matches!(BLOCK_BITS, [.., bits] if 1 << bits <= ROWS_MAX));

/// What a viewer learns of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown<T> {
    /// This is on the page.
    Yes(T),
    /// It is not on the page, but may be known.
    LeftOut,
    /// Nothing.
    Hidden,
}

impl<T> Shown<T> {
    /// On the page if `is_shown`, and else unknown to the viewer.
    pub fn when(is_shown: bool, item: T) -> Self {
        if is_shown { Self::Yes(item) } else { Self::Hidden }
    }
}

impl<T> From<Option<T>> for Shown<T> {
    fn from(item: Option<T>) -> Self {
        item.map_or(Self::Hidden, Self::Yes)
    }
}

/// Items of a list that follow each other.
#[derive(Debug)]
pub struct Batch<T> {
    /// In the order of the span.
    pub items: Vec<T>,
    /// The id up to which these are all; `None` if nothing follows them in the span.
    pub last: Option<u64>,
    /// Rows and look-ups that they cost.
    pub rows: usize,
    /// Whether as much was read for them as a page may cost: it ends at `last`, which the viewer may learn of.
    pub ends_page: bool,
}

impl<T: Item> Batch<T> {
    /// What a read of a span has returned: all there is, unless it has as many items as the limit.
    #[must_use]
    pub fn of(items: Vec<T>, span: Span) -> Self {
        let last = items.last().filter(|_| items.len() >= span.limit).map(Item::id);
        Self { rows: items.len(), last, items, ends_page: false }
    }

    /// A page that was read. If it ended early, so does the one that it is part of.
    #[must_use]
    pub fn of_page(PageOf { mut items, next }: PageOf<T>, page: &Page) -> Self {
        if page.is_up {
            items.reverse();
        }
        let ends_page = next.is_some() && items.len() < page.limit;
        Self { rows: items.len(), last: next, items, ends_page }
    }

    /// The same part of the list with what `map` makes of the items. Those of which it makes nothing are hidden.
    pub(crate) fn filter_map<U>(self, map: impl FnMut(T) -> Option<U>) -> Batch<U> {
        let items = self.items.into_iter().filter_map(map).collect();
        Batch { items, last: self.last, rows: self.rows, ends_page: self.ends_page }
    }
}

/// Reads a page: what `rule` makes of the items of a source.
///
/// While too few are shown it reads on, more at a time. After some thousands of rows the page ends early, at the last item
/// that the viewer may learn of, or if there is none, at one of the [`Borders`]; see [`PageOf::next`].
pub fn scan<T: Item, U>(
    page: &Page,
    source: impl FnMut(Span) -> Batch<T>,
    rule: impl FnMut(T) -> Shown<U>,
) -> PageOf<U> {
    scan_within(ROWS_MAX, page, source, rule)
}

/// As [`scan`], with another number of rows that are read before the page ends early.
pub(crate) fn scan_within<T: Item, U>(
    rows_max: usize,
    page: &Page,
    mut source: impl FnMut(Span) -> Batch<T>,
    mut rule: impl FnMut(T) -> Shown<U>,
) -> PageOf<U> {
    let (wanted, mut limit) = (page.wanted(), page.wanted());
    let (mut items, mut rows, mut borders) = (Vec::new(), 0, Borders::new());
    // The last item that the viewer may learn of.
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
        // What follows is not to be read for this page, or not yet.
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

/// A source of lists that are read together.
///
/// The first read of each list returns a few items. Each further read returns up to twice as many, and happens only while
/// unread items could still be among those that are wanted. The cost is one short read per list and grows with the number of
/// wanted items, not with the length of the lists. The rows of a batch are its items, and what the lists hide.
///
/// An item that several lists have is among the items once.
pub fn merged<L, T: Item>(
    lists: impl Iterator<Item = L>,
    read: impl FnMut(&mut L, Span) -> Batch<T>,
) -> impl FnMut(Span) -> Batch<T> {
    merged_within(ROWS_MAX, lists, read)
}

/// As [`merged`], with another number of hidden rows after which a batch ends early.
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
                    // The first read of each list may cost as many rows.
                    unfinished.push((list, pool.add(batch, span.order, limit).unwrap_or(end)));
                }
            }
            None => {
                limit = limit.min(span.limit);
                // What is not asked for any more is passed over.
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
            // More at a time than are wanted only while everything is hidden.
            let most = if pool.items.len() > found { span.limit } else { READ_ROWS_MAX };
            limit = limit.saturating_mul(2).min(most.max(span.limit));
            found = pool.items.len();
            // Without those that have ended.
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

/// Most items of the first read of each of so many lists.
fn first_limit(lists: usize, wanted: usize) -> usize {
    // Twice the average number per list, and one more to know whether the list goes on.
    let share = wanted.saturating_mul(2) / lists.max(1) + 2;
    let limit = if lists <= FEW_LISTS { wanted } else { share.min(FIRST_READ_MAX) };
    limit.min(wanted)
}

/// What was read of lists and not returned.
struct Pool<T> {
    items: Vec<T>,
    /// Rows that the reads for a batch cost, without items.
    rows: usize,
    /// The nearest id at which one of the lists ends the page.
    border: Option<u64>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { items: Vec::new(), rows: 0, border: None }
    }
}

impl<T: Item> Pool<T> {
    /// Adds what was read of a list, for which so many rows are not counted. Returns up to where it was read.
    fn add(&mut self, batch: Batch<T>, order: Order, free: usize) -> Option<u64> {
        self.rows += batch.rows.saturating_sub(batch.items.len().max(free));
        if batch.ends_page {
            let ends = self.border.into_iter().chain(batch.last);
            self.border = ends.min_by_key(|id| rank(*id, order));
        }
        self.items.extend(batch.items);
        batch.last
    }

    /// The last of the items that a span asks for, as far as is known.
    fn wanted(&mut self, span: &Span) -> Option<u64> {
        let at = span.limit.checked_sub(1).filter(|at| *at < self.items.len())?;
        let key = |item: &T| rank(item.id(), span.order);
        Some(self.items.select_nth_unstable_by_key(at, key).1.id())
    }

    /// The items up to `reach` of a span that ends at `end`.
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

/// Drops what is before an id.
fn pass_to<L, T: Item>(near: u64, order: Order, pool: &mut Vec<T>, unfinished: &mut [(L, u64)]) {
    let rank = |id| rank(id, order);
    pool.retain(|item| rank(item.id()) >= rank(near));
    let Some(passed) = rank(near).checked_sub(1) else { return };
    for (_, reach) in unfinished.iter_mut().filter(|(_, reach)| rank(*reach) < passed) {
        *reach = rank(passed);
    }
}

/// A source of a list that is in memory as a whole, in any order.
pub fn of_all<T: Item + Clone>(all: Vec<T>) -> impl FnMut(Span) -> Batch<T> {
    move |span| {
        let is_within = |item: &&T| (span.low..=span.high).contains(&item.id());
        let mut items: Vec<T> = all.iter().filter(is_within).cloned().collect();
        items.sort_unstable_by_key(|item| rank(item.id(), span.order));
        Batch { rows: items.len(), last: None, items, ends_page: false }
    }
}

/// Position of an item in the order of reading.
fn rank(id: u64, order: Order) -> u64 {
    match order {
        Order::Descending => u64::MAX - id,
        Order::Ascending => id,
    }
}

/// Where a page ends that has few of the rows that were read for it: between two blocks of ids, since the reader must not
/// learn the ids of the others. The first block is long. If it has too many rows itself, the page ends at the border of a
/// shorter one, which still has many of them.
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

    /// The ids of a span in a list of these.
    fn read(ids: impl Iterator<Item = u64>, span: Span) -> Vec<u64> {
        let mut items: Vec<_> = ids.filter(|id| (span.low..=span.high).contains(id)).collect();
        items.sort_unstable_by_key(|id| rank(*id, span.order));
        items.truncate(span.limit);
        items
    }

    /// One list, or several that are merged; of whose ids one of so many is shown, and the others are known or hidden.
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

    /// What a stream waits for, which hears of each item once.
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

    /// A list whose pages end early: it shows nothing, and each read of it is as long as a page may be. Another list has all ids.
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
