//! The posts of one user as another one may see them.
//!
//! **Invariant:** a page says nothing about posts that the viewer may not see: they take no place on it, and it ends at
//! an item that the viewer may learn of, or at one of the `page::Borders`. The rows that are read for it are bounded.

use rows::{Order, Rows, Span};

use crate::ids::{PostId, UserId};
use crate::page::{Batch, Page, Shown, Visible, visible};
use crate::post::{Listed, Posted, Visibility};
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
        !(self.no_replies && listed.is_reply_by(author)
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
) -> Visible {
    let facts = viewer.facts();
    let read = |span: Span| {
        let (mut items, last): (Vec<Posted>, _) = match &filter.tag {
            Some(tag) if span.order == Order::Descending => {
                let before = PostId(span.high.saturating_add(1));
                let mut found = facts.tagged_by(author, tag, before, span.limit);
                let last = found.last().filter(|_| found.len() >= span.limit).map(|post| post.0);
                found.retain(|post| post.0 >= span.low);
                let listed = found.into_iter().filter_map(|post| facts.listed_post(author, post));
                (listed.collect(), last)
            }
            _ => {
                let found = match filter.only_pictures {
                    true => facts.pictures_by(author, span),
                    false => read(span),
                };
                let last = found.last().filter(|_| found.len() >= span.limit);
                let last = last.map(|(post, _)| post.0);
                (found, last)
            }
        };
        let count = items.len();
        items.retain(|(_, listed)| filter.allows(author, *listed));
        // What is left out because of its row alone costs no look-up.
        let rows = items.len() + (count - items.len()) / ROWS_PER_LOOK_UP;
        Batch { rows, last, items }
    };
    let shown = |posted: &Posted| {
        let tagged = (posted.0, author);
        let has_tag = || filter.tag.as_ref().is_none_or(|tag| facts.has_tag(tag, tagged));
        let has_pictures = || !filter.only_pictures || facts.has_pictures(tagged);
        match viewer.visible_posted(author, *posted) {
            false => Shown::Hidden,
            true if has_tag() && has_pictures() => Shown::Yes,
            true => Shown::LeftOut,
        }
    };
    visible(page, read, |posted| posted.0, shown)
}
