//! Position of the loop's passes among the rows of `Due`.

use feed::Due;

/// Maximum number of rows that the loop looks up by name.
pub(super) const LASTING_MAX: usize = 64;
/// Maximum number of failed rows that are skipped.
pub(super) const SKIPPED_MAX: usize = 64;

/// Position of the loop among the rows. A pass begins at `from_ms`, so it does not scan the places of rows that earlier
/// passes removed. No row before `from_ms` is due, except those of [`Pass::by_name`] and [`Pass::skip`].
#[derive(Default)]
pub(super) struct Pass {
    /// Begin of the pass, in milliseconds since 1970.
    pub(super) from_ms: u64,
    /// Last row that this pass has reached; `None` at its beginning.
    pub(super) last: Option<Due>,
    /// Last stamp at the begin of the pass, in milliseconds since 1970: work that is written later is due after it.
    /// `None` once the pass has found its first row.
    begun_ms: Option<u64>,
    /// First row of this pass, and first row of the previous pass.
    first: Option<Due>,
    before: Option<Due>,
    /// First rows that a complete pass did not finish.
    lasting: Vec<Due>,
    /// Rows of `lasting` that this pass has not reached.
    by_name: Vec<Due>,
    skipped: Vec<Due>,
}

impl Pass {
    /// Begins a pass, unless one is running; returns whether it began.
    pub(super) fn begin(&mut self, last_ms: u64) -> bool {
        let begins = self.last.is_none() && self.begun_ms.is_none();
        if begins {
            self.begun_ms = Some(last_ms);
            self.by_name.clone_from(&self.lasting);
        }
        begins
    }

    /// Returns the next row to look up by its name.
    pub(super) fn by_name(&mut self) -> Option<Due> {
        self.by_name.pop()
    }

    /// Schedules another look-up of a row in this pass.
    pub(super) fn retry(&mut self, due: Due) {
        self.by_name.push(due);
    }

    /// Removes a row that is done from the rows to look up by name.
    pub(super) fn forget(&mut self, done: Due) {
        self.lasting.retain(|due| *due != done);
    }

    /// Skips a row until the node is restarted, unless too many are skipped.
    pub(super) fn skip(&mut self, due: Due) {
        if self.skipped.len() < SKIPPED_MAX {
            self.skipped.push(due);
            self.forget(due);
        }
    }

    /// Whether the scan of the rows ignores `due`.
    pub(super) fn passes_over(&self, due: Due) -> bool {
        self.skipped.contains(&due) || self.lasting.contains(&due)
    }

    /// Determines the begin of the next pass from the next rows.
    pub(super) fn found(&mut self, found: &[Due], now_ms: u64) {
        let first = found.iter().copied().find(|due| !self.passes_over(*due));
        if let Some(first) = first
            && let Some(begun_ms) = self.begun_ms.take()
        {
            self.from_ms = first.at_ms.min(begun_ms);
            self.first = Some(first).filter(|due| due.at_ms <= now_ms);
        }
    }

    /// Ends the pass.
    pub(super) fn end(&mut self) {
        self.last = None;
        if let Some(begun_ms) = self.begun_ms.take() {
            self.from_ms = begun_ms;
        }
        let first = self.first.take().filter(|due| !self.passes_over(*due));
        let lasts = first.filter(|_| first == self.before && self.lasting.len() < LASTING_MAX);
        self.lasting.extend(lasts);
        self.before = first;
    }

    /// Makes the next pass begin at the first row, to find restored rows.
    pub(super) fn restart(&mut self) {
        (self.from_ms, self.begun_ms) = (0, None);
    }
}
