//! Where the passes of the loop begin, and what they come to.

use feed::Due;

/// Number of rows that the loop looks up by name, at most.
pub(super) const LASTING_MAX: usize = 64;
/// Number of rows that failed and are not tried again, at most.
pub(super) const SKIPPED_MAX: usize = 64;

/// The place of the loop among the rows. A pass begins at `from_ms`, so it walks over no rows that earlier ones removed: but for
/// those of [`Pass::by_name`] and [`Pass::skip`], nothing is due before.
#[derive(Default)]
pub(super) struct Pass {
    /// The time, in milliseconds since 1970.
    pub(super) from_ms: u64,
    /// What this pass came to last; none at its beginning.
    pub(super) last: Option<Due>,
    /// The last stamp when the pass began, in milliseconds since 1970: what is written later is due after it. None once the
    /// pass has found its first row.
    begun_ms: Option<u64>,
    /// The first row of this pass, and that of the pass before.
    first: Option<Due>,
    before: Option<Due>,
    /// First rows that outlasted a pass.
    lasting: Vec<Due>,
    /// Those of them that this pass has not come to.
    by_name: Vec<Due>,
    skipped: Vec<Due>,
}

impl Pass {
    /// Begins a pass, unless one goes on; returns whether it does.
    pub(super) fn begin(&mut self, last_ms: u64) -> bool {
        let begins = self.last.is_none() && self.begun_ms.is_none();
        if begins {
            self.begun_ms = Some(last_ms);
            self.by_name.clone_from(&self.lasting);
        }
        begins
    }

    /// The next row that is to be looked up by its name.
    pub(super) fn by_name(&mut self) -> Option<Due> {
        self.by_name.pop()
    }

    /// Has a row looked up again in this pass.
    pub(super) fn retry(&mut self, due: Due) {
        self.by_name.push(due);
    }

    /// Forgets one that is done.
    pub(super) fn forget(&mut self, done: Due) {
        self.lasting.retain(|due| *due != done);
    }

    /// Passes over a row until the node is restarted, if there are not too many of them.
    pub(super) fn skip(&mut self, due: Due) {
        if self.skipped.len() < SKIPPED_MAX {
            self.skipped.push(due);
            self.forget(due);
        }
    }

    /// Whether the walk over the rows passes over this one.
    pub(super) fn passes_over(&self, due: Due) -> bool {
        self.skipped.contains(&due) || self.lasting.contains(&due)
    }

    /// Learns from the next rows where the next pass begins.
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

    /// Has the next pass find rows that were missing and are back.
    pub(super) fn restart(&mut self) {
        (self.from_ms, self.begun_ms) = (0, None);
    }
}
