//! What a home timeline is: pages, who sees what, and the gathering of a page from the facts.
//!
//! home(u) is the newest posts by the people u follows now and by u, without deleted posts and
//! without replies to people u does not follow. [`gather`] computes a page of exactly that; every
//! cached timeline must equal it.

use crate::facts::{newer_than, older_than};
use crate::ids::{PostId, UserId};
use crate::rows::{Order, Span};

/// Where a page lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// The newest.
    Newest,
    /// The newest that are older than this post.
    Before(PostId),
    /// The oldest that are newer than this post: the adjacent page, so that paging up skips none.
    After(PostId),
}

/// Which part of a timeline is wanted. Pages are newest first whatever the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Where.
    pub cursor: Cursor,
    /// At most so many posts; at least 1.
    pub limit: usize,
}

impl Page {
    /// The ids a scan for `limit` posts of this page must cover; `None` if there can be none.
    #[must_use]
    pub fn span(&self, limit: usize) -> Option<Span> {
        match self.cursor {
            Cursor::Newest => older_than(None, limit),
            Cursor::Before(post) => older_than(Some(post), limit),
            Cursor::After(post) => newer_than(post, limit),
        }
    }
}

/// Posts of a page with what lies beyond them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageOf<T> {
    /// Newest first.
    pub items: Vec<T>,
    /// Whether there are more in the direction of reading (older ones, or newer ones for a page
    /// [`Cursor::After`]).
    pub more: bool,
}

impl<T> PageOf<T> {
    /// Makes a page from up to `limit + 1` items in scan order.
    #[must_use]
    pub fn from_scan(mut items: Vec<T>, page: &Page) -> Self {
        let more = items.len() > page.limit;
        items.truncate(page.limit);
        if matches!(page.cursor, Cursor::After(_)) {
            items.reverse();
        }
        Self { items, more }
    }
}

/// A post as timelines know it: which, and whom it replies to.
pub type Posted = (PostId, Option<UserId>);

/// Whether `reader`, who follows `following` (sorted), sees at home a post by `author`, one of
/// those or the reader, that replies to `reply_to`.
#[must_use]
pub fn sees(
    reader: UserId,
    following: &[UserId],
    author: UserId,
    reply_to: Option<UserId>,
) -> bool {
    match reply_to {
        None => true,
        Some(other) => {
            author == reader || other == reader || following.binary_search(&other).is_ok()
        }
    }
}

/// Gathers a page of home(`reader`): up to `page.limit` posts and whether there are more.
/// `following` is sorted; `posts_by` gives an author's posts within a span, in its order, and may
/// give fewer than the limit only if there are no more.
///
/// Each author is asked for a few posts first and again only while those could still be among the
/// page: the cost is one short read an author, however much they wrote.
pub fn gather(
    reader: UserId,
    following: &[UserId],
    page: &Page,
    mut posts_by: impl FnMut(UserId, Span) -> Vec<Posted>,
) -> PageOf<PostId> {
    let wanted = page.limit + 1;
    let Some(span) = page.span(FIRST_READ.min(wanted)) else {
        return PageOf { items: Vec::new(), more: false };
    };
    let mut pending: Vec<(UserId, Span)> = Vec::with_capacity(following.len() + 1);
    pending.extend(following.iter().map(|author| (*author, span)));
    if following.binary_search(&reader).is_err() {
        pending.push((reader, span));
    }
    let mut best: Vec<PostId> = Vec::new();
    while !pending.is_empty() {
        let mut unfinished = Vec::new();
        for (author, span) in pending {
            let posts = posts_by(author, span);
            let visible = posts.iter().filter(|(_, reply)| sees(reader, following, author, *reply));
            best.extend(visible.map(|(post, _)| *post));
            if let Some((last, _)) = posts.last().filter(|_| posts.len() >= span.limit) {
                unfinished.push((author, beyond(*last, span.order, wanted), *last));
            }
        }
        keep_first(&mut best, span.order, wanted);
        // An author goes on only where the last post read would still be within the page.
        let cut = best.get(wanted - 1).copied();
        pending = unfinished
            .into_iter()
            .filter(|(_, _, last)| cut.is_none_or(|cut| comes_first(span.order, *last, cut)))
            .filter_map(|(author, span, _)| span.map(|span| (author, span)))
            .collect();
    }
    PageOf::from_scan(best, page)
}

/// Posts asked of each author at first: enough for most, little for 500 authors.
const FIRST_READ: usize = 8;

fn beyond(last: PostId, order: Order, limit: usize) -> Option<Span> {
    match order {
        Order::Descending => older_than(Some(last), limit),
        Order::Ascending => newer_than(last, limit),
    }
}

fn comes_first(order: Order, one: PostId, other: PostId) -> bool {
    match order {
        Order::Descending => one > other,
        Order::Ascending => one < other,
    }
}

/// Sorts in scan order and drops all but the first `wanted`.
fn keep_first(posts: &mut Vec<PostId>, order: Order, wanted: usize) {
    let key = |post: &PostId| match order {
        Order::Descending => u64::MAX - post.0,
        Order::Ascending => post.0,
    };
    if posts.len() > wanted {
        posts.select_nth_unstable_by_key(wanted, key);
        posts.truncate(wanted);
    }
    posts.sort_unstable_by_key(key);
}
