//! Lists of posts that pages are read from directly: what is not on a page has no row in its list.
//!
//! Direct posts, replies and boosts are in none of the lists for everybody, so however many of them there are, they neither
//! delay a page of the public timeline nor displace a post from it.

use rows::{Rows, Span};

use crate::facts::Tagged;
pub use crate::index::PublicList;
use crate::page::{Batch, Page, Shown, Visible, visible};
use crate::visible::Viewer;

/// A page of a list without the posts of users whom the viewer may not see or has muted. Ends early after thousands of
/// them: see [`Visible::end`].
pub fn posts<R: Rows + ?Sized>(viewer: &Viewer<'_, R>, list: PublicList, page: &Page) -> Visible {
    let facts = viewer.facts();
    let read = |span: Span| {
        let items = facts.public_posts(list, span);
        let last = items.last().filter(|_| items.len() >= span.limit).map(|(post, _)| post.0);
        Batch { rows: items.len(), last, items }
    };
    let shown = |tagged: &Tagged| {
        let author = tagged.1;
        let is_shown = !facts.is_hidden(author) && viewer.wants_public_by(author);
        if is_shown { Shown::Yes } else { Shown::Hidden }
    };
    visible(page, read, |tagged| tagged.0, shown)
}
