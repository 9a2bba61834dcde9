//! Tests under every order of two threads' steps: an entry equals the facts.

use std::sync::Arc;

use loom::sync::atomic::AtomicU32;

use super::{Ordering, SHARDS, UserCache, UserId};

const ADA: UserId = UserId(1);

fn check(readers: usize) {
    loom::model(move || {
        let cache = Arc::new(UserCache::<u32>::new(SHARDS << 10));
        let facts = Arc::new(AtomicU32::new(0));
        let writer = {
            let (cache, facts) = (Arc::clone(&cache), Arc::clone(&facts));
            loom::thread::spawn(move || {
                facts.store(1, Ordering::Relaxed);
                cache.change(ADA, |_| Some(1));
            })
        };
        let read = |cache: &UserCache<u32>, facts: &AtomicU32| {
            cache.get_or_read(ADA, || facts.load(Ordering::Relaxed), |_| ());
        };
        let others: Vec<_> = (1..readers)
            .map(|_| {
                let (cache, facts) = (Arc::clone(&cache), Arc::clone(&facts));
                loom::thread::spawn(move || read(&cache, &facts))
            })
            .collect();
        read(&cache, &facts);
        others.into_iter().chain([writer]).for_each(|thread| thread.join().unwrap());
        assert!(cache.reader().get(&ADA).is_none_or(|value| *value == 1));
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
