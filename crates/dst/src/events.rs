//! The last events of a run, for the report of a failure.

use std::cell::RefCell;
use std::collections::VecDeque;

/// Events that are kept.
const KEPT: usize = 40;

/// What happened.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "read by Debug, in the report of a failure")]
pub(crate) enum Event {
    Submit { commands: usize },
    SubmitKeys { ops: usize },
    Busy,
    Turn { groups: usize, entries: usize },
    Deliver,
    Sweep,
    Job,
    Sync,
    Read,
    Clock { unix_ms: u64 },
    Fault(crate::disk::Faults),
    Stopped,
    Crash(crate::disk::Crash),
    Close,
    FlipBit { at: usize, bit: u8 },
    Refused,
    Open { last: u64 },
}

thread_local! {
    static EVENTS: RefCell<VecDeque<(u64, Event)>> = const { RefCell::new(VecDeque::new()) };
}

/// Records an event of the run on this thread.
pub(crate) fn record(step: u64, event: Event) {
    EVENTS.with_borrow_mut(|events| {
        if events.len() == KEPT {
            events.pop_front();
        }
        events.push_back((step, event));
    });
}

/// Forgets all events.
pub(crate) fn clear() {
    EVENTS.with_borrow_mut(VecDeque::clear);
}

/// The last events, a line each.
pub(crate) fn lines() -> String {
    EVENTS.with_borrow(|events| {
        events.iter().map(|(step, event)| format!("  {step:>8} {event:?}\n")).collect()
    })
}
