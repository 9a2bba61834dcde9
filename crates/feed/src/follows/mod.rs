//! Follows, follow requests and friendships, and the authors in a home timeline that follow from them.

pub(crate) mod cost;
pub(crate) mod facts;
pub mod follow_options;
pub(crate) mod friends;
pub(crate) mod rules;

use crate::ids::UserId;

/// Authors of the posts in a reader's home timeline, except the reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HomeAuthors {
    /// Followed users who are neither muted nor disabled, in ascending order of ids.
    pub users: Box<[UserId]>,
    /// Users whose boosts home hides, in ascending order of ids. Some may be muted.
    pub without_boosts: Box<[UserId]>,
}

impl HomeAuthors {
    /// Creates authors with all their boosts, in ascending order of ids.
    #[must_use]
    pub fn of(users: Vec<UserId>) -> Self {
        Self { users: users.into(), without_boosts: Box::default() }
    }

    /// Whether home shows posts by the user.
    #[must_use]
    pub fn has(&self, user: UserId) -> bool {
        self.users.binary_search(&user).is_ok()
    }

    /// Whether home shows boosts by the user.
    #[must_use]
    pub fn has_boosts_by(&self, user: UserId) -> bool {
        self.has(user) && self.without_boosts.binary_search(&user).is_err()
    }

    /// All authors and the reader.
    pub fn with(&self, reader: UserId) -> impl Iterator<Item = UserId> {
        let oneself = (!self.has(reader)).then_some(reader);
        self.users.iter().copied().chain(oneself)
    }
}
