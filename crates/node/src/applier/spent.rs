//! Counts of rows that the rules change and look up, in the simulator only: it compares the work of a command with the
//! cost that was declared before the command was logged.

use std::cell::Cell;

use rows::{Cost, WORK_PER_ROW};

/// Whether anything is counted.
pub(super) const COUNTS: bool = cfg!(feature = "simulation");

/// Counts since the last [`Spent::reset`].
#[derive(Default)]
pub(super) struct Spent {
    changed: Cell<usize>,
    looked_up: Cell<usize>,
}

impl Spent {
    pub(super) fn reset(&self) {
        self.changed.set(0);
        self.looked_up.set(0);
    }

    #[inline]
    pub(super) fn change(&self, rows: usize) {
        if COUNTS {
            self.changed.set(self.changed.get() + rows);
        }
    }

    /// Counts rows that a read found, at least one: a read without results costs as much as one that finds a row.
    #[inline]
    pub(super) fn look_up(&self, rows: usize) {
        if COUNTS {
            self.looked_up.set(self.looked_up.get() + rows.max(1));
        }
    }

    /// Compares the counts, and other work, with the declared cost.
    ///
    /// # Panics
    /// If they exceed it.
    pub(super) fn check(&self, what: &str, declared: &Cost, other: usize) {
        let (changed, looked_up) = (self.changed.get(), self.looked_up.get());
        let work = (changed + looked_up) * WORK_PER_ROW + other;
        assert!(
            changed <= declared.rows && work <= declared.work,
            "{what} costs more than declared: {changed} rows changed, {looked_up} looked up, {work} of work; {declared:?}"
        );
    }
}
