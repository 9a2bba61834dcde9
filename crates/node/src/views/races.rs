//! Under every order of the steps of the threads, a home timeline that is gathered while a post is published has the
//! post once.

use std::sync::Arc;

use feed::HomeAuthors;
use feed::{Cursor, Effect, Page, PageOf, PostId, UserId};
use loom::sync::atomic::{AtomicU64, Ordering};

use super::shard::Shard;
use super::stream::Stream;
use super::timeline::Timeline;
use crate::sync::Mutex;

const ADA: UserId = UserId(1);
const BOB: UserId = UserId(2);
const POST: PostId = PostId(9);

struct Subject {
    /// Whether the facts have the post.
    facts: AtomicU64,
    stream: Stream,
    shard: Mutex<Shard>,
}

impl Subject {
    fn new() -> Arc<Self> {
        let shard = Mutex::new(Shard::new(Arc::default(), 1_000));
        Arc::new(Self { facts: AtomicU64::new(0), stream: Stream::default(), shard })
    }

    fn write(&self) {
        self.facts.store(1, Ordering::Relaxed);
        self.stream.publish([Effect::Posted {
            post: POST,
            author: BOB,
            listed: Default::default(),
            users: None,
        }]);
    }

    /// As `Views::home` does it.
    fn gather(&self) {
        let head = self.stream.head();
        let has_post = self.facts.load(Ordering::Relaxed) == 1;
        let items = has_post.then_some(POST).into_iter().collect();
        let newest = PageOf { items, more: false };
        let timeline = Timeline::new(ADA, HomeAuthors::of(vec![BOB]), &newest, head);
        assert!(self.shard.lock().insert(&self.stream, timeline, usize::MAX));
    }

    fn deliver(&self) {
        let mut shard = self.shard.lock();
        shard.catch_up(&self.stream, 10);
        let consumed = shard.cursor();
        drop(shard);
        self.stream.trim(consumed);
    }

    fn home(&self) -> Vec<PostId> {
        let page = Page { cursor: Cursor::Newest, limit: 10 };
        let mut posts = Vec::new();
        self.shard.lock().page(&self.stream, ADA, &page, &mut posts).unwrap();
        posts
    }
}

fn spawn(subject: &Arc<Subject>, work: fn(&Subject)) -> loom::thread::JoinHandle<()> {
    let subject = Arc::clone(subject);
    loom::thread::spawn(move || work(&subject))
}

#[test]
fn a_post_that_is_published_while_a_home_is_gathered_is_in_it_once() {
    loom::model(|| {
        let subject = Subject::new();
        let writer = spawn(&subject, Subject::write);
        subject.gather();
        writer.join().unwrap();
        assert_eq!(subject.home(), [POST]);
    });
}

#[test]
fn a_post_that_is_delivered_while_a_home_is_gathered_is_in_it_once() {
    loom::model(|| {
        let subject = Subject::new();
        let writer = spawn(&subject, Subject::write);
        let deliverer = spawn(&subject, Subject::deliver);
        subject.gather();
        writer.join().unwrap();
        deliverer.join().unwrap();
        assert_eq!(subject.home(), [POST]);
    });
}

#[test]
fn a_read_after_the_head_was_seen_has_all_up_to_it() {
    loom::model(|| {
        let subject = Subject::new();
        let writer = spawn(&subject, |subject| {
            subject.write();
            subject.write();
        });
        let head = subject.stream.head();
        let piece = subject.stream.read(0).unwrap();
        assert!(piece.len() as u64 >= head);
        writer.join().unwrap();
        assert_eq!(subject.stream.head(), 2);
    });
}
