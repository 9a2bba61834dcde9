//! Application of commands whose rule may panic. Such a command is already in the log: if the process ended, every
//! start would apply the command again, and in a cluster so would every node. So its changes are undone, its outcome is
//! an internal error, and the next command is applied. If the computation of a command's cost panics, which happens
//! before the command is logged, the command is refused.
//!
//! - **Invariant:** the outcome depends only on the command and the rows, like any other outcome: all nodes and replays
//!   agree. The command uses its stamps, and the digest includes the failure.
//! - **Invariant:** a panic of the store, or at an unreadable or malformed row, is not a panic of the rules: it ends
//!   the process, because it may not happen on another node or at another start. A panic in code that only this node
//!   runs while a command is applied also ends the process.
//!
//! A stack overflow and a failed allocation end the process at once, without unwinding.

use std::fmt::{self, Debug, Write as _};

use kv::{KeyOps, KeyRowsMut};
use rows::{Rows as _, RowsMut as _, Stamp, Totals, catch_rules, panicked_at};

use super::hashed::HashedRows;
use super::{Applier, fault};

/// Number of failures that are reported individually. After these, one in [`REPORTED_EVERY`] failures is reported,
/// because a client may repeat a request endlessly.
const REPORTED: u64 = 10;
const REPORTED_EVERY: u64 = 1_000;
/// Maximum number of operations whose names are reported.
const NAMES: usize = 8;

/// Command or operations that are being applied.
#[derive(Clone, Copy)]
pub(super) enum Applied<'a> {
    Command(&'a feed::Command),
    Ops(&'a KeyOps),
}

impl Applied<'_> {
    /// Returns the kind, without texts, names and keys.
    pub(super) fn name(self) -> String {
        match self {
            Self::Command(command) => first_word(command),
            Self::Ops(ops) => {
                let names = ops.iter().take(NAMES).map(|op| first_word(&op));
                names.collect::<Vec<String>>().join(" ")
            }
        }
    }

    /// Returns the whole command, or the keys of operations, for tests that search it for a text.
    #[cfg(debug_assertions)]
    pub(super) fn text(self) -> String {
        match self {
            Self::Command(command) => format!("{command:?}"),
            Self::Ops(ops) => {
                let mut text = String::new();
                for op in ops.iter() {
                    op.each_key(&mut |_, key| text.push_str(&String::from_utf8_lossy(key)));
                }
                text
            }
        }
    }

    /// Returns the number of stamps that the command or the operations use.
    fn stamps(self) -> usize {
        match self {
            Self::Command(_) => 1,
            Self::Ops(ops) => ops.stamps(),
        }
    }
}

/// Returns the first word of a debug format. The rest is not formatted, because a value may be very long.
fn first_word(of: &impl Debug) -> String {
    let mut word = Word(String::new());
    let _ended = write!(word, "{of:?}");
    word.0
}

/// Writer that accepts letters and digits, and fails at the first other character.
struct Word(String);

impl fmt::Write for Word {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        self.0.push_str(word);
        if word.len() == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

impl<R: KeyRowsMut, T> Applier<R, T> {
    /// Applies a change by the rules. Returns `None` if they panicked: then nothing is changed, except that the stamps
    /// from `first` on are used.
    pub(super) fn by_rules<O>(
        &mut self,
        applied: Applied<'_>,
        first: Stamp,
        apply: impl FnOnce(&mut HashedRows<R>) -> O,
    ) -> Option<O> {
        self.rows.save();
        let done = catch_rules(|| {
            let done = apply(&mut self.rows);
            fault::panic_if_seeded(applied, first);
            done
        });
        match done {
            Some(_) => self.rows.keep(),
            None => {
                if rows::has_bug("keep-half-change") {
                    self.rows.keep();
                } else {
                    let undone = self.rows.totals();
                    self.rows.undo();
                    rows::advance(&mut self.rows, first, applied.stamps());
                    self.raise_numbers(undone);
                }
                self.rows.note_failure(first);
                self.report(applied, Some(first));
            }
        }
        done
    }

    /// Raises the counters that validate caches above all values that they had before the changes were undone, so that
    /// nothing cached from the undone changes ever counts as valid.
    fn raise_numbers(&mut self, undone: Totals) {
        let totals = self.rows.totals();
        let revocations = totals.revocations.max(undone.revocations) + 1;
        let hidings = totals.hidings.max(undone.hidings) + 1;
        self.rows.put_totals(Totals { revocations, hidings, ..totals });
    }

    /// Whether `admits`, which computes costs by the rules, accepts a change of a shared log; false if it panicked.
    /// Always true in a log of one node.
    pub(super) fn decide(
        &mut self,
        applied: Applied<'_>,
        admits: impl FnOnce(&mut Self) -> bool,
    ) -> bool {
        self.shared.is_none() || self.judge(applied, admits).unwrap_or(false)
    }

    /// Returns the result of `judge`, which computes costs by the rules; `None` if it panicked.
    pub(super) fn judge<O>(
        &mut self,
        applied: Applied<'_>,
        judge: impl FnOnce(&mut Self) -> O,
    ) -> Option<O> {
        let judged = catch_rules(|| {
            #[cfg(test)]
            fault::panic_if_cost_seeded(applied);
            judge(self)
        });
        if judged.is_none() {
            self.report(applied, None);
        }
        judged
    }

    fn report(&mut self, applied: Applied<'_>, stamp: Option<Stamp>) {
        self.failures += 1;
        if self.failures <= REPORTED || self.failures.is_multiple_of(REPORTED_EVERY) {
            tracing::error!(
                command = applied.name(),
                stamp = stamp.map(|stamp| stamp.0),
                place = panicked_at(),
                failures = self.failures,
                "the rules have an error: they panicked at a command, which was not made; please report it"
            );
        }
    }
}
