//! Hashtag timelines.

use feed::tagged::{self, TagQuery};
use feed::{Page, UserId};

use super::Node;
use super::reads::PageEnds;

impl Node {
    /// Appends a page of a hashtag timeline as `reader` sees it, or the application itself, as [`Node::home`] does. May block.
    pub fn append_tagged(
        &self,
        reader: Option<UserId>,
        query: &TagQuery,
        page: &Page,
        out: &mut Vec<u8>,
    ) -> PageEnds {
        self.append_visible(&tagged::posts(&self.viewer(reader), query, page), page, out)
    }
}
