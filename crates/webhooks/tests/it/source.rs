//! Changes in memory. Change `n` has the position `n-0`, and is the only one of its group.

use std::sync::Arc;

use tokio::sync::watch;
use webhooks::{Change, Page, ReadError, Source, Wanted};

/// Source whose first kept change and number of changes a test sets. Clones share them.
#[derive(Clone)]
pub(crate) struct Memory(Arc<watch::Sender<Kept>>);

#[derive(Clone, Copy)]
struct Kept {
    first: u64,
    last: u64,
    is_off: bool,
}

impl Memory {
    /// Creates a source with the changes 1 to `last`.
    pub(crate) fn new(last: u64) -> Self {
        Self(Arc::new(watch::Sender::new(Kept { first: 1, last, is_off: false })))
    }

    /// Adds changes.
    pub(crate) fn add(&self, count: u64) {
        self.0.send_modify(|kept| kept.last += count);
    }

    /// Removes all changes before this one.
    pub(crate) fn keep_from(&self, first: u64) {
        self.0.send_modify(|kept| kept.first = first);
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
        let Kept { first, last, is_off } = *self.0.borrow();
        if is_off {
            return Err(ReadError::Unavailable("the source is off".to_owned()));
        }
        let after = after.map_or(first - 1, number);
        if after + 1 < first || after > last {
            return Err(ReadError::Gone);
        }
        let change = |n: u64| Change {
            position: format!("{n}-0"),
            time_ms: n,
            json: format!("{{\"n\":{n},\"position\":\"{n}-0\"}}").into_bytes(),
        };
        let changes: Vec<_> = (after + 1..=last).take(wanted.changes_max).map(change).collect();
        let next = changes.last().map_or(after, |change| change.time_ms).to_string();
        Ok(Page { changes, next })
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
}
