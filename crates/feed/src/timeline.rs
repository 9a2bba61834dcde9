//! Home timelines: pages, which posts a user sees, and the gathering of a page from the facts.
//!
//! home(u) is the posts by u and by the users that u follows now, newest first, without deleted posts and
//! without replies to users that u does not follow. [`gather`] computes a page of it; every cached
//! timeline must be equal to it.

use rows::Span;

use crate::gather;
use crate::ids::{PostId, UserId};
use crate::page::{Page, PageOf};

/// A post in a timeline: its id, and the user it replies to.
pub type Posted = (PostId, Option<UserId>);

/// Whether a post by `author` that replies to `reply_to` is in the home timeline of `reader`, who
/// follows `following` (sorted). The author is the reader or one of `following`.
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
/// `following` is sorted; `posts_by` returns an author's posts within a span, in its order, and may
/// return fewer than the limit only if there are no more.
///
/// The first read of each author's posts returns a few, and further reads happen only while their posts
/// could still be on the page: the cost is one short read per author, however many posts they have.
pub fn gather(
    reader: UserId,
    following: &[UserId],
    page: &Page,
    mut posts_by: impl FnMut(UserId, Span) -> Vec<Posted>,
) -> PageOf<PostId> {
    let oneself = following.binary_search(&reader).is_err().then_some(reader);
    let authors = following.iter().copied().chain(oneself);
    gather::gather(authors, page, |author, span, found| {
        let posts = posts_by(author, span);
        let visible = posts.iter().filter(|(_, reply)| sees(reader, following, author, *reply));
        found.extend(visible.map(|(post, _)| *post));
        posts.last().filter(|_| posts.len() >= span.limit).map(|(last, _)| last.0)
    })
}
