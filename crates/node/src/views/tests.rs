//! Tests that home timelines from memory equal those from the facts, whatever is in memory and whatever happens during
//! a read; and that a client with an open stream shows the same posts.

mod hidden;
mod listener;
mod posts;

use std::collections::BTreeSet;
use std::rc::Rc;

use commitlog::Position;
use feed::accounts::{AccountCommand, PasswordHash, Role};
use feed::{
    Bio, Command, Cursor, Effect, Facts, Handle, HomeAuthors, Input, Lifetime, Name, Page, PageOf,
    Patch, PostChange, PostId, PostText, Reaction, SampleId, SampleSetId, Shown, StampedCommand,
    StoryChange, StoryId, Txn, UserId, UserRef, apply, scan, timeline,
};
use listener::Listener;
pub(super) use posts::new_post;
use posts::relation;
use proptest::prelude::*;
use rows::Stamp;
use testkit::MemoryRows;

use super::effects::BYTES_MAX;
use super::newest::Small;
use super::timeline::{Found, Timeline};
use super::{Change, Views};

const USERS: u32 = 5;

#[derive(Clone, Debug)]
enum Step {
    Follow(u32, u32, bool),
    Block(u32, u32, bool),
    Mute(u32, u32, bool),
    /// The first user follows the second, with boosts or without.
    FollowWith(u32, u32, bool),
    Disable(u32, bool),
    Boost(u32, usize),
    Post(u32, Option<u32>),
    /// Many posts by one user.
    Posts(u32, usize),
    Delete(usize),
    Edit(usize),
    DeleteUser(u32),
    /// The views get some of the effects that the facts already show.
    Publish(usize),
    /// Older posts are loaded into memory.
    Load(usize),
    /// Some watchers are woken.
    Wake,
    /// A reader gathers a timeline and caches it; these steps happen before it is cached.
    Gather(u32, usize, Vec<Step>),
    Read(u32, Page),
    /// A watcher of the user reads the news.
    Listen(u32),
    Evict(u32),
    Restart,
    /// The user reads their home, and posts are loaded, while a command is half applied and then undone.
    Undone(u32, Box<Step>),
}

fn change() -> impl Strategy<Value = Step> {
    let user = || 0..USERS;
    let on = any::<bool>;
    prop_oneof![
        6 => (user(), user(), prop::bool::weighted(0.7)).prop_map(|(a, b, on)| Step::Follow(a, b, on)),
        1 => (user(), user(), on()).prop_map(|(a, b, on)| Step::Block(a, b, on)),
        2 => (user(), user(), on()).prop_map(|(a, b, on)| Step::Mute(a, b, on)),
        2 => (user(), user(), on()).prop_map(|(a, b, on)| Step::FollowWith(a, b, on)),
        1 => (user(), on()).prop_map(|(user, on)| Step::Disable(user, on)),
        8 => (user(), prop::option::of(user())).prop_map(|(a, to)| Step::Post(a, to)),
        1 => (user(), prop_oneof![1..20_usize, 90..130_usize]).prop_map(|(a, n)| Step::Posts(a, n)),
        4 => (user(), 0usize..1_000).prop_map(|(a, at)| Step::Boost(a, at)),
        3 => (0usize..1_000).prop_map(Step::Delete),
        1 => (0usize..1_000).prop_map(Step::Edit),
        1 => user().prop_map(Step::DeleteUser),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let user = || 0..USERS;
    let page = (0..3, 0u64..200, 1usize..120).prop_map(|(kind, at, limit)| {
        let cursor = match kind {
            0 => Cursor::Newest,
            1 => Cursor::Before(PostId(at)),
            _ => Cursor::After(PostId(at)),
        };
        Page::at(cursor, limit)
    });
    let meanwhile = prop_oneof![5 => change(), 3 => (1usize..4).prop_map(Step::Publish)];
    let meanwhile = prop::collection::vec(meanwhile, 0..5);
    prop_oneof![
        20 => change(),
        8 => (0usize..4).prop_map(Step::Publish),
        1 => (1usize..20).prop_map(Step::Load),
        2 => Just(Step::Wake),
        3 => (user(), 0usize..4, meanwhile).prop_map(|(user, at, steps)| Step::Gather(user, at, steps)),
        8 => (user(), page).prop_map(|(user, page)| Step::Read(user, page)),
        6 => user().prop_map(Step::Listen),
        1 => user().prop_map(Step::Evict),
        1 => Just(Step::Restart),
        2 => (user(), change()).prop_map(|(user, step)| Step::Undone(user, Box::new(step))),
    ]
}

/// Budgets of the views.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    timelines: usize,
    posts: usize,
    small: Small,
}

const LARGE: Sizes = Sizes { timelines: 1 << 20, posts: 1 << 20, small: Small::NOT };

fn sizes() -> impl Strategy<Value = Sizes> {
    let timelines = prop_oneof![1 => Just(1 << 10), 5 => Just(1 << 20)];
    let posts = prop_oneof![Just(0), 1_060..3_000_usize, Just(1 << 20)];
    let changes = prop_oneof![Just(0), 1..6_usize, Just(Small::NOT.changes_max)];
    let steps = prop_oneof![1 => 0..10_usize, 4 => Just(Small::NOT.steps_max)];
    (timelines, posts, changes, steps).prop_map(|(timelines, posts, changes_max, steps_max)| {
        Sizes { timelines, posts, small: Small { changes_max, steps_max } }
    })
}

struct Subject {
    sizes: Sizes,
    rows: MemoryRows,
    stamp: u64,
    posts: Vec<PostId>,
    /// Effects that the views do not have yet.
    pending: Vec<Effect>,
    /// Number of published groups.
    groups: u64,
    views: Rc<Views>,
    listeners: Vec<Listener>,
}

impl Subject {
    fn new(sizes: Sizes) -> Self {
        let mut subject = Self {
            sizes,
            rows: MemoryRows::default(),
            stamp: 0,
            posts: Vec::new(),
            pending: Vec::new(),
            groups: 0,
            views: Rc::new(Views::new((0, 0, 0), (Position(0), PostId(0)))),
            listeners: Vec::new(),
        };
        let Ok(password) = PasswordHash::parse("$argon2id$v=19$m=8,t=1,p=1$c2FsdA$aGFzaA") else {
            panic!("a hash")
        };
        for user in 0..USERS {
            let Ok(handle) = Handle::parse(&format!("u{user}")) else { panic!("a handle") };
            subject.apply(Command::Register { handle, name: Name::default(), bio: Bio::default() });
            let open = AccountCommand::Open {
                user: UserRef::Id(UserId(user)),
                email: None,
                password: password.clone(),
                role: Role::User,
            };
            subject.apply(Command::Account(open));
        }
        subject.restart();
        subject
    }

    fn restart(&mut self) {
        self.pending.clear();
        let Sizes { timelines, posts, small } = self.sizes;
        let after = (Position(self.groups), PostId(self.stamp + 1));
        self.views = Rc::new(Views::new((timelines, 4 * posts, 0), after));
        self.views.newest.make_small(small);
        let facts = Facts::new(&self.rows);
        let listeners = (0..USERS).map(|user| {
            let news = self.views.watch(facts, UserId(user));
            Listener::new(news, self.stamp, self.texts(user))
        });
        self.listeners = listeners.collect();
    }

    fn apply(&mut self, command: Command) {
        self.stamp += 1;
        let entry = StampedCommand { stamp: Stamp(self.stamp), idempotency: None, command };
        let _ = apply(&mut Txn::new(&mut self.rows), &entry, &mut self.pending).outcome;
    }

    fn publish(&mut self, effects: usize) {
        let effects = effects.min(self.pending.len());
        let effects = self.pending.drain(..effects).collect();
        self.groups += 1;
        self.views.publish(Position(self.groups), effects, false);
    }

    fn publish_all(&mut self) {
        self.publish(usize::MAX);
    }

    fn wake(&self) -> bool {
        self.views.wake(Facts::new(&self.rows))
    }

    /// Wakes watchers like the waker thread, until nothing is left to do.
    fn wake_all(&self) {
        while self.wake() {}
        self.views.wake_all();
    }

    /// Returns the unread changes of a watcher of the user.
    fn changes(&self, user: usize) -> Vec<Change> {
        let Listener { news, read, .. } = &self.listeners[user];
        news.borrow().after(*read).into_iter().map(|(_, change)| change).collect()
    }

    /// Returns the users whose watchers the pending effects wake.
    fn woken(&mut self) -> Vec<usize> {
        self.publish_all();
        self.wake_all();
        let is_woken = |listener: &mut Listener| {
            let is_woken = listener.news.has_changed().unwrap();
            listener.news.mark_unchanged();
            is_woken
        };
        let listeners = self.listeners.iter_mut().enumerate();
        listeners.filter_map(|(user, it)| is_woken(it).then_some(user)).collect()
    }

    fn is_gone(&self, user: u32) -> bool {
        Facts::new(&self.rows).is_deleted(UserId(user))
    }

    /// Returns the home timeline of the facts.
    fn home(&self, user: u32, page: &Page) -> PageOf<PostId> {
        let facts = Facts::new(&self.rows);
        let user = UserId(user);
        scan(page, timeline::source(facts, user, &facts.home_authors(user)), Shown::Yes)
    }

    fn check_page(&mut self, user: u32, page: &Page) {
        self.publish_all();
        if self.is_gone(user) {
            return;
        }
        let (facts, expected) = (Facts::new(&self.rows), self.home(user, page));
        // The first read may gather the timeline, and the second one finds it.
        for read in ["first", "second"] {
            let found = self.views.home(facts, UserId(user), page, PostId(self.stamp));
            assert_eq!(found, expected, "home of {user}, {page:?}, {read} read");
        }
        let mut items = Vec::new();
        if let Some(more) = self.views.try_home(UserId(user), page, &mut items) {
            let found = PageOf::newest_first(items, more, page);
            assert_eq!(found, expected, "home of {user} in memory, {page:?}");
        }
    }

    /// Returns the home timeline of the facts without boosts, each post with the time of its last edit. Boosts are left
    /// out, because a stream does not show a boost that appears long after it was made.
    fn texts(&self, user: u32) -> BTreeSet<(PostId, u64)> {
        let facts = Facts::new(&self.rows);
        let home = self.home(user, &newest(10_000)).items.into_iter();
        let texts = home.filter_map(|id| {
            let post = facts.stored_post(id).unwrap();
            post.boost.is_none().then(|| (id, post.edited.map_or(0, |at| at.0)))
        });
        texts.collect()
    }

    /// Reads like a live stream: first changes, then the newest posts, until nothing is new.
    fn listen(&mut self, user: u32) {
        self.publish_all();
        self.wake_all();
        if self.is_gone(user) {
            return;
        }
        let facts = Facts::new(&self.rows);
        let texts = self.texts(user);
        let listener = &mut self.listeners[user as usize];
        let woken = listener.news.has_changed().unwrap();
        let changes = listener.news.borrow_and_update().after(listener.read);
        // Old posts that appear again wake no watcher.
        if !woken && changes.is_empty() {
            assert!(texts.iter().all(|post| listener.shows(post.0)), "{user} is not woken");
        }
        let page = Page::at(Cursor::After(PostId(listener.position)), 10_000);
        let home = self.views.home(facts, UserId(user), &page, PostId(self.stamp)).items;
        listener.apply(&home, &changes, &texts, self.stamp);
        assert_eq!(listener.shown, texts, "what is shown of the home of {user}");
    }

    /// Gathers a timeline like [`Views::home`], from a position before some effects were published. The steps happen
    /// before the timeline is cached.
    fn gather(&mut self, user: u32, published: usize, steps: &[Step]) {
        let views = Rc::clone(&self.views);
        let read = || {
            let position = views.newest.position();
            self.publish(published);
            let facts = Facts::new(&self.rows);
            let timeline = views.timeline(facts, UserId(user), 8, position);
            steps.iter().for_each(|step| self.step(step));
            timeline
        };
        views.timelines.get_or_read(UserId(user), read, |_| ());
    }

    /// Publishes these effects as a group in which a command was undone.
    fn publish_undone(&mut self) {
        self.groups += 1;
        let effects = std::mem::take(&mut self.pending);
        self.views.publish(Position(self.groups), effects, true);
    }

    fn undone(&mut self, user: u32, change: &Step) {
        let before = (self.rows.clone(), self.pending.clone(), self.posts.clone());
        self.step(change);
        if !self.is_gone(user) {
            self.gather(user, 0, &[]);
        }
        let loaded = self.views.newest.begin_load();
        let loaded = loaded.map(|before| (before, Facts::new(&self.rows).posts_before(before, 8)));
        (self.rows, self.pending, self.posts) = before;
        self.publish_undone();
        if let Some((before, (posts, next))) = loaded {
            self.views.newest.end_load(before, &posts, next);
        }
    }

    fn step(&mut self, step: &Step) {
        let id = |user| UserRef::Id(UserId(user));
        if let Some(command) = relation(step) {
            return self.apply(command);
        }
        match *step {
            Step::Post(author, to) => {
                let new = new_post(id(author), to, self.stamp);
                self.apply(Command::Publish(Box::new(new)));
                self.posts.push(PostId(self.stamp));
            }
            Step::Posts(author, posts) => {
                (0..posts).for_each(|_| self.step(&Step::Post(author, None)));
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
                self.apply(Command::edit(post, Patch::of_text(text)));
            }
            Step::Boost(user, at) if !self.posts.is_empty() => {
                let post = self.posts[at % self.posts.len()];
                let (user, reaction) = (id(user), Reaction::Boost);
                self.apply(Command::React { user, post, reaction, on: true });
                self.posts.push(PostId(self.stamp));
            }
            Step::Publish(effects) => self.publish(effects),
            Step::Load(posts) => {
                if let Some(before) = self.views.newest.begin_load() {
                    let (posts, next) = Facts::new(&self.rows).posts_before(before, posts);
                    self.views.newest.end_load(before, &posts, next);
                }
            }
            Step::Wake => {
                self.wake();
            }
            Step::Gather(user, published, ref steps) if !self.is_gone(user) => {
                self.gather(user, published, steps);
            }
            Step::Read(user, ref page) => self.check_page(user, page),
            Step::Listen(user) => self.listen(user),
            Step::Evict(user) => self.views.timelines.evict(UserId(user), |_| true),
            Step::Restart => self.restart(),
            Step::Undone(user, ref change) => self.undone(user, change),
            _ => {}
        }
    }
}

fn newest(limit: usize) -> Page {
    Page::newest(limit)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]
    #[test]
    fn homes_and_streams_are_as_the_facts_have_them(
        sizes in sizes(),
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut subject = Subject::new(sizes);
        steps.iter().for_each(|step| subject.step(step));
        for user in 0..USERS {
            subject.check_page(user, &newest(8));
            subject.listen(user);
            subject.check_page(user, &newest(1_000));
        }
    }
}

/// Returns a subject in which users 1 and up follow user 0.
fn followers(sizes: Sizes) -> Subject {
    let mut subject = Subject::new(sizes);
    (1..USERS).for_each(|user| subject.step(&Step::Follow(user, 0, true)));
    subject.publish_all();
    subject
}

#[test]
fn a_home_that_lags_by_any_number_of_posts_and_deletions_is_read_from_memory() {
    for lag in [1, 10, 100, 1_000, 3_000] {
        let mut subject = followers(LARGE);
        subject.step(&Step::Posts(0, 150));
        subject.check_page(1, &newest(20));
        let rebuilds = subject.views.sizes().rebuilds;
        for _ in 0..lag {
            subject.step(&Step::Post(0, None));
            subject.step(&Step::Post(2, None));
            subject.step(&Step::Delete(0));
        }
        subject.check_page(1, &newest(20));
        assert_eq!(subject.views.sizes().rebuilds, rebuilds, "after {lag} posts");
    }
}

#[test]
fn changes_of_posts_that_are_forgotten_cost_no_read_of_the_facts_and_those_of_users_do() {
    let small = Small { changes_max: 2, ..Small::NOT };
    let mut subject = followers(Sizes { small, ..LARGE });
    subject.step(&Step::Posts(0, 150));
    subject.check_page(1, &newest(20));
    let rebuilds = subject.views.sizes().rebuilds;
    (0..30).for_each(|at| subject.step(&Step::Delete(at)));
    subject.check_page(1, &newest(20));
    assert_eq!(subject.views.sizes().rebuilds, rebuilds);
    subject.step(&Step::Disable(4, true));
    (0..10).for_each(|at| subject.step(&Step::Delete(at)));
    subject.check_page(1, &newest(20));
    assert_eq!(subject.views.sizes().rebuilds, rebuilds, "posts displace no changes of users");
    (2..5).for_each(|user| subject.step(&Step::DeleteUser(user)));
    subject.check_page(1, &newest(20));
    assert_eq!(subject.views.sizes().rebuilds, rebuilds + 1);
}

#[test]
fn a_boost_is_in_a_home_in_memory_once_the_earlier_one_has_ended() {
    let mut subject = Subject::new(LARGE);
    let follows = [2, 3].map(|other| Step::Follow(1, other, true));
    let boosts = [2, 3].map(|user| Step::Boost(user, 0));
    let steps = follows.into_iter().chain([Step::Post(0, None)]).chain(boosts);
    steps.for_each(|step| subject.step(&step));
    subject.check_page(1, &newest(20));
    let (first, second) = (subject.posts[1], subject.posts[2]);
    let rebuilds = subject.views.sizes().rebuilds;
    assert_eq!(subject.home(1, &newest(20)).items, [first]);
    subject.step(&Step::Delete(1));
    subject.check_page(1, &newest(20));
    assert_eq!(subject.home(1, &newest(20)).items, [second]);
    assert_eq!(subject.views.sizes().rebuilds, rebuilds);
}

#[test]
fn a_watcher_that_lags_by_more_effects_than_are_kept_is_woken_and_reads_again() {
    let mut subject = followers(LARGE);
    subject.listen(1);
    subject.step(&Step::Post(0, None));
    subject.publish_all();
    let posts_max = (BYTES_MAX / size_of::<Effect>()) as u64;
    for posts in [1..posts_max / 2, posts_max / 2..posts_max] {
        subject.pending.extend(posts.map(|post| posted(1 << 40 | post)));
        subject.publish_all();
    }
    subject.wake_all();
    let news = &mut subject.listeners[1].news;
    assert!(news.has_changed().unwrap());
    let changes = news.borrow_and_update().after(0).into_iter().map(|(_, change)| change);
    assert_eq!(Vec::from_iter(changes)[2..], [Change::Missed, Change::Filters]);
    assert!(!subject.wake() && !subject.views.wake_all(), "there is nothing left");
    subject.step(&Step::Post(0, None));
    subject.publish_all();
    subject.wake_all();
    assert!(subject.listeners[1].news.has_changed().unwrap(), "what came after");
    assert_eq!(subject.views.sizes().wake_overflows, 1);
}

#[test]
fn commands_that_are_taken_back_wake_all_watchers_once_however_many_they_are() {
    let mut subject = followers(LARGE);
    subject.listen(1);
    (0..10).for_each(|_| subject.publish_undone());
    subject.wake_all();
    assert!(!subject.views.wake_all());
    assert_eq!(subject.changes(1), [Change::Missed, Change::Filters]);
}

#[test]
fn effects_beside_a_command_that_is_undone_reach_watchers_and_consumers() {
    let mut subject = followers(LARGE);
    subject.listen(1);
    let mut cursor = subject.views.effects_end();
    let (author, user) = (UserId(0), UserId(1));
    let effects = [
        Effect::Input { user, input: Input::Filters },
        Effect::Mention { post: PostId(7), author, user, change: PostChange::Deleted },
        Effect::Mention { post: PostId(8), author, user, change: PostChange::Edited },
        posted(9),
    ];
    subject.pending.extend(effects.clone());
    subject.publish_undone();
    subject.wake_all();
    let deleted = Change::MentionDeleted(PostId(7), author);
    let news = [Change::Filters, deleted, Change::Edited(PostId(8))];
    let again = [Change::Missed, Change::Filters];
    assert_eq!(subject.changes(1), [&news[..], &again].concat());
    assert_eq!(subject.views.next_effects(&mut cursor), Ok(Some(effects.into())));
}

#[test]
fn what_nobody_follows_is_not_kept_for_consumers() {
    let mut subject = followers(LARGE);
    let mut cursor = subject.views.effects_end();
    let (story, author) = (StoryId(1), UserId(0));
    let change = StoryChange::Viewed { viewer: UserId(1) };
    let added = Effect::Sample { set: SampleSetId(1), sample: SampleId(1), is_added: true };
    subject.pending = vec![Effect::Story { story, author, change }, added];
    subject.publish_all();
    assert_eq!(subject.views.next_effects(&mut cursor), Ok(None));
}

#[test]
fn posts_wake_those_who_have_them_at_home_and_nobody_else() {
    let mut subject = followers(LARGE);
    subject.step(&Step::Follow(1, 0, false));
    (0..USERS).for_each(|user| subject.listen(user));
    subject.step(&Step::Post(0, None));
    subject.publish_all();
    subject.wake_all();
    let woken = |user: usize| subject.listeners[user].news.has_changed().unwrap();
    assert_eq!([0, 1, 2, 3].map(woken), [true, false, true, true]);
}

#[test]
fn stories_wake_the_friends_of_their_authors_and_nobody_else() {
    let mut subject = Subject::new(LARGE);
    subject.step(&Step::Follow(2, 0, true));
    let id = |user| UserRef::Id(UserId(user));
    let befriend = |other| Command::Befriend { user: id(0), other: id(other) };
    [1, 3].into_iter().for_each(|other| subject.apply(befriend(other)));
    (0..USERS).for_each(|user| subject.listen(user));
    let (Ok(text), Ok(life)) = (PostText::parse("a story"), Lifetime::from_secs(60)) else {
        panic!("a text and a time")
    };
    let story = |author| Command::PostStory { author: id(author), text: text.clone(), life };
    [0, 0, 4].into_iter().for_each(|author| subject.apply(story(author)));
    assert_eq!(subject.woken(), [1, 3], "a story");
    let story = StoryId(subject.stamp - 1);
    subject.apply(Command::DeleteStory { story });
    assert_eq!(subject.woken(), [1, 3], "a story that is gone");
    subject.apply(Command::Unfriend { user: id(0), other: id(3) });
    assert_eq!(subject.woken(), [0, 3], "an end of a friendship");
    subject.step(&Step::Disable(0, true));
    assert_eq!(subject.woken(), [0, 1, 2], "a disabled author: followers and friends");
    subject.step(&Step::DeleteUser(0));
    assert_eq!(subject.woken(), [0, 1, 2], "a deleted one");
}

/// Returns the effect of a post by a user without followers.
fn posted(post: u64) -> Effect {
    let author = UserId(1_000);
    let (listed, change) = (Default::default(), PostChange::Published);
    Effect::Post { post: PostId(post), author, listed, users: None, change }
}

#[test]
fn a_post_wakes_all_whom_it_mentions() {
    let mut subject = Subject::new(LARGE);
    let (post, author, change) = (PostId(1), UserId(1_000), PostChange::Published);
    let mentions = (0..USERS).map(UserId);
    let mentions = mentions.map(|user| Effect::Mention { post, author, user, change });
    let before = subject.views.mention_changes(UserId(3));
    subject.pending = [posted(1)].into_iter().chain(mentions).collect();
    subject.publish_all();
    assert_ne!(subject.views.mention_changes(UserId(3)), before, "once it is visible");
    subject.wake_all();
    assert!(subject.listeners.iter().all(|listener| listener.news.has_changed().unwrap()));
}

#[test]
fn a_timeline_whose_gathering_ended_early_is_not_gathered_again_for_a_page_that_does_not_fit() {
    let views = Views::new((1 << 20, 1 << 20, 0), (Position(0), PostId(0)));
    for (ended_early, expected) in [(false, Found::Stale), (true, Found::Beyond)] {
        let gathered = PageOf { items: vec![PostId(9)], next: Some(9) };
        let home = (HomeAuthors::of(vec![UserId(2)]), false);
        let timeline =
            Timeline::new(UserId(1), home, (&gathered, ended_early), views.newest.position());
        let found = timeline.page(&views.newest, &newest(1), &mut Vec::new());
        assert_eq!(found, expected, "to gather again is of use unless it ended early");
    }
}
