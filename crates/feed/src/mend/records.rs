//! Removes invalid records, and items of whole rows that their owners cannot have.

use rows::{NameTable, PointTable, RowsMut, Scan, Table};

use super::{From, Rows, STEP_ROWS};
use crate::facts::Facts;
use crate::tables::record_check;
use crate::whole::WHOLE_ROWS;

impl<R: Scan + RowsMut> Rows<'_, R> {
    /// Removes the rows of a table that are not valid records.
    pub(crate) fn records(&mut self, table: Table, from: &From) -> Option<From> {
        let check = record_check(table)?;
        match table {
            Table::Point(table) => self.point_records(table, from.place.0, |row| check(&[], row)),
            Table::Name(table) => self.each_name(table, &from.name, |step, name, row| {
                if !check(name, row) {
                    step.lost(format!("{table:?} {}: the row is malformed", name.escape_ascii()));
                    step.rows.put_name(table, name, None);
                }
            }),
            Table::Set(_) => None,
        }
    }

    fn point_records(
        &mut self,
        table: PointTable,
        from: u64,
        is_record: impl Fn(&[u8]) -> bool,
    ) -> Option<From> {
        let (found, next) = self.rows.points_from(table, from, STEP_ROWS);
        for (key, _) in found.iter().filter(|(_, row)| !is_record(row)) {
            self.lost(format!("{table:?} {key}: the row is malformed"));
            self.rows.put_point(table, *key, None);
        }
        next.map(|next| From { place: (next, 0), ..From::default() })
    }

    /// Removes items of whole rows that their owners cannot have.
    pub(crate) fn whole(&mut self, table: NameTable, from: &[u8]) -> Option<From> {
        let whole = WHOLE_ROWS.into_iter().find(|whole| whole.table() == table)?;
        self.each_name(table, from, |step, name, row| {
            let mended = whole.mended(Facts::new(&*step.rows as &dyn rows::Rows), name, row);
            if mended.as_deref() != Some(row) {
                let shown = name.escape_ascii();
                step.derived(format!("{table:?} {shown}: it names missing records"));
                step.rows.put_name(table, name, mended);
            }
        })
    }
}
