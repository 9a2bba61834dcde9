//! Marker of threads that run the rules. It distinguishes a panic of the rules from a panic of the store, and from one
//! at a damaged row.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind};

thread_local! {
    static RUN: Cell<bool> = const { Cell::new(false) };
    static PANICKED_AT: Cell<Option<String>> = const { Cell::new(None) };
}

/// Runs `run`, which is a part of the rules. Returns `None` if the rules panicked; passes on other panics.
pub fn catch_rules<T>(run: impl FnOnce() -> T) -> Option<T> {
    RUN.set(true);
    let done = catch_unwind(AssertUnwindSafe(run));
    // A panic of other code leaves the marker false.
    let is_of_rules = RUN.replace(false);
    match done {
        Ok(done) => Some(done),
        Err(_) if is_of_rules => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Runs `run`, which is not a part of the rules, on a thread that may run rules.
pub fn outside_rules<T>(run: impl FnOnce() -> T) -> T {
    within_rules(false, run)
}

/// Runs `run`, a callback that other code calls. `of_rules` says whether it is a part of the rules.
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

/// Whether a panic is one of the rules, for the panic hook. The code that catches such a panic reports it. Its message
/// may contain texts and keys of users.
#[must_use]
pub fn is_of_rules(panic: &PanicHookInfo<'_>) -> bool {
    let is_of_rules = RUN.get();
    if is_of_rules {
        PANICKED_AT.set(panic.location().map(ToString::to_string));
    }
    is_of_rules
}

/// Returns the location of the last panic of the rules, if the panic hook is installed.
#[must_use]
pub fn panicked_at() -> Option<String> {
    PANICKED_AT.take()
}
