//! The watchers of the users of one shard.
//!
//! The lock is the last to be taken: a thread that holds it takes no other. The writer takes it for one
//! look-up, so lists of friends are added and removed piece by piece.
//!
//! The newest [`CHANGES_MAX`] deletions, edits and follows are kept for each watched user, shared by all
//! watchers of the user. A watcher that does not read them in time gets [`Change::Missed`], and so does each
//! watcher of a user whose timeline was evicted, because later changes are not recorded.

#[cfg(all(test, feature = "loom"))]
mod races;

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::Ordering;

use feed::{PostId, UserId};
use hashbrown::HashMap;
use tokio::sync::watch;

use crate::sync::{AtomicUsize, Mutex, MutexGuard, fence};

/// Pairs of a friend and a watcher that are indexed, about 32 bytes each: 2 MiB per shard. Stories of
/// friends beyond that reach a live stream when it next polls.
const PAIRS_MAX: usize = 1 << 16;
/// Friends that are added or removed before others may have the lock: about 50 µs.
const FRIENDS_AT_ONCE: usize = 256;

/// Changes kept for a user who is watched, 16 bytes each.
pub(super) const CHANGES_MAX: usize = 32;

/// Changes, in addition to new posts, of which a watcher of a user's timeline is notified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A post was deleted that the user had at home.
    Deleted(PostId),
    /// A post by this user that mentioned the user was deleted.
    MentionDeleted(PostId, UserId),
    /// A post that the user has at home, or that mentions or mentioned them, has another text.
    Edited(PostId),
    /// The user follows this user from now on.
    Followed(UserId),
    /// The user does not follow this user any more.
    Unfollowed(UserId),
    /// The user changed their filters: marks of posts may differ from now on.
    Filters,
    /// There may have been other changes, or posts of the past came or went: what was read before may
    /// be out of date.
    Missed,
}

/// New events of a user.
#[derive(Default)]
pub(crate) struct News {
    /// Number of mentions since the first watch began.
    pub(crate) mentions: u64,
    /// Number of other notifications since then.
    pub(crate) notifications: u64,
    /// Number of changes before those that are kept.
    dropped: u64,
    changes: VecDeque<Change>,
}

impl News {
    fn push(&mut self, change: Change) {
        if self.changes.len() >= CHANGES_MAX {
            self.changes.pop_front();
            self.dropped += 1;
        }
        self.changes.push_back(change);
    }

    /// Number of changes since the first watch began.
    pub(crate) fn end(&self) -> u64 {
        self.dropped + self.changes.len() as u64
    }

    /// The changes after the first `read`, oldest first, each with the number of changes up to and
    /// including it.
    pub(crate) fn after(&self, read: u64) -> Vec<(u64, Change)> {
        let missed = (read < self.dropped).then_some((self.dropped, Change::Missed));
        let skip = read.saturating_sub(self.dropped) as usize;
        let numbered = (self.dropped + 1..).zip(self.changes.iter().copied());
        missed.into_iter().chain(numbered.skip(skip)).collect()
    }
}

/// Channels to the watchers.
#[derive(Default)]
pub(super) struct Watchers {
    /// Users in the table.
    users: AtomicUsize,
    table: Mutex<Table>,
}

/// The data that the lock protects.
#[derive(Default)]
pub(super) struct Table {
    news: HashMap<UserId, watch::Sender<News>>,
    /// (friend, watcher): stories of the friend wake the watcher.
    by_friend: BTreeSet<(UserId, UserId)>,
    /// (watcher, friend): the same pairs.
    by_watcher: BTreeSet<(UserId, UserId)>,
}

impl Watchers {
    /// Waits for anything new for `user`. What the facts show later wakes it.
    pub(super) fn watch(&self, user: UserId) -> watch::Receiver<News> {
        let mut table = self.table.lock();
        let receiver = table.news.entry(user).or_default().subscribe();
        self.users.store(table.news.len(), Ordering::SeqCst);
        // Before the caller reads the facts; see `mentioned`.
        fence(Ordering::SeqCst);
        receiver
    }

    /// Has the stories of `friends` wake the watchers of `user`, if there are any.
    pub(super) fn watch_stories(&self, user: UserId, friends: &[UserId]) {
        for some in friends.chunks(FRIENDS_AT_ONCE) {
            let mut table = self.table.lock();
            some.iter().for_each(|friend| table.befriend(user, *friend));
            MutexGuard::unlock_fair(table);
        }
    }

    /// Ends the watch of `user` if there are no watchers any more.
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
            // A new watcher needs the pairs, and removes them in the end.
            if table.news.contains_key(&user) || !table.forget_friends(user) {
                return;
            }
            MutexGuard::unlock_fair(table);
        }
    }

    /// A post that the facts show mentions `user`. Writer only.
    pub(super) fn mentioned(&self, user: UserId) {
        if let Some(table) = self.table_for_writer() {
            table.modify(user, |news| news.mentions += 1);
        }
    }

    /// The facts show a new notification of `user` that is no mention. Writer only.
    pub(super) fn notified(&self, user: UserId) {
        if let Some(table) = self.table_for_writer() {
            table.modify(user, |news| news.notifications += 1);
        }
    }

    /// A post that mentions or mentioned `user` is deleted or edited, or their filters changed, as the facts show. Writer
    /// only.
    pub(super) fn changed(&self, user: UserId, change: Change) {
        if let Some(table) = self.table_for_writer() {
            table.changed(user, change);
        }
    }

    /// The table, for what the facts show already, if there are watchers at all.
    fn table_for_writer(&self) -> Option<MutexGuard<'_, Table>> {
        // Either this sees the watcher, or the watcher sees the change when it reads the facts.
        fence(Ordering::SeqCst);
        self.any()
    }

    /// The table, if there are watchers at all.
    pub(super) fn any(&self) -> Option<MutexGuard<'_, Table>> {
        // A watch that begins now reads by itself what is new already.
        (self.users.load(Ordering::SeqCst) > 0).then(|| self.table.lock())
    }
}

impl Table {
    /// Whether `user` has watchers.
    pub(super) fn watches(&self, user: UserId) -> bool {
        self.news.contains_key(&user)
    }

    /// Wakes the watchers of `user`.
    pub(super) fn notify(&self, user: UserId) {
        self.modify(user, |_| ());
    }

    /// Wakes the watchers of `user` with a change.
    pub(super) fn changed(&self, user: UserId, change: Change) {
        self.modify(user, |news| news.push(change));
    }

    /// Changes of what `user` has at home may be missed from now on. Wakes no watcher: a timeline that had
    /// to make room for others is gathered again when it is read, and not at once.
    pub(super) fn missed(&self, user: UserId) {
        if let Some(news) = self.news.get(&user) {
            news.send_if_modified(|news| {
                news.push(Change::Missed);
                false
            });
        }
    }

    fn modify(&self, user: UserId, change: impl FnOnce(&mut News)) {
        if let Some(news) = self.news.get(&user) {
            news.send_modify(change);
        }
    }

    /// Wakes all watchers.
    pub(super) fn notify_all(&self) {
        self.news.values().for_each(|news| news.send_modify(|_| ()));
    }

    /// Wakes the watchers of friends of `author`; returns how many.
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

    /// Number of users with watchers, and of pairs.
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

    fn notified(news: &mut watch::Receiver<News>) -> bool {
        let notified = news.has_changed().unwrap();
        news.mark_unchanged();
        notified
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
        assert!(notified(&mut first));
        watchers.any().unwrap().unfriend(ADA, UserId(10));
        assert_eq!(watchers.any().unwrap().notify_friends(UserId(10)), 0);
        assert!(!notified(&mut first));
        // Thousands of users who were friends briefly leave nothing.
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
    fn pairs_have_a_limit_and_mentions_are_reported_beyond_it() {
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
        assert!(notified(&mut all[11]) && all[11].borrow().mentions == 1 && !notified(&mut all[0]));
    }

    #[test]
    fn a_limited_number_of_changes_is_kept_and_slow_watchers_get_missed() {
        let watchers = Watchers::default();
        let mut news = watchers.watch(ADA);
        let deleted = |id| Change::Deleted(PostId(id));
        let changed = |id| watchers.changed(ADA, deleted(id));
        changed(1);
        changed(2);
        assert!(notified(&mut news));
        assert_eq!(news.borrow().after(0), [(1, deleted(1)), (2, deleted(2))]);
        assert_eq!(news.borrow().after(1), [(2, deleted(2))]);
        assert!(news.borrow().after(2).is_empty());
        (3..=CHANGES_MAX as u64 + 3).for_each(changed);
        let end = CHANGES_MAX as u64 + 3;
        let after = news.borrow().after(2);
        assert_eq!(after.len(), CHANGES_MAX + 1);
        assert_eq!((after[0], after[1]), ((3, Change::Missed), (4, deleted(4))));
        assert_eq!(news.borrow().after(3)[0], (4, deleted(4)), "all that came after are kept");
        assert_eq!(news.borrow().end(), end);
        // What is missed without a wake-up is found by the next read.
        notified(&mut news);
        watchers.any().unwrap().missed(ADA);
        assert!(!notified(&mut news));
        assert_eq!(news.borrow().after(end), [(end + 1, Change::Missed)]);
    }
}
