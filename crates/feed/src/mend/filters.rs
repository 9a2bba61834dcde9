//! Filters: their owner exists.

use rows::{NameTable, RowsMut, Scan, try_decode};

use super::Rows;
use crate::filter::Filter;

/// Whether the bytes of a row are filters.
pub(super) fn is_record(value: &[u8]) -> bool {
    try_decode::<Vec<Filter>>(value).is_some_and(|filters| !filters.is_empty())
}

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// The filters of a user.
    pub(super) fn filters(&mut self, name: &[u8]) {
        let owner = name.first_chunk().filter(|_| name.len() == 4);
        let owner = owner.and_then(|owner| self.user(u32::from_be_bytes(*owner).into()));
        if owner.is_none_or(|owner| self.is_gone(owner)) {
            self.derived(format!("Filters {}: there is no such user", name.escape_ascii()));
            self.rows.put_name(NameTable::Filters, name, None);
        }
    }
}
