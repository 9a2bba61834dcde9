//! Deliberate panics of the rules for tests. A release build has none of them.

use super::caught::Applied;
use rows::Stamp;

/// Name of an environment variable. The rules panic at each command that contains the variable's value.
#[cfg(debug_assertions)]
const VARIABLE: &str = "ROOST_TEST_PANIC";

/// Panics if a test requests a panic at this command or stamp.
pub(super) fn panic_if_seeded(applied: Applied<'_>, stamp: Stamp) {
    #[cfg(feature = "simulation")]
    if seeded::is_at(stamp) {
        // This panics without printing a message.
        std::panic::resume_unwind(Box::new(stamp));
    }
    #[cfg(debug_assertions)]
    assert!(!is_wanted(applied), "a panic that the environment wants");
    let _ = (applied, stamp);
}

#[cfg(debug_assertions)]
fn is_wanted(applied: Applied<'_>) -> bool {
    use std::sync::OnceLock;
    static TEXT: OnceLock<Option<String>> = OnceLock::new();
    #[cfg(test)]
    if let Some(text) = of_thread::TEXT.get() {
        return applied.text().contains(text);
    }
    let text = TEXT.get_or_init(|| std::env::var(VARIABLE).ok());
    text.as_ref().is_some_and(|text| applied.text().contains(text))
}

/// Panics if a test requests a panic in the computation of this command's cost.
#[cfg(test)]
pub(super) fn panic_if_cost_seeded(applied: Applied<'_>) {
    let is_wanted = of_thread::COST_TEXT.get().is_some_and(|text| applied.text().contains(text));
    assert!(!is_wanted, "a panic that a test wants");
}

#[cfg(test)]
pub(super) mod of_thread {
    use std::cell::Cell;

    thread_local! {
        /// Text that replaces the environment variable in one test.
        pub(crate) static TEXT: Cell<Option<&'static str>> = const { Cell::new(None) };
        /// Text for one test: the computation of a command's cost panics if the command contains it.
        pub(in crate::applier) static COST_TEXT: Cell<Option<&'static str>> = const { Cell::new(None) };
    }
}

/// Panics at some stamps, for the simulator.
#[cfg(feature = "simulation")]
pub mod seeded {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rows::Stamp;

    static ARE_ON: AtomicBool = AtomicBool::new(false);

    /// Makes the rules panic at one of about 200 stamps from now on, after they have done all their work.
    pub fn panic_at_some_stamps() {
        ARE_ON.store(true, Ordering::Relaxed);
    }

    /// Whether the rules panic at a command whose first stamp is `stamp`.
    #[must_use]
    pub fn is_at(stamp: Stamp) -> bool {
        ARE_ON.load(Ordering::Relaxed)
            && stamp.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 0xffff < 0xffff / 200
    }
}
