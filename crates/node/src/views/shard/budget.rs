//! What a shard keeps within its budget: which timelines get a place, and which leave.

use feed::HomeAuthors;
use feed::UserId;

use super::super::SHARDS;
use super::Shard;
use crate::views::timeline::Timeline;

/// For no user.
const NOBODY: UserId = UserId(u32::MAX);

impl Shard {
    /// Whether a new timeline of `user` is to be kept within `bytes_max`. If
    /// others would have to go for it, it is kept only for watchers, and for a user who was refused a short
    /// time ago: users who each read once do not drop the timelines of those who come back.
    pub(in crate::views) fn admits(
        &mut self,
        user: UserId,
        home: &HomeAuthors,
        bytes_max: usize,
    ) -> bool {
        let has_room = self.bytes + Timeline::bytes_of(home) <= bytes_max;
        let is_watched = || self.watchers.any().is_some_and(|watchers| watchers.watches(user));
        if has_room || self.is_active(user) || is_watched() {
            return true;
        }
        self.refused.resize(self.slots.len().next_power_of_two(), NOBODY);
        let place = user.0 as usize / SHARDS % self.refused.len();
        let Some(refused) = self.refused.get_mut(place) else { return true };
        if *refused == user {
            *refused = NOBODY;
            return true;
        }
        *refused = user;
        false
    }

    /// Second chance: the hand passes over timelines that were read since it last came by, for two
    /// rounds over watched ones, and over `newest`.
    pub(super) fn evict(&mut self, newest: UserId, bytes_max: usize) {
        let mut steps = 3 * self.slots.len();
        while self.bytes > bytes_max && steps > 0 {
            steps -= 1;
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            let Some(Some(timeline)) = self.slots.get_mut(self.hand) else { continue };
            let user = timeline.user;
            if std::mem::take(&mut timeline.touched) || user == newest {
                continue;
            }
            let watched = || self.watchers.any().is_some_and(|watchers| watchers.watches(user));
            if steps >= self.slots.len() && watched() {
                continue;
            }
            self.drop_timeline(user);
            self.tally.evictions += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use feed::PageOf;

    use super::*;
    use crate::views::stream::Stream;
    use crate::views::watchers::Watchers;

    fn home() -> HomeAuthors {
        HomeAuthors::of(vec![UserId(0)])
    }

    /// An empty timeline of a user who follows user 0.
    fn follower(user: u32) -> Timeline {
        let page = PageOf { items: Vec::new(), more: false };
        Timeline::new(UserId(user), home(), &page, 0)
    }

    #[test]
    fn readers_who_come_once_drop_no_timeline_of_those_who_come_back() {
        let watchers = Arc::new(Watchers::default());
        let (stream, mut shard) = (Stream::default(), Shard::new(Arc::clone(&watchers), 10));
        let bytes_max = 10 * follower(1).bytes();
        for user in 1..=10 {
            assert!(shard.admits(UserId(user), &home(), bytes_max));
            shard.insert(&stream, follower(user), bytes_max);
        }
        assert!((1_000..2_000).all(|user| !shard.admits(UserId(user), &home(), bytes_max)));
        assert!(shard.admits(UserId(1), &home(), bytes_max), "it would replace the earlier one");
        assert!(!shard.admits(UserId(11), &home(), bytes_max));
        assert!(shard.admits(UserId(11), &home(), bytes_max), "the second time soon after");
        let _news = watchers.watch(UserId(12));
        assert!(shard.admits(UserId(12), &home(), bytes_max), "whoever watches needs it");
    }

    #[test]
    fn watched_timelines_are_evicted_last_and_the_budget_still_holds() {
        let watchers = Arc::new(Watchers::default());
        let (stream, mut shard) = (Stream::default(), Shard::new(Arc::clone(&watchers), 10));
        let bytes_max = 10 * follower(1).bytes();
        let watched: Vec<_> = (1..=5).map(|user| watchers.watch(UserId(user))).collect();
        for user in 1..=40 {
            shard.insert(&stream, follower(user), bytes_max);
            shard.check();
            assert!(shard.bytes() <= bytes_max);
        }
        assert!((1..=5).all(|user| shard.is_active(UserId(user))));
        let all: Vec<_> = (6..=40).map(|user| watchers.watch(UserId(user))).collect();
        for user in (1..=40).rev() {
            shard.insert(&stream, follower(user), bytes_max);
            assert!(shard.bytes() <= bytes_max, "even if all are watched");
            assert!(shard.is_active(UserId(user)), "the newest stays");
        }
        drop((watched, all));
    }
}
