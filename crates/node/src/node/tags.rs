//! Hashtag timelines.

use feed::tagged::{self, TagQuery};
use feed::{Page, UserId, Visible};

use super::Node;
use super::reads::PageEnds;

impl Node {
    /// The ids on a page of a hashtag timeline as `reader` sees it, or the application itself. May block.
    #[must_use]
    pub fn tagged(&self, reader: Option<UserId>, query: &TagQuery, page: &Page) -> Visible {
        tagged::posts(&self.viewer(reader), query, page)
    }

    /// A page of a hashtag timeline, as [`Node::home`] does. May block.
    pub fn append_tagged(
        &self,
        reader: Option<UserId>,
        query: &TagQuery,
        page: &Page,
        out: &mut Vec<u8>,
    ) -> PageEnds {
        self.append_visible(&self.tagged(reader, query, page), page, out)
    }
}
