//! Under every order of the steps of two threads, a watcher misses nothing.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};

use super::*;

const ADA: UserId = UserId(1);

#[test]
fn a_watch_that_begins_during_a_change_reads_it_or_is_notified() {
    loom::model(|| {
        let watchers = Arc::new(Watchers::default());
        let facts = Arc::new(AtomicU64::new(0));
        let writer = {
            let (watchers, facts) = (Arc::clone(&watchers), Arc::clone(&facts));
            loom::thread::spawn(move || {
                facts.store(1, Ordering::Relaxed);
                watchers.for_writer().inspect(|table| table.mentioned(ADA));
            })
        };
        let news = watchers.watch(ADA);
        let has_read = facts.load(Ordering::Relaxed) == 1;
        writer.join().unwrap();
        assert!(has_read || news.borrow().mentions == 1);
    });
}

#[test]
fn a_watch_survives_the_end_of_another() {
    loom::model(|| {
        let watchers = Arc::new(Watchers::default());
        let first = watchers.watch(ADA);
        let second = {
            let watchers = Arc::clone(&watchers);
            loom::thread::spawn(move || watchers.watch(ADA))
        };
        drop(first);
        watchers.unwatch(ADA);
        let second = second.join().unwrap();
        watchers.for_writer().inspect(|table| table.mentioned(ADA));
        assert_eq!(second.borrow().mentions, 1);
    });
}
