//! Applying commands whose rule may panic. Such a command is in the log already: if the process ended, every start would
//! apply it again, and in a cluster so would every node. So its changes are taken back, its outcome is an internal error,
//! and the next command is applied. Rules also say what a command costs before it is logged: if these panic, it is refused.
//!
//! - **Invariant:** the outcome depends on nothing but the command and the rows, as any other outcome: all nodes, and
//!   replays, agree. The stamps of the command are used, and the digest has the failure.
//! - **Invariant:** a panic of the store, or at a row that cannot be read or is malformed, is none of the rules, and ends the
//!   process: another node, or another start, may have none. So does one in what only this node does while something is applied.
//!
//! A stack overflow, and memory that the allocator does not get, end the process at once: nothing unwinds.

use std::fmt::{self, Debug, Write as _};

use kv::{KeyOps, KeyRowsMut};
use rows::{Rows as _, RowsMut as _, Stamp, Totals, catch_rules, panicked_at};

use super::hashed::HashedRows;
use super::{Applier, fault};

/// Failures that are reported one by one; of those after them, one of [`REPORTED_EVERY`]: a client may repeat a request
/// without end.
const REPORTED: u64 = 10;
const REPORTED_EVERY: u64 = 1_000;
/// Operations whose names are reported.
const NAMES: usize = 8;

/// Something to be applied.
#[derive(Clone, Copy)]
pub(super) enum Applied<'a> {
    Command(&'a feed::Command),
    Ops(&'a KeyOps),
}

impl Applied<'_> {
    /// Its kind, without texts, names and keys.
    pub(super) fn name(self) -> String {
        match self {
            Self::Command(command) => first_word(command),
            Self::Ops(ops) => {
                let names = ops.iter().take(NAMES).map(|op| first_word(&op));
                names.collect::<Vec<String>>().join(" ")
            }
        }
    }

    /// All of a command, or the keys of operations, for a test that looks for a text in it.
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

    /// Number of stamps that it takes.
    fn stamps(self) -> usize {
        match self {
            Self::Command(_) => 1,
            Self::Ops(ops) => ops.stamps(),
        }
    }
}

/// The first word of a debug format, of which no more is written: a value may be very long.
fn first_word(of: &impl Debug) -> String {
    let mut word = Word(String::new());
    let _ended = write!(word, "{of:?}");
    word.0
}

/// Takes letters and digits, and fails at the first other character.
struct Word(String);

impl fmt::Write for Word {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        self.0.push_str(word);
        if word.len() == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

impl<R: KeyRowsMut, T> Applier<R, T> {
    /// Applies something by the rules; none if they panicked: then nothing is changed, but its stamps from `first` on are
    /// used.
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

    /// Raises the numbers of which caches are valid while they are the same: what a reader saw of the changes that were undone
    /// belongs to a number that no other state has.
    fn raise_numbers(&mut self, undone: Totals) {
        let totals = self.rows.totals();
        let revocations = totals.revocations.max(undone.revocations) + 1;
        let hidings = totals.hidings.max(undone.hidings) + 1;
        self.rows.put_totals(Totals { revocations, hidings, ..totals });
    }

    /// Whether something is admitted that another node may have logged, as `admits` says by the rules of costs; not if these
    /// panicked.
    pub(super) fn decide(
        &mut self,
        applied: Applied<'_>,
        admits: impl FnOnce(&mut Self) -> bool,
    ) -> bool {
        self.shared.is_none() || self.judge(applied, admits).unwrap_or(false)
    }

    /// What the rules of costs say of something; none if they panicked.
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
