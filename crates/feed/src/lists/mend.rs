//! Checks lists: both rows of a member agree, the list exists, and its owner follows the member. Runs after the check
//! of follows.

use rows::{NameTable, RowsMut, Scan};

use crate::ids::UserId;
use crate::index;
use crate::lists::ListId;
use crate::mend::Rows;

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Checks a list, whose owner must exist.
    pub(crate) fn list(&mut self, name: &[u8]) {
        let owner = name.first_chunk().map(|owner| u32::from_be_bytes(*owner));
        let owner = owner.and_then(|owner| self.user(owner.into()));
        if name.len() != 12 || owner.is_none_or(|owner| self.is_erased(owner)) {
            self.derived(format!("List {}: there is no such user", name.escape_ascii()));
            self.rows.put_name(NameTable::List, name, None);
        }
    }

    /// Checks a row of a list member, and adds the other one.
    pub(crate) fn list_member(&mut self, table: NameTable, name: &[u8]) {
        let found = || {
            let (owner, rest) = name.split_first_chunk()?;
            let (list, member) = match table {
                NameTable::ListMember => {
                    rest.split_last_chunk().map(|(list, member)| (list, *member))?
                }
                _ => rest.split_first_chunk().map(|(member, list)| (list, *member))?,
            };
            self.listed((*owner, u64::from_be_bytes(list.try_into().ok()?), member))
        };
        match found() {
            Some((owner, list, other)) => {
                let of = || format!("list {} of user {}", list.0, owner.0);
                self.put_index(of, index::of_list_member(owner, list, other));
            }
            None => self.remove_named(table, name),
        }
    }

    /// Owner, list and member of a row, if they exist and the owner follows the member.
    fn listed(
        &self,
        (owner, list, member): ([u8; 4], u64, [u8; 4]),
    ) -> Option<(UserId, ListId, UserId)> {
        let [owner, member] =
            [owner, member].map(|user| self.user(u32::from_be_bytes(user).into()));
        let (owner, list, member) = (owner?, ListId(list), member?);
        let exists = self.facts().list(owner, list).is_some();
        (exists && self.facts().follows(owner, member)).then_some((owner, list, member))
    }
}
