//! Changes in memory. Change `n` has the position `n-0`, and is the only one of its group.

use std::sync::Arc;

use tokio::sync::watch;
use webhooks::{Change, Gap, Page, ReadError, Source, Wanted};

/// Source whose first kept change and number of changes a test sets. Clones share them.
#[derive(Clone)]
pub(crate) struct Memory(Arc<watch::Sender<Kept>>);

#[derive(Clone, Copy)]
struct Kept {
    first: u64,
    last: u64,
    is_off: bool,
    is_panicking: bool,
    /// Number of reads so far.
    reads: u64,
    /// Changes that cannot be read: those after the first number, up to the second.
    hole: Option<(u64, u64)>,
    /// Time of change 0 in milliseconds since 1970.
    begin_ms: u64,
}

impl Memory {
    /// Creates a source with the changes 1 to `last`.
    pub(crate) fn new(last: u64) -> Self {
        Self(Arc::new(watch::Sender::new(Kept {
            first: 1,
            last,
            is_off: false,
            is_panicking: false,
            reads: 0,
            hole: None,
            begin_ms: 0,
        })))
    }

    /// Adds changes.
    pub(crate) fn add(&self, count: u64) {
        self.0.send_modify(|kept| kept.last += count);
    }

    /// Removes all changes before this one.
    pub(crate) fn keep_from(&self, first: u64) {
        self.0.send_modify(|kept| kept.first = first);
    }

    /// Makes changes unreadable: those after the first number, up to the second.
    pub(crate) fn set_hole(&self, after: u64, to: u64) {
        self.0.send_modify(|kept| kept.hole = Some((after, to)));
    }

    /// Replaces all changes by others with the same positions and later times.
    pub(crate) fn replace(&self) {
        self.0.send_modify(|kept| kept.begin_ms += 1_000);
    }

    /// Makes reads panic, or not.
    pub(crate) fn set_panicking(&self, is_panicking: bool) {
        self.0.send_modify(|kept| kept.is_panicking = is_panicking);
    }

    /// Number of reads so far.
    pub(crate) fn reads(&self) -> u64 {
        self.0.borrow().reads
    }

    /// Makes reads fail, or not.
    pub(crate) fn set_off(&self, is_off: bool) {
        self.0.send_modify(|kept| kept.is_off = is_off);
    }
}

fn number(position: &str) -> u64 {
    position.split('-').next().unwrap().parse().unwrap()
}

impl Source for Memory {
    async fn read(&self, after: Option<&str>, wanted: &Wanted) -> Result<Page, ReadError> {
        self.0.send_if_modified(|kept| {
            kept.reads += 1;
            false
        });
        let Kept { first, last, is_off, is_panicking, hole, begin_ms, .. } = *self.0.borrow();
        assert!(!is_panicking, "a test makes reads panic");
        if is_off {
            return Err(ReadError::Unavailable("the source is off".to_owned()));
        }
        let after = after.map_or(first - 1, number);
        if after + 1 < first || after > last {
            return Err(ReadError::Gone);
        }
        let last_readable = match hole {
            Some((before, to)) if (before..to).contains(&after) => return Err(ReadError::Gone),
            Some((before, _)) if after < before => before,
            _ => last,
        };
        let change = |n: u64| Change {
            position: format!("{n}-0"),
            time_ms: begin_ms + n,
            json: format!("{{\"n\":{n},\"position\":\"{n}-0\"}}").into_bytes(),
        };
        let changes: Vec<_> =
            (after + 1..=last_readable).take(wanted.changes_max).map(change).collect();
        let last_read = changes.last().map(|last| (last.position.clone(), last.time_ms));
        let next = changes.last().map_or(after, |last| number(&last.position)).to_string();
        let has_more = changes.len() == wanted.changes_max;
        Ok(Page { changes, next, last_read, has_more })
    }

    async fn wait(&self, after: &str) {
        let after = number(after);
        let _ = self.0.subscribe().wait_for(|kept| kept.last > after || kept.is_off).await;
    }

    fn end(&self) -> String {
        self.0.borrow().last.to_string()
    }

    fn before(&self, position: &str) -> String {
        (number(position) - 1).to_string()
    }

    fn is_after(&self, position: &str, other: &str) -> bool {
        number(position) > number(other)
    }

    async fn gap(&self, after: Option<&str>) -> Result<Gap, ReadError> {
        let Kept { first, last, hole, .. } = *self.0.borrow();
        let after = after.map_or(first - 1, number);
        Ok(match hole {
            _ if after > last => Gap::Foreign,
            Some((_, to)) if after + 1 >= first => Gap::Damaged(to.to_string()),
            _ => Gap::Removed((first - 1).to_string()),
        })
    }
}
