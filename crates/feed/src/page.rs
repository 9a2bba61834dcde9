//! Pages of lists ordered by ids: the requested part of a list, and the items on it. [`crate::scan`] reads them.

use rows::{Order, Span};

use crate::ids::{PostId, ScheduledId, StoryId, UserId};

/// An item of a list ordered by ids. An id occurs in a list once.
pub trait Item {
    /// Id that orders the list.
    fn id(&self) -> u64;
}

impl Item for u64 {
    fn id(&self) -> u64 {
        *self
    }
}

impl Item for UserId {
    fn id(&self) -> u64 {
        self.0.into()
    }
}

/// Implements [`Item`] for ids that are stamps.
macro_rules! stamps {
    ($($id:ty)*) => {$(
        impl Item for $id {
            fn id(&self) -> u64 {
                self.0
            }
        }
    )*};
}
stamps! { PostId StoryId ScheduledId }

/// Ordered by the first element.
impl<A: Item, B> Item for (A, B) {
    fn id(&self) -> u64 {
        self.0.id()
    }
}

/// Start of a page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor<I = PostId> {
    /// The newest items.
    Newest,
    /// The newest items older than this one, which may be deleted.
    Before(I),
    /// The oldest items newer than this one: the adjacent page, so that paging up skips nothing.
    After(I),
}

/// Requested part of a list. Items are returned newest first, regardless of the direction of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Exclusive upper bound of the ids.
    pub below: Option<u64>,
    /// Exclusive lower bound of the ids.
    pub above: Option<u64>,
    /// Whether to read upwards from the smallest ids.
    pub is_up: bool,
    /// Maximum number of items on the page, at least 1.
    pub limit: usize,
}

impl Page {
    /// Creates the page at a cursor.
    #[must_use]
    pub fn at<I: Item>(cursor: Cursor<I>, limit: usize) -> Self {
        let (below, above) = match cursor {
            Cursor::Newest => (None, None),
            Cursor::Before(id) => (Some(id.id()), None),
            Cursor::After(id) => (None, Some(id.id())),
        };
        Self { below, above, is_up: above.is_some(), limit }
    }

    /// Creates the page of the newest items.
    #[must_use]
    pub const fn newest(limit: usize) -> Self {
        Self { below: None, above: None, is_up: false, limit }
    }

    /// Creates the page of the first items of a span.
    #[must_use]
    pub fn of(Span { low, high, limit, order }: Span) -> Self {
        let (below, above) = (high.checked_add(1), low.checked_sub(1));
        Self { below, above, is_up: order == Order::Ascending, limit }
    }

    /// Span of ids for a read of `limit` items of this page; `None` if it is empty.
    #[must_use]
    pub fn span(&self, limit: usize) -> Option<Span> {
        let low = self.above.map_or(Some(0), |above| above.checked_add(1))?;
        let high = self.below.map_or(Some(u64::MAX), |below| below.checked_sub(1))?;
        let order = if self.is_up { Order::Ascending } else { Order::Descending };
        (low <= high).then_some(Span { low, high, limit, order })
    }

    /// Number of items to look for: one more than fit, to see whether more follow.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.limit.saturating_add(1)
    }
}

/// A page of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOf<T> {
    /// Items, newest first.
    pub items: Vec<T>,
    /// Cursor of the next page in the direction of reading, if there is more: the last item of this page in that
    /// direction, or an id after it if many hidden items follow.
    pub next: Option<u64>,
}

impl<T> Default for PageOf<T> {
    fn default() -> Self {
        Self { items: Vec::new(), next: None }
    }
}

impl<T> PageOf<T> {
    /// Creates a page from up to `limit + 1` items in the order of reading. `id` returns the id of an item.
    #[must_use]
    pub fn from_scan(mut items: Vec<T>, page: &Page, id: impl Fn(&T) -> u64) -> Self {
        let is_full = items.len() > page.limit;
        items.truncate(page.limit);
        let next = items.last().filter(|_| is_full).map(id);
        if page.is_up {
            items.reverse();
        }
        Self { items, next }
    }

    /// Maps the items, and drops those mapped to `None`.
    #[must_use]
    pub fn filter_map<U>(self, map: impl FnMut(T) -> Option<U>) -> PageOf<U> {
        PageOf { items: self.items.into_iter().filter_map(map).collect(), next: self.next }
    }
}

impl<T: Item> PageOf<T> {
    /// Creates a page of items that are sorted newest first. `more` is whether others follow.
    #[must_use]
    pub fn newest_first(items: Vec<T>, more: bool, page: &Page) -> Self {
        let last = if page.is_up { items.first() } else { items.last() };
        let next = last.filter(|_| more).map(Item::id);
        Self { items, next }
    }

    /// First and last id of the page.
    #[must_use]
    pub fn ends(&self, page: &Page) -> PageEnds {
        let [first, last] = [self.items.first(), self.items.last()].map(|item| item.map(Item::id));
        let more = self.next.is_some();
        match page.is_up {
            true => PageEnds { first: self.next.or(first), last, more },
            false => PageEnds { first, last: self.next.or(last), more },
        }
    }

    /// Drops items after `newest`. If it drops any from a page read upwards, the page ends at `newest` and has more to
    /// read, so that a waiting reader receives the dropped items later.
    #[must_use]
    pub fn up_to(mut self, newest: u64, page: &Page) -> Self {
        if page.is_up && self.items.first().map(Item::id).max(self.next) > Some(newest) {
            self.next = Some(newest.max(page.above.unwrap_or(0)));
        }
        self.items.retain(|item| item.id() <= newest);
        self
    }
}

/// First and last item of a page, or the cursors of the adjacent pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEnds {
    /// Newest item on the page.
    pub first: Option<u64>,
    /// Oldest item on the page.
    pub last: Option<u64>,
    /// Whether more items follow in the direction of reading.
    pub more: bool,
}
