//! Typed records over rows: reads of any implementation of [`Rows`], and changes by the writer.

use rows::{PointTable, Rows, RowsMut, Stamp, Totals};

use crate::ids::UserId;
pub use crate::tags::UserTag;
use crate::users::Counts;
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

    /// Stored counts of a user; zero if the user does not exist. They include deleted users whose rows are not removed
    /// yet: see [`Facts::counts`].
    #[must_use]
    pub fn stored_counts(&self, user: UserId) -> Counts {
        let row = self.rows.point(PointTable::Counts, u64::from(user.0));
        row.map_or_else(Counts::default, |row| Counts::decode(&row))
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

    /// Changes a user's counts.
    pub fn count(&mut self, user: UserId, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.facts().stored_counts(user);
        change(&mut counts);
        write::counts(self.rows, user, counts);
    }

    /// Changes the totals.
    pub fn total(&mut self, change: impl FnOnce(&mut Totals)) {
        let mut totals = self.rows.totals();
        change(&mut totals);
        self.rows.put_totals(totals);
    }
}

pub(crate) fn user_id(number: u64) -> Option<UserId> {
    u32::try_from(number).ok().map(UserId)
}

/// Adds one to a count of rows, or subtracts one.
///
/// # Panics
/// If the count would overflow. Limits keep it below the maximum, so an overflow means that the count is wrong.
pub(crate) fn adjust_count<N: Copy + Into<u64> + TryFrom<u64>>(count: &mut N, up: bool) {
    let before: u64 = (*count).into();
    let next = if up { before.checked_add(1) } else { before.checked_sub(1) };
    let Some(next) = next.and_then(|next| N::try_from(next).ok()) else {
        unreachable!("a count of {before} is the number of rows")
    };
    *count = next;
}
