//! Merges the lists of many users into a page, and reads from each list little more than is on the
//! page.
//!
//! Lists are in the order of ids. The first read of each list returns a few items. Each further read
//! returns up to twice as many, and happens only while unread items could still be on the page. The cost
//! is one short read per list and grows with the size of the page, not with the length of the lists.

use rows::{Order, Span};

use crate::ids::UserId;
use crate::page::{Page, PageOf};

/// Most items of the first read of a list: of many lists, each has fewer items on the page.
const FIRST_READ_MAX: usize = 8;
/// Most items that memory is reserved for at the start.
const ROOM: usize = 512;

/// Gathers the page. `read` appends the visible items of a user's list within a span, in its order. If
/// the span's limit cut the list short, it returns the last id that it read.
pub(crate) fn gather<I, T>(
    users: impl Iterator<Item = UserId>,
    page: &Page<I>,
    mut read: impl FnMut(UserId, Span, &mut Vec<T>) -> Option<u64>,
) -> PageOf<T>
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
        return PageOf { items: Vec::new(), more: false };
    };
    let mut best: Vec<T> = Vec::with_capacity((limit * lists).min(ROOM));
    let mut unfinished = Vec::new();
    for user in users {
        if let Some(last) = read(user, first, &mut best) {
            unfinished.push((user, last));
        }
    }
    loop {
        keep_first(&mut best, first.order, wanted);
        // Read on only in lists whose next item could still be on the page, and only up to its end.
        let end: Option<u64> = best.get(wanted - 1).map(|item| (*item).into());
        limit = (2 * limit).min(wanted);
        let rest = |last| match end {
            None => first.beyond(last, limit),
            Some(end) => first.beyond(last, limit)?.until(end),
        };
        unfinished = unfinished
            .into_iter()
            .filter_map(|(user, last)| Some((user, read(user, rest(last)?, &mut best)?)))
            .collect();
        if unfinished.is_empty() {
            keep_first(&mut best, first.order, wanted);
            return PageOf::from_scan(best, page);
        }
    }
}

/// Position of an item in scan order.
fn rank(id: impl Into<u64>, order: Order) -> u64 {
    match order {
        Order::Descending => u64::MAX - id.into(),
        Order::Ascending => id.into(),
    }
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
