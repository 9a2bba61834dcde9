//! Merges the lists of many users into a page, and reads from each list little more than is on the
//! page.
//!
//! Lists are in the order of ids. The first read of each list returns a few items. Each further read
//! returns up to twice as many, and happens only while unread items could still be on the page. The cost
//! is one short read per list and grows with the size of the page, not with the length of the lists. If most
//! items are hidden, the page ends early.

use rows::{Order, Span};

use crate::ids::UserId;
use crate::page::{Borders, Page, PageOf};

/// Most items of the first read of a list: of many lists, each has fewer items on the page.
const FIRST_READ_MAX: usize = 8;
/// Most items that memory is reserved for at the start.
const ROOM: usize = 512;

/// A gathered page.
pub(crate) struct Gathered<T> {
    pub(crate) page: PageOf<T>,
    /// Where the next page begins if it is not the last item: only after `rows_max`.
    pub(crate) end: Option<u64>,
}

/// Gathers the page. `read` appends the visible items of a user's list within a span, in its order. If
/// the span's limit cut the list short, it returns the last id that it read.
///
/// After `rows_max` rows, without those of the first read of each list, the page ends at the next of the [`Borders`]: so its
/// end says nothing about hidden items.
pub(crate) fn gather<I, T>(
    users: impl Iterator<Item = UserId>,
    page: &Page<I>,
    rows_max: usize,
    mut read: impl FnMut(UserId, Span, &mut Vec<T>) -> Option<u64>,
) -> Gathered<T>
where
    I: Copy + Into<u64>,
    T: Copy + Into<u64>,
{
    let wanted = page.limit + 1;
    // Twice the average number per list, and one more to know whether the list goes on.
    let lists = users.size_hint().0;
    let share = 2 * wanted / lists.max(1) + 2;
    let mut limit = share.min(FIRST_READ_MAX).min(wanted);
    let Some(first) = page.span(limit) else {
        return Gathered { page: PageOf { items: Vec::new(), more: false }, end: None };
    };
    let mut best: Vec<T> = Vec::with_capacity((limit * lists).min(ROOM));
    let mut unfinished = Vec::new();
    for user in users {
        if let Some(last) = read(user, first, &mut best) {
            unfinished.push((user, last));
        }
    }
    let (mut whole, mut borders, mut rows) = (first, Borders::new(), 0);
    while !unfinished.is_empty() {
        keep_first(&mut best, first.order, wanted);
        // Read on only in lists whose next item could still be on the page, and only up to its end.
        let last: Option<u64> = best.get(wanted - 1).map(|item| (*item).into());
        unfinished.retain(|(_, read)| last.is_none_or(|last| is_first(*read, last, first.order)));
        let least =
            unfinished.iter().map(|(_, read)| *read).min_by_key(|read| rank(*read, first.order));
        if rows >= rows_max
            && let Some(rest) = least.and_then(|least| whole.beyond(least, limit))
        {
            let part = borders.shorten(rest);
            whole = match whole.order {
                Order::Descending => Span { low: part.low, ..whole },
                Order::Ascending => Span { high: part.high, ..whole },
            };
            rows = 0;
        }
        limit = (2 * limit).min(wanted);
        let rest = |read| match last {
            None => whole.beyond(read, limit),
            Some(last) => whole.beyond(read, limit)?.until(last),
        };
        let read_on = |(user, from)| {
            let span = rest(from)?;
            rows += span.limit;
            Some((user, read(user, span, &mut best)?))
        };
        unfinished = unfinished.into_iter().filter_map(read_on).collect();
    }
    best.retain(|item| (whole.low..=whole.high).contains(&(*item).into()));
    keep_first(&mut best, first.order, wanted);
    let end = borders.end().filter(|_| best.len() < wanted);
    let mut page = PageOf::from_scan(best, page);
    page.more |= end.is_some();
    Gathered { page, end }
}

/// Position of an item in scan order.
fn rank(id: impl Into<u64>, order: Order) -> u64 {
    match order {
        Order::Descending => u64::MAX - id.into(),
        Order::Ascending => id.into(),
    }
}

/// Whether `one` comes before `other` in scan order.
fn is_first(one: u64, other: u64, order: Order) -> bool {
    rank(one, order) < rank(other, order)
}

/// Sorts in scan order and drops all but the first `wanted`.
fn keep_first<T: Copy + Into<u64>>(items: &mut Vec<T>, order: Order, wanted: usize) {
    let key = |item: &T| rank(*item, order);
    if items.len() > wanted {
        items.select_nth_unstable_by_key(wanted, key);
        items.truncate(wanted);
    }
    items.sort_unstable_by_key(key);
}
