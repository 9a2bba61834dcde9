//! The newest of what somebody wrote, so that gathering a home asks the store for little of it.

use feed::timeline::Posted;
use feed::{Order, Span, stories::Told};

use super::known::Held;

/// Items kept of an author, at least, once they have that many: what gathering asks for first, and
/// a few more.
const KEPT: usize = 10;
const TRIM_AT: usize = 16;
/// Fewer than gathering asks for first are no use, unless they are all there is.
const USEFUL: usize = 8;

/// Something in an author's list.
pub(super) trait Listed: Copy {
    /// Its id: later ones are higher.
    fn id(&self) -> u64;
}

impl Listed for Posted {
    fn id(&self) -> u64 {
        self.0.0
    }
}

impl Listed for Told {
    fn id(&self) -> u64 {
        self.story.0
    }
}

/// An author's newest items.
///
/// **Invariant:** the items ascend, and hold all of the author's that stand and are not older than
/// the first one; if `complete`, all that stand.
pub(super) struct Recent<T> {
    items: Vec<T>,
    complete: bool,
}

impl<T: Listed> Recent<T> {
    /// What to scan for [`Recent::scanned`].
    pub(super) const NEWEST: Span =
        Span { low: 0, high: u64::MAX, limit: KEPT, order: Order::Descending };

    /// Of what a scan of [`Recent::NEWEST`] found.
    pub(super) fn scanned(mut newest_first: Vec<T>) -> Self {
        newest_first.reverse();
        let complete = newest_first.len() < KEPT;
        Self { items: newest_first, complete }
    }

    /// Takes in a new item, which may be there already.
    pub(super) fn push(&mut self, item: T) {
        if self.items.last().is_none_or(|last| last.id() < item.id()) {
            self.items.push(item);
        }
        if self.items.len() >= TRIM_AT {
            self.items.drain(..self.items.len() - KEPT);
            self.complete = false;
        }
    }

    /// Takes out an item that stands no more; tells whether what is left is of use.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        if let Ok(at) = self.items.binary_search_by_key(&id, Listed::id) {
            self.items.remove(at);
        }
        self.complete || self.items.len() >= USEFUL
    }

    /// Appends the wanted items within `span`, in its order and up to its limit. False, and nothing
    /// appended, if there may be more of them than are kept.
    pub(super) fn read(&self, span: Span, wanted: impl Fn(&T) -> bool, out: &mut Vec<T>) -> bool {
        let from = self.items.partition_point(|item| item.id() < span.low);
        let to = self.items.partition_point(|item| item.id() <= span.high).max(from);
        let within = self.items.get(from..to).unwrap_or_default();
        let reaches_back = from > 0 || self.complete;
        let before = out.len();
        let wanted = |item: &&T| wanted(item);
        match span.order {
            Order::Descending => {
                out.extend(within.iter().rev().filter(wanted).take(span.limit));
                if !reaches_back && out.len() - before < span.limit {
                    out.truncate(before);
                    return false;
                }
            }
            Order::Ascending if reaches_back => {
                out.extend(within.iter().filter(wanted).take(span.limit));
            }
            Order::Ascending => return false,
        }
        true
    }
}

impl<T> Held for Recent<T> {
    fn bytes(&self) -> usize {
        self.items.capacity().max(TRIM_AT) * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use feed::PostId;

    use super::*;

    fn posted(id: u64) -> Posted {
        (PostId(id), None)
    }

    #[test]
    fn a_list_is_of_use_while_it_is_whole_or_long_enough() {
        let mut whole = Recent::scanned(vec![posted(2), posted(1)]);
        assert!(whole.remove(1) && whole.remove(2), "an empty list is whole");
        let mut cut = Recent::scanned((1..=KEPT as u64).rev().map(posted).collect());
        let useful = (1..=KEPT as u64).map(|id| cut.remove(id)).filter(|useful| *useful).count();
        assert_eq!(useful, KEPT - USEFUL);
    }

    #[test]
    fn a_long_list_keeps_the_newest_and_knows_that_it_is_cut() {
        let mut list = Recent::scanned(Vec::new());
        let below = |limit| Span { limit, ..Recent::<Posted>::NEWEST };
        for id in 1..TRIM_AT as u64 {
            list.push(posted(id));
            list.push(posted(id));
            let mut found = Vec::new();
            assert!(list.read(below(100), |_| true, &mut found));
            assert_eq!(found, (1..=id).rev().map(posted).collect::<Vec<_>>());
        }
        list.push(posted(TRIM_AT as u64));
        let mut found = vec![posted(99)];
        assert!(!list.read(below(KEPT + 1), |_| true, &mut found));
        assert_eq!(found, [posted(99)], "nothing is appended");
        assert!(list.read(below(KEPT), |_| true, &mut found));
        assert_eq!(found.len(), 1 + KEPT);
    }
}
