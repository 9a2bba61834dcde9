//! Finding users by the beginning of their handles, also with a mistake.

use rows::{NameTable, Rows, decode};

use super::Facts;
use super::similar::similar;
use crate::ids::UserId;
use crate::limits::{SEARCHED_MAX, SIMILAR_MAX};
use crate::text::Handle;

impl<'r, R: Rows + ?Sized> Facts<'r, R> {
    /// Users whose handles begin with `start`, in the order of handles, and then those whose handles begin almost so. Of the
    /// first at most [`SEARCHED_MAX`] handles are read, of the others at most [`SIMILAR_MAX`].
    pub fn search_users(self, start: &Handle) -> impl Iterator<Item = UserId> + use<'r, R> {
        let similar = start.clone();
        let similar = std::iter::once_with(move || self.users_similar(&similar, SIMILAR_MAX));
        self.users_by_prefix(start, SEARCHED_MAX).into_iter().chain(similar.flatten())
    }
}

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

    /// Users whose handles begin almost as `start` and not with it. At most `limit` handles are read, those of deleted users
    /// included; to find them, at most 500.
    #[must_use]
    pub fn users_similar(&self, start: &Handle, limit: usize) -> Vec<UserId> {
        let handles = similar(start.as_str(), limit, |begins, from| {
            let end = self.rows.names_under(NameTable::Handle, begins.as_bytes(), from, 1).pop()?;
            String::from_utf8([begins.as_bytes(), &end].concat()).ok()
        });
        let rows =
            handles.iter().map(|handle| self.rows.name(NameTable::Handle, handle.as_bytes()));
        rows.flatten().map(|row| decode(&row)).filter(|user| !self.is_deleted(*user)).collect()
    }
}
