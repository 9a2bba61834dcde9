//! Facts about deleted users.
//!
//! Deleting a user writes three rows, after which every read hides the user's posts, stories and relations. The other
//! rows are removed later, step by step. Until then the user is **erasing**. At most
//! [`ERASING_USERS_MAX`](crate::limits::ERASING_USERS_MAX) users are erasing at a time. While nobody is erasing, reads
//! look up no additional rows.
//!
//! Two things remain: the handle, which never gets another owner, and the id in posts of other users that mention or
//! reply to the user.
//!
//! **Invariant:** a deleted user gets no new rows, because no command finds the user.

use rows::{NameTable, PointTable, Rows, SetTable, Span, Table};

use crate::due::{Due, DueWork};
use crate::erase::ErasurePhase;
use crate::facts::{Facts, Txn, user_id};
use crate::ids::{PostId, StoryId, UserId, UserRef};
use crate::index;
use crate::relation::{RELATIONS, Relation};
use crate::users::{Counts, User};
use crate::whole;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Whether the user was deleted.
    #[must_use]
    pub fn is_deleted(&self, user: UserId) -> bool {
        self.rows.totals().users_deleted > 0
            && self.rows.member(SetTable::DeletedUsers, user.0.into(), 0).is_some()
    }

    /// Id of a user who is registered or deleted.
    #[must_use]
    pub fn resolve_with_deleted(&self, user: &UserRef) -> Option<UserId> {
        match user {
            UserRef::Id(user) => (user.0 < self.rows.totals().users).then_some(*user),
            UserRef::Handle(handle) => self.first_by_handle(handle),
        }
    }

    /// Whether the user is deleted but their posts and stories may still be stored, and must not be shown.
    #[must_use]
    pub fn is_being_erased(&self, author: UserId) -> bool {
        self.rows.totals().users_erasing > 0 && self.is_deleted(author)
    }

    /// Deleted users some of whose rows may be left, in ascending order.
    #[must_use]
    pub fn erasing(&self) -> Vec<UserId> {
        if self.rows.totals().users_erasing == 0 {
            return Vec::new();
        }
        let rows = self.rows.members(SetTable::ErasingUsers, 0, Span::ALL);
        rows.into_iter().filter_map(|(user, _)| user_id(user)).collect()
    }

    /// Whether rows of this deleted user may be left.
    #[must_use]
    pub fn has_rows_left(&self, user: UserId) -> bool {
        self.erasure_of(user).is_some()
    }

    /// Due work that removes the rows of a deleted user, if some may be left.
    #[must_use]
    pub fn erasure_of(&self, user: UserId) -> Option<Due> {
        let deleted_ms = self.rows.member(SetTable::ErasingUsers, 0, user.0.into())?;
        Some(DueWork::Erase { user }.at(deleted_ms))
    }

    /// Counts of a user, without deleted users; zero if the user does not exist.
    #[must_use]
    pub fn counts(&self, user: UserId) -> Counts {
        loop {
            let before = self.still_counted(user);
            let counts = self.stored_counts(user);
            // If rows were removed meanwhile, the two reads disagree, and the counts are read again. A read within the
            // microsecond between the change of a count and the removal of its row goes unnoticed.
            if self.still_counted(user) == before {
                return without(counts, before);
            }
        }
    }

    /// Counts of the relations of `user` to deleted users whose rows are not removed yet.
    fn still_counted(&self, user: UserId) -> Counts {
        let mut found = Counts::default();
        for deleted in self.erasing() {
            for (table, count) in RELATIONS.into_iter().flat_map(Relation::counts) {
                let row = self.rows.member(table, user.0.into(), deleted.0.into());
                *count(&mut found) += u32::from(row.is_some());
            }
        }
        found
    }

    /// Whether the user follows, or is followed by, a deleted user whose rows are left.
    #[must_use]
    pub fn follows_erasing(&self, user: UserId) -> bool {
        let erasing = self.erasing().into_iter();
        erasing.into_iter().any(|other| self.follows(other, user) || self.follows(user, other))
    }

    /// First items of the rows left of a deleted user, from `from` on: ids of posts, stories or users.
    #[must_use]
    pub fn items_in_phase(
        &self,
        user: UserId,
        phase: ErasurePhase,
        from: u64,
        limit: usize,
    ) -> Vec<u64> {
        phase.table().map_or_else(Vec::new, |table| self.items_of(user, table, from, limit))
    }

    /// First items of a user in a table, from `from` on.
    pub(crate) fn items_of(&self, user: UserId, table: Table, from: u64, limit: usize) -> Vec<u64> {
        match table {
            Table::Set(table) => {
                let span = Span { low: from, limit, ..Span::ALL };
                let rows = self.rows.members(table, user.0.into(), span);
                rows.into_iter().map(|(item, _)| item).collect()
            }
            Table::Name(NameTable::GrantOf) => self.grants_from(user, from, limit),
            Table::Name(table) => {
                let (owner, from) = (user.0.to_be_bytes(), from.to_be_bytes());
                let names = self.rows.names_under(table, &owner, &from, limit).into_iter();
                names.filter_map(|item| item.try_into().ok().map(u64::from_be_bytes)).collect()
            }
            Table::Point(_) => Vec::new(),
        }
    }
}

/// Subtracts `others` from the counts. Some of `others` may already be subtracted.
fn without(mut counts: Counts, mut others: Counts) -> Counts {
    for (_, count) in RELATIONS.into_iter().flat_map(Relation::counts) {
        let others = *count(&mut others);
        let count = count(&mut counts);
        *count = count.saturating_sub(others);
    }
    counts
}

impl Txn<'_> {
    /// Hides all data of a user, and empties the profile except the handle, which mentions need.
    pub fn delete_user(&mut self, id: UserId, user: User) {
        // These counts leave out relations to deleted users, which were subtracted when those users were deleted.
        let counts = self.facts().counts(id);
        // The total changes before the row of the deletion is written, because readers look for that row only if the
        // total is not 0.
        self.total(|totals| {
            totals.users_deleted += 1;
            totals.users_erasing += 1;
        });
        write::user(self.rows, id, &User::of(user.handle, user.registered));
        write::deleted(self.rows, id);
        self.remove_account(id);
        let erasure = self.facts().since_now(DueWork::Erase { user: id });
        write::erasing(self.rows, id, erasure);
        self.total(|totals| {
            totals.posts -= u64::from(counts.posts);
            totals.posts_closed = totals.posts_closed.saturating_sub(counts.closed.into());
            totals.follows -= u64::from(counts.following) + u64::from(counts.followers);
            totals.friendships -= u64::from(counts.friends);
            // This number changes after the rows, so a reader who sees the new number also finds everything hidden.
            totals.hidings += 1;
        });
        self.forget_disabled(id);
    }

    /// Removes the row of a mention of a deleted user.
    pub fn remove_mention(&mut self, user: UserId, post: u64) {
        index::of_mention(user, PostId(post), 0).remove(self.rows);
        if let Some(first) = self.facts().conversation_of(user, post) {
            index::set(self.rows, index::of_direct(user, (PostId(post), first)), false);
        }
    }

    /// Removes the rows of a view. The story still counts the view: see [`Story::views`](crate::stories::Story::views).
    pub fn remove_view(&mut self, user: UserId, story: u64) {
        index::set(self.rows, index::of_view(StoryId(story), user, 0), false);
    }

    /// Removes the last rows of a deleted user.
    pub(crate) fn finish_erasing(&mut self, user: UserId, erasure: Due) {
        self.rows.put_point(PointTable::Counts, user.0.into(), None);
        self.rows.put_point(PointTable::NoticeState, user.0.into(), None);
        self.rows.put_point(PointTable::Markers, user.0.into(), None);
        self.rows.put_member(SetTable::LockedUsers, user.0.into(), 0, None);
        self.remove_user_tags(user);
        for table in whole::tables_of_users() {
            self.rows.put_name(table, &user.0.to_be_bytes(), None);
        }
        self.rows.put_member(SetTable::ErasingUsers, 0, user.0.into(), None);
        self.put_due(erasure, None);
        self.total(|totals| totals.users_erasing -= 1);
    }
}
