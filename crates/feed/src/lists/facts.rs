//! Facts about lists.
//!
//! **Invariant:** a member has a row of the list and a row of the pair of owner and member, by which an unfollow finds
//! the lists to leave. The owner follows every member.

use rows::{NameTable, Rows, decode};

use crate::facts::{Facts, Txn};
use crate::ids::UserId;
use crate::index;
use crate::limits::{LIST_MEMBERS_MAX, LISTS_MAX};
use crate::lists::{List, ListId};
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// List of `user` with this id.
    #[must_use]
    pub fn list(&self, user: UserId, list: ListId) -> Option<List> {
        self.rows.name(NameTable::List, &write::list_key(user, list)).map(|row| decode(&row))
    }

    /// Lists of `user`, oldest first.
    #[must_use]
    pub fn lists(&self, user: UserId) -> Vec<ListId> {
        self.lists_from(user, ListId(0), LISTS_MAX)
    }

    /// Lists of `user` from `from` on, oldest first: at most `limit`.
    pub(crate) fn lists_from(&self, user: UserId, from: ListId, limit: usize) -> Vec<ListId> {
        let (owner, from) = (user.0.to_be_bytes(), from.0.to_be_bytes());
        let lists = self.rows.names_under(NameTable::List, &owner, &from, limit);
        lists.iter().filter_map(|list| read_list(list)).collect()
    }

    /// Lists of `user` with the member `other`, oldest first.
    #[must_use]
    pub fn lists_with(&self, user: UserId, other: UserId) -> Vec<ListId> {
        let pair = [user.0.to_be_bytes(), other.0.to_be_bytes()].concat();
        let lists = self.rows.names_under(NameTable::ListedUser, &pair, &[], LISTS_MAX);
        lists.iter().filter_map(|list| read_list(list)).collect()
    }

    /// Members of a list of `user` from `from` on, in ascending order of ids: at most `limit`. Some may have just been
    /// deleted.
    #[must_use]
    pub fn list_members_from(
        &self,
        user: UserId,
        list: ListId,
        from: UserId,
        limit: usize,
    ) -> Vec<UserId> {
        let (list, from) = (write::list_key(user, list), from.0.to_be_bytes());
        let members = self.rows.names_under(NameTable::ListMember, &list, &from, limit);
        let ids = members.iter().filter_map(|id| Some(u32::from_be_bytes(*id.first_chunk()?)));
        ids.map(UserId).collect()
    }

    /// All members of a list of `user`, in ascending order of ids.
    #[must_use]
    pub fn list_members(&self, user: UserId, list: ListId) -> Vec<UserId> {
        self.list_members_from(user, list, UserId(0), LIST_MEMBERS_MAX)
    }

    /// Whether `other` is a member of a list of `user`.
    #[must_use]
    pub fn is_list_member(&self, user: UserId, list: ListId, other: UserId) -> bool {
        let [of_list, _] = index::of_list_member(user, list, other);
        of_list.is_at(self.rows)
    }
}

fn read_list(id: &[u8]) -> Option<ListId> {
    Some(ListId(u64::from_be_bytes(id.try_into().ok()?)))
}

impl Txn<'_> {
    /// Stores a list without its members, or removes it.
    pub(crate) fn put_list(&mut self, user: UserId, id: ListId, list: Option<&List>) {
        write::list(self.rows, user, id, list);
    }

    /// Adds a member to a list, or removes it.
    pub(crate) fn put_list_member(
        &mut self,
        user: UserId,
        list: ListId,
        other: UserId,
        is_member: bool,
    ) {
        write::list_member(self.rows, user, list, other, is_member);
    }

    /// Removes `other` from all lists of `user`, who no longer follows them. Returns the number of lists.
    pub(crate) fn leave_lists(&mut self, user: UserId, other: UserId) -> usize {
        let lists = self.facts().lists_with(user, other);
        for list in &lists {
            self.put_list_member(user, *list, other, false);
        }
        lists.len()
    }

    /// Removes lists of a deleted user with their members, from `from` on: about `rows_max` rows.
    pub(crate) fn erase_lists(&mut self, user: UserId, from: ListId, rows_max: usize) {
        let mut rows_left = rows_max;
        for list in self.facts().lists_from(user, from, LISTS_MAX) {
            let limit = rows_left.saturating_sub(1) / 2;
            let members = self.facts().list_members_from(user, list, UserId(0), limit);
            for member in &members {
                self.put_list_member(user, list, *member, false);
            }
            rows_left -= 2 * members.len();
            if members.len() >= limit {
                return;
            }
            self.put_list(user, list, None);
            rows_left -= 1;
        }
    }
}
