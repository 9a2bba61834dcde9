//! Whether the rules run on this thread: so a panic of theirs is distinguished from one of the store, and from one at a row that is
//! damaged.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind};

thread_local! {
    static RUN: Cell<bool> = const { Cell::new(false) };
    static PANICKED_AT: Cell<Option<String>> = const { Cell::new(None) };
}

/// Runs `run`, which is of the rules; none if they panicked. Other panics are passed on.
pub fn catch_rules<T>(run: impl FnOnce() -> T) -> Option<T> {
    RUN.set(true);
    let done = catch_unwind(AssertUnwindSafe(run));
    // Whatever is not of the rules, and panics, leaves it false.
    let is_of_rules = RUN.replace(false);
    match done {
        Ok(done) => Some(done),
        Err(_) if is_of_rules => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Runs `run`, which is not of the rules, while they may run.
pub fn outside_rules<T>(run: impl FnOnce() -> T) -> T {
    within_rules(false, run)
}

/// What `run` returns. `of_rules`: whether it is of the rules, as their callback that something outside of them calls.
pub fn within_rules<T>(of_rules: bool, run: impl FnOnce() -> T) -> T {
    let before = RUN.replace(of_rules);
    let done = run();
    RUN.set(before);
    done
}

/// Whether the rules run on this thread.
#[must_use]
pub fn rules_run() -> bool {
    RUN.get()
}

/// For the hook of panics: whether it is one of the rules, which is reported where it is caught. Its message may have texts
/// and keys of users.
#[must_use]
pub fn is_of_rules(panic: &PanicHookInfo<'_>) -> bool {
    let is_of_rules = RUN.get();
    if is_of_rules {
        PANICKED_AT.set(panic.location().map(ToString::to_string));
    }
    is_of_rules
}

/// Where the rules panicked last, if the hook was asked.
#[must_use]
pub fn panicked_at() -> Option<String> {
    PANICKED_AT.take()
}
