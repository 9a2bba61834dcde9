//! A shard that is left in the middle of its work at any moment still answers as the facts do.

use feed::{
    Bio, Command, Cursor, Effect, Entry, Facts, Handle, Name, Page, PageOf, PostId, PostText,
    Stamp, Txn, UserId, UserRef, apply, memory::MemoryRows, timeline::gather,
};
use proptest::prelude::*;

use super::shard::Shard;
use super::stream::Stream;
use super::timeline::{KEPT, Timeline};

const PEOPLE: u32 = 5;

#[derive(Clone, Debug)]
enum Step {
    Follow(u32, u32, bool),
    Post(u32, Option<u32>),
    Delete(usize),
    /// The deliverer or a reader does so many steps.
    CatchUp(usize),
    /// Somebody gathers a timeline, and puts it in much later.
    Gather(u32),
    Insert,
    Read(u32),
    /// So small a budget that all but the newest timeline go.
    Evict(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let user = 0..PEOPLE;
    prop_oneof![
        3 => (user.clone(), user.clone(), any::<bool>()).prop_map(|(a, b, on)| Step::Follow(a, b, on)),
        6 => (user.clone(), prop::option::of(user.clone())).prop_map(|(a, to)| Step::Post(a, to)),
        2 => (0usize..1_000).prop_map(Step::Delete),
        6 => (0usize..6).prop_map(Step::CatchUp),
        2 => user.clone().prop_map(Step::Gather),
        2 => Just(Step::Insert),
        6 => user.clone().prop_map(Step::Read),
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
}

impl Subject {
    fn new() -> Self {
        let mut subject = Self::default();
        for user in 0..PEOPLE {
            let Ok(handle) = Handle::parse(&format!("u{user}")) else { panic!("a handle") };
            subject.apply(Command::Register { handle, name: Name::default(), bio: Bio::default() });
        }
        subject
    }

    fn apply(&mut self, command: Command) {
        self.stamp += 1;
        let entry = Entry { stamp: Stamp(self.stamp), idempotency: None, command };
        let mut effects: Vec<Effect> = Vec::new();
        let _ = apply(&mut Txn::new(&mut self.rows), &entry, &mut effects).outcome;
        self.stream.publish(&effects);
    }

    /// home(user) by the facts.
    fn home(&self, user: u32, limit: usize) -> PageOf<PostId> {
        let facts = Facts::new(&self.rows);
        let page = Page { cursor: Cursor::Newest, limit };
        let user = UserId(user);
        gather(user, &facts.following_all(user), &page, |author, span| facts.posts_by(author, span))
    }

    fn gather(&self, user: u32) -> Timeline {
        let following = Facts::new(&self.rows).following_all(UserId(user));
        let newest = self.home(user, KEPT);
        Timeline::new(UserId(user), following.into(), &newest, self.stream.head())
    }

    fn read(&mut self, user: u32) {
        let page = Page { cursor: Cursor::Newest, limit: 8 };
        let mut items = Vec::new();
        if let Some(more) = self.shard.page(&self.stream, UserId(user), &page, &mut items) {
            assert_eq!(PageOf { items, more }, self.home(user, 8), "home of {user}");
        }
    }

    fn step(&mut self, step: &Step) {
        let id = |user| UserRef::Id(UserId(user));
        match *step {
            Step::Follow(user, other, true) => {
                self.apply(Command::Follow { user: id(user), other: id(other) });
            }
            Step::Follow(user, other, false) => {
                self.apply(Command::Unfollow { user: id(user), other: id(other) });
            }
            Step::Post(author, to) => {
                let text = to.map_or("plain".into(), |to| format!("@u{to} hello"));
                let Ok(text) = PostText::parse(&text) else { panic!("a text") };
                self.apply(Command::Post { author: id(author), text });
                self.posts.push(PostId(self.stamp));
            }
            Step::Delete(at) if !self.posts.is_empty() => {
                let post = self.posts.swap_remove(at % self.posts.len());
                self.apply(Command::DeletePost { post });
            }
            Step::Delete(_) => {}
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
            Step::Evict(user) => {
                let timeline = self.gather(user);
                assert!(self.shard.insert(&self.stream, timeline, 1), "nothing has changed since");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn a_shard_in_the_middle_of_its_work_answers_as_the_facts_do(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let mut subject = Subject::new();
        for user in 0..PEOPLE {
            subject.step(&Step::Gather(user));
            subject.step(&Step::Insert);
        }
        for step in &steps {
            subject.step(step);
        }
        (0..PEOPLE).for_each(|user| subject.read(user));
        while !subject.shard.catch_up(&subject.stream, 1) {}
        (0..PEOPLE).for_each(|user| subject.read(user));
    }
}
