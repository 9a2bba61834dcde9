//! Facts about markers: see [`crate::marker`].

use rows::{PointTable, Rows, decode};

use super::{Facts, Txn};
use crate::ids::UserId;
use crate::marker::Markers;
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// Read positions of a user in timelines.
    #[must_use]
    pub fn markers(&self, user: UserId) -> Markers {
        let row = self.rows.point(PointTable::Markers, user.0.into());
        row.map_or_else(Markers::default, |row| decode(&row))
    }
}

impl Txn<'_> {
    /// Sets the markers of a user.
    pub(crate) fn put_markers(&mut self, user: UserId, markers: Markers) {
        write::markers(self.rows, user, markers);
    }
}
