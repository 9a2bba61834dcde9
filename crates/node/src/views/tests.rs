//! A shard that is interrupted at any step of its work still answers as the facts do.

mod hidden;
mod listener;
mod posts;

use std::collections::BTreeSet;
use std::sync::Arc;

use feed::HomeAuthors;
use feed::timeline::gather;
use feed::{
    Bio, Command, Cursor, Effect, Facts, Handle, Listed, Name, Page, PageOf, PostEdit, PostId,
    PostText, Reaction, StampedCommand, Txn, UserId, UserRef, apply,
};
use listener::Listener;
pub(super) use posts::new_post;
use posts::relation;
use proptest::prelude::*;
use rows::Stamp;
use testkit::MemoryRows;

use super::shard::Shard;
use super::stream::Stream;
use super::timeline::{KEPT, Timeline};
use super::watchers::Watchers;
use super::{BACKLOG_MAX, Views};

const USERS: u32 = 5;

#[derive(Clone, Debug)]
enum Step {
    Follow(u32, u32, bool),
    Block(u32, u32, bool),
    Mute(u32, u32, bool),
    /// The first user follows the other, with boosts or without.
    FollowWith(u32, u32, bool),
    Boost(u32, usize),
    Post(u32, Option<u32>),
    Delete(usize),
    Edit(usize),
    DeleteUser(u32),
    /// The deliverer or a reader does this number of steps.
    CatchUp(usize),
    /// A reader gathers a timeline, and inserts it much later.
    Gather(u32),
    Insert,
    Read(u32),
    /// A watcher of the user reads what is new.
    Listen(u32),
    /// A budget so small that all but the newest timeline are evicted.
    Evict(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let user = 0..USERS;
    prop_oneof![
        3 => (user.clone(), user.clone(), any::<bool>()).prop_map(|(a, b, on)| Step::Follow(a, b, on)),
        1 => (user.clone(), user.clone(), any::<bool>()).prop_map(|(a, b, on)| Step::Block(a, b, on)),
        2 => (user.clone(), user.clone(), any::<bool>()).prop_map(|(a, b, on)| Step::Mute(a, b, on)),
        2 => (user.clone(), user.clone(), any::<bool>()).prop_map(|(a, b, on)| Step::FollowWith(a, b, on)),
        6 => (user.clone(), prop::option::of(user.clone())).prop_map(|(a, to)| Step::Post(a, to)),
        3 => (user.clone(), 0usize..1_000).prop_map(|(a, at)| Step::Boost(a, at)),
        2 => (0usize..1_000).prop_map(Step::Delete),
        1 => (0usize..1_000).prop_map(Step::Edit),
        1 => user.clone().prop_map(Step::DeleteUser),
        6 => (0usize..6).prop_map(Step::CatchUp),
        2 => user.clone().prop_map(Step::Gather),
        2 => Just(Step::Insert),
        6 => user.clone().prop_map(Step::Read),
        6 => user.clone().prop_map(Step::Listen),
        1 => user.prop_map(Step::Evict),
    ]
}

#[derive(Default)]
struct Subject {
    rows: MemoryRows,
    stamp: u64,
    posts: Vec<PostId>,
    stream: Stream,
    shard: Shard,
    gathered: Option<Timeline>,
    watchers: Arc<Watchers>,
    listeners: Vec<Listener>,
}

impl Subject {
    fn new(lag_max: u64) -> Self {
        let mut subject = Self::default();
        subject.shard = Shard::new(Arc::clone(&subject.watchers), lag_max);
        for user in 0..USERS {
            let Ok(handle) = Handle::parse(&format!("u{user}")) else { panic!("a handle") };
            subject.apply(Command::Register { handle, name: Name::default(), bio: Bio::default() });
            subject.listeners.push(Listener::new(subject.watchers.watch(UserId(user))));
        }
        subject
    }

    fn apply(&mut self, command: Command) {
        self.stamp += 1;
        let entry = StampedCommand { stamp: Stamp(self.stamp), idempotency: None, command };
        let mut effects: Vec<Effect> = Vec::new();
        let _ = apply(&mut Txn::new(&mut self.rows), &entry, &mut effects).outcome;
        self.stream.publish(effects);
    }

    /// home(user) by the facts.
    fn home(&self, user: u32, limit: usize) -> PageOf<PostId> {
        let facts = Facts::new(&self.rows);
        let page = Page { cursor: Cursor::Newest, limit };
        let user = UserId(user);
        gather(facts, user, &facts.home_authors(user), &page).posts
    }

    fn gather(&self, user: u32) -> Timeline {
        let following = Facts::new(&self.rows).home_authors(UserId(user));
        let newest = self.home(user, KEPT);
        Timeline::new(UserId(user), following, &newest, self.stream.head())
    }

    fn read(&mut self, user: u32) {
        let page = Page { cursor: Cursor::Newest, limit: 8 };
        let mut items = Vec::new();
        if let Some(found) = self.shard.page(&self.stream, UserId(user), &page, &mut items) {
            assert_eq!(PageOf { items, more: found.more }, self.home(user, 8), "home of {user}");
        }
    }

    /// home(user) by the facts, each post with when it was last edited.
    fn texts(&self, user: u32) -> BTreeSet<(PostId, u64)> {
        let facts = Facts::new(&self.rows);
        // What a boost shows may be deleted.
        let edited = |post| facts.stored_post(post).unwrap().edited.map_or(0, |at| at.0);
        self.home(user, 1_000).items.into_iter().map(|post| (post, edited(post))).collect()
    }

    /// As a live stream does it: first what changed, then the newest posts, again until nothing is new.
    fn listen(&mut self, user: u32) {
        loop {
            let listener = &mut self.listeners[user as usize];
            let changes = listener.news.borrow_and_update().after(listener.read);
            let page = Page { cursor: Cursor::After(PostId(listener.position)), limit: 1_000 };
            let mut items = Vec::new();
            if self.shard.page(&self.stream, UserId(user), &page, &mut items).is_none() {
                let timeline = self.gather(user);
                assert!(self.shard.insert(&self.stream, timeline, usize::MAX));
                // What is older than what is kept of the timeline is read from the facts.
                items = self.home(user, 1_000).items;
            }
            let texts = self.texts(user);
            let listener = &mut self.listeners[user as usize];
            listener.apply(&items, &changes, &texts, self.stamp);
            // Reading the timeline may have made it apply changes.
            if listener.news.borrow().end() == listener.read {
                assert_eq!(listener.shown, texts, "what is shown of the home of {user}");
                return;
            }
        }
    }

    fn step(&mut self, step: &Step) {
        let id = |user| UserRef::Id(UserId(user));
        if let Step::Gather(user) | Step::Read(user) | Step::Listen(user) | Step::Evict(user) =
            *step
            && Facts::new(&self.rows).is_deleted(UserId(user))
        {
            return;
        }
        if let Some(command) = relation(step) {
            return self.apply(command);
        }
        match *step {
            Step::Post(author, to) => {
                let new = new_post(id(author), to, self.stamp);
                self.apply(Command::Publish(Box::new(new)));
                self.posts.push(PostId(self.stamp));
            }
            Step::Delete(at) if !self.posts.is_empty() => {
                let post = self.posts.swap_remove(at % self.posts.len());
                self.apply(Command::DeletePost { post });
            }
            Step::Edit(at) if !self.posts.is_empty() => {
                let post = self.posts[at % self.posts.len()];
                let Ok(text) = PostText::parse(&format!("edit {}", self.stamp)) else {
                    panic!("a text")
                };
                self.apply(Command::Edit(Box::new(PostEdit::of_text(post, text))));
            }
            Step::Boost(user, at) if !self.posts.is_empty() => {
                let post = self.posts[at % self.posts.len()];
                let (user, reaction) = (id(user), Reaction::Boost);
                self.apply(Command::React { user, post, reaction, on: true });
            }
            Step::CatchUp(steps) => {
                self.shard.catch_up(&self.stream, steps);
            }
            Step::Gather(user) => self.gathered = Some(self.gather(user)),
            Step::Insert => {
                if let Some(timeline) = self.gathered.take() {
                    self.shard.insert(&self.stream, timeline, usize::MAX);
                }
            }
            Step::Read(user) => self.read(user),
            Step::Listen(user) => self.listen(user),
            Step::Evict(user) => {
                let timeline = self.gather(user);
                assert!(self.shard.insert(&self.stream, timeline, 1), "nothing has changed since");
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn a_shard_in_the_middle_of_its_work_answers_as_the_facts_do(
        lag_max in prop_oneof![Just(0), 0..8_u64, Just(u64::MAX)],
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut subject = Subject::new(lag_max);
        for user in 0..USERS {
            subject.step(&Step::Gather(user));
            subject.step(&Step::Insert);
        }
        for step in &steps {
            subject.step(step);
            subject.shard.check();
        }
        (0..USERS).for_each(|user| subject.step(&Step::Read(user)));
        while !subject.shard.catch_up(&subject.stream, 1) {}
        (0..USERS).for_each(|user| subject.step(&Step::Read(user)));
        (0..USERS).for_each(|user| subject.step(&Step::Listen(user)));
    }
}

/// A post of author 0, whom all users follow.
fn posted(post: u64) -> Effect {
    Effect::Posted { post: PostId(post), author: UserId(0), listed: Listed::default(), users: None }
}

/// An empty timeline of a user who follows author 0.
fn follower(user: u32) -> Timeline {
    let page = PageOf { items: Vec::new(), more: false };
    Timeline::new(UserId(user), HomeAuthors::of(vec![UserId(0)]), &page, 0)
}

fn newest(shard: &mut Shard, stream: &Stream, user: u32) -> Option<u64> {
    let mut items = Vec::new();
    let page = Page { cursor: Cursor::Newest, limit: 1 };
    shard.page(stream, UserId(user), &page, &mut items)?;
    Some(items[0].0)
}

#[test]
fn a_shard_that_lags_far_takes_one_step_for_a_post_however_many_follow() {
    let (stream, mut shard) = (Stream::default(), Shard::new(Arc::default(), 10));
    for user in 1..=1_000 {
        assert!(shard.insert(&stream, follower(user), usize::MAX));
    }
    stream.publish((1..=10).map(posted));
    assert!(!shard.catch_up(&stream, 2_000), "one of ten posts is spread, and most of another");
    stream.publish((11..=13).map(posted));
    assert!(shard.catch_up(&stream, 12), "twelve posts, a step for each");
    for user in [1, 500, 1_000] {
        assert_eq!(newest(&mut shard, &stream, user), Some(13));
    }
    stream.publish([posted(14)]);
    let before = shard.tally.deliveries;
    while !shard.catch_up(&stream, 100) {}
    assert_eq!(shard.tally.deliveries - before, 3, "to those who were read since");
    assert_eq!(newest(&mut shard, &stream, 2), Some(14));
}

#[test]
fn a_timeline_that_is_older_than_many_gaps_misses_nothing() {
    let (stream, mut shard) = (Stream::default(), Shard::new(Arc::default(), 10));
    shard.insert(&stream, follower(1), usize::MAX);
    for round in 0..20 {
        stream.publish((1 + 11 * round..=11 + 11 * round).map(posted));
        shard.catch_up(&stream, 100);
    }
    let mut items = Vec::new();
    let page = Page { cursor: Cursor::Newest, limit: 100 };
    shard.page(&stream, UserId(1), &page, &mut items);
    assert_eq!(items, (121..=220).rev().map(PostId).collect::<Vec<_>>());
}

#[test]
fn watchers_are_woken_when_posts_are_not_spread() {
    let watchers = Arc::new(Watchers::default());
    let (stream, mut shard) = (Stream::default(), Shard::new(Arc::clone(&watchers), 10));
    let mut news = watchers.watch(UserId(1));
    shard.insert(&stream, follower(1), usize::MAX);
    stream.publish((1..=11).map(posted));
    news.mark_unchanged();
    shard.catch_up(&stream, 100);
    assert!(news.has_changed().unwrap());
    assert_eq!(newest(&mut shard, &stream, 1), Some(11));
    news.mark_unchanged();
    stream.publish([posted(12)]);
    shard.catch_up(&stream, 100);
    assert!(news.has_changed().unwrap(), "having read, it is delivered to again");
}

#[test]
fn a_post_adds_one_effect_however_many_it_mentions_and_wakes_them() {
    let views = Views::new(1 << 20, 1 << 20, PostId(0));
    let rows = MemoryRows::default();
    let mut news = views.watch(Facts::new(&rows), UserId(77));
    let mentions = (0..100).map(|user| Effect::Mentioned { post: PostId(1), user: UserId(user) });
    let effects: Vec<_> = [posted(1)].into_iter().chain(mentions).collect();
    for _ in 0..100 {
        views.publish(&effects);
    }
    assert_eq!(views.sizes().stream_effects, 100);
    assert!(news.has_changed().unwrap() && news.borrow_and_update().mentions == 100);
}

#[tokio::test]
async fn a_backlog_that_is_too_long_accepts_no_changes_until_it_is_delivered() {
    let views = Views::new(1 << 20, 1 << 20, PostId(0));
    let group: Vec<_> = (0..4_096).map(posted).collect();
    let groups = BACKLOG_MAX / group.len() as u64;
    for _ in 0..groups {
        assert!(views.has_room());
        views.publish(&group);
    }
    assert!(!views.has_room(), "{} effects", views.sizes().stream_effects);
    assert_eq!(views.sizes().stream_effects, BACKLOG_MAX, "the writer delivers nothing itself");
    assert!(views.is_delivery_urgent());
    let mut room = std::pin::pin!(views.room());
    let waits = poll_once(room.as_mut());
    assert!(waits.is_pending());
    assert!(views.deliver());
    assert!(views.has_room() && !views.is_delivery_urgent());
    assert!(poll_once(room.as_mut()).is_ready());
    assert!(views.sizes().stream_effects < BACKLOG_MAX, "the stream is trimmed");
}

/// Polls once.
fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
    future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

#[test]
#[ignore = "measures deliveries and drops"]
fn measure_deliveries_and_drops() {
    const TIMELINES: u32 = 25_000;
    const FOLLOWING: u32 = 120;
    let (stream, mut shard) = (Stream::default(), Shard::new(Arc::default(), u64::MAX));
    let mut state = 1_u64;
    let mut random = |below: u32| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(below)) as u32
    };
    let page = PageOf { items: Vec::new(), more: false };
    for user in 0..TIMELINES {
        // All follow one author; the others are spread.
        let mut following: Vec<_> =
            (1..FOLLOWING).map(|_| UserId(200_000 + random(100_000))).collect();
        following.push(UserId(1_000_000));
        following.sort_unstable();
        following.dedup();
        shard.insert(
            &stream,
            Timeline::new(UserId(user), HomeAuthors::of(following), &page, 0),
            usize::MAX,
        );
    }
    let posts = 400;
    for post in 0..posts {
        let author = UserId(1_000_000);
        stream.publish([Effect::Posted {
            post: PostId(1 + post),
            author,
            listed: Listed::default(),
            users: None,
        }]);
    }
    let start = std::time::Instant::now();
    while !shard.catch_up(&stream, 4_096) {}
    let deliveries = posts * u64::from(TIMELINES);
    println!("{:.1} ns per delivery", start.elapsed().as_nanos() as f64 / deliveries as f64);
    let other = UserId(1_000_000);
    let unfollowed = |user| Effect::FollowingChanged { user: UserId(user), other, follows: false };
    let effects: Vec<_> = (0..TIMELINES).map(unfollowed).collect();
    let bytes = shard.bytes();
    stream.publish(effects);
    let start = std::time::Instant::now();
    while !shard.catch_up(&stream, 4_096) {}
    println!(
        "{:.1} us per drop, {} bytes per timeline",
        start.elapsed().as_micros() as f64 / f64::from(TIMELINES),
        bytes / TIMELINES as usize
    );
}
