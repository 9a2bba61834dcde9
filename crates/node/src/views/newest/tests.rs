//! Tests that pages from the list and the facts together equal those of the facts alone, whatever is in the list, and
//! whatever happens while older posts are loaded.

use commitlog::Position;
use feed::HomeAuthors;
use feed::{
    Bio, Command, Cursor, Draft, Effect, Facts, Handle, Name, Page, PostId, PostText, Shown, Txn,
    UserId, UserRef, Visibility, apply, scan, timeline,
};
use proptest::prelude::*;
use rows::{Order, Span, Stamp};
use testkit::MemoryRows;

use super::super::Views;
use super::super::tests::new_post;
use super::*;

/// Ids of users who post. Those that differ by 64 share links.
const AUTHORS: [u32; 5] = [0, 1, 2, 64, 66];
const USERS: u32 = 67;

#[derive(Clone, Debug)]
enum Step {
    Follow(usize, usize, bool),
    Post(usize, Option<usize>),
    Delete(usize),
    DeleteUser(usize),
    /// The facts show the post before the views do.
    Publish,
    /// The loading thread reads some posts, and adds them in a later step.
    Read(usize),
    Add,
    Home(usize, Page),
    HomeAround(usize, usize, bool, usize),
    PostsBy(usize, usize, usize, Order, usize),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let user = || 0..AUTHORS.len();
    let order = prop_oneof![Just(Order::Ascending), Just(Order::Descending)];
    prop_oneof![
        3 => (user(), user(), prop::bool::weighted(0.8)).prop_map(|(a, b, on)| Step::Follow(a, b, on)),
        8 => (user(), prop::option::of(user())).prop_map(|(a, to)| Step::Post(a, to)),
        3 => (0usize..1_000).prop_map(Step::Delete),
        1 => user().prop_map(Step::DeleteUser),
        6 => Just(Step::Publish),
        4 => (1usize..6).prop_map(Step::Read),
        4 => Just(Step::Add),
        4 => (user(), 1usize..12)
            .prop_map(|(user, limit)| Step::Home(user, Page::newest(limit))),
        4 => (user(), 0usize..1_000, any::<bool>(), 1usize..12)
            .prop_map(|(user, at, before, limit)| Step::HomeAround(user, at, before, limit)),
        4 => (user(), 0usize..1_000, 0usize..1_000, order, 0usize..12)
            .prop_map(|(user, a, b, order, limit)| Step::PostsBy(user, a, b, order, limit)),
        1 => Just(Step::Restart),
    ]
}

/// Posts that were read and will be added.
type Read = (PostId, Vec<Loaded>, Option<PostId>);

struct Subject {
    rows: MemoryRows,
    stamp: u64,
    posts: Vec<PostId>,
    views: Views,
    bytes: usize,
    steps_max: usize,
    pending: Vec<Effect>,
    loaded: Option<Read>,
}

impl Subject {
    fn new(bytes: usize, steps_max: usize) -> Self {
        let mut subject = Self {
            rows: MemoryRows::default(),
            stamp: 0,
            posts: Vec::new(),
            views: Views::new((0, 0, 0), (Position(0), PostId(0))),
            bytes,
            steps_max,
            pending: Vec::new(),
            loaded: None,
        };
        for user in 0..USERS {
            let Ok(handle) = Handle::parse(&format!("u{user}")) else { panic!("a handle") };
            subject.apply(Command::Register { handle, name: Name::default(), bio: Bio::default() });
        }
        subject.restart();
        subject
    }

    fn restart(&mut self) {
        self.pending.clear();
        self.loaded = None;
        let after = (Position(0), PostId(self.stamp + 1));
        self.views = Views::new((1 << 20, 4 * self.bytes, 0), after);
        let steps_max = self.steps_max;
        self.views.newest.make_small(Small { steps_max, ..Small::NOT });
    }

    fn apply(&mut self, command: Command) {
        self.stamp += 1;
        let entry = feed::StampedCommand { stamp: Stamp(self.stamp), idempotency: None, command };
        let _ = apply(&mut Txn::new(&mut self.rows), &entry, &mut self.pending).outcome;
    }

    fn publish(&mut self) {
        self.views.publish(Position(self.stamp), std::mem::take(&mut self.pending), false);
    }

    fn check_home(&mut self, user: u32, page: &Page) {
        self.publish();
        let (facts, user) = (Facts::new(&self.rows), UserId(user));
        if facts.is_deleted(user) {
            return;
        }
        let authors = facts.home_authors(user);
        let (found, _) = self.views.gather(facts, user, &authors, page, None);
        let expected = scan(page, timeline::source(facts, user, &authors), Shown::Yes);
        assert_eq!(found, expected, "home of {user:?}, {page:?}");
        let enough = page.limit / 2;
        let (first, is_enough) = self.views.gather(facts, user, &authors, page, Some(enough));
        if first != expected && *page == Page::newest(page.limit) {
            assert!(is_enough && first.next.is_some() && first.items.len() > enough);
            assert!(expected.items.starts_with(&first.items), "{first:?} of {expected:?}");
        }
        assert!(self.views.newest.bytes() <= self.bytes.max(1 << 10));
    }

    fn check_posts_by(&mut self, user: u32, span: Span) {
        self.publish();
        let (facts, user) = (Facts::new(&self.rows), UserId(user));
        let found = self.views.posts_by(facts, user, span);
        assert_eq!(found, facts.posts_by(user, span), "posts by {user:?}, {span:?}");
    }

    fn around(&self, at: usize) -> u64 {
        self.posts.get(at % self.posts.len().max(1)).map_or(7, |post| post.0)
    }

    fn step(&mut self, step: &Step) {
        let number = |at: usize| AUTHORS[at];
        let id = |at: usize| UserRef::Id(UserId(AUTHORS[at]));
        match *step {
            Step::Follow(a, b, true) => {
                self.apply(Command::Follow { user: id(a), other: id(b) });
            }
            Step::Follow(a, b, false) => {
                self.apply(Command::Unfollow { user: id(a), other: id(b) });
            }
            Step::Post(author, to) => {
                let new = new_post(id(author), to.map(number), self.stamp);
                self.apply(Command::Publish(Box::new(new)));
                self.posts.push(PostId(self.stamp));
            }
            Step::Delete(at) if !self.posts.is_empty() => {
                let post = self.posts.swap_remove(at % self.posts.len());
                self.apply(Command::DeletePost { post });
            }
            Step::Delete(_) => {}
            Step::DeleteUser(user) => self.apply(Command::DeleteUser { user: id(user) }),
            Step::Publish => self.publish(),
            Step::Read(limit) => {
                self.loaded = self.views.newest.begin_load().map(|before| {
                    let (posts, next) = Facts::new(&self.rows).posts_before(before, limit);
                    (before, posts, next)
                });
            }
            Step::Add => {
                if let Some((before, posts, next)) = self.loaded.take() {
                    self.views.newest.end_load(before, &posts, next);
                }
            }
            Step::Home(user, ref page) => self.check_home(number(user), page),
            Step::HomeAround(user, at, before, limit) => {
                let around = PostId(self.around(at));
                let cursor = if before { Cursor::Before(around) } else { Cursor::After(around) };
                self.check_home(number(user), &Page::at(cursor, limit));
            }
            Step::PostsBy(user, a, b, order, limit) => {
                let span = Span { low: self.around(a), high: self.around(b), limit, order };
                self.check_posts_by(number(user), span);
                self.check_posts_by(number(user), Span { low: 0, high: u64::MAX, ..span });
            }
            Step::Restart => self.restart(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn pages_are_those_of_the_facts(
        bytes in prop_oneof![Just(0), 1_060..2_000_usize, Just(1 << 20)],
        steps_max in prop_oneof![0..10_usize, Just(STEPS_MAX)],
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut subject = Subject::new(bytes, steps_max);
        steps.iter().for_each(|step| subject.step(step));
        let newest = Page::newest(100);
        AUTHORS.iter().for_each(|user| subject.check_home(*user, &newest));
    }
}

/// Returns a subject with published posts by user 0.
fn posted(posts: u64, bytes: usize) -> Subject {
    let mut subject = Subject::new(bytes, STEPS_MAX);
    (0..posts).for_each(|_| subject.step(&Step::Post(0, None)));
    subject
}

/// Whether the newest posts of user 0 are read without the store.
fn is_in_memory(subject: &Subject, limit: usize) -> bool {
    let span = Page::newest(limit).span(limit + 1).unwrap();
    subject.views.newest.home(UserId(0), &HomeAuthors::default(), span, &mut Vec::new()).is_none()
}

#[test]
fn after_a_start_all_posts_are_loaded_if_they_fit() {
    let mut subject = posted(3_000, 1 << 20);
    subject.restart();
    assert!(!is_in_memory(&subject, 1));
    assert!(subject.views.load_posts(Facts::new(&subject.rows)));
    assert!(is_in_memory(&subject, 2_000) && !is_in_memory(&subject, 2_100));
    while subject.views.load_posts(Facts::new(&subject.rows)) {}
    assert!(is_in_memory(&subject, 2_999));
    assert!(is_in_memory(&subject, usize::MAX - 1), "it is known that there are no more");
}

#[test]
fn the_budget_holds_and_the_newest_are_kept() {
    let bytes = 64_000;
    let mut subject = posted(5_000, bytes);
    subject.publish();
    let held = subject.views.newest.bytes();
    assert!((bytes - 100..=bytes).contains(&held), "{held}");
    assert!(is_in_memory(&subject, 1_900) && !is_in_memory(&subject, 2_001));
    subject.restart();
    while subject.views.load_posts(Facts::new(&subject.rows)) {}
    assert_eq!(subject.views.newest.bytes() / 100, held / 100);
    assert!(is_in_memory(&subject, 1_900) && !is_in_memory(&subject, 2_001));
}

#[test]
fn posts_are_loaded_again_if_too_many_were_deleted_meanwhile() {
    let mut subject = posted(3_000, 1 << 20);
    subject.restart();
    subject.step(&Step::Read(2_500));
    (0..MISSED_MAX).for_each(|_| subject.step(&Step::Delete(0)));
    subject.publish();
    subject.step(&Step::Add);
    assert!(!is_in_memory(&subject, 1), "what was read is not added");
    while subject.views.load_posts(Facts::new(&subject.rows)) {}
    assert!(is_in_memory(&subject, 1_000));
    subject.check_home(0, &Page::newest(3_000));
}

#[test]
fn loading_ends_also_if_the_recipients_of_a_direct_post_do_not_fit() {
    for bytes in (520..760).step_by(4) {
        let mut subject = Subject::new(bytes, STEPS_MAX);
        let Ok(text) = PostText::parse("to @u1 and @u2") else { panic!("a text") };
        let new = Draft::new(UserRef::Id(UserId(0)), text);
        let new = Draft { visibility: Visibility::Direct, ..new };
        (0..3).for_each(|_| subject.apply(Command::Publish(Box::new(new.clone()))));
        subject.restart();
        let loads = (0..100).take_while(|_| subject.views.load_posts(Facts::new(&subject.rows)));
        assert!(loads.count() < 100, "with {bytes} bytes it is loaded again and again");
    }
}
