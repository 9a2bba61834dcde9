//! Facts about the options of follows: see [`crate::follow_options`].

use rows::Rows;

use super::whole::FOLLOW_OPTIONS;
use super::{Facts, Txn};
use crate::follow_options::FollowOptions;
use crate::home_authors::HomeAuthors;
use crate::ids::UserId;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Options of a follow or follow request.
    #[must_use]
    pub fn follow_options(&self, user: UserId, other: UserId) -> FollowOptions {
        let all = self.all_follow_options(user);
        let at = all.binary_search_by_key(&other, |found| found.other);
        at.ok().and_then(|at| all.get(at)).map_or_else(FollowOptions::default, |it| it.options)
    }

    /// Whether posts by any followed user notify the user.
    #[must_use]
    pub fn wants_posts(&self, user: UserId) -> bool {
        self.all_follow_options(user).iter().any(|found| found.options.notified_since.is_some())
    }

    /// Users whose boosts a user hides, in ascending order of ids.
    #[must_use]
    pub fn without_boosts(&self, user: UserId) -> Vec<UserId> {
        let all = self.all_follow_options(user).into_iter();
        all.filter(|found| found.options.hides_boosts).map(|found| found.other).collect()
    }

    /// Authors of the posts in the home timeline of `user`. Blocked users are never followed.
    #[must_use]
    pub fn home_authors(&self, user: UserId) -> HomeAuthors {
        let users = self.without_unwanted(user, self.following_all(user));
        // Without follows, no boosts are hidden.
        let without_boosts = if users.is_empty() { Vec::new() } else { self.without_boosts(user) };
        HomeAuthors { users: users.into(), without_boosts: without_boosts.into() }
    }
}

impl Txn<'_> {
    /// Removes the options of a follow or follow request that has ended.
    pub(crate) fn forget_follow_options(&mut self, user: UserId, other: UserId) {
        let mut all = self.facts().all_follow_options(user);
        if let Ok(at) = all.binary_search_by_key(&other, |found| found.other) {
            all.remove(at);
            self.put_whole(&FOLLOW_OPTIONS, user, &all);
        }
    }
}
