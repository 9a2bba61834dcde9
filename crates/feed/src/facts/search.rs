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
        let ends = self.rows.names_under(NameTable::Handle, start, &[], limit);
        let handles = ends.iter().map(|end| [start, end].concat());
        let users = handles.filter_map(|handle| self.rows.name(NameTable::Handle, &handle));
        users.map(|row| decode(&row)).filter(|user| !self.is_deleted(*user)).collect()
    }
}
