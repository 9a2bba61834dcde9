//! Compares hashtag timelines with the model.

use feed::tagged::{self, TagQuery};
use feed::{Page, Tag, UserId};

use crate::run::Run;

impl Run {
    pub(super) fn check_tagged(&mut self, user: u32, page: &Page) {
        let tag = format!("tag{}", self.random.below(12));
        let Ok(query) = Tag::parse(&tag).map(TagQuery::of) else { return };
        let viewer = self.node().node().viewer(Some(UserId(user)));
        let found = tagged::posts(&viewer, &query, page);
        let wanted = self.model.feed.tagged(user, &tag, page);
        assert_eq!(found.posts, wanted, "#{tag} of {user}, {page:?}");
    }
}
