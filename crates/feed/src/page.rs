//! Pages of lists in the order of ids: which part of a list is wanted, and what is on it. [`crate::scan`] reads them.

use rows::{Order, Span};

use crate::ids::{PostId, ScheduledId, StoryId, UserId};

/// Something in a list, with the id by which the list is ordered. A list has an id once.
pub trait Item {
    /// The id.
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

/// Implements it for ids that are stamps.
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

/// By the first.
impl<A: Item, B> Item for (A, B) {
    fn id(&self) -> u64 {
        self.0.id()
    }
}

/// The start of a page of posts (or of what has other ids).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor<I = PostId> {
    /// The newest.
    Newest,
    /// The newest that are older than this one, which need not exist any more.
    Before(I),
    /// The oldest that are newer than this one: the adjacent page, so that paging up skips none.
    After(I),
}

/// The requested part of a list. Its items are newest first, in whichever direction it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Items have smaller ids.
    pub below: Option<u64>,
    /// Items have greater ids.
    pub above: Option<u64>,
    /// Whether it begins with the smallest ids.
    pub is_up: bool,
    /// Most items on the page; at least 1.
    pub limit: usize,
}

impl Page {
    /// The page that begins at a cursor.
    #[must_use]
    pub fn at<I: Item>(cursor: Cursor<I>, limit: usize) -> Self {
        let (below, above) = match cursor {
            Cursor::Newest => (None, None),
            Cursor::Before(id) => (Some(id.id()), None),
            Cursor::After(id) => (None, Some(id.id())),
        };
        Self { below, above, is_up: above.is_some(), limit }
    }

    /// The newest items.
    #[must_use]
    pub const fn newest(limit: usize) -> Self {
        Self { below: None, above: None, is_up: false, limit }
    }

    /// The page with the first items of a span.
    #[must_use]
    pub fn of(Span { low, high, limit, order }: Span) -> Self {
        let (below, above) = (high.checked_add(1), low.checked_sub(1));
        Self { below, above, is_up: order == Order::Ascending, limit }
    }

    /// The ids a read of `limit` items of this page must cover; `None` if there can be none.
    #[must_use]
    pub fn span(&self, limit: usize) -> Option<Span> {
        let low = self.above.map_or(Some(0), |above| above.checked_add(1))?;
        let high = self.below.map_or(Some(u64::MAX), |below| below.checked_sub(1))?;
        let order = if self.is_up { Order::Ascending } else { Order::Descending };
        (low <= high).then_some(Span { low, high, limit, order })
    }

    /// Number of items that are looked for: one more than fit, to know whether there are more.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.limit.saturating_add(1)
    }
}

/// Items of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOf<T> {
    /// Newest first.
    pub items: Vec<T>,
    /// If there is more in the direction of reading, the id up to which this page is all that is shown, and after which the
    /// next page begins: that of its last item in that direction, or one beyond it, after many that are not shown.
    pub next: Option<u64>,
}

impl<T> Default for PageOf<T> {
    fn default() -> Self {
        Self { items: Vec::new(), next: None }
    }
}

impl<T> PageOf<T> {
    /// Makes a page from up to `limit + 1` items in scan order, each of which has the id that `id` says.
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

    /// The same page of what `map` makes of the items, without those of which it makes nothing.
    #[must_use]
    pub fn filter_map<U>(self, map: impl FnMut(T) -> Option<U>) -> PageOf<U> {
        PageOf { items: self.items.into_iter().filter_map(map).collect(), next: self.next }
    }
}

impl<T: Item> PageOf<T> {
    /// These items, newest first, and whether there are more.
    #[must_use]
    pub fn newest_first(items: Vec<T>, more: bool, page: &Page) -> Self {
        let last = if page.is_up { items.first() } else { items.last() };
        let next = last.filter(|_| more).map(Item::id);
        Self { items, next }
    }

    /// Its first and last item.
    #[must_use]
    pub fn ends(&self, page: &Page) -> PageEnds {
        let [first, last] = [self.items.first(), self.items.last()].map(|item| item.map(Item::id));
        let more = self.next.is_some();
        match page.is_up {
            true => PageEnds { first: self.next.or(first), last, more },
            false => PageEnds { first, last: self.next.or(last), more },
        }
    }

    /// The page without items after `newest`. If it had any, a page upwards reaches up to `newest`, and there are more: who
    /// waits for items must hear of these.
    #[must_use]
    pub fn up_to(mut self, newest: u64, page: &Page) -> Self {
        if page.is_up && self.items.first().map(Item::id).max(self.next) > Some(newest) {
            self.next = Some(newest.max(page.above.unwrap_or(0)));
        }
        self.items.retain(|item| item.id() <= newest);
        self
    }
}

/// First and last item of a page, or where the pages beside it begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEnds {
    /// The newest item on it.
    pub first: Option<u64>,
    /// The oldest item on it.
    pub last: Option<u64>,
    /// Whether there are more in the direction of reading.
    pub more: bool,
}
