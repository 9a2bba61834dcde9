//! Number of changes of each [`Subject`]'s rows.
//!
//! - **Invariant:** a count is raised after readers see the changed row and before the change is acknowledged. A thread
//!   that reads a count and then the rows has thus read at least the state of that count.
//! - **Invariant:** when changes are undone, all counts are raised. A row that was read in between thus belongs to an
//!   older count.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rows::Subject;

/// Number of counts. Subjects with the same index share a count: a change of one counts as a change of both. The table
/// has a fixed size of 256 KiB, half of a processor's second-level cache.
///
/// Users and posts have one half; each post, follow and reaction changes some of them. All other subjects have the other
/// half: few requests change them, so they rarely share a count with a subject that changes.
const COUNTS: usize = 65_536;
const HALF: u16 = (COUNTS / 2) as u16;

/// Revision of a subject at a time. If it is equal at a later time, nothing has changed in between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision {
    /// Index of the count in the table.
    pub place: u16,
    /// Number of changes so far.
    pub count: u32,
}

/// Table of counts.
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
    /// Returns the current revision.
    pub(crate) fn get(&self, subject: Subject) -> Revision {
        let place = place(subject);
        Revision { place, count: self.count(place) }
    }

    /// Whether nothing has changed since the revision.
    pub(crate) fn is_current(&self, Revision { place, count }: Revision) -> bool {
        self.count(place) == count
    }

    /// Counts a change.
    pub(crate) fn raise(&self, subject: Subject) {
        at(&self.counts, place(subject)).fetch_add(1, Ordering::Release);
        match subject {
            Subject::Profile(user) => self.raise(Subject::User(user)),
            Subject::Content(post) => self.raise(Subject::Post(post)),
            _ => {}
        }
    }

    /// Counts a change of every subject, after changes were undone.
    pub(crate) fn raise_all(&self) {
        for count in &self.counts {
            count.fetch_add(1, Ordering::Release);
        }
        self.undone.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of times that changes were undone.
    pub(crate) fn undone(&self) -> u64 {
        // Acquire: a thread that sees the new number also sees the rows after the undo.
        self.undone.load(Ordering::Acquire)
    }

    /// Copies all counts.
    pub(crate) fn copy(&self) -> RevisionsCopy {
        RevisionsCopy(self.counts.iter().map(|count| count.load(Ordering::Acquire)).collect())
    }

    fn count(&self, place: u16) -> u32 {
        // Acquire: a thread that sees the new count also sees the changed rows.
        at(&self.counts, place).load(Ordering::Acquire)
    }
}

/// Copy of all counts, for a reader of many rows that does not know their subjects in advance. Copying takes about 20
/// µs.
pub struct RevisionsCopy(Box<[u32]>);

impl RevisionsCopy {
    /// Returns the value that [`Store::revision`](crate::Store::revision) had at the time of the copy.
    #[must_use]
    pub fn revision(&self, subject: Subject) -> Revision {
        let place = place(subject);
        Revision { place, count: *at(&self.0, place) }
    }

    /// Whether the revision was current at the time of the copy: see [`Store::is_current`](crate::Store::is_current).
    #[must_use]
    pub fn is_current(&self, Revision { place, count }: Revision) -> bool {
        *at(&self.0, place) == count
    }
}

/// Returns the index of the count of a subject.
const fn place(subject: Subject) -> u16 {
    // Ids of posts have their time in the high bits, and ids of users are dense. The product spreads both.
    let (half, kind, id) = match subject {
        Subject::User(id) => (0, 0, id),
        Subject::Post(id) => (0, 1, id),
        Subject::Media(id) => (HALF, 2, id),
        Subject::Marks(user) => (HALF, 3, user),
        Subject::Profile(id) => (HALF, 4, id),
        Subject::Content(id) => (HALF, 5, id),
    };
    let spread = (id.wrapping_mul(8) + kind).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    half + (spread >> 49) as u16
}

fn at<T>(counts: &[T], place: u16) -> &T {
    let Some(count) = counts.get(usize::from(place)) else {
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
        let count = |subject| revisions.get(subject).count;
        assert_eq!(count(Subject::User(7)), 1);
        let raised = others.iter().filter(|other| count(**other) > 0).count();
        assert!(raised <= 2, "{raised} of 3000");
        others.iter().for_each(|other| revisions.raise(*other));
        assert_eq!(revisions.copy().revision(others[0]), revisions.get(others[0]));
        let greatest = others.iter().map(|other| count(*other)).max();
        assert!(greatest.unwrap() <= 4, "spread over the table: {greatest:?}");
    }

    #[test]
    fn counts_of_reactions_share_none_with_contents_and_profiles() {
        let revisions = Revisions::default();
        for id in 0..20_000 {
            revisions.raise(Subject::User(id));
            revisions.raise(Subject::Post(id * 4_096));
        }
        for id in 0..20_000 {
            for subject in [Subject::Profile(id), Subject::Content(id * 4_096)] {
                assert_eq!(revisions.get(subject).count, 0, "{subject:?}");
            }
        }
    }
}
