//! Commands about notifications and their settings.

use feed::follow_options::FollowWith;
use feed::{Command, NotificationId, PostId, UserId, UserRef};

use super::Generator;
use crate::model::Model;

impl Generator {
    /// Makes a follow with options, usually by a user who has lists.
    pub(super) fn follow_with(&mut self) -> Command {
        let user = match self.random.once_in(3) {
            true => self.user(),
            false => UserRef::Id(UserId(self.random.below(self.users.min(2)) as u32)),
        };
        let other = self.loud_user();
        let mut option = |off| self.random.once_in(2).then(|| !self.random.once_in(off));
        let (boosts, notify) = (option(2), option(4));
        Command::FollowWith(Box::new(FollowWith { user, other, boosts, notify }))
    }

    pub(super) fn mute_thread(&mut self) -> Command {
        let (user, post) = (self.loud_user(), self.post());
        let off = if self.is_one_loud { 40 } else { 4 };
        Command::MuteThread { user, post, on: !self.random.once_in(off) }
    }

    pub(super) fn notifications(&mut self, model: &Model) -> Command {
        let user = self.user();
        if self.random.once_in(if self.is_one_loud { 30 } else { 3 }) {
            return Command::ClearNotifications { user };
        }
        // The notification is usually a mention, which has the id of the post.
        let PostId(mut notification) = self.post();
        if self.random.once_in(3)
            && let Ok(user) = model.feed.resolve(&user)
        {
            let shown = model.feed.notifications(user);
            let at = self.random.index(shown.len().max(1));
            notification = shown.get(at).map_or(notification, |shown| shown.id.0);
        }
        Command::DismissNotification { user, notification: NotificationId(notification) }
    }
}
