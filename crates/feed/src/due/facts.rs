//! Facts about due work.

use rows::{NameTable, Rows, Stamp, encode, try_decode};

use crate::due::{Due, DueWork};
use crate::erase::ErasurePhase;
use crate::facts::{Facts, Txn};
use crate::write;

impl<R: Rows + ?Sized> Facts<'_, R> {
    /// First due work at `from_ms` or later, in milliseconds since 1970, and after `last`: at most `limit`.
    #[must_use]
    pub fn first_due(&self, from_ms: u64, last: Option<Due>, limit: usize) -> Vec<Due> {
        self.first_due_or(from_ms, last, limit, |_| ())
    }

    /// Does the same as [`Facts::first_due`], and calls `unreadable` with each invalid name among the rows.
    pub fn first_due_or(
        &self,
        from_ms: u64,
        last: Option<Due>,
        limit: usize,
        mut unreadable: impl FnMut(&[u8]),
    ) -> Vec<Due> {
        let mut from = from_ms.to_be_bytes().to_vec();
        if let Some(last) = last {
            from = from.max(after(&last.name()));
        }
        loop {
            let names = self.rows.first_names(NameTable::Due, &from, limit);
            let mut found = Vec::with_capacity(names.len());
            for name in &names {
                Due::of_name(name).map_or_else(|| unreadable(name), |due| found.push(due));
            }
            match names.last() {
                Some(last) if found.is_empty() => from = after(last),
                _ => return found,
            }
        }
    }

    /// Whether this due work is not done yet.
    #[must_use]
    pub fn is_due(&self, due: Due) -> bool {
        self.rows.name(NameTable::Due, &due.name()).is_some()
    }

    /// Progress of due work; `None` if it is done. For deleted users see [`Facts::erasure`].
    #[must_use]
    pub fn due_from(&self, due: Due) -> Option<u64> {
        read(&self.rows.name(NameTable::Due, &due.name())?)
    }

    /// Progress of the removal of a deleted user: the kind of rows, and the first that may be left.
    #[must_use]
    pub fn erasure(&self, due: Due) -> Option<(ErasurePhase, u64)> {
        read_erasure(&self.rows.name(NameTable::Due, &due.name())?)
    }

    /// Makes work due at the time of the current command.
    pub(crate) fn since_now(&self, work: DueWork) -> Due {
        work.since(self.totals().last_stamp.unwrap_or(Stamp(0)))
    }
}

/// Smallest name after this one.
fn after(name: &[u8]) -> Vec<u8> {
    [name, &[0]].concat()
}

/// Whether name and value form a valid row of due work.
pub(crate) fn is_record(name: &[u8], value: &[u8]) -> bool {
    Due::of_name(name).is_some_and(|due| match due.work {
        DueWork::Erase { .. } => read_erasure(value).is_some(),
        _ => read(value).is_some(),
    })
}

/// Decodes the progress of due work.
fn read(row: &[u8]) -> Option<u64> {
    if row.is_empty() { Some(0) } else { try_decode(row).filter(|from| *from > 0) }
}

/// Decodes the progress of the removal of a deleted user.
fn read_erasure(row: &[u8]) -> Option<(ErasurePhase, u64)> {
    if row.is_empty() {
        return Some((ErasurePhase::first(), 0));
    }
    try_decode(row).filter(|(phase, _): &(ErasurePhase, u64)| phase.is_known())
}

impl Txn<'_> {
    /// Stores the progress of due work, or with `None` removes it as done.
    pub(crate) fn put_due(&mut self, due: Due, from: Option<u64>) {
        write::due(self.rows, due, from);
    }

    /// Makes work due now.
    pub(crate) fn put_due_now(&mut self, work: DueWork) {
        self.put_due(self.facts().since_now(work), Some(0));
    }

    /// Stores the progress of the removal of a deleted user.
    pub(crate) fn put_erasure(&mut self, due: Due, from: (ErasurePhase, u64)) {
        self.rows.put_name(NameTable::Due, &due.name(), Some(encode(&from)));
    }
}
