//! Latest changes that timelines must apply: deleted posts, boosts that appear in more home timelines, and users that
//! are deleted, hidden or shown again.
//!
//! A timeline that lacks more changes of posts than are kept finds its posts again through its authors. A timeline that
//! lacks more changes of users than are kept is gathered from the facts.

use std::collections::VecDeque;

use feed::Effect;

/// Bounded list of changes at consecutive positions, which begin at 0.
pub(super) struct Changes {
    kept: VecDeque<Effect>,
    kept_max: usize,
    /// Number of changes that have left the list.
    dropped: u64,
}

impl Changes {
    /// Creates an empty list that keeps the newest `kept_max` changes.
    pub(super) fn new(kept_max: usize) -> Self {
        Self { kept: VecDeque::new(), kept_max, dropped: 0 }
    }

    /// Adds a change.
    pub(super) fn push(&mut self, change: Effect) {
        self.kept.push_back(change);
        if self.kept.len() > self.kept_max && self.kept.pop_front().is_some() {
            self.dropped += 1;
        }
    }

    /// Returns the position after the last change.
    pub(super) fn end(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }

    /// Whether all changes from a position on are kept.
    pub(super) fn has_all_from(&self, position: u64) -> bool {
        self.dropped <= position
    }

    /// Returns the kept changes from a position on.
    pub(super) fn from(&self, position: u64) -> impl Iterator<Item = &Effect> {
        let skip = usize::try_from(position.saturating_sub(self.dropped)).unwrap_or(usize::MAX);
        self.kept.range(skip.min(self.kept.len())..)
    }
}
