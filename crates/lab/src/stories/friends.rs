//! Who are friends.

/// Users by number, from 0. Everybody has the same number of friends: those nearest in a ring.
#[derive(Clone, Copy)]
pub(super) struct Friends {
    pub(super) users: u32,
    /// Friends of each user, rounded up to an even number; less than the number of users.
    pub(super) friends: u32,
}

impl Friends {
    /// The friends of a user, half of them before and half after.
    pub(super) fn of(self, user: u32) -> impl Iterator<Item = u32> {
        let Self { users, friends } = self;
        (1..=friends.div_ceil(2))
            .flat_map(move |step| [(user + step) % users, (user + users - step) % users])
    }
}
