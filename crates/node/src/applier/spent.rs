//! Rows that the rules change and look up, counted in the simulator alone: it compares what a command takes with the cost that
//! was declared before the command was logged.

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

    /// Counts rows that a read found. A read that finds none takes as much as one that finds a row.
    #[inline]
    pub(super) fn look_up(&self, rows: usize) {
        if COUNTS {
            self.looked_up.set(self.looked_up.get() + rows.max(1));
        }
    }

    /// Compares what was counted, and other work, with what was declared.
    ///
    /// # Panics
    /// If it is more.
    pub(super) fn check(&self, what: &str, declared: &Cost, other: usize) {
        let (changed, looked_up) = (self.changed.get(), self.looked_up.get());
        let work = (changed + looked_up) * WORK_PER_ROW + other;
        assert!(
            changed <= declared.rows && work <= declared.work,
            "{what} costs more than declared: {changed} rows changed, {looked_up} looked up, {work} of work; {declared:?}"
        );
    }
}
