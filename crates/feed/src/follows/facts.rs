//! Facts about follows, requests and friends, which are relations, and about the options of follows.
//!
//! **Invariant:** two users of whom one blocks the other have no follow, follow request or friendship.

use rows::{PointTable, Rows, SetTable, Span};

use crate::facts::{Facts, Txn, adjust_count, user_id};
use crate::follows::HomeAuthors;
use crate::follows::follow_options::FollowOptions;
use crate::ids::UserId;
use crate::relation::{FOLLOWS, FRIENDS, REQUESTS};
use crate::whole::FOLLOW_OPTIONS;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Whether `user` follows `other`.
    #[must_use]
    pub fn follows(&self, user: UserId, other: UserId) -> bool {
        self.related(&FOLLOWS, user, other).is_some()
    }

    /// All users followed by `user`, in ascending order of ids.
    #[must_use]
    pub fn following_all(&self, user: UserId) -> Vec<UserId> {
        self.users_in(SetTable::Following, user, Span::ALL)
    }

    /// Users related to `user` in `table` (following, followers or friends) within `span` of ids.
    #[must_use]
    pub fn users_in(&self, table: SetTable, user: UserId, span: Span) -> Vec<UserId> {
        // Read before the rows, so that a user whose removal ends meanwhile is not shown.
        let erasing = self.erasing();
        let wider = Span { limit: span.limit.saturating_add(erasing.len()), ..span };
        let rows = self.rows.members(table, user.0.into(), wider);
        let users = rows.into_iter().filter_map(|(item, _)| user_id(item));
        users.filter(|other| !erasing.contains(other)).take(span.limit).collect()
    }

    /// Whether the two users are friends.
    #[must_use]
    pub fn are_friends(&self, user: UserId, other: UserId) -> bool {
        self.related(&FRIENDS, user, other).is_some()
    }

    /// All friends of `user`, in ascending order of ids.
    #[must_use]
    pub fn friends_all(&self, user: UserId) -> Vec<UserId> {
        self.users_in(SetTable::Friends, user, Span::ALL)
    }

    /// Whether `user` has any row in `table`.
    pub(crate) fn has_users_in(&self, table: SetTable, user: UserId) -> bool {
        let one = Span { limit: 1, ..Span::ALL };
        !self.rows.members(table, user.0.into(), one).is_empty()
    }

    /// Whether others must ask the user before they follow.
    #[must_use]
    pub fn is_locked(&self, user: UserId) -> bool {
        self.rows.member(SetTable::LockedUsers, user.0.into(), 0).is_some()
    }

    /// Whether `user` has asked to follow `other`.
    #[must_use]
    pub fn requests(&self, user: UserId, other: UserId) -> bool {
        self.related(&REQUESTS, user, other).is_some()
    }

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
    /// Locks or unlocks a user. Follow requests are left unchanged.
    pub(crate) fn lock(&mut self, user: UserId, locked: bool) {
        write::locked(self.rows, user, locked);
    }

    /// Removes the options of a follow or follow request that has ended.
    pub(crate) fn forget_follow_options(&mut self, user: UserId, other: UserId) {
        let mut all = self.facts().all_follow_options(user);
        if let Ok(at) = all.binary_search_by_key(&other, |found| found.other) {
            all.remove(at);
            self.put_whole(&FOLLOW_OPTIONS, user, &all);
        }
    }

    /// Stores and counts new follows of `others` by `user`.
    pub fn put_follows(&mut self, user: UserId, others: &[UserId]) {
        let owners: Vec<u64> = others.iter().map(|other| u64::from(other.0)).collect();
        for owner in &owners {
            self.rows.put_member(SetTable::Following, user.0.into(), *owner, Some(0));
        }
        self.rows.put_member_of_many(SetTable::Followers, &owners, user.0.into(), Some(0));
        let counts = others.iter().map(|other| {
            let mut counts = self.facts().stored_counts(*other);
            adjust_count(&mut counts.followers, true);
            (u64::from(other.0), Some(counts.encode()))
        });
        let counts = counts.collect();
        self.rows.put_points(PointTable::Counts, counts);
        self.count(user, |counts| counts.following += others.len() as u32);
        self.total(|totals| totals.follows += others.len() as u64);
    }
}
