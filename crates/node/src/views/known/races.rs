//! Under every order of the steps of two threads, an entry equals the facts.

use std::sync::Arc;

use loom::sync::atomic::AtomicU32;

use super::{Known, Ordering, SHARDS, UserId};

const ADA: UserId = UserId(1);

fn check(readers: usize) {
    loom::model(move || {
        let known = Arc::new(Known::<u32>::new(SHARDS << 10));
        let facts = Arc::new(AtomicU32::new(0));
        let writer = {
            let (known, facts) = (Arc::clone(&known), Arc::clone(&facts));
            loom::thread::spawn(move || {
                facts.store(1, Ordering::Relaxed);
                known.change(ADA, |_| Some(1));
            })
        };
        let read = |known: &Known<u32>, facts: &AtomicU32| {
            known.look_or_read(ADA, || facts.load(Ordering::Relaxed), |_| ());
        };
        let others: Vec<_> = (1..readers)
            .map(|_| {
                let (known, facts) = (Arc::clone(&known), Arc::clone(&facts));
                loom::thread::spawn(move || read(&known, &facts))
            })
            .collect();
        read(&known, &facts);
        others.into_iter().chain([writer]).for_each(|thread| thread.join().unwrap());
        assert!(known.look().get(&ADA).is_none_or(|value| *value == 1));
    });
}

#[test]
fn an_entry_that_was_read_while_it_changed_is_current() {
    check(1);
}

#[test]
fn an_entry_that_two_readers_read_while_it_changed_is_current() {
    check(2);
}
