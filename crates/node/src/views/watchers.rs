//! Who waits for news of whom, among the users of one shard.
//!
//! The lock is the last to be taken: whoever holds it takes no other. The writer takes it for one
//! look-up, so lists of friends go in and out piece by piece.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use feed::UserId;
use hashbrown::HashMap;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

/// Pairs of a friend and a watcher that are indexed, about 32 bytes each: 2 MiB a shard. Stories of
/// friends beyond that reach a live stream when it next looks by itself.
const PAIRS_MAX: usize = 1 << 16;
/// Friends that go in or out before others may have the lock: about 50 µs.
const FRIENDS_AT_ONCE: usize = 256;

/// Channels to those who wait.
#[derive(Default)]
pub(super) struct Watchers {
    /// Users in the table.
    users: AtomicUsize,
    table: Mutex<Table>,
}

/// What is behind the lock.
#[derive(Default)]
pub(super) struct Table {
    /// By user: the number of their mentions since the first watch began.
    news: HashMap<UserId, watch::Sender<u64>>,
    /// (friend, watcher): whose stories wake whom.
    by_friend: BTreeSet<(UserId, UserId)>,
    /// (watcher, friend): the same pairs.
    by_watcher: BTreeSet<(UserId, UserId)>,
}

impl Watchers {
    /// Waits for anything new for `user`. What the facts show later wakes it.
    pub(super) fn watch(&self, user: UserId) -> watch::Receiver<u64> {
        let mut table = self.table.lock();
        let receiver = table.news.entry(user).or_insert_with(|| watch::Sender::new(0)).subscribe();
        self.users.store(table.news.len(), Ordering::SeqCst);
        // Before the caller reads the facts; see `mentioned`.
        fence(Ordering::SeqCst);
        receiver
    }

    /// Has the stories of `friends` wake `user`, if anybody waits for their news.
    pub(super) fn watch_stories(&self, user: UserId, friends: &[UserId]) {
        for some in friends.chunks(FRIENDS_AT_ONCE) {
            let mut table = self.table.lock();
            some.iter().for_each(|friend| table.befriend(user, *friend));
            MutexGuard::unlock_fair(table);
        }
    }

    /// Ends the watch of `user` if nobody waits any more.
    pub(super) fn unwatch(&self, user: UserId) {
        {
            let mut table = self.table.lock();
            if table.news.get(&user).is_none_or(|news| news.receiver_count() > 0) {
                return;
            }
            table.news.remove(&user);
            self.users.store(table.news.len(), Ordering::SeqCst);
        }
        loop {
            let mut table = self.table.lock();
            // Whoever waits again needs the pairs, and removes them in the end.
            if table.news.contains_key(&user) || !table.forget_friends(user) {
                return;
            }
            MutexGuard::unlock_fair(table);
        }
    }

    /// A post that the facts show mentions `user`. Writer only.
    pub(super) fn mentioned(&self, user: UserId) {
        // Either this sees that somebody watches, or they see the post when they read the facts.
        fence(Ordering::SeqCst);
        if self.users.load(Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(news) = self.table.lock().news.get(&user) {
            news.send_modify(|mentions| *mentions += 1);
        }
    }

    /// The table, if anybody waits at all.
    pub(super) fn any(&self) -> Option<MutexGuard<'_, Table>> {
        // A watch that begins now reads by itself what is new already.
        (self.users.load(Ordering::SeqCst) > 0).then(|| self.table.lock())
    }
}

impl Table {
    /// Whether anybody waits for news of `user`.
    pub(super) fn watches(&self, user: UserId) -> bool {
        self.news.contains_key(&user)
    }

    /// Wakes those who wait for news of `user`.
    pub(super) fn notify(&self, user: UserId) {
        if let Some(news) = self.news.get(&user) {
            news.send_modify(|_| ());
        }
    }

    /// Wakes all who wait.
    pub(super) fn notify_all(&self) {
        self.news.values().for_each(|news| news.send_modify(|_| ()));
    }

    /// Wakes those whom the stories of `author` wake; returns how many.
    pub(super) fn notify_friends(&self, author: UserId) -> usize {
        let pairs = self.by_friend.range((author, UserId(0))..=(author, UserId(u32::MAX)));
        pairs.map(|(_, watcher)| self.notify(*watcher)).count()
    }

    /// The two became friends, as `user` sees it.
    pub(super) fn befriend(&mut self, user: UserId, friend: UserId) {
        if self.news.contains_key(&user)
            && self.by_friend.len() < PAIRS_MAX
            && self.by_friend.insert((friend, user))
        {
            self.by_watcher.insert((user, friend));
        }
    }

    /// The two are friends no more, as `user` sees it.
    pub(super) fn unfriend(&mut self, user: UserId, friend: UserId) {
        self.by_friend.remove(&(friend, user));
        self.by_watcher.remove(&(user, friend));
    }

    /// Removes some pairs of `user`; whether there may be more.
    fn forget_friends(&mut self, user: UserId) -> bool {
        let pairs = self.by_watcher.range((user, UserId(0))..=(user, UserId(u32::MAX)));
        let some: Vec<_> = pairs.take(FRIENDS_AT_ONCE).map(|(_, friend)| *friend).collect();
        some.iter().for_each(|friend| self.unfriend(user, *friend));
        some.len() == FRIENDS_AT_ONCE
    }

    /// Users who are waited for, and pairs.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        assert_eq!(self.by_friend.len(), self.by_watcher.len());
        (self.news.len(), self.by_friend.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADA: UserId = UserId(1);

    fn sizes(watchers: &Watchers) -> (usize, usize) {
        watchers.table.lock().sizes()
    }

    fn heard(news: &mut watch::Receiver<u64>) -> bool {
        let heard = news.has_changed().unwrap();
        news.mark_unchanged();
        heard
    }

    #[test]
    fn friends_come_and_go_and_nothing_is_left_after_the_last_watch() {
        let watchers = Watchers::default();
        let mut first = watchers.watch(ADA);
        let second = watchers.watch(ADA);
        let friends: Vec<_> = (10..10 + 3 * FRIENDS_AT_ONCE as u32 / 2).map(UserId).collect();
        watchers.watch_stories(ADA, &friends);
        watchers.watch_stories(ADA, &friends);
        assert_eq!(sizes(&watchers), (1, friends.len()));
        assert_eq!(watchers.any().unwrap().notify_friends(UserId(10)), 1);
        assert!(heard(&mut first));
        watchers.any().unwrap().unfriend(ADA, UserId(10));
        assert_eq!(watchers.any().unwrap().notify_friends(UserId(10)), 0);
        assert!(!heard(&mut first));
        // Thousands who were friends for a moment leave nothing.
        for other in (20_000..40_000).map(UserId) {
            let mut table = watchers.any().unwrap();
            table.befriend(ADA, other);
            table.unfriend(ADA, other);
        }
        assert_eq!(sizes(&watchers), (1, friends.len() - 1));
        drop(first);
        watchers.unwatch(ADA);
        assert_eq!(sizes(&watchers), (1, friends.len() - 1), "the second still waits");
        drop(second);
        watchers.unwatch(ADA);
        assert_eq!(sizes(&watchers), (0, 0));
        assert!(watchers.any().is_none());
    }

    #[test]
    fn pairs_have_a_limit_and_mentions_are_heard_beyond_it() {
        let watchers = Watchers::default();
        let each = PAIRS_MAX as u32 / 10;
        let mut all: Vec<_> = (0..12)
            .map(|user| {
                let news = watchers.watch(UserId(user));
                let friends: Vec<_> = (100..100 + each).map(UserId).collect();
                watchers.watch_stories(UserId(user), &friends);
                news
            })
            .collect();
        assert_eq!(sizes(&watchers), (12, PAIRS_MAX));
        watchers.mentioned(UserId(11));
        assert!(heard(&mut all[11]) && *all[11].borrow() == 1 && !heard(&mut all[0]));
    }
}
