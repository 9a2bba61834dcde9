//! Counts of users, and the totals.

use rows::{PointTable, RowsMut, Scan, SetTable, Span, Stamp};

use super::{From, Mend, Rows};
use crate::ids::UserId;
use crate::post::Listed;
use crate::records::Counts;

/// Users of one step.
const STEP_USERS: u64 = 64;
/// Rows that are counted at a time.
const PIECE: usize = 1 << 16;

impl Mend {
    pub(super) fn count_users<R: Scan + RowsMut>(
        &mut self,
        step: &mut Rows<'_, R>,
        from: u64,
    ) -> Option<From> {
        let users = u64::from(step.rows.totals().users);
        let end = users.min(from + STEP_USERS);
        for user in from..end {
            let id = UserId(user as u32);
            // Counts of deleted users are not shown, and are removed with the last row.
            if step.is_deleted(id) {
                continue;
            }
            let counted = Counts {
                posts: step.count(SetTable::AuthorPosts, user),
                followers: step.count(SetTable::Followers, user),
                following: step.count(SetTable::Following, user),
                friends: step.count(SetTable::Friends, user),
                blocks: step.count(SetTable::Blocks, user),
                mutes: step.count(SetTable::Mutes, user),
                notes: step.count(SetTable::Notes, user),
                requests: step.count(SetTable::FollowRequests, user),
                requested: step.count(SetTable::Requested, user),
                closed: step.count_of(SetTable::AuthorPosts, user, |number| {
                    !Listed::of_number(number).visibility().is_open()
                }),
            };
            let stored = step.facts().stored_counts(id);
            if stored != counted {
                step.missing(user, stored, counted);
                step.put(PointTable::Counts, user, Some(counted.encode()));
            }
            let shown = step.facts().counts(id);
            self.counted.posts += u64::from(shown.posts);
            self.counted.closed += u64::from(shown.closed);
            self.counted.follows += u64::from(shown.following);
            self.counted.friendships += u64::from(shown.friends);
        }
        (end < users).then(|| From { place: (end, 0), ..From::default() })
    }

    pub(super) fn totals<R: Scan + RowsMut>(&mut self, step: &mut Rows<'_, R>) -> Option<From> {
        let stored = step.rows.totals();
        let mut totals = stored;
        (totals.posts, totals.posts_closed) = (self.counted.posts, self.counted.closed);
        totals.follows = self.counted.follows;
        totals.friendships = self.counted.friendships / 2;
        totals.stories = self.counted.stories;
        (totals.blocks, totals.mutes) = (self.counted.blocks, self.counted.mutes);
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
    /// Reports stored counts that differ: where they are greater, rows were lost that no other row has.
    fn missing(&mut self, user: u64, stored: Counts, counted: Counts) {
        let mut is_lost = false;
        for (what, stored, counted) in [
            ("posts", stored.posts, counted.posts),
            ("followers", stored.followers, counted.followers),
            ("follows", stored.following, counted.following),
            ("friends", stored.friends, counted.friends),
            ("blocks", stored.blocks, counted.blocks),
            ("mutes", stored.mutes, counted.mutes),
            ("notes", stored.notes, counted.notes),
            ("requests to follow", stored.requests, counted.requests),
            ("own requests", stored.requested, counted.requested),
        ] {
            if counted < stored {
                self.lost(format!("user {user}: {} of {stored} {what}", stored - counted));
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

    /// Number of items whose numbers are counted.
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
