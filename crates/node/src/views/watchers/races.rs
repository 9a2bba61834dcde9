//! Tests under every order of two threads' steps: a watcher misses nothing.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};

use super::*;

const ADA: UserId = UserId(1);

#[test]
fn a_watch_that_begins_during_a_change_reads_it_or_is_notified() {
    loom::model(|| {
        let watchers = Arc::new(Watchers::default());
        let facts = Arc::new(AtomicU64::new(0));
        let effects = Arc::new(Effects::new(Position(0)));
        let writer = {
            let (watchers, facts) = (Arc::clone(&watchers), Arc::clone(&facts));
            let effects = Arc::clone(&effects);
            loom::thread::spawn(move || {
                facts.store(1, Ordering::Relaxed);
                effects.publish(Position(1), vec![Effect::Notified { user: ADA }]);
                if let Ok(Some(_)) = watchers.next(&effects) {
                    watchers.changed(ADA, &[Change::Missed]);
                }
            })
        };
        let news = watchers.watch(ADA, &effects);
        let has_read = facts.load(Ordering::Relaxed) == 1;
        writer.join().unwrap();
        assert!(has_read || news.borrow().end() == 1);
    });
}

#[test]
fn a_watch_survives_the_end_of_another() {
    loom::model(|| {
        let watchers = Arc::new(Watchers::default());
        let effects = Arc::new(Effects::new(Position(0)));
        let first = watchers.watch(ADA, &effects);
        let second = {
            let (watchers, effects) = (Arc::clone(&watchers), Arc::clone(&effects));
            loom::thread::spawn(move || watchers.watch(ADA, &effects))
        };
        drop(first);
        watchers.unwatch(ADA);
        let second = second.join().unwrap();
        watchers.all_missed(false);
        assert_eq!(second.borrow().end(), 1);
    });
}
