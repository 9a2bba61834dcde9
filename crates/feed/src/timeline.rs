//! What a home timeline is: pages, who sees what, and the gathering of a page from the facts.
//!
//! home(u) is the newest posts by the people u follows now and by u, without deleted posts and
//! without replies to people u does not follow. [`gather`] computes a page of exactly that; every
//! cached timeline must equal it.

use rows::Span;

use crate::gather;
use crate::ids::{PostId, UserId};
use crate::page::{Page, PageOf};

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
    let oneself = following.binary_search(&reader).is_err().then_some(reader);
    let authors = following.iter().copied().chain(oneself);
    gather::gather(authors, page, |author, span, found| {
        let posts = posts_by(author, span);
        let visible = posts.iter().filter(|(_, reply)| sees(reader, following, author, *reply));
        found.extend(visible.map(|(post, _)| *post));
        posts.last().filter(|_| posts.len() >= span.limit).map(|(last, _)| last.0)
    })
}
