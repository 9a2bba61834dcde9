//! Newest stories of each author, so that gathering a list of stories reads little from the store.

use feed::StoryId;
use rows::{Order, Span};
use smallvec::SmallVec;

use super::user_cache::Cached;

/// Minimum number of stories that are kept of an author who has so many: those of the first request of gathering, and a
/// few more.
const KEPT: usize = 10;
const TRIM_AT: usize = 16;
/// Number of stories below which an incomplete list is useless: the first request of gathering needs so many.
const USEFUL: usize = 8;

/// A story and its expiry in milliseconds since 1970.
pub(super) type Item = (StoryId, u64);

/// Newest stories of an author.
///
/// **Invariant:** the items descend and include all live stories of the author that are not older than the last item;
/// if `complete`, all live ones.
pub(super) struct NewestStories {
    complete: bool,
    /// Stored without a pointer, so that finding the list also fetches its first items.
    items: SmallVec<[Item; TRIM_AT]>,
}

impl NewestStories {
    /// Span to scan for [`NewestStories::scanned`].
    pub(super) const NEWEST: Span =
        Span { low: 0, high: u64::MAX, limit: KEPT, order: Order::Descending };

    /// Creates a list of the results of a scan of [`NewestStories::NEWEST`].
    pub(super) fn scanned(newest_first: impl IntoIterator<Item = Item>) -> Self {
        let items: SmallVec<_> = newest_first.into_iter().collect();
        Self { complete: items.len() < KEPT, items }
    }

    /// Returns a copy of the list with an item, which it may have already.
    pub(super) fn with(&self, item: Item) -> Self {
        let is_present = self.items.first().is_some_and(|first| first.0.0 >= item.0.0);
        let new = (!is_present).then_some(item);
        let mut items: SmallVec<_> = new.into_iter().chain(self.items.iter().copied()).collect();
        let full = items.len() >= TRIM_AT;
        if full {
            items.truncate(KEPT);
        }
        Self { complete: self.complete && !full, items }
    }

    /// Returns a copy of the list without a deleted item; `None` if the rest is useless.
    pub(super) fn without(&self, id: u64) -> Option<Self> {
        let items: SmallVec<_> = self.items.iter().copied().filter(|item| item.0.0 != id).collect();
        let useful = self.complete || items.len() >= USEFUL;
        useful.then_some(Self { complete: self.complete, items })
    }

    /// Appends the results of `select` for the items within `span`, in its order and up to its limit. Returns false and
    /// appends nothing if there may be stories that are not kept.
    pub(super) fn read<U>(
        &self,
        span: Span,
        select: impl Fn(&Item) -> Option<U>,
        out: &mut Vec<U>,
    ) -> bool {
        // Reads of the newest stories are the most frequent, so they touch only the returned items.
        let newer = match span.high {
            u64::MAX => 0,
            high => self.items.partition_point(|item| item.0.0 > high),
        };
        let rest = self.items.get(newer..).unwrap_or_default();
        let mut within = rest.iter().take_while(|item| item.0.0 >= span.low);
        let before = out.len();
        match span.order {
            Order::Descending => {
                out.extend(within.by_ref().filter_map(select).take(span.limit));
                let all = out.len() - before == span.limit;
                if all || self.reaches_below(span.low) {
                    return true;
                }
                out.truncate(before);
                false
            }
            Order::Ascending if self.reaches_below(span.low) => {
                let count = within.count();
                let within = rest.get(..count).unwrap_or_default();
                out.extend(within.iter().rev().filter_map(select).take(span.limit));
                true
            }
            Order::Ascending => false,
        }
    }

    /// Whether the list has all live items from `low` on.
    fn reaches_below(&self, low: u64) -> bool {
        self.complete || self.items.last().is_some_and(|last| last.0.0 < low)
    }
}

impl Cached for NewestStories {
    fn bytes(&self) -> usize {
        // A list that was trimmed is stored in place, without the heap.
        if self.items.spilled() { self.items.capacity() * size_of::<Item>() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posted(id: u64) -> Item {
        (StoryId(id), 0)
    }

    #[test]
    fn a_list_is_of_use_while_it_is_whole_or_long_enough() {
        let whole = NewestStories::scanned([posted(2), posted(1)]);
        let whole = whole.without(1).and_then(|whole| whole.without(2));
        assert!(whole.is_some(), "an empty list is whole");
        let mut cut = Some(NewestStories::scanned((1..=KEPT as u64).rev().map(posted)));
        let mut useful = 0;
        while let Some(list) = cut {
            useful += 1;
            cut = list.without(useful);
        }
        assert_eq!(useful as usize, KEPT - USEFUL + 1);
    }

    #[test]
    fn a_long_list_keeps_the_newest_and_knows_that_it_is_cut() {
        let mut list = NewestStories::scanned([]);
        let below = |limit| Span { limit, ..NewestStories::NEWEST };
        for id in 1..TRIM_AT as u64 {
            list = list.with(posted(id)).with(posted(id));
            let mut found = Vec::new();
            assert!(list.read(below(100), |story| Some(*story), &mut found));
            assert_eq!(found, (1..=id).rev().map(posted).collect::<Vec<_>>());
        }
        list = list.with(posted(TRIM_AT as u64));
        let mut found = vec![posted(99)];
        assert!(!list.read(below(KEPT + 1), |story| Some(*story), &mut found));
        assert_eq!(found, [posted(99)], "nothing is appended");
        assert!(list.read(below(KEPT), |story| Some(*story), &mut found));
        assert_eq!(found.len(), 1 + KEPT);
    }
}
