//! Posts of one user as seen by another.

use rows::{Order, Rows, Span};

use crate::ids::{PostId, UserId};
use crate::page::{Page, PageOf};
use crate::posts::{Listed, Posted, Visibility};
use crate::scan::{Batch, Shown, scan};
use crate::tags::Tag;
use crate::visible::Viewer;

/// Rows without a lookup that cost as much as one with a lookup, so that a page can skip tens of thousands of replies.
const ROWS_PER_LOOK_UP: usize = 16;

/// Filter of the posts of an author.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileFilter {
    /// Whether to leave out replies to other users.
    pub no_replies: bool,
    /// Whether to leave out boosts.
    pub no_boosts: bool,
    /// Whether to leave out direct posts.
    pub no_direct: bool,
    /// Whether to leave out posts that are neither public nor unlisted.
    pub only_open: bool,
    /// Whether to leave out posts without pictures of their own.
    pub only_pictures: bool,
    /// Hashtag that public posts must have; other posts are left out.
    pub tag: Option<Tag>,
}

impl ProfileFilter {
    /// Whether the list entry of a post matches the filter.
    fn allows(&self, author: UserId, listed: Listed) -> bool {
        let visibility = listed.visibility();
        !(self.no_replies && listed.is_reply_to_other(author)
            || self.no_boosts && listed.is_boost()
            || self.no_direct && visibility == Visibility::Direct
            || self.only_open && !visibility.is_open())
    }
}

/// Returns a page of the posts by `author` that match the filter and that the viewer may see. `read` returns the posts
/// within a span, in its order. Posts with pictures, and on a page downwards posts with a hashtag, are read from their
/// own lists.
pub fn posts<R: Rows + ?Sized>(
    viewer: &Viewer<'_, R>,
    author: UserId,
    page: &Page,
    filter: &ProfileFilter,
    mut read: impl FnMut(Span) -> Vec<Posted>,
) -> PageOf<PostId> {
    let facts = viewer.facts();
    let read = |span: Span| {
        let all = match &filter.tag {
            Some(tag) if span.order == Order::Descending => {
                let before = PostId(span.high.saturating_add(1));
                let mut found = facts.tagged_by(author, tag, before, span.limit);
                let last = found.last().filter(|_| found.len() >= span.limit).map(|post| post.0);
                found.retain(|post| post.0 >= span.low);
                let found = Batch { rows: found.len(), last, items: found, ends_page: false };
                found.filter_map(|post| facts.listed_post(author, post))
            }
            _ if filter.only_pictures => Batch::of(facts.pictures_by(author, span), span),
            _ => Batch::of(read(span), span),
        };
        let count = all.items.len();
        let found = all.filter_map(|posted| filter.allows(author, posted.1).then_some(posted));
        // Posts left out by their list entry cost no lookup.
        let rows = found.items.len() + (count - found.items.len()) / ROWS_PER_LOOK_UP;
        Batch { rows, ..found }
    };
    scan(page, read, |posted: Posted| {
        let tagged = (posted.0, author);
        let has_tag = || filter.tag.as_ref().is_none_or(|tag| facts.has_tag(tag, tagged));
        let has_pictures = || !filter.only_pictures || facts.has_pictures(tagged);
        match viewer.visible_posted(author, posted) {
            false => Shown::Hidden,
            true if has_tag() && has_pictures() => Shown::Yes(posted.0),
            true => Shown::LeftOut,
        }
    })
}
