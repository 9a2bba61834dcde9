//! Watchers of users: clients with an open event stream.
//!
//! The lock of this table is the last in the lock order except for the lock of the effects. The writer does not take
//! it: a separate thread wakes the watchers ([`wake`](super::wake)), and work for many users is done in pieces.
//!
//! For each watched user the newest [`CHANGES_MAX`] deletions, edits and follows are kept, shared by all watchers of
//! the user. A watcher that does not read them in time gets [`Change::Missed`], and so does each watcher of a user
//! whose timeline is not in memory when one of its posts changes.

mod pairs;
#[cfg(all(test, feature = "loom"))]
mod races;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use commitlog::Position;
use feed::{Effect, HomeAuthors, PostId, UserId};
use hashbrown::HashMap;
use tokio::sync::watch;

use super::effects::{Effects, Lost};
use super::sync::{AtomicUsize, Mutex, MutexGuard, fence};
use pairs::{AT_ONCE, Pairs};

/// Maximum number of pairs of an author and a watcher in the index. Each takes about 32 bytes, all of them 32 MiB.
/// Users whose authors do not all fit are checked for each post.
const PAIRS_MAX: usize = 1 << 20;
/// Maximum number of authors for whom a watched user is indexed. A user with more authors is checked for each post,
/// because a thousand such users would fill the index.
const AUTHORS_MAX: usize = 1_000;
/// Maximum number of indexed authors of one user during a watch, including those whom the user has unfollowed.
const KEPT_AUTHORS_MAX: usize = 2 * AUTHORS_MAX;

/// Number of changes that are kept for a watched user. Each takes 16 bytes.
pub(super) const CHANGES_MAX: usize = 32;

/// Change of which a watcher of a user's timeline is notified, in addition to new posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A post in the user's home timeline was deleted.
    Deleted(PostId),
    /// A post by this author that mentioned the user was deleted.
    MentionDeleted(PostId, UserId),
    /// A post in the user's home timeline, or one that mentions or mentioned the user, was edited.
    Edited(PostId),
    /// The user has followed this user.
    Followed(UserId),
    /// The user has unfollowed this user.
    Unfollowed(UserId),
    /// The user changed their filters: marks of posts may differ.
    Filters,
    /// Other changes may have happened, or old posts may have appeared or disappeared: earlier reads may be out of
    /// date.
    Missed,
}

/// Latest changes for a user.
#[derive(Default)]
pub(crate) struct News {
    /// Number of changes before the kept ones.
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

    /// Returns the number of changes since the first watch began.
    pub(crate) fn end(&self) -> u64 {
        self.dropped + self.changes.len() as u64
    }

    /// Returns the changes after the first `read`, oldest first, each with the number of changes up to and including
    /// it.
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
    /// Number of users in the table.
    users: AtomicUsize,
    table: Mutex<Table>,
}

/// State that the lock protects.
pub(super) struct Table {
    watched: HashMap<UserId, Watched>,
    /// Position of the last effects that the watchers got.
    cursor: Position,
    /// Pairs of an author and a user whose watchers a post by the author may wake.
    authors: Pairs,
    /// Watched users whose followed users are not all in `authors`.
    unindexed: BTreeSet<UserId>,
}

/// A user with watchers.
struct Watched {
    news: watch::Sender<News>,
    /// Position of the last effects when the first watch began, which the facts show.
    since: Position,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            watched: HashMap::new(),
            cursor: Position::default(),
            authors: Pairs::new(PAIRS_MAX, KEPT_AUTHORS_MAX),
            unindexed: BTreeSet::new(),
        }
    }
}

impl Watchers {
    /// Begins a watch of `user`; later effects wake it.
    pub(super) fn watch(&self, user: UserId, effects: &Effects) -> watch::Receiver<News> {
        let mut table = self.table.lock();
        if table.watched.is_empty() {
            // This is the first watcher, so earlier effects need no notification.
            table.cursor = effects.end();
        }
        let watched = table
            .watched
            .entry(user)
            .or_insert_with(|| Watched { news: watch::Sender::default(), since: effects.end() });
        let receiver = watched.news.subscribe();
        self.users.store(table.watched.len(), Ordering::SeqCst);
        // This fence comes before the caller reads the facts; see `are_any`.
        fence(Ordering::SeqCst);
        receiver
    }

    /// Makes posts by these authors wake the watchers of `user`, if there are any.
    pub(super) fn watch_posts(&self, user: UserId, home: &HomeAuthors) {
        let fits = home.users.len() <= AUTHORS_MAX;
        let all_fit = fits
            && home.users.chunks(AT_ONCE).all(|some| {
                let mut table = self.table.lock();
                let fit = table.watches(user)
                    && some.iter().all(|author| table.authors.add(*author, user));
                MutexGuard::unlock_fair(table);
                fit
            });
        let mut table = self.table.lock();
        if all_fit {
            table.unindexed.remove(&user);
        } else if table.watches(user) {
            table.unindexed.insert(user);
            // A user who is checked for each post needs no pairs.
            while table.authors.forget(user) {
                MutexGuard::unlock_fair(table);
                table = self.table.lock();
            }
        }
    }

    /// Returns the number of watched users that are checked for each post.
    pub(super) fn unindexed(&self) -> usize {
        self.table.lock().unindexed.len()
    }

    /// Ends the watch of `user` if there are no more watchers.
    pub(super) fn unwatch(&self, user: UserId) {
        {
            let mut table = self.table.lock();
            if table.watched.get(&user).is_none_or(|it| it.news.receiver_count() > 0) {
                return;
            }
            table.watched.remove(&user);
            table.unindexed.remove(&user);
            self.users.store(table.watched.len(), Ordering::SeqCst);
        }
        loop {
            let mut table = self.table.lock();
            // A new watcher needs the pairs, and its end removes them.
            if table.watched.contains_key(&user) || !table.authors.forget(user) {
                return;
            }
            MutexGuard::unlock_fair(table);
        }
    }

    /// Returns the next effects for the watchers, if there are watchers: see [`Effects::next`].
    pub(super) fn next(&self, effects: &Effects) -> Result<Option<Arc<[Effect]>>, Lost> {
        self.any().map_or(Ok(None), |mut table| effects.next(&mut table.cursor))
    }

    /// Returns the watched users if there are fewer than `users`.
    pub(super) fn fewer_than(&self, users: usize) -> Option<Vec<UserId>> {
        let table = self.table.lock();
        (table.watched.len() < users).then(|| table.watched.keys().copied().collect())
    }

    /// Returns the table if there are watchers.
    pub(super) fn any(&self) -> Option<MutexGuard<'_, Table>> {
        // A watch that begins later reads earlier changes from the facts.
        self.are_any().then(|| self.table.lock())
    }

    /// Whether there are watchers.
    pub(super) fn are_any(&self) -> bool {
        // Either this call sees the watcher, or the watcher sees the earlier changes when it reads the facts.
        fence(Ordering::SeqCst);
        self.users.load(Ordering::SeqCst) > 0
    }

    /// Calls `each` for the users that `found` returns, in pieces. `found` returns the next [`AT_ONCE`] users from a
    /// given one on, ascending, or fewer if there are no more.
    fn pieces(&self, found: impl Fn(&Table, UserId) -> Vec<UserId>, each: impl Fn(&[UserId])) {
        let mut next = Some(UserId(0));
        while let Some(from) = next
            && let Some(table) = self.any()
        {
            let some = found(&table, from);
            MutexGuard::unlock_fair(table);
            each(&some);
            next = after(&some);
        }
    }

    /// Calls `each` for the users whose home timeline may show posts by `author`, in pieces, without holding the lock.
    pub(super) fn readers_of(&self, author: UserId, each: impl Fn(&[UserId])) {
        each(&[author]);
        self.pieces(|table, from| table.authors.watchers(author, from), &each);
        self.pieces(
            |table, from| table.unindexed.range(from..).take(AT_ONCE).copied().collect(),
            &each,
        );
    }

    /// Wakes the watchers of these users.
    pub(super) fn notify(&self, users: &[UserId]) {
        for some in users.chunks(AT_ONCE) {
            let Some(table) = self.any() else { return };
            some.iter().for_each(|user| table.notify(*user));
            MutexGuard::unlock_fair(table);
        }
    }

    /// Wakes the watchers of `user` with these changes.
    pub(super) fn changed(&self, user: UserId, changes: &[Change]) {
        if let Some(table) = self.any() {
            changes.iter().for_each(|change| table.changed(user, *change));
        }
    }

    /// Adds [`Change::Missed`] for all watchers. If `wake` is true, also adds [`Change::Filters`] and wakes the
    /// watchers. Otherwise they see the change when something else wakes them.
    pub(super) fn all_missed(&self, wake: bool) {
        let Some(table) = self.any() else { return };
        let users: Vec<UserId> = table.watched.keys().copied().collect();
        drop(table);
        for some in users.chunks(AT_ONCE) {
            let table = self.table.lock();
            for watched in some.iter().filter_map(|user| table.watched.get(user)) {
                watched.news.send_if_modified(|news| {
                    news.push(Change::Missed);
                    if wake {
                        news.push(Change::Filters);
                    }
                    wake
                });
            }
            MutexGuard::unlock_fair(table);
        }
    }
}

/// Returns the user to continue from, if there may be more.
fn after(some: &[UserId]) -> Option<UserId> {
    let last = some.last().filter(|_| some.len() == AT_ONCE)?;
    last.0.checked_add(1).map(UserId)
}

impl Table {
    /// Whether `user` has watchers.
    pub(super) fn watches(&self, user: UserId) -> bool {
        self.watched.contains_key(&user)
    }

    /// Wakes the watchers of `user`.
    pub(super) fn notify(&self, user: UserId) {
        self.modify(user, |_| true);
    }

    /// Wakes the watchers of `user` with a change.
    pub(super) fn changed(&self, user: UserId, change: Change) {
        self.modify(user, |news| {
            news.push(change);
            true
        });
    }

    /// Adds [`Change::Missed`] for `user` without waking watchers, because an evicted timeline need not be gathered
    /// again at once.
    pub(super) fn missed(&self, user: UserId) {
        self.modify(user, |news| {
            news.push(Change::Missed);
            false
        });
    }

    /// Changes the news of `user`. Watches that began after the effects at the cursor are not notified, because they
    /// have read these changes already.
    fn modify(&self, user: UserId, change: impl FnOnce(&mut News) -> bool) {
        if let Some(watched) = self.watched.get(&user)
            && watched.since < self.cursor
        {
            watched.news.send_if_modified(change);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const ADA: UserId = UserId(1);

    /// Returns the number of users with watchers, of pairs with authors, and of users who are not indexed.
    fn sizes(watchers: &Watchers) -> (usize, usize, usize) {
        let table = watchers.table.lock();
        (table.watched.len(), table.authors.len(), table.unindexed.len())
    }

    fn watch(watchers: &Watchers, user: UserId) -> watch::Receiver<News> {
        let news = watchers.watch(user, &Effects::new(Position(0)));
        // Simulates a group after the watch.
        watchers.table.lock().cursor = Position(1);
        news
    }

    fn notified(news: &mut watch::Receiver<News>) -> bool {
        let notified = news.has_changed().unwrap();
        news.mark_unchanged();
        notified
    }

    fn users(range: std::ops::Range<u32>) -> Vec<UserId> {
        range.map(UserId).collect()
    }

    fn readers_of(watchers: &Watchers, author: u32) -> Vec<UserId> {
        let found = RefCell::new(Vec::new());
        watchers.readers_of(UserId(author), |some| found.borrow_mut().extend_from_slice(some));
        found.into_inner()
    }

    fn limit_pairs(watchers: &Watchers, pairs_max: usize) {
        let mut table = watchers.table.lock();
        table.authors = Pairs::new(pairs_max, pairs_max);
    }

    #[test]
    fn nothing_is_left_after_the_last_watch() {
        let watchers = Watchers::default();
        let (first, second) = (watch(&watchers, ADA), watch(&watchers, ADA));
        let authors = users(10..10 + 3 * AT_ONCE as u32 / 2);
        watchers.watch_posts(ADA, &HomeAuthors::of(authors.clone()));
        assert_eq!(sizes(&watchers), (1, authors.len(), 0));
        drop(first);
        watchers.unwatch(ADA);
        assert_eq!(sizes(&watchers).0, 1, "the second still waits");
        drop(second);
        watchers.unwatch(ADA);
        assert_eq!(sizes(&watchers), (0, 0, 0));
        assert!(watchers.any().is_none());
    }

    #[test]
    fn who_begins_to_watch_gets_no_effects_of_before() {
        let (watchers, effects) = (Watchers::default(), Effects::new(Position(0)));
        let group = || vec![Effect::Notified { user: ADA }];
        effects.publish(Position(1), group());
        assert_eq!(watchers.next(&effects), Ok(None), "nobody watches");
        let first = watchers.watch(ADA, &effects);
        assert_eq!(watchers.next(&effects), Ok(None));
        effects.publish(Position(2), group());
        let second = watchers.watch(UserId(2), &effects);
        let woken = || {
            watchers.notify(&[ADA, UserId(2)]);
            [&first, &second].map(|news| news.has_changed().unwrap())
        };
        assert_eq!(watchers.next(&effects), Ok(Some(group().into())));
        assert_eq!(woken(), [true, false], "of before the second watch");
        effects.publish(Position(3), group());
        assert_eq!(watchers.next(&effects), Ok(Some(group().into())));
        assert_eq!(woken(), [true, true]);
    }

    #[test]
    fn watchers_are_found_for_those_whom_they_follow() {
        let watchers = Watchers::default();
        let all = users(0..3 * AT_ONCE as u32);
        let news: Vec<_> = all.iter().map(|user| watch(&watchers, *user)).collect();
        for user in &all {
            watchers.watch_posts(*user, &HomeAuthors::of(users(1_000..1_600)));
            watchers.watch_posts(*user, &HomeAuthors::of(users(1_300..1_900)));
        }
        for author in [1_000, 1_300, 1_899] {
            let expected = std::iter::once(UserId(author)).chain(all.iter().copied());
            assert_eq!(readers_of(&watchers, author), expected.collect::<Vec<_>>());
        }
        assert_eq!(readers_of(&watchers, 1_900), [UserId(1_900)], "the author");
        let stranger = UserId(9_999);
        watchers.watch_posts(stranger, &HomeAuthors::of(users(1_300..1_900)));
        assert!(!readers_of(&watchers, 1_300).contains(&stranger), "nobody watches");
        drop(news);
    }

    #[test]
    fn pairs_have_a_limit_beyond_which_watchers_are_asked_about_every_post() {
        let watchers = Watchers::default();
        limit_pairs(&watchers, 100);
        let mut all: Vec<_> = (0..12)
            .map(|user| {
                let news = watch(&watchers, UserId(user));
                watchers.watch_posts(UserId(user), &HomeAuthors::of(users(100..110)));
                news
            })
            .collect();
        assert_eq!(sizes(&watchers), (12, 100, 2));
        watchers.notify(&[UserId(11)]);
        assert!(notified(&mut all[11]) && !notified(&mut all[0]));
        assert_eq!(readers_of(&watchers, 777), [777, 10, 11].map(UserId));
        watchers.watch_posts(UserId(0), &HomeAuthors::of(users(100..110)));
        assert_eq!(readers_of(&watchers, 777), [777, 10, 11].map(UserId), "others are indexed");
        drop(all.remove(0));
        watchers.unwatch(UserId(0));
        watchers.watch_posts(UserId(10), &HomeAuthors::of(users(100..110)));
        assert_eq!(readers_of(&watchers, 777), [777, 11].map(UserId), "now there is room");
    }

    #[test]
    fn who_follows_many_users_takes_no_room_and_is_asked_about_every_post() {
        let watchers = Watchers::default();
        let _news = watch(&watchers, ADA);
        let follow = |authors: usize| {
            watchers.watch_posts(ADA, &HomeAuthors::of(users(10..10 + authors as u32)));
        };
        follow(AUTHORS_MAX + 1);
        assert_eq!(sizes(&watchers), (1, 0, 1));
        follow(AUTHORS_MAX);
        assert_eq!(sizes(&watchers), (1, AUTHORS_MAX, 0));
    }

    #[test]
    fn who_follows_ever_new_users_takes_no_more_than_their_part() {
        let watchers = Watchers::default();
        let _news = watch(&watchers, ADA);
        for first in (1..10).map(|n| n * AUTHORS_MAX as u32) {
            let home = HomeAuthors::of(users(first..first + AUTHORS_MAX as u32));
            watchers.watch_posts(ADA, &home);
            // Either all are indexed, or none of them is and the user is checked for each post.
            let (_, pairs, unindexed) = sizes(&watchers);
            assert!(pairs <= KEPT_AUTHORS_MAX && (pairs == 0) == (unindexed == 1), "{pairs}");
        }
    }

    #[test]
    fn a_limited_number_of_changes_is_kept_and_slow_watchers_get_missed() {
        let watchers = Watchers::default();
        let mut news = watch(&watchers, ADA);
        let deleted = |id| Change::Deleted(PostId(id));
        let changed = |id| watchers.changed(ADA, &[deleted(id)]);
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
        // The next read finds without a wake-up what was missed.
        notified(&mut news);
        watchers.any().unwrap().missed(ADA);
        assert!(!notified(&mut news));
        assert_eq!(news.borrow().after(end), [(end + 1, Change::Missed)]);
    }
}
