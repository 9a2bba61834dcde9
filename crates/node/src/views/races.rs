//! Tests under every order of the threads' steps: a home timeline has a visible post exactly once, and the post wakes a
//! watcher.

use std::sync::Arc;

use commitlog::Position as GroupPosition;
use feed::{Effect, HomeAuthors, Page, PageOf, PostChange, PostId, UserId};
use loom::sync::atomic::{AtomicU64, Ordering};

use super::effects::Effects;
use super::newest::{NewestPosts, Position};
use super::sync::Mutex;
use super::timeline::{Found, Timeline};
use super::user_cache::UserCache;
use super::watchers::Watchers;

const ADA: UserId = UserId(1);
const BOB: UserId = UserId(2);
const POST: PostId = PostId(9);
const PAGE: Page = Page::newest(10);

fn posted() -> Effect {
    let (listed, change) = (Default::default(), PostChange::Published);
    Effect::Post { post: POST, author: BOB, listed, users: None, change }
}

fn timeline(authors: Vec<UserId>, items: Vec<PostId>, position: Position) -> Timeline {
    let gathered = PageOf { items, next: None };
    Timeline::new(ADA, (HomeAuthors::of(authors), false), (&gathered, false), position)
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

    /// Publishes the post in the writer's order.
    fn write(&self) {
        self.facts.store(1, Ordering::Relaxed);
        self.newest.apply(&[posted()]);
        self.visible.store(1, Ordering::Release);
    }

    /// Gathers the timeline like `Views::timeline`, with none of the posts in memory.
    fn gather(&self) {
        let position = self.newest.position();
        let has_post = self.facts.load(Ordering::Relaxed) == 1;
        let posts = if has_post { vec![POST] } else { Vec::new() };
        *self.timeline.lock() = Some(timeline(vec![BOB], posts, position));
    }

    fn home(&self) -> Vec<PostId> {
        let mut posts = Vec::new();
        let timeline = self.timeline.lock();
        let found = timeline.as_ref().unwrap().page(&self.newest, &PAGE, &mut posts);
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
        let shared = Arc::new((Watchers::default(), Effects::new(GroupPosition(0))));
        let writer = {
            let (subject, shared) = (Arc::clone(&subject), Arc::clone(&shared));
            loom::thread::spawn(move || {
                subject.write();
                shared.1.publish(GroupPosition(1), vec![posted()]);
                // Whether the waker would be woken.
                shared.0.are_any()
            })
        };
        let (watchers, effects) = (&shared.0, &shared.1);
        let _news = watchers.watch(ADA, effects);
        let has_read = subject.home() == [POST];
        let wakes = writer.join().unwrap();
        let is_left = watchers.next(effects).unwrap().is_some();
        assert!(has_read || wakes && is_left);
    });
}

/// Checks that a post that Bob makes after Ada unfollowed him is not in her home timeline. She reads the timeline
/// meanwhile; if `evicts`, another thread evicts it.
fn check_unfollow(is_known: bool, evicts: bool) {
    loom::model(move || {
        let timelines = Arc::new(UserCache::<Timeline>::new(1 << 20));
        let newest = Arc::new(NewestPosts::new(1 << 10, 1));
        let follows = Arc::new(AtomicU64::new(1));
        let gather = |follows: &AtomicU64, newest: &NewestPosts| {
            let position = newest.position();
            let follows = follows.load(Ordering::Relaxed) == 1;
            timeline(if follows { vec![BOB] } else { Vec::new() }, Vec::new(), position)
        };
        if is_known {
            timelines.get_or_read(ADA, || gather(&follows, &newest), |_| ());
        }
        let writer = {
            let (timelines, newest) = (Arc::clone(&timelines), Arc::clone(&newest));
            let follows = Arc::clone(&follows);
            loom::thread::spawn(move || {
                follows.store(0, Ordering::Relaxed);
                timelines.change(ADA, |_| None);
                newest.apply(&[posted()]);
            })
        };
        let evicter = evicts.then(|| {
            let timelines = Arc::clone(&timelines);
            loom::thread::spawn(move || timelines.evict(ADA, |_| true))
        });
        let mut posts = Vec::new();
        let look = |timeline: &Timeline| timeline.page(&newest, &PAGE, &mut posts);
        let (_, is_current) = timelines.get_or_read(ADA, || gather(&follows, &newest), look);
        assert!(posts.is_empty() || !is_current);
        evicter.into_iter().chain([writer]).for_each(|thread| thread.join().unwrap());
        posts.clear();
        let look = timelines.reader();
        let kept = look.get(&ADA).map(|timeline| timeline.page(&newest, &PAGE, &mut posts));
        assert!(posts.is_empty(), "{kept:?}");
    });
}

#[test]
fn a_home_has_no_post_of_after_an_unfollow_during_which_it_is_gathered() {
    check_unfollow(false, false);
}

#[test]
fn a_home_has_no_post_of_after_an_unfollow_during_which_it_is_read() {
    check_unfollow(true, false);
}

#[test]
fn a_home_has_no_post_of_after_an_unfollow_during_which_it_is_evicted() {
    check_unfollow(true, true);
}
