//! Tests of the memory of samples: what the allocator counts, what the meter counts, and the documented bounds. This is
//! a separate test binary because it replaces the global allocator.
//!
//! The allocator counts separately for each thread, so tests do not affect each other.
#![allow(unsafe_code, reason = "only an allocator that counts can check this")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use knn::{Bits, LABEL_BYTES, LABEL_PLACE_BYTES, Meter, SAMPLE_BYTES, SET_BYTES, Samples};

thread_local! {
    /// Bytes that this thread has allocated and not freed.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: the system allocator does all the work. The counter has no destructor, so using it does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as isize);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Subject {
    samples: Samples,
    meter: Meter,
    before: isize,
    /// Maximum number of labels so far.
    labels_max: usize,
}

impl Subject {
    fn new() -> Self {
        let before = HELD.get();
        let meter = Meter::default();
        Self { samples: Samples::counted_by(&meter), meter, before, labels_max: 0 }
    }

    fn push(&mut self, id: u64, label: u64) {
        // Names have the maximum length.
        self.samples.push(id, &format!("{label:032}"), &Bits::ZERO);
        self.labels_max = self.labels_max.max(label as usize + 1);
    }

    /// Checks that the samples and `snapshots` allocate at most what the meter counts, and that the meter counts at
    /// most the documented bounds. The snapshots share nothing with the samples.
    #[track_caller]
    fn check(&self, snapshots: &[Samples]) {
        let held = usize::try_from(HELD.get() - self.before).unwrap();
        let all = snapshots.iter().chain([&self.samples]);
        let promised = |one: &Samples| {
            one.len() * SAMPLE_BYTES
                + one.counts().count() * LABEL_BYTES
                + self.labels_max * LABEL_PLACE_BYTES
        };
        let promised: usize = all.map(promised).sum();
        let (metered, others) = (self.meter.bytes(), (1 + snapshots.len()) * SET_BYTES);
        assert!(held <= metered + others, "holds {held}, says {metered}");
        assert!(metered <= promised + others, "says {metered}, promised {promised}");
    }
}

#[test]
fn samples_hold_no_more_than_is_promised_for_each() {
    let mut subject = Subject::new();
    for id in 0..20_000 {
        subject.push(id, id % 10);
        if id % 97 == 0 {
            subject.check(&[]);
        }
    }
    // Each part loses most of its samples, but not enough to be merged with the next part.
    for id in (0..20_000).filter(|id| id % 4_096 >= 1_100) {
        assert!(subject.samples.remove(id));
        if id % 97 == 0 {
            subject.check(&[]);
        }
    }
    subject.check(&[]);
    for id in (0..20_000).filter(|id| id % 4_096 < 1_100) {
        assert!(subject.samples.remove(id));
    }
    assert!(subject.samples.is_empty());
    subject.check(&[]);
}

#[test]
fn labels_that_come_and_go_hold_no_more_than_is_promised_for_each() {
    let mut subject = Subject::new();
    for id in 0..4_096 {
        subject.push(id, id);
        subject.check(&[]);
    }
    for id in (0..4_096).filter(|id| id % 7 != 0) {
        assert!(subject.samples.remove(id));
        subject.check(&[]);
    }
    for id in 0..4_096 {
        subject.push(10_000 + id, id);
        subject.check(&[]);
    }
}

#[test]
fn a_snapshot_is_counted_as_far_as_it_shares_nothing_and_until_it_is_dropped() {
    let mut subject = Subject::new();
    (0..12_288).for_each(|id| subject.push(id, 0));
    let alone = subject.meter.bytes();
    let snapshots = [subject.samples.clone(), subject.samples.clone()];
    assert!(subject.meter.bytes() < alone + 2 * SET_BYTES, "vectors are shared");
    // Change one sample, so that one part is copied and the others stay shared.
    assert!(subject.samples.remove(0));
    let part = subject.meter.bytes() - alone;
    assert!((4_096 * 140..alone / 2).contains(&part), "{part} of {alone}");
    for id in [5_000, 10_000] {
        assert!(subject.samples.remove(id));
    }
    let [one, two] = snapshots;
    subject.check(std::slice::from_ref(&one));
    drop(one);
    assert!(subject.meter.bytes() > 2 * 12_288 * 140, "another snapshot has the same parts");
    drop(two);
    assert!(subject.meter.bytes() <= alone + SET_BYTES);
    let Subject { samples, meter, .. } = subject;
    drop(samples);
    assert_eq!(meter.bytes(), 0);
}

#[test]
fn a_sample_is_found_by_its_id() {
    let mut samples = knn::digits();
    samples.push(9_000, "mine", &Bits::from_fn(|at| at < 3));
    let (label, bits) = samples.sample(9_000).unwrap();
    assert_eq!((samples.name(label), bits.ones()), ("mine", 3));
    let (_, _, third) = samples.iter().find(|sample| sample.0 == 3).unwrap();
    assert_eq!(samples.sample(3).unwrap().1, third);
    assert!(samples.sample(9_001).is_none());
}
