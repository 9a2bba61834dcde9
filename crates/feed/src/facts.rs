//! Typed records over rows: reads of any implementation of [`Rows`], and changes by the writer.

use rows::{NameTable, PointTable, Rows, RowsMut, SetTable, Stamp, Totals, decode};

use crate::handle::Handle;
use crate::ids::{UserId, UserRef};
use crate::posts::Visibility;
pub use crate::tags::UserTag;
use crate::users::{Counts, User};
use crate::write;

/// Typed reads of the facts. Usable from any thread.
pub struct Facts<'a, R: Rows + ?Sized = dyn Rows + 'a> {
    pub(crate) rows: &'a R,
}

impl<R: Rows + ?Sized> Clone for Facts<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Rows + ?Sized> Copy for Facts<'_, R> {}

impl<'a, R: Rows + ?Sized> Facts<'a, R> {
    /// Creates typed reads of `rows`.
    pub fn new(rows: &'a R) -> Self {
        Self { rows }
    }

    /// Server-wide counts, and the last stamp.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.rows.totals()
    }

    /// Whether the user is registered and not deleted. User ids are dense, so this reads a row only if users were
    /// deleted.
    #[must_use]
    pub fn exists(&self, user: UserId) -> bool {
        user.0 < self.rows.totals().users && !self.is_deleted(user)
    }

    /// Profile of a user.
    #[must_use]
    pub fn user(&self, user: UserId) -> Option<User> {
        self.stored_user(user).filter(|_| !self.is_deleted(user))
    }

    /// Profile of a user who may be deleted, in which case only the handle and the time of registration are left.
    #[must_use]
    pub fn stored_user(&self, user: UserId) -> Option<User> {
        self.rows.point(PointTable::User, u64::from(user.0)).map(|row| decode::<User>(&row))
    }

    /// Calls `each` with every user, including deleted ones, in the order of ids. Reads all of them in one scan.
    pub fn each_stored_user(&self, mut each: impl FnMut(UserId, User)) {
        self.rows.each_point(PointTable::User, &mut |id, row| {
            user_id(id).into_iter().for_each(|id| each(id, decode::<User>(row)));
        });
    }

    /// Users with ids smaller than `before`, including deleted ones, greatest id first: at most `limit`.
    #[must_use]
    pub fn users_before(&self, before: UserId, limit: usize) -> Vec<(UserId, User)> {
        let mut users = Vec::new();
        self.rows.points_below(PointTable::User, before.0.into(), limit, &mut |id, row| {
            users.extend(user_id(id).map(|id| (id, decode::<User>(row))));
        });
        users
    }

    /// Stored counts of a user; zero if the user does not exist. They include deleted users whose rows are not removed
    /// yet: see [`Facts::counts`].
    #[must_use]
    pub fn stored_counts(&self, user: UserId) -> Counts {
        let row = self.rows.point(PointTable::Counts, u64::from(user.0));
        row.map_or_else(Counts::default, |row| Counts::decode(&row))
    }

    /// User with this handle.
    #[must_use]
    pub fn by_handle(&self, handle: &Handle) -> Option<UserId> {
        self.first_by_handle(handle).filter(|user| !self.is_deleted(*user))
    }

    /// User who registered this handle, possibly deleted: a handle never gets another owner.
    #[must_use]
    pub fn first_by_handle(&self, handle: &Handle) -> Option<UserId> {
        self.rows.name(NameTable::Handle, handle.as_str().as_bytes()).map(|row| decode(&row))
    }

    /// Id of a user, if registered and not deleted.
    #[must_use]
    pub fn resolve(&self, user: &UserRef) -> Option<UserId> {
        match user {
            UserRef::Id(user) => self.exists(*user).then_some(*user),
            UserRef::Handle(handle) => self.by_handle(handle),
        }
    }
}

/// The writer's transaction on the facts: the reads of [`Facts`], and changes.
pub struct Txn<'a> {
    pub(crate) rows: &'a mut dyn RowsMut,
    work: usize,
}

impl<'a> Txn<'a> {
    /// Creates a transaction on `rows`.
    pub fn new(rows: &'a mut dyn RowsMut) -> Self {
        Self { rows, work: 0 }
    }

    /// Work added with `add_work` so far, in units of [`Cost::work`](rows::Cost::work).
    #[must_use]
    pub fn work(&self) -> usize {
        self.work
    }

    /// Adds work in addition to changed rows.
    pub(crate) fn add_work(&mut self, work: usize) {
        self.work += work;
    }

    /// Current facts, including earlier changes of this transaction.
    #[must_use]
    pub fn facts(&self) -> Facts<'_, dyn RowsMut + 'a> {
        Facts::new(&*self.rows)
    }

    /// Records the use of a stamp.
    pub(crate) fn advance(&mut self, stamp: Stamp) {
        rows::advance(self.rows, stamp, 1);
    }

    /// Writes a user's profile.
    pub fn put_user(&mut self, id: UserId, user: &User) {
        write::user(self.rows, id, user);
    }

    /// Assigns a handle to a user.
    pub fn put_handle(&mut self, handle: &Handle, id: UserId) {
        write::handle(self.rows, handle, id);
    }

    /// Changes a user's counts.
    pub fn count(&mut self, user: UserId, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.facts().stored_counts(user);
        change(&mut counts);
        write::counts(self.rows, user, counts);
    }

    /// Counts or uncounts a post of an author.
    pub(crate) fn count_post(&mut self, author: UserId, visibility: Visibility, up: bool) {
        let is_closed = !visibility.is_open();
        self.count(author, |counts| {
            step(&mut counts.posts, up);
            if is_closed {
                step(&mut counts.closed, up);
            }
        });
        self.total(|totals| {
            step_total(&mut totals.posts, up);
            if is_closed {
                step_total(&mut totals.posts_closed, up);
            }
        });
    }

    /// Changes the totals.
    pub fn total(&mut self, change: impl FnOnce(&mut Totals)) {
        let mut totals = self.rows.totals();
        change(&mut totals);
        self.rows.put_totals(totals);
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
            step(&mut counts.followers, true);
            (u64::from(other.0), Some(counts.encode()))
        });
        let counts = counts.collect();
        self.rows.put_points(PointTable::Counts, counts);
        self.count(user, |counts| counts.following += others.len() as u32);
        self.total(|totals| totals.follows += others.len() as u64);
    }
}

pub(crate) fn user_id(number: u64) -> Option<UserId> {
    u32::try_from(number).ok().map(UserId)
}

/// Adds one to a count of rows, or subtracts one.
///
/// # Panics
/// If the count would overflow. Limits keep it below the maximum, so count and rows differ then.
pub(crate) fn step(count: &mut u32, up: bool) {
    let next = if up { count.checked_add(1) } else { count.checked_sub(1) };
    let Some(next) = next else { unreachable!("a count of {count} is the number of rows") };
    *count = next;
}

/// Adds one to a server-wide count of rows, or subtracts one: see [`step`].
pub(crate) fn step_total(total: &mut u64, up: bool) {
    let next = if up { total.checked_add(1) } else { total.checked_sub(1) };
    let Some(next) = next else { unreachable!("a total of {total} is the number of rows") };
    *total = next;
}
