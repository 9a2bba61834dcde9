//! Counts of the changes of the rows of each [`Subject`].
//!
//! - **Invariant:** a count is raised after readers see the changed row and before the change is acknowledged. So whoever
//!   reads a count, then the rows, has read at least the state of that count.
//! - **Invariant:** when changes were taken back, all counts are raised. So whoever has read a row as it was between has
//!   read it under an older count.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rows::Subject;

/// Subjects share a count where their numbers are equal modulo this: then a change of one is taken for a change of both. A
/// table of fixed size, 256 KiB: half of the second cache of a processor.
const COUNTS: usize = 65_536;

/// The counts.
pub(crate) struct Revisions {
    counts: Box<[AtomicU32]>,
    undone: AtomicU64,
}

impl Default for Revisions {
    fn default() -> Self {
        let counts = (0..COUNTS).map(|_| AtomicU32::new(0)).collect();
        Self { counts, undone: AtomicU64::new(0) }
    }
}

impl Revisions {
    /// The number of changes so far.
    pub(crate) fn get(&self, subject: Subject) -> u32 {
        // Who sees a raised count sees the rows from before it.
        self.count(subject).load(Ordering::Acquire)
    }

    /// Counts a change.
    pub(crate) fn raise(&self, subject: Subject) {
        self.count(subject).fetch_add(1, Ordering::Release);
        match subject {
            Subject::Profile(user) => self.raise(Subject::User(user)),
            Subject::Content(post) => self.raise(Subject::Post(post)),
            _ => {}
        }
    }

    /// Counts a change of everything, after changes were taken back.
    pub(crate) fn raise_all(&self) {
        for count in &self.counts {
            count.fetch_add(1, Ordering::Release);
        }
        self.undone.fetch_add(1, Ordering::Release);
    }

    /// The number of times that changes were taken back.
    pub(crate) fn undone(&self) -> u64 {
        // Who sees a raised number sees the rows from after it was undone.
        self.undone.load(Ordering::Acquire)
    }

    /// All counts as they are now.
    pub(crate) fn copy(&self) -> RevisionsCopy {
        RevisionsCopy(self.counts.iter().map(|count| count.load(Ordering::Acquire)).collect())
    }

    fn count(&self, subject: Subject) -> &AtomicU32 {
        of(&self.counts, subject)
    }
}

/// The counts at one time: for a reader of many rows who does not know before which they are. Making it takes about 20 µs.
pub struct RevisionsCopy(Box<[u32]>);

impl RevisionsCopy {
    /// As [`Store::revision`](crate::Store::revision), when the copy was made.
    #[must_use]
    pub fn revision(&self, subject: Subject) -> u32 {
        *of(&self.0, subject)
    }
}

/// The count of a subject in a table of them.
fn of<T>(counts: &[T], subject: Subject) -> &T {
    // Ids of posts have their time in the high bits: the product spreads them, and the dense ids of users, alike.
    let (kind, id) = match subject {
        Subject::User(id) => (0, id),
        Subject::Post(id) => (1, id),
        Subject::Media(id) => (2, id),
        Subject::Marks(user) => (3, user.into()),
        Subject::Profile(id) => (4, id),
        Subject::Content(id) => (5, id),
    };
    let spread = (id.wrapping_mul(8) + kind).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let Some(count) = counts.get((spread >> 48) as usize) else {
        unreachable!("the table has a count for each number of 16 bits")
    };
    count
}

const _: () = assert!(COUNTS == 1 << 16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_raises_the_count_of_its_subject_and_of_few_others() {
        let revisions = Revisions::default();
        let others = (0..1_000).flat_map(|id| {
            let post = id * 4_096 + (1 << 60);
            [Subject::User(id), Subject::Post(post), Subject::Media(post)]
        });
        let others: Vec<_> = others.collect();
        revisions.raise(Subject::User(7));
        assert_eq!(revisions.get(Subject::User(7)), 1);
        let raised = others.iter().filter(|other| revisions.get(**other) > 0).count();
        assert!(raised <= 2, "{raised} of 3000");
        others.iter().for_each(|other| revisions.raise(*other));
        assert_ne!(revisions.copy().revision(others[0]), 0, "a copy has the same counts");
        let greatest = others.iter().map(|other| revisions.get(*other)).max();
        assert!(greatest.unwrap() <= 4, "spread over the table: {greatest:?}");
    }
}
