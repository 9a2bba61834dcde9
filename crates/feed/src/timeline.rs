//! Home timelines: the posts that a user sees at home, and a source of them from the facts.
//!
//! home(u) is the posts and boosts by u and by the users that u follows now, newest first, without deleted posts,
//! without replies to users that u does not follow, without direct posts that do not mention u, without boosts by users
//! whose boosts u hides, and without boosts of posts that home shows already: see [`sees`]. A [`scan`](crate::scan())
//! of [`source`] returns a page of home(u). Every cached timeline must equal home(u). Readers merge posts of followed
//! hashtags into home(u).

use rows::{Rows, Span};

use crate::facts::Facts;
use crate::follows::HomeAuthors;
use crate::ids::{PostId, UserId};
use crate::posts::{Listed, Posted, Visibility};
use crate::scan::{Batch, ROWS_MAX, merged_within};

/// Whether a post by `author` is in the home timeline of `reader`, who has the authors `home`. The author must be the
/// reader or one of them. For a post with [`HomeUsers`](crate::HomeUsers), `is_allowed` returns the result of
/// [`Listed::allows`].
///
/// A boost is left out if the reader hides boosts by its author, or if home shows the post already: because it was
/// recent and by the reader or a followed user, or because an earlier boost of it is at home.
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

/// Creates a source of the posts of home(`reader`).
///
/// The first read of each author's posts returns a few. Further reads happen only while an author's posts could still
/// be on the page: the cost is one short read per author, regardless of the number of posts.
pub fn source<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    reader: UserId,
    home: &HomeAuthors,
) -> impl FnMut(Span) -> Batch<PostId> {
    source_within(facts, reader, home, ROWS_MAX)
}

/// Creates a source as [`source`] does, with another limit of hidden rows.
pub fn source_within<R: Rows + ?Sized>(
    facts: Facts<'_, R>,
    reader: UserId,
    home: &HomeAuthors,
    rows_max: usize,
) -> impl FnMut(Span) -> Batch<PostId> {
    merged_within(rows_max, home.with(reader), move |author, span| {
        let is_at_home = |posted: &Posted| {
            sees(reader, home, *author, posted.1, || facts.allows(reader, home, *posted))
        };
        let posts = Batch::of(facts.posts_by(*author, span), span);
        posts.filter_map(|posted| is_at_home(&posted).then_some(posted.0))
    })
}
