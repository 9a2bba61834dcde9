//! Compares conversations with the model.

use feed::UserId;

use crate::run::Run;

impl Run {
    pub(super) fn check_conversations(&self, user: u32) {
        let viewer = self.node().node().viewer(Some(UserId(user)));
        let expected = self.model.feed.conversations(user);
        assert_eq!(viewer.conversations(), expected, "conversations of {user}");
    }
}
