//! Index of pairs of a user and a watcher who is woken by news of the user, in both orders.

use std::collections::BTreeSet;

use feed::UserId;
use hashbrown::HashMap;

/// Number of pairs that are looked up, added or removed per lock: about 50 µs.
pub(in crate::views) const AT_ONCE: usize = 256;

/// Index of pairs.
pub(super) struct Pairs {
    /// Pairs as (user, watcher).
    by_user: BTreeSet<(UserId, UserId)>,
    /// The same pairs as (watcher, user).
    by_watcher: BTreeSet<(UserId, UserId)>,
    /// Number of pairs of each watcher that has any.
    counts: HashMap<UserId, usize>,
    pairs_max: usize,
    watcher_max: usize,
}

impl Pairs {
    /// Creates an empty index for at most `pairs_max` pairs, and at most `watcher_max` pairs per watcher.
    pub(super) fn new(pairs_max: usize, watcher_max: usize) -> Self {
        let (by_user, by_watcher, counts) = Default::default();
        Self { by_user, by_watcher, counts, pairs_max, watcher_max }
    }

    /// Returns the number of pairs.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.by_user.len(), self.by_watcher.len());
        self.by_user.len()
    }

    /// Adds a pair; returns false if there is no room.
    pub(super) fn add(&mut self, user: UserId, watcher: UserId) -> bool {
        if self.by_user.contains(&(user, watcher)) {
            return true;
        }
        let count = self.counts.get(&watcher).copied().unwrap_or(0);
        if self.by_user.len() >= self.pairs_max || count >= self.watcher_max {
            return false;
        }
        self.counts.insert(watcher, count + 1);
        self.by_user.insert((user, watcher));
        self.by_watcher.insert((watcher, user))
    }

    /// Removes a pair.
    fn remove(&mut self, user: UserId, watcher: UserId) {
        if !self.by_user.remove(&(user, watcher)) {
            return;
        }
        self.by_watcher.remove(&(watcher, user));
        if let Some(count) = self.counts.get_mut(&watcher) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&watcher);
            }
        }
    }

    /// Returns some watchers of `user`, ascending, from `from` on: [`AT_ONCE`] if there may be more.
    pub(super) fn watchers(&self, user: UserId, from: UserId) -> Vec<UserId> {
        some(&self.by_user, user, from)
    }

    /// Removes some pairs of `watcher`; returns whether there may be more.
    pub(super) fn forget(&mut self, watcher: UserId) -> bool {
        let users = some(&self.by_watcher, watcher, UserId(0));
        users.iter().for_each(|user| self.remove(*user, watcher));
        users.len() == AT_ONCE
    }
}

fn some(pairs: &BTreeSet<(UserId, UserId)>, first: UserId, from: UserId) -> Vec<UserId> {
    let pairs = pairs.range((first, from)..=(first, UserId(u32::MAX)));
    pairs.take(AT_ONCE).map(|(_, second)| *second).collect()
}
