//! Comparison of conversations with the model.

use feed::{Page, UserId};

use crate::run::Run;

impl Run {
    pub(super) fn check_conversations(&self, user: u32) {
        let viewer = self.node().node().viewer(Some(UserId(user)));
        let expected = self.model.feed.conversations(user);
        let all = Page::newest(1_000_000);
        let found = viewer.conversations(&all).items;
        assert_eq!(found, expected, "conversations of {user}");
    }
}
