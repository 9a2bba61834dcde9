//! Tests under every order of the threads' steps: a cached rendering is not older than the facts.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::*;

const ADA: UserId = UserId(1);
const KEY: EntityKey = EntityKey::Post(PostId(7));
const PARTS: Parts = Parts { author: ADA, other: ADA, post: None, is_boost: false };

/// Text of a post, and the number of its changes, which rises after each.
#[derive(Default)]
struct Facts {
    text: AtomicU8,
    changes: AtomicU32,
}

impl Revisions for Facts {
    fn revision(&self, _: Subject) -> Revision {
        Revision { place: 0, count: self.changes.load(Ordering::Acquire) }
    }

    fn is_current(&self, revision: Revision) -> bool {
        revision.count == self.changes.load(Ordering::Acquire)
    }
}

fn read(rendered: &Entities, facts: &Facts, out: &mut Vec<u8>) {
    let write = |text: &u8, out: &mut Vec<u8>| {
        out.push(*text);
        Some(())
    };
    if rendered.kept(facts, KEY, out).is_none() {
        let text = || Some(facts.text.load(Ordering::Relaxed));
        let text = Read::new(content_of(facts, PostId(7)), text).unwrap();
        rendered.render(facts, (KEY, &text, PARTS), write, out);
    }
}

fn check(readers: usize, preemptions: Option<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let rendered = Arc::new(Entities::new(1 << 10));
        let facts = Arc::new(Facts::default());
        let writer = {
            let (rendered, facts) = (Arc::clone(&rendered), Arc::clone(&facts));
            loom::thread::spawn(move || {
                facts.text.store(1, Ordering::Relaxed);
                facts.changes.fetch_add(1, Ordering::Release);
            })
        };
        let others: Vec<_> = (1..readers)
            .map(|_| {
                let (rendered, facts) = (Arc::clone(&rendered), Arc::clone(&facts));
                loom::thread::spawn(move || read(&rendered, &facts, &mut Vec::new()))
            })
            .collect();
        read(&rendered, &facts, &mut Vec::new());
        others.into_iter().chain([writer]).for_each(|thread| thread.join().unwrap());
        let mut out = Vec::new();
        read(&rendered, &facts, &mut out);
        assert_eq!(out, [1]);
    });
}

#[test]
fn a_post_that_was_rendered_while_it_changed_is_not_shown_later() {
    check(1, None);
}

#[test]
fn a_post_that_two_readers_rendered_while_it_changed_is_not_shown_later() {
    // The number of preemptions is limited, because trying all orders would take minutes.
    check(2, Some(3));
}
