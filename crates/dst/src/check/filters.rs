//! Comparison of filters with the model.

use feed::UserId;

use crate::model::ModelFilter;
use crate::run::Run;

impl Run {
    pub(super) fn check_filters(&self, user: u32) {
        let found = self.node().node().facts().filters(UserId(user)).into_iter().map(|filter| {
            let keywords = filter.keywords.into_iter().map(|found| {
                let keyword = found.keyword;
                (found.id.0, keyword.text.as_str().to_owned(), keyword.whole_word)
            });
            let model = ModelFilter {
                title: filter.title.as_str().to_owned(),
                contexts: filter.contexts,
                action: filter.action,
                expires_ms: filter.expires_ms,
                keywords: keywords.collect(),
                posts: filter.posts.iter().map(|found| (found.id.0, found.post.0)).collect(),
            };
            (filter.id.0, model)
        });
        let of_user = self.model.feed.filters.range((user, 0)..=(user, u64::MAX));
        let wanted = of_user.map(|((_, id), filter)| (*id, filter.clone()));
        assert_eq!(found.collect::<Vec<_>>(), wanted.collect::<Vec<_>>(), "filters of {user}");
    }
}
