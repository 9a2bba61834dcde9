//! What friendships and blocks change in a shard.

use feed::{Ended, UserId};

use super::Shard;
use crate::views::watchers::Change;

impl Shard {
    pub(super) fn friends_changed(&self, user: UserId, other: UserId, friends: bool) {
        let Some(mut table) = self.watchers.any() else { return };
        for (user, other) in [(user, other), (other, user)] {
            if friends {
                table.befriend(user, other);
            } else {
                table.unfriend(user, other);
            }
            table.notify(user);
        }
    }

    /// `user` blocked `other`. The watchers of `other` get the end of a follow or friendship, and nothing else that
    /// would give the block away, or wake them each time.
    pub(super) fn blocked(&mut self, user: UserId, other: UserId, ended: Ended) {
        if ended.following {
            self.follows_changed(user);
        }
        if ended.followed {
            self.follow_changed(other, Change::Unfollowed(user));
        }
        if ended.friends {
            self.friends_changed(user, other, false);
        }
        if let Some(watchers) = self.watchers.any() {
            watchers.changed(user, Change::Missed);
        }
    }
}
