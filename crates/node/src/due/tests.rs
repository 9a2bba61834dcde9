//! Fairness of the loop, on a node without threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use commitlog::disk::RealDisk;
use commitlog::{LocalLog, Position};
use feed::limits::ERASING_USERS_MAX;
use feed::{Bio, Command, Handle, MuteTime, Name, PostText, UserId, UserRef};
use store::Store;
use tokio::sync::oneshot::error::TryRecvError;

use super::*;
use crate::clock::Clock;
use crate::node::Parts;
use crate::options::NodeOptions;
use crate::threads::Background;

/// The loop and the writer of a node without threads.
struct Subject {
    parts: Parts,
    due: DueLoop,
    clock: Arc<AtomicU64>,
    _data: tempfile::TempDir,
}

impl Subject {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let clock = Arc::new(AtomicU64::new(1_800_000_000_000));
        let mut options = NodeOptions::new(data.path());
        let now = Arc::clone(&clock);
        options.clock = Clock::from_fn(move || now.load(Ordering::Acquire));
        let store = Store::open(&options.store_dir(), options.store()).unwrap();
        let log = LocalLog::open(Arc::new(RealDisk), &options.log_dir(), Position(0)).unwrap();
        let beside = (String::new(), Background::Threads, None);
        let parts = Parts::recover(&options, store, Box::new(log), beside).unwrap();
        Self { parts, due: DueLoop::default(), clock, _data: data }
    }

    fn run(&mut self, command: Command) {
        let mut reply = self.parts.shared.submit_own(command).unwrap();
        self.turn();
        reply.try_recv().unwrap()[0].outcome.unwrap();
    }

    fn turn(&mut self) {
        self.parts.writer.turn(Duration::ZERO).unwrap();
    }

    fn step(&mut self) -> DueStep {
        let step = self.due.step(&self.parts.shared, |mut reply| match reply.try_recv() {
            Err(TryRecvError::Empty) => Err(reply),
            done => Ok(done.ok().map(|replies| replies[0])),
        });
        self.turn();
        step
    }
}

#[test]
fn what_is_due_waits_for_one_part_of_each_thing_that_takes_longer() {
    let mut subject = Subject::new();
    let id = |user| UserRef::Id(UserId(user));
    for user in 0..ERASING_USERS_MAX + 2 {
        let handle = Handle::parse(&format!("u{user}")).unwrap();
        let (name, bio) = (Name::default(), Bio::default());
        subject.run(Command::Register { handle, name, bio });
    }
    let time = MuteTime::from_secs(1).ok();
    subject.run(Command::Mute { user: id(0), other: id(1), mentions: true, time });
    for user in 2..ERASING_USERS_MAX + 2 {
        let text = PostText::parse("hello").unwrap();
        subject.run(Command::Post { author: id(user), text });
        subject.run(Command::DeleteUser { user: id(user) });
    }
    subject.clock.fetch_add(1_000, Ordering::AcqRel);
    let store = subject.parts.shared.store.clone();
    let facts = || Facts::new(&store);
    let mut sent = 0;
    while facts().mute(UserId(0), UserId(1)).is_some() {
        if let DueStep::Sent(commands) = subject.step() {
            sent += commands;
        }
        assert!(sent <= ERASING_USERS_MAX as usize + 1, "one part of each erasure, and the end");
    }
    assert_eq!(facts().totals().users_erasing, ERASING_USERS_MAX, "which are not at their ends");
    while subject.step() != DueStep::Idle {}
    assert_eq!(facts().totals().users_erasing, 0);
    assert_eq!(facts().first_due(0, None, 1), []);
}
