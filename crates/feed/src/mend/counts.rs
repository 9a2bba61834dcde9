//! Checks counts of users, and totals.

use rows::{PointTable, RowsMut, Scan, SetTable, Span, Stamp};

use super::{From, Mend, Rows};
use crate::ids::UserId;
use crate::posts::Listed;
use crate::relation::{CountOf, RELATIONS, Relation, Total};
use crate::users::Counts;

/// Users of one step.
const STEP_USERS: u64 = 64;
/// Rows counted per read.
const PIECE: usize = 1 << 16;

impl Mend {
    pub(crate) fn count_users<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        from: u64,
    ) -> Option<From> {
        let users = u64::from(step.rows.totals().users);
        let end = users.min(from + STEP_USERS);
        for user in from..end {
            let id = UserId(user as u32);
            // Counts of deleted users are not shown, and are removed last.
            if step.is_deleted(id) {
                for (relation, total) in RELATIONS.into_iter().zip(&mut self.counted.related) {
                    if matches!(relation.total(), Total::Rows(_)) {
                        *total += u64::from(step.count(relation.forward, user));
                    }
                }
                continue;
            }
            let mut counted = Counts {
                posts: step.count(SetTable::AuthorPosts, user),
                closed: step.count_of(SetTable::AuthorPosts, user, |number| {
                    !Listed::of_number(number).visibility().is_open()
                }),
                ..Counts::default()
            };
            for (table, count) in RELATIONS.into_iter().flat_map(Relation::counts) {
                *count(&mut counted) = step.count(table, user);
            }
            let stored = step.facts().stored_counts(id);
            if stored != counted {
                step.missing(user, stored, counted);
                step.put(PointTable::Counts, user, Some(counted.encode()));
            }
            self.counted.posts += u64::from(counted.posts);
            self.counted.closed += u64::from(counted.closed);
            let mut shown = step.facts().counts(id);
            for (relation, total) in RELATIONS.into_iter().zip(&mut self.counted.related) {
                let of =
                    if let Total::Rows(_) = relation.total() { &mut counted } else { &mut shown };
                *total += u64::from(*relation.count(of));
            }
        }
        (end < users).then(|| From { place: (end, 0), ..From::default() })
    }

    pub(crate) fn totals<R: Scan + RowsMut>(&mut self, step: &mut Rows<'_, R>) -> Option<From> {
        let stored = step.rows.totals();
        let mut totals = stored;
        (totals.posts, totals.posts_closed) = (self.counted.posts, self.counted.closed);
        for (relation, counted) in RELATIONS.into_iter().zip(self.counted.related) {
            if let Total::Shown(total) | Total::Rows(total) = relation.total() {
                *total(&mut totals) = if relation.is_mutual() { counted / 2 } else { counted };
            }
        }
        totals.stories = self.counted.stories;
        (totals.users_deleted, totals.users_erasing) = (self.counted.deleted, self.counted.erasing);
        [totals.accounts, totals.accounts_disabled, totals.accounts_pending, totals.apps_unused] =
            self.accounts.totals();
        if self.counted.last_stamp > 0 {
            totals.last_stamp = stored.last_stamp.max(Some(Stamp(self.counted.last_stamp)));
        }
        if totals != stored {
            step.derived(format!("totals: {stored:?} instead of {totals:?}"));
            step.rows.put_totals(totals);
        }
        None
    }
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Reports wrong counts. If a stored count is greater than the number of rows, relations have lost the rows of both
    /// users.
    fn missing(&mut self, user: u64, mut stored: Counts, mut counted: Counts) {
        let mut is_lost = false;
        let related = RELATIONS.into_iter().flat_map(Relation::counts);
        let posts: (SetTable, CountOf) = (SetTable::AuthorPosts, |counts| &mut counts.posts);
        for (table, count) in related.chain([posts]) {
            let (stored, counted) = (*count(&mut stored), *count(&mut counted));
            if counted < stored {
                let what = table.words().first().unwrap_or(&"");
                self.lost(format!("{} of {stored} {what} {user}", stored - counted));
                is_lost = true;
            }
        }
        if !is_lost {
            self.derived(format!("counts of user {user}: {stored:?} instead of {counted:?}"));
        }
    }

    fn count(&self, table: SetTable, owner: u64) -> u32 {
        self.count_of(table, owner, |_| true)
    }

    /// Number of items whose numbers match `is_counted`.
    fn count_of(&self, table: SetTable, owner: u64, is_counted: impl Fn(u64) -> bool) -> u32 {
        let (mut count, mut rest) = (0, Some(Span { limit: PIECE, ..Span::ALL }));
        while let Some(span) = rest {
            let found = self.rows.members(table, owner, span);
            count += found.iter().filter(|(_, number)| is_counted(*number)).count() as u32;
            let last = found.last().filter(|_| found.len() == PIECE);
            rest = last.and_then(|(last, _)| span.beyond(*last, PIECE));
        }
        count
    }
}
