//! Comparison of lists with the model.

use feed::{ListId, ListTimeline, Page, PostId, UserId, is_in_list};

use crate::model::ModelList;
use crate::run::Run;

impl Run {
    pub(super) fn check_lists(&self, user: u32, page: &Page) {
        let (facts, owner) = (self.node().node().facts(), UserId(user));
        let viewer = self.node().node().viewer(Some(owner));
        let of_user = self.model.feed.lists.range((user, 0)..=(user, u64::MAX));
        let ids: Vec<u64> = facts.lists(owner).into_iter().map(|list| list.0).collect();
        assert_eq!(ids, of_user.clone().map(|((_, id), _)| *id).collect::<Vec<_>>(), "of {user}");
        for ((_, id), wanted) in of_user {
            let Some(list) = facts.list(owner, ListId(*id)) else { panic!("no list {id}") };
            let members = facts.list_members(owner, ListId(*id)).into_iter();
            // The node removes memberships of deleted users later, so ignore them.
            let members = members.filter(|other| facts.exists(*other)).map(|other| other.0);
            let (title, replies) = (list.title.as_str().to_owned(), list.replies);
            let found = ModelList { title, replies, members: members.collect() };
            assert_eq!(found, *wanted, "list {id} of {user}");
            let posts = ListTimeline::new(facts, owner, ListId(*id));
            let posts = posts.map(|timeline| timeline.posts(&viewer, page));
            let wanted = self.model.feed.list_timeline((user, *id), page, &self.orphans());
            assert_eq!(posts, Some(wanted), "timeline of list {id} of {user}, {page:?}");
            for (post, wanted) in self.model.feed.posts.iter().rev().take(50) {
                let Some(found) = facts.post(PostId(*post)) else { panic!("no post {post}") };
                let posted = (PostId(*post), found.listed());
                let is_listed = is_in_list(&viewer, (owner, ListId(*id)), found.author, posted);
                let wanted = self.model.feed.is_listed((user, *id), wanted);
                assert_eq!(is_listed, wanted, "whether list {id} of {user} has post {post}");
            }
        }
    }
}
