//! A page out of the lists of many people, reading of each list hardly more than ends up on the
//! page.
//!
//! Lists are in the order of ids. Each is asked for a few items first, and for twice as many again
//! only while what it has not told yet could still be among the page: the cost is one short read a
//! list and grows with the page, not with how long the lists are.

use rows::{Order, Span};

use crate::ids::UserId;
use crate::page::{Page, PageOf};

/// Items asked of each list at first, at most: what lies on the page of one list of many is less.
const FIRST_READ_MAX: usize = 8;
/// Items for which there is room from the start.
const ROOM: usize = 512;

/// Gathers the page. `read` appends what is visible of a person's list within a span, in its order;
/// if the span's limit cut the list short it returns the id at which.
pub(crate) fn gather<I, T>(
    people: impl Iterator<Item = UserId>,
    page: &Page<I>,
    mut read: impl FnMut(UserId, Span, &mut Vec<T>) -> Option<u64>,
) -> PageOf<T>
where
    I: Copy + Into<u64>,
    T: Copy + Into<u64>,
{
    let wanted = page.limit + 1;
    // Twice what each contributes on average, and one to tell whether it goes on.
    let lists = people.size_hint().0;
    let share = 2 * wanted / lists.max(1) + 2;
    let mut limit = share.min(FIRST_READ_MAX).min(wanted);
    let Some(first) = page.span(limit) else {
        return PageOf { items: Vec::new(), more: false };
    };
    let mut best: Vec<T> = Vec::with_capacity((limit * lists).min(ROOM));
    let mut unfinished = Vec::new();
    for person in people {
        if let Some(last) = read(person, first, &mut best) {
            unfinished.push((person, last));
        }
    }
    loop {
        keep_first(&mut best, first.order, wanted);
        // A list goes on only where its next item could still be within the page, and so far.
        let end: Option<u64> = best.get(wanted - 1).map(|item| (*item).into());
        limit = (2 * limit).min(wanted);
        let rest = |last| match end {
            None => first.beyond(last, limit),
            Some(end) => first.beyond(last, limit)?.until(end),
        };
        unfinished = unfinished
            .into_iter()
            .filter_map(|(person, last)| Some((person, read(person, rest(last)?, &mut best)?)))
            .collect();
        if unfinished.is_empty() {
            keep_first(&mut best, first.order, wanted);
            return PageOf::from_scan(best, page);
        }
    }
}

/// Where an item stands in scan order.
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
