//! Pairs of a user and a watcher whom something new of the user wakes, in both orders.

use std::collections::BTreeSet;

use feed::UserId;

/// Pairs that are looked up, added or removed before others may have the lock: about 50 µs.
pub(super) const AT_ONCE: usize = 256;

/// See the module.
pub(super) struct Pairs {
    /// (user, watcher)
    by_user: BTreeSet<(UserId, UserId)>,
    /// (watcher, user): the same pairs.
    by_watcher: BTreeSet<(UserId, UserId)>,
    pairs_max: usize,
}

/// Result of adding a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It is new.
    New,
    /// It was here already.
    Known,
    /// There is no room for it.
    Full,
}

impl Pairs {
    /// No pairs, and room for `pairs_max`.
    pub(super) fn new(pairs_max: usize) -> Self {
        Self { by_user: BTreeSet::new(), by_watcher: BTreeSet::new(), pairs_max }
    }

    /// Number of pairs.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.by_user.len(), self.by_watcher.len());
        self.by_user.len()
    }

    /// Adds a pair.
    pub(super) fn add(&mut self, user: UserId, watcher: UserId) -> Added {
        if self.by_user.len() >= self.pairs_max {
            let is_here = self.by_user.contains(&(user, watcher));
            return if is_here { Added::Known } else { Added::Full };
        }
        self.by_watcher.insert((watcher, user));
        if self.by_user.insert((user, watcher)) { Added::New } else { Added::Known }
    }

    /// Removes a pair.
    pub(super) fn remove(&mut self, user: UserId, watcher: UserId) {
        self.by_user.remove(&(user, watcher));
        self.by_watcher.remove(&(watcher, user));
    }

    /// Some watchers of `user`, ascending, from `from` on: [`AT_ONCE`] if there may be more.
    pub(super) fn watchers(&self, user: UserId, from: UserId) -> Vec<UserId> {
        some(&self.by_user, user, from)
    }

    /// Removes some pairs of `watcher`; whether there may be more.
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
