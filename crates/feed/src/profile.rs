//! The posts of one user as another one may see them.

use rows::{Order, Rows, Span};

use crate::ids::{PostId, UserId};
use crate::page::{Page, PageOf};
use crate::post::{Listed, Posted, Visibility};
use crate::scan::{Batch, Shown, scan};
use crate::tag::Tag;
use crate::visible::Viewer;

/// Rows without look-ups that cost as much as one with look-ups: so a page passes over tens of thousands of replies.
const ROWS_PER_LOOK_UP: usize = 16;

/// Filter of the posts of an author.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileFilter {
    /// Leaves out replies to other users.
    pub no_replies: bool,
    /// Leaves out boosts.
    pub no_boosts: bool,
    /// Leaves out direct posts.
    pub no_direct: bool,
    /// Leaves out posts that are not for everybody.
    pub only_open: bool,
    /// Leaves out posts without pictures of their own.
    pub only_pictures: bool,
    /// Leaves out posts that are not public or lack this hashtag.
    pub tag: Option<Tag>,
}

impl ProfileFilter {
    /// Whether a post is wanted as far as its row says.
    fn allows(&self, author: UserId, listed: Listed) -> bool {
        let visibility = listed.visibility();
        !(self.no_replies && listed.is_reply_to_other(author)
            || self.no_boosts && listed.is_boost()
            || self.no_direct && visibility == Visibility::Direct
            || self.only_open && !visibility.is_open())
    }
}

/// A page of the posts by `author` that the filter allows and the viewer may see. `read` returns the posts within a span, in
/// its order. Posts with pictures are read from their own list, and so are those with a hashtag on a page downwards.
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
        // What is left out because of its row alone costs no look-up.
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
