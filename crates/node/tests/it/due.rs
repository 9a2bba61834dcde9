//! Tests of ending polls and scheduled posts: each happens once, over restarts, even if very many are due at the same
//! time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use feed::polls::{NewPoll, PollOptions, PollTime};
use feed::schedule::{ScheduleCommand, ScheduledPost};
use feed::{
    Bio, Command, Done, Draft, DueWork, Handle, Name, Notice, NotificationFilter, Page,
    PollChoices, PostId, PostText, ScheduledId, Span, UserId, UserRef,
};
use node::{Clock, Durability, Node, NodeOptions, Request};

const START_MS: u64 = 1_800_000_000_000;

/// A node with a clock that the test sets, in a directory that outlives it.
struct Subject {
    /// `None` only during a restart.
    node: Option<Node>,
    options: NodeOptions,
    clock: Arc<AtomicU64>,
    runtime: tokio::runtime::Runtime,
    _data: tempfile::TempDir,
}

impl Subject {
    /// Creates a node with users 0 and 1.
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let clock = Arc::new(AtomicU64::new(START_MS));
        let mut options = NodeOptions::new(data.path());
        let now = Arc::clone(&clock);
        options.clock = Clock::from_fn(move || now.load(Ordering::Acquire));
        options.durability = Durability::Never;
        let node = Some(Node::open(&options).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let subject = Self { node, options, clock, runtime, _data: data };
        for handle in ["ada", "bob"] {
            let handle = Handle::parse(handle).unwrap();
            subject.run(Command::Register { handle, name: Name::default(), bio: Bio::default() });
        }
        subject
    }

    fn node(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    fn run(&self, command: Command) -> Done {
        let reply = self.runtime.block_on(self.node().submit(Request::from(command))).unwrap();
        reply.outcome.unwrap()
    }

    fn restart(&mut self) {
        self.node = None;
        self.node = Some(Node::open(&self.options).unwrap());
    }

    fn ask(&self) -> PostId {
        let poll = NewPoll {
            options: PollOptions::parse(["a", "b"]).unwrap(),
            multiple: false,
            hide_totals: false,
            time: PollTime::from_secs(300).unwrap(),
        };
        let draft = Draft { poll: Some(poll), ..post("well?") };
        let done = self.run(Command::Publish(Box::new(draft)));
        let Done::Posted(post) = done else { panic!("{done:?}") };
        let (user, choices) = (UserRef::Id(UserId(1)), PollChoices::new([1]).unwrap());
        self.run(Command::Vote { user, post, choices });
        post
    }

    fn schedule(&self, due_ms: u64) {
        let new = ScheduledPost { draft: post("later"), due_ms };
        self.run(Command::Schedule(ScheduleCommand::Create(Box::new(new))));
    }

    /// Returns the polls of whose end a user is notified, newest first.
    fn ends(&self, user: u32) -> Vec<PostId> {
        let page = Page::newest(1_000);
        let viewer = self.node().viewer(Some(UserId(user)));
        let found = viewer.notifications(&page, &NotificationFilter::default()).items;
        let notices = found.into_iter().map(|found| found.notice);
        let ended = |notice| if let Notice::Poll(post) = notice { Some(post) } else { None };
        notices.filter_map(ended).collect()
    }

    fn posts(&self) -> usize {
        self.node().facts().posts_by(UserId(0), Span::ALL).len()
    }
}

fn post(text: &str) -> Draft {
    Draft::new(UserRef::Id(UserId(0)), PostText::parse(text).unwrap())
}

#[test]
fn what_is_due_while_the_server_is_stopped_happens_once_after_the_start() {
    let mut subject = Subject::new();
    let asked = subject.ask();
    subject.schedule(START_MS + 400_000);
    subject.schedule(START_MS + 900_000);
    subject.restart();
    subject.node().do_due();
    assert_eq!((subject.ends(0), subject.posts()), (vec![], 1), "it is not due");
    subject.clock.store(START_MS + 500_000, Ordering::Release);
    for _ in 0..2 {
        subject.restart();
        subject.node().do_due();
        let found = [0, 1].map(|user| subject.ends(user));
        assert_eq!(found, [vec![asked], vec![asked]]);
        assert_eq!(subject.posts(), 2);
    }
    let facts = subject.node().facts();
    let scheduled = facts.scheduled_of(UserId(0), ScheduledId(0), 9).into_iter();
    assert_eq!(scheduled.len(), 1);
    let work = facts.first_due(0, None, 9).into_iter().map(|due| due.work);
    assert!(work.eq(scheduled.map(|id| DueWork::Publish { user: UserId(0), id })));
}

#[test]
fn very_many_that_are_due_at_the_same_moment_are_all_done() {
    let subject = Subject::new();
    let polls: Vec<PostId> = (0..150).map(|_| subject.ask()).collect();
    for _ in 0..250 {
        subject.schedule(START_MS + 400_000);
    }
    subject.clock.store(START_MS + 500_000, Ordering::Release);
    subject.node().do_due();
    let mut ended = subject.ends(1);
    ended.sort_unstable();
    assert_eq!(ended, polls);
    assert_eq!(subject.ends(0).len(), polls.len());
    assert_eq!(subject.posts(), polls.len() + 250);
}
