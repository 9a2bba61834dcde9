//! Comparison of hashtag timelines with the model.

use feed::tagged::{self, TagQuery};
use feed::{Page, Tag, UserId};

use crate::run::Run;

impl Run {
    pub(super) fn check_tagged(&mut self, user: u32, page: &Page) {
        let numbers = [1 + self.random.below(2), self.random.below(2), self.random.below(2)];
        let texts = numbers.map(|number| {
            let tags = (0..number).map(|_| format!("tag{}", self.random.below(12)));
            tags.collect::<Vec<_>>()
        });
        let tags = |texts: &Vec<String>| {
            texts.iter().filter_map(|text| Tag::parse(text).ok()).collect::<Vec<_>>()
        };
        let [any, all, none] = texts.each_ref().map(tags);
        let query = TagQuery { any, all, none, only_pictures: false };
        let viewer = self.node().node().viewer(Some(UserId(user)));
        let found = tagged::posts(&viewer, &query, page);
        let wanted = self.model.feed.tagged(user, texts.each_ref().map(Vec::as_slice), page);
        let ended_early = found.next.is_some() && found.items.len() < page.limit;
        if !ended_early {
            assert_eq!(found, wanted, "{query:?} of {user}, {page:?}");
        }
    }
}
