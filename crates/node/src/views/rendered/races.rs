//! Under every order of the steps of the threads, what is kept is not older than the facts.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU8, Ordering};

use super::*;

const ADA: UserId = UserId(1);
const KEY: Key = Key::Post(7);

fn read(rendered: &Rendered, text: &AtomicU8, out: &mut Vec<u8>) {
    let write = |text: &u8, out: &mut Vec<u8>| {
        out.push(*text);
        Some(())
    };
    if rendered.kept(KEY, out).is_none() {
        let text = rendered.read(|| Some(text.load(Ordering::Relaxed))).unwrap();
        rendered.render(KEY, &text, ([ADA; 2], 0), write, out);
    }
}

fn check(readers: usize, preemptions: Option<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let rendered = Arc::new(Rendered::new(1 << 10, 1 << 10));
        let text = Arc::new(AtomicU8::new(0));
        let writer = {
            let (rendered, text) = (Arc::clone(&rendered), Arc::clone(&text));
            loom::thread::spawn(move || {
                text.store(1, Ordering::Relaxed);
                rendered.invalidate(ADA);
            })
        };
        let others: Vec<_> = (1..readers)
            .map(|_| {
                let (rendered, text) = (Arc::clone(&rendered), Arc::clone(&text));
                loom::thread::spawn(move || read(&rendered, &text, &mut Vec::new()))
            })
            .collect();
        read(&rendered, &text, &mut Vec::new());
        others.into_iter().chain([writer]).for_each(|thread| thread.join().unwrap());
        let mut out = Vec::new();
        read(&rendered, &text, &mut out);
        assert_eq!(out, [1]);
    });
}

#[test]
fn a_post_that_was_rendered_while_it_changed_is_not_shown_later() {
    check(1, None);
}

#[test]
fn a_post_that_two_readers_rendered_while_it_changed_is_not_shown_later() {
    // All orders would take minutes.
    check(2, Some(3));
}
