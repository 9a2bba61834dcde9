//! Home timelines: pages, which posts a user sees, and the gathering of a page from the facts.
//!
//! home(u) is the posts and boosts by u and by the users that u follows now, newest first, without deleted posts,
//! without replies to users that u does not follow, without direct posts that do not mention u, without boosts by users
//! whose boosts u hides, and without boosts of what is at home anyway: see [`sees`]. [`gather`] computes a page of it;
//! every cached timeline must be equal to it. What is at home because of a followed hashtag is merged into it by its
//! reader, see [`Visible::merged`].

use rows::{Rows, Span};

use crate::facts::Facts;
use crate::gather::{self, Gathered};
use crate::home_authors::HomeAuthors;
use crate::ids::{PostId, UserId};
use crate::page::{Page, ROWS_MAX, Visible};
use crate::post::{Listed, Visibility};

/// Whether a post by `author` is in the home timeline of `reader`, who has `home` there. The author is the
/// reader or one of them. Of a post with [`HomeUsers`](crate::HomeUsers), `is_allowed` says what
/// [`Listed::allows`] does.
///
/// A boost is left out if the reader hides those by its author, or if its post is at home of the reader anyway: it was
/// recent, and by the reader or somebody they follow; or one of these whose boosts are at home boosted it shortly before.
#[must_use]
pub fn sees(
    reader: UserId,
    home: &HomeAuthors,
    author: UserId,
    listed: Listed,
    is_allowed: impl FnOnce() -> bool,
) -> bool {
    let is_at_home = |user: UserId| user == reader || home.has(user);
    if let Some(boost) = listed.boosted() {
        let is_known = boost.is_recent && is_at_home(boost.author);
        let is_wanted = author == reader || home.has_boosts_by(author);
        return is_wanted && !is_known && (!boost.has_earlier || is_allowed());
    }
    if author == reader {
        return true;
    }
    let is_wanted_reply = listed.reply_to().is_none_or(is_at_home);
    is_wanted_reply && (listed.visibility() != Visibility::Direct || is_allowed())
}

/// Gathers a page of home(`reader`): up to `page.limit` posts and whether there are more. After very many posts that are
/// not at home the page ends early.
///
/// The first read of each author's posts returns a few, and further reads happen only while their posts
/// could still be on the page: the cost is one short read per author, however many posts they have.
pub fn gather<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    reader: UserId,
    home: &HomeAuthors,
    page: &Page,
) -> Visible {
    gather_within(facts, reader, home, page, ROWS_MAX)
}

/// As [`gather`], with another number of rows that are read before the page ends early.
pub fn gather_within<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    reader: UserId,
    home: &HomeAuthors,
    page: &Page,
    rows_max: usize,
) -> Visible {
    let read = |author, span: Span, found: &mut Vec<PostId>| {
        let posts = facts.posts_by(author, span);
        let visible = posts.iter().filter(|posted| {
            sees(reader, home, author, posted.1, || facts.allows(reader, home, **posted))
        });
        found.extend(visible.map(|(post, _)| *post));
        posts.last().filter(|_| posts.len() >= span.limit).map(|(last, _)| last.0)
    };
    let Gathered { page: posts, end } = gather::gather(home.with(reader), page, rows_max, read);
    Visible { posts, end: end.map(PostId) }
}
