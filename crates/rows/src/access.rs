//! Access to rows: traits that a store implements and that the rules use.
//!
//! Reads do not fail. If a store cannot read its rows, it stops the process: an answer from incomplete data would be
//! wrong, and the data can be rebuilt from the log.

use crate::record::Value;
use crate::span::Span;
use crate::stamp::Stamp;
use crate::table::{NameTable, PointTable, SetTable};
use crate::totals::Totals;

/// Read access to rows.
pub trait Rows {
    /// Returns the row `key` of `table`.
    fn point(&self, table: PointTable, key: u64) -> Option<Value>;
    /// Calls `each` with every row of `table`, in the order of keys. Reads the whole table; use it at the start, while
    /// nothing changes.
    fn each_point(&self, table: PointTable, each: &mut dyn FnMut(u64, &[u8]));
    /// Calls `each` with up to `limit` rows of `table` whose keys are less than `below`, greatest key first. Holds at
    /// most one row in memory.
    fn points_below(
        &self,
        table: PointTable,
        below: u64,
        limit: usize,
        each: &mut dyn FnMut(u64, &[u8]),
    );
    /// Returns the number stored with `item` of `owner`; `None` if there is no such row.
    fn member(&self, table: SetTable, owner: u64, item: u64) -> Option<u64>;
    /// Returns the items of `owner` with their numbers, in the span's order.
    fn members(&self, table: SetTable, owner: u64, span: Span) -> Vec<(u64, u64)>;
    /// Returns the row `key` of `table`.
    fn name(&self, table: NameTable, key: &[u8]) -> Option<Value>;
    /// Returns up to `limit` keys of `table` that begin with `prefix`, in order, beginning with `from`. The prefix is
    /// removed from the keys and is not part of `from`. Reads no keys with another prefix, not even removed ones.
    fn names_under(
        &self,
        table: NameTable,
        prefix: &[u8],
        from: &[u8],
        limit: usize,
    ) -> Vec<Vec<u8>>;
    /// Returns the first `limit` keys of `table` that are at least `from`, in order.
    fn first_names(&self, table: NameTable, from: &[u8], limit: usize) -> Vec<Vec<u8>> {
        self.names_under(table, &[], from, limit)
    }
    /// Returns the first key of `table` that is at least `from`.
    fn first_name(&self, table: NameTable, from: &[u8]) -> Option<Vec<u8>> {
        self.first_names(table, from, 1).pop()
    }
    /// Returns the totals of all rows, and the last stamp.
    fn totals(&self) -> Totals;
}

/// Row of a set: owner, item, and the number stored with it.
pub type MemberRow = (u64, u64, u64);

/// Reads of whole tables. No other code may change rows meanwhile; rows that are added may be missing.
pub trait Scan: Rows {
    /// Returns about `limit` rows of `table`, beginning with key `from`, in the order of keys. Also returns where to
    /// continue, if there may be more rows.
    fn points_from(
        &self,
        table: PointTable,
        from: u64,
        limit: usize,
    ) -> (Vec<(u64, Value)>, Option<u64>);
    /// Returns about `limit` rows of `table`, beginning with (owner, item), in order. Also returns where to continue,
    /// if there may be more rows.
    fn members_from(
        &self,
        table: SetTable,
        from: (u64, u64),
        limit: usize,
    ) -> (Vec<MemberRow>, Option<(u64, u64)>);
}

/// Write access to rows, without reads. `None` removes a row.
pub trait PutRows {
    /// Sets or removes a point.
    fn put_point(&mut self, table: PointTable, key: u64, value: Option<Value>);
    /// Sets or removes a member.
    fn put_member(&mut self, table: SetTable, owner: u64, item: u64, value: Option<u64>);
    /// Sets or removes the points of many keys.
    fn put_points(&mut self, table: PointTable, rows: Vec<(u64, Option<Value>)>) {
        rows.into_iter().for_each(|(key, value)| self.put_point(table, key, value));
    }
    /// Sets or removes `item` as a member of many owners.
    fn put_member_of_many(
        &mut self,
        table: SetTable,
        owners: &[u64],
        item: u64,
        value: Option<u64>,
    ) {
        owners.iter().for_each(|owner| self.put_member(table, *owner, item, value));
    }
    /// Sets or removes a name.
    fn put_name(&mut self, table: NameTable, key: &[u8], value: Option<Value>);
}

/// Read and write access to rows. Only the writer has it.
pub trait RowsMut: Rows + PutRows {
    /// Sets the totals.
    fn put_totals(&mut self, totals: Totals);
}

/// Records that `count` stamps from `first` on are used. All rules call this before they apply a command.
///
/// # Panics
/// If the stamp is not greater than the last one, because the log would then be out of order.
pub fn advance<R: RowsMut + ?Sized>(rows: &mut R, first: Stamp, count: usize) {
    let mut totals = rows.totals();
    assert!(totals.last_stamp < Some(first), "stamps rise along the log");
    totals.last_stamp = Some(first.after(count as u64 - 1));
    rows.put_totals(totals);
}
