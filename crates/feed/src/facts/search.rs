//! Finding users by the beginning of their handles.

use rows::{NameTable, Rows, decode};

use super::Facts;
use crate::ids::UserId;
use crate::text::Handle;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Users whose handles begin with `start`, in the order of handles. At most `limit` handles are read, those of deleted
    /// users included.
    #[must_use]
    pub fn users_by_prefix(&self, start: &Handle, limit: usize) -> Vec<UserId> {
        let start = start.as_str().as_bytes();
        let names = self.rows.first_names(NameTable::Handle, start, limit);
        let names = names.iter().take_while(|name| name.starts_with(start));
        let users = names.filter_map(|name| self.rows.name(NameTable::Handle, name));
        users.map(|row| decode(&row)).filter(|user| !self.is_deleted(*user)).collect()
    }
}
