//! The users whose posts a reader has at home.

use crate::ids::UserId;

/// The users whose posts a reader has at home, without the reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HomeAuthors {
    /// Those whom the reader follows and does not mute, in ascending order of ids.
    pub users: Box<[UserId]>,
    /// Users whose boosts the reader does not have at home, in ascending order of ids. Some may be muted.
    pub without_boosts: Box<[UserId]>,
}

impl HomeAuthors {
    /// Users with all their boosts, in ascending order of ids.
    #[must_use]
    pub fn of(users: Vec<UserId>) -> Self {
        Self { users: users.into(), without_boosts: Box::default() }
    }

    /// Whether posts by this user are at home.
    #[must_use]
    pub fn has(&self, user: UserId) -> bool {
        self.users.binary_search(&user).is_ok()
    }

    /// Whether boosts by this user are at home.
    #[must_use]
    pub fn has_boosts_by(&self, user: UserId) -> bool {
        self.has(user) && self.without_boosts.binary_search(&user).is_err()
    }

    /// All of them, and the reader.
    pub fn with(&self, reader: UserId) -> impl Iterator<Item = UserId> {
        let oneself = (!self.has(reader)).then_some(reader);
        self.users.iter().copied().chain(oneself)
    }
}
