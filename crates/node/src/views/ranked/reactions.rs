//! Active users: the last reactions of each, which are favourites and boosts of recent public posts, and the interest
//! group. A user who publishes is active too.
//!
//! When the table is full, a user who has not reacted for long is replaced: a hand passes over the users and takes the
//! first who has not reacted since it last passed. A first reaction does not count, so many new accounts with one
//! reaction each replace only each other.

use std::cmp::Reverse;

use feed::{PostId, UserId};
use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Number of reactions that are kept for each user.
pub(super) const REACTIONS_MAX: usize = 16;
/// Maximum size of a user in the table in bytes, with the entry of the hash table.
pub(super) const USER_BYTES_MAX: usize = size_of::<OfUser>() + 24;
const _: () = assert!(USER_BYTES_MAX <= 200);

/// An interest group, named after one of its users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Group(pub(super) UserId);

/// An active user.
struct OfUser {
    user: UserId,
    /// Group of the user: a new user is alone in a group.
    group: Group,
    /// Number of other users in the group that is named after this user.
    others: u32,
    /// Number of used places, and the place of the next reaction.
    len: u8,
    next: u8,
    /// Whether the user has reacted since the hand passed.
    is_active: bool,
    posts: [PostId; REACTIONS_MAX],
}

/// Table of the active users.
pub(super) struct Reactions {
    places: HashMap<UserId, u32>,
    users: Vec<OfUser>,
    hand: usize,
    max: usize,
}

impl Reactions {
    pub(super) fn new(max: usize) -> Self {
        Self { places: HashMap::new(), users: Vec::new(), hand: 0, max }
    }

    /// Adds a reaction, unless it is among the user's.
    pub(super) fn add(&mut self, user: UserId, post: PostId) {
        let Some(place) = self.place(user) else { return };
        let Some(of) = self.users.get_mut(place) else { return };
        of.is_active = of.len > 0;
        if of.posts.iter().take(of.len.into()).any(|known| *known == post) {
            return;
        }
        if let Some(next) = of.posts.get_mut(usize::from(of.next)) {
            *next = post;
        }
        of.next = (of.next + 1) % REACTIONS_MAX as u8;
        of.len = (of.len + 1).min(REACTIONS_MAX as u8);
    }

    /// Removes a reaction. The order of the others stays.
    pub(super) fn remove(&mut self, user: UserId, post: PostId) {
        let kept: Vec<_> = self.of(user).filter(|other| *other != post).collect();
        let place = self.places.get(&user).copied();
        if let Some(of) = place.and_then(|place| self.users.get_mut(place as usize)) {
            (of.len, of.next) = (kept.len() as u8, kept.len() as u8 % REACTIONS_MAX as u8);
            for (to, from) in of.posts.iter_mut().zip(kept.into_iter().rev()) {
                *to = from;
            }
        }
    }

    /// Posts to which a user reacted, the last one first.
    pub(super) fn of(&self, user: UserId) -> impl Iterator<Item = PostId> {
        let place = self.places.get(&user).copied();
        let of = place.and_then(|place| self.users.get(place as usize));
        of.into_iter().flat_map(|of| {
            let back = |n: usize| (usize::from(of.next) + REACTIONS_MAX - 1 - n) % REACTIONS_MAX;
            (0..usize::from(of.len)).filter_map(move |n| of.posts.get(back(n)).copied())
        })
    }

    /// Adds a user who publishes.
    pub(super) fn add_author(&mut self, user: UserId) {
        self.place(user);
    }

    /// Group of an active user, unless the user is alone in it.
    pub(super) fn group(&self, user: UserId) -> Option<Group> {
        let of = self.users.get(*self.places.get(&user)? as usize)?;
        Some(of.group).filter(|group| *group != Group(user) || of.others > 0)
    }

    /// Moves a user to a group; returns false if the user is in it already.
    pub(super) fn set_group(&mut self, user: UserId, group: Group) -> bool {
        let place = self.places.get(&user).copied();
        let Some(of) = place.and_then(|place| self.users.get_mut(place as usize)) else {
            return false;
        };
        let old = std::mem::replace(&mut of.group, group);
        self.count(user, old, |others| *others = others.saturating_sub(1));
        self.count(user, group, |others| *others += 1);
        old != group
    }

    /// Changes the number of others in a group, unless it is named after the user or after one who is not in the table.
    fn count(&mut self, user: UserId, Group(named): Group, change: impl FnOnce(&mut u32)) {
        let place = self.places.get(&named).copied().filter(|_| named != user);
        if let Some(of) = place.and_then(|place| self.users.get_mut(place as usize)) {
            change(&mut of.others);
        }
    }

    /// User at a place of the table, for passes over all users.
    pub(super) fn at(&self, place: usize) -> Option<UserId> {
        self.users.get(place).map(|of| of.user)
    }

    /// Groups of these users with their numbers of users, the largest number first. A user who occurs again counts
    /// again.
    pub(super) fn groups(&self, users: impl Iterator<Item = UserId>) -> Vec<(Group, u32)> {
        let mut votes = HashMap::<Group, u32>::new();
        for user in users {
            let place = self.places.get(&user).copied();
            if let Some(of) = place.and_then(|place| self.users.get(place as usize)) {
                *votes.entry(of.group).or_default() += 1;
            }
        }
        let mut votes: Vec<_> = votes.into_iter().collect();
        votes.sort_unstable_by_key(|(group, votes)| (Reverse(*votes), *group));
        votes
    }

    /// Group that a user joins: that of most of the neighbors. Among groups with equally many, the user stays in the
    /// present one, or joins any, which differs by user: with the same one for all, one group would take over the
    /// others.
    pub(super) fn joined(
        &self,
        user: UserId,
        neighbors: impl Iterator<Item = UserId>,
    ) -> Option<Group> {
        let place = self.places.get(&user).copied()?;
        let present = self.users.get(place as usize)?.group;
        let groups = self.groups(neighbors);
        let (_, most) = groups.first().copied()?;
        if groups.contains(&(present, most)) {
            return Some(present);
        }
        let best = groups.into_iter().take_while(|(_, votes)| *votes == most);
        let order = |group: Group| xxh3_64_with_seed(&group.0.0.to_le_bytes(), user.0.into());
        best.map(|(group, _)| group).min_by_key(|group| order(*group))
    }

    /// Place of a user, who is added if necessary; `None` if the table has no places.
    fn place(&mut self, user: UserId) -> Option<usize> {
        if let Some(place) = self.places.get(&user) {
            return Some(*place as usize);
        }
        let posts = [PostId(0); REACTIONS_MAX];
        let group = Group(user);
        let new = OfUser { user, group, others: 0, len: 0, next: 0, is_active: false, posts };
        let place = if self.users.len() < self.max {
            if self.users.capacity() == 0 {
                self.users.reserve_exact(self.max);
            }
            self.users.push(new);
            self.users.len() - 1
        } else {
            let place = self.inactive()?;
            let old = std::mem::replace(self.users.get_mut(place)?, new);
            self.places.remove(&old.user);
            self.count(old.user, old.group, |others| *others = others.saturating_sub(1));
            place
        };
        self.places.insert(user, place as u32);
        Some(place)
    }

    /// Next place whose user has not reacted since the hand passed.
    fn inactive(&mut self) -> Option<usize> {
        // After one round, all users are marked as inactive.
        for _ in 0..=self.users.len() {
            let place = self.hand;
            self.hand = (self.hand + 1) % self.users.len().max(1);
            let of = self.users.get_mut(place)?;
            if !std::mem::take(&mut of.is_active) {
                return Some(place);
            }
        }
        None
    }
}
