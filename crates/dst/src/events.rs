//! Last events of a run, for the report of a failure.

use std::cell::RefCell;
use std::collections::VecDeque;

/// Number of events to keep.
const KEPT: usize = 40;

/// Event of a run.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "read by Debug, in the report of a failure")]
pub(crate) enum Event {
    Submit { commands: usize },
    SubmitKeys { ops: usize },
    Busy,
    Turn { groups: usize, entries: usize },
    Sweep,
    Job,
    Sync,
    Read,
    Clock { unix_ms: u64 },
    Fault(testkit::disk::Faults),
    Stopped,
    Crash(testkit::disk::Crash),
    Close,
    FlipBit { at: usize, bit: u8 },
    Refused,
    Open { last: u64 },
}

/// Last events of a run.
#[derive(Default)]
struct Events {
    all: VecDeque<(u64, Event)>,
    /// Faults, crashes and starts. They are kept longer than other events.
    faults: VecDeque<(u64, Event)>,
}

thread_local! {
    static EVENTS: RefCell<Events> = RefCell::default();
}

/// Records an event of the run on this thread.
pub(crate) fn record(step: u64, event: Event) {
    EVENTS.with_borrow_mut(|events| {
        let is_fault = matches!(
            event,
            Event::Fault(_)
                | Event::Stopped
                | Event::Crash(_)
                | Event::Close
                | Event::FlipBit { .. }
                | Event::Refused
                | Event::Open { .. }
        );
        let list = if is_fault { &mut events.faults } else { &mut events.all };
        if list.len() == KEPT {
            list.pop_front();
        }
        list.push_back((step, event));
    });
}

/// Removes all events.
pub(crate) fn clear() {
    EVENTS.with_borrow_mut(|events| *events = Events::default());
}

/// Formats the last events, one per line, and earlier faults, crashes and starts.
pub(crate) fn lines() -> String {
    EVENTS.with_borrow(|events| {
        let mut lines: Vec<&(u64, Event)> = events.faults.iter().chain(&events.all).collect();
        lines.sort_by_key(|(step, _)| *step);
        lines.iter().map(|(step, event)| format!("  {step:>8} {event:?}\n")).collect()
    })
}
