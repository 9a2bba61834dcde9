//! Under every order of the steps of the threads, a home has a post once, from when it is visible on, and a watcher is
//! woken for it.

use std::sync::Arc;

use feed::{Cursor, Effect, HomeAuthors, Page, PostId, UserId};
use loom::sync::atomic::{AtomicU64, Ordering};

use super::effects::Effects;
use super::newest::NewestPosts;
use super::timeline::{Found, Timeline};
use super::watchers::Watchers;
use crate::sync::Mutex;

const ADA: UserId = UserId(1);
const BOB: UserId = UserId(2);
const POST: PostId = PostId(9);

fn posted() -> Effect {
    Effect::Posted { post: POST, author: BOB, listed: Default::default(), users: None }
}

/// Ada, who follows Bob.
struct Subject {
    /// Whether the facts have the post.
    facts: AtomicU64,
    newest: NewestPosts,
    /// Whether the post is visible.
    visible: AtomicU64,
    timeline: Mutex<Option<Timeline>>,
}

impl Subject {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            facts: AtomicU64::new(0),
            newest: NewestPosts::new(1 << 10, 1),
            visible: AtomicU64::new(0),
            timeline: Mutex::default(),
        })
    }

    /// As the writer does it.
    fn write(&self) {
        self.facts.store(1, Ordering::Relaxed);
        self.newest.apply(&[posted()]);
        self.visible.store(1, Ordering::Release);
    }

    /// As `Views::timeline` does it, if memory has none of the posts.
    fn gather(&self) {
        let position = self.newest.position();
        let has_post = self.facts.load(Ordering::Relaxed) == 1;
        let posts: &[PostId] = if has_post { &[POST] } else { &[] };
        let home = (HomeAuthors::of(vec![BOB]), false);
        *self.timeline.lock() = Some(Timeline::new(ADA, home, (posts, false), position));
    }

    fn home(&self) -> Vec<PostId> {
        let page = Page { cursor: Cursor::Newest, limit: 10 };
        let mut posts = Vec::new();
        let timeline = self.timeline.lock();
        let found = timeline.as_ref().unwrap().page(&self.newest, &page, &mut posts);
        assert_eq!(found, Found::Page { more: false, follows_tags: false });
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
        assert_eq!(subject.home(), [POST]);
    });
}

#[test]
fn a_home_has_a_post_that_is_visible() {
    loom::model(|| {
        let subject = Subject::new();
        subject.gather();
        let writer = spawn(&subject, Subject::write);
        let is_visible = subject.visible.load(Ordering::Acquire) == 1;
        let home = subject.home();
        assert!(!is_visible || home == [POST]);
        writer.join().unwrap();
        assert_eq!(subject.home(), [POST]);
    });
}

#[test]
fn a_watcher_that_begins_while_a_post_is_published_reads_it_or_is_to_be_woken() {
    loom::model(|| {
        let subject = Subject::new();
        subject.gather();
        let watchers = Arc::new(Watchers::default());
        let writer = {
            let (subject, watchers) = (Arc::clone(&subject), Arc::clone(&watchers));
            loom::thread::spawn(move || {
                subject.write();
                watchers.for_writer().is_some()
            })
        };
        let _news = watchers.watch(ADA);
        let has_read = subject.home() == [POST];
        assert!(writer.join().unwrap() || has_read);
    });
}

#[test]
fn a_consumer_that_sees_the_head_has_all_up_to_it() {
    loom::model(|| {
        let effects = Arc::new(Effects::default());
        let writer = {
            let effects = Arc::clone(&effects);
            loom::thread::spawn(move || {
                effects.publish([posted()]);
                effects.publish([posted()]);
            })
        };
        let head = effects.head();
        let piece = effects.read(0).unwrap();
        assert!(piece.len() as u64 >= head);
        writer.join().unwrap();
        assert_eq!(effects.head(), 2);
    });
}
