//! Lists of posts that pages are read from directly: each row of a list can be on a page.
//!
//! Direct posts, replies and boosts are not in the public lists, so they neither delay a page of the public timeline
//! nor displace a post from it.

use rows::Rows;

use crate::ids::PostId;
pub use crate::index::PublicList;
use crate::page::{Page, PageOf};
use crate::scan::{Batch, Shown, scan};
use crate::visible::Viewer;

/// Returns a page of a list without the posts of users whom the viewer may not see or has muted.
pub fn posts<R: Rows + ?Sized>(
    viewer: &Viewer<'_, R>,
    list: PublicList,
    page: &Page,
) -> PageOf<PostId> {
    let facts = viewer.facts();
    let read = |span| Batch::of(facts.public_posts(list, span), span);
    scan(page, read, |(post, author)| {
        Shown::when(!facts.is_hidden(author) && viewer.wants_public_by(author), post)
    })
}
