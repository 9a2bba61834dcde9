//! Lists: both rows of a member agree, the list exists, and its owner follows the member. Follows agree before these are
//! checked.

use rows::{NameTable, RowsMut, Scan, Value};

use super::Rows;
use crate::ids::UserId;
use crate::list::ListId;
use crate::write;

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// A list, whose owner must exist.
    pub(super) fn list(&mut self, name: &[u8]) {
        let owner = name.first_chunk().map(|owner| u32::from_be_bytes(*owner));
        let owner = owner.and_then(|owner| self.user(owner.into()));
        if name.len() != 12 || owner.is_none_or(|owner| self.is_gone(owner)) {
            self.derived(format!("List {}: there is no such user", name.escape_ascii()));
            self.rows.put_name(NameTable::List, name, None);
        }
    }

    /// A row of a list. Adds the other row of the member.
    pub(super) fn list_member(&mut self, name: &[u8]) {
        let key = name.split_first_chunk().zip(name.split_last_chunk());
        let found = key.and_then(|((owner, list), (_, member))| {
            let list = list.first_chunk().filter(|_| name.len() == 16)?;
            Some((*owner, u64::from_be_bytes(*list), *member))
        });
        let Some((owner, list, other)) = found.and_then(|parts| self.listed(parts)) else {
            self.derived(format!("ListMember {}: no such member", name.escape_ascii()));
            self.rows.put_name(NameTable::ListMember, name, None);
            return;
        };
        let key = write::listed_user_key(owner, other, list);
        if self.rows.name(NameTable::ListedUser, &key).is_none() {
            self.derived(format!("list {} of user {}: a row is missing", list.0, owner.0));
            self.rows.put_name(NameTable::ListedUser, &key, Some(Value::new()));
        }
    }

    /// A row of a pair of users. Adds the row of the list.
    pub(super) fn listed_user(&mut self, name: &[u8]) {
        let key = name.split_first_chunk().zip(name.split_last_chunk());
        let found = key.and_then(|((owner, rest), (_, list))| {
            let member = rest.first_chunk().filter(|_| name.len() == 16)?;
            Some((*owner, u64::from_be_bytes(*list), *member))
        });
        let Some((owner, list, other)) = found.and_then(|parts| self.listed(parts)) else {
            self.derived(format!("ListedUser {}: no such member", name.escape_ascii()));
            self.rows.put_name(NameTable::ListedUser, name, None);
            return;
        };
        let key = write::list_member_key(owner, list, other);
        if self.rows.name(NameTable::ListMember, &key).is_none() {
            self.derived(format!("list {} of user {}: a row is missing", list.0, owner.0));
            self.rows.put_name(NameTable::ListMember, &key, Some(Value::new()));
        }
    }

    /// The owner, the list and the member, if there may be such a one.
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
