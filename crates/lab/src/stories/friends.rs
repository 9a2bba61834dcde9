//! Friendships.

/// Users and their friends. Users have numbers from 0, and form a ring. The friends of a user are the nearest users in
/// the ring, the same number for all.
#[derive(Clone, Copy)]
pub(super) struct Friends {
    pub(super) users: u32,
    /// Number of friends of each user, rounded up to an even number; less than the number of users.
    pub(super) friends: u32,
}

impl Friends {
    /// Friends of a user: half of them precede the user in the ring, half follow.
    pub(super) fn of(self, user: u32) -> impl Iterator<Item = u32> {
        let Self { users, friends } = self;
        (1..=friends.div_ceil(2))
            .flat_map(move |step| [(user + step) % users, (user + users - step) % users])
    }
}
