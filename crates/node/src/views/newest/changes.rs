//! The latest changes of posts and users that timelines must apply: deleted posts, boosts that are at home of more
//! users, and users who are deleted, hidden or shown again.
//!
//! The ring is bounded. A timeline that has missed changes of posts is made anew from the posts in memory; one that has
//! missed changes of users is gathered from the facts.

use std::collections::VecDeque;

use feed::Effect;

/// Changes at consecutive positions from 0.
pub(super) struct Changes {
    kept: VecDeque<Effect>,
    kept_max: usize,
    /// Number of changes that have left.
    gone: u64,
    /// Number of changes up to the last one of a user that has left.
    users_gone: u64,
}

impl Changes {
    /// Keeps the newest `kept_max`.
    pub(super) fn new(kept_max: usize) -> Self {
        Self { kept: VecDeque::new(), kept_max, gone: 0, users_gone: 0 }
    }

    /// Adds a change.
    pub(super) fn push(&mut self, change: Effect) {
        self.kept.push_back(change);
        if self.kept.len() > self.kept_max
            && let Some(oldest) = self.kept.pop_front()
        {
            self.gone += 1;
            if matches!(oldest, Effect::UserDeleted { .. } | Effect::UserHidden { .. }) {
                self.users_gone = self.gone;
            }
        }
    }

    /// The position after the last change.
    pub(super) fn end(&self) -> u64 {
        self.gone + self.kept.len() as u64
    }

    /// Whether all changes from a position on are here.
    pub(super) fn has_all_from(&self, position: u64) -> bool {
        self.gone <= position
    }

    /// Whether all changes of users from a position on are here.
    pub(super) fn has_users_from(&self, position: u64) -> bool {
        self.users_gone <= position
    }

    /// The changes from a position on that are here.
    pub(super) fn from(&self, position: u64) -> impl Iterator<Item = &Effect> {
        let skip = usize::try_from(position.saturating_sub(self.gone)).unwrap_or(usize::MAX);
        self.kept.range(skip.min(self.kept.len())..)
    }
}
