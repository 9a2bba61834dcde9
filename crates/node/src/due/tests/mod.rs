//! Tests of the loop on a node without threads.

mod read_ahead;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use commitlog::disk::RealDisk;
use commitlog::{LocalLog, Position};
use feed::limits::ERASING_USERS_MAX;
use feed::schedule::{ScheduleCommand, ScheduledPost};
use feed::{Bio, Command, Draft, DueWork, Handle, MuteTime, Name, PostText, UserId, UserRef};
use store::Store;
use tokio::sync::oneshot::error::TryRecvError;

use super::pass::{LASTING_MAX, SKIPPED_MAX};
use super::*;
use crate::applier::TEXT;
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
    fn new(queue_commands_max: usize) -> Self {
        let data = tempfile::tempdir().unwrap();
        let clock = Arc::new(AtomicU64::new(1_800_000_000_000));
        let mut options = NodeOptions::new(data.path());
        options.queue_commands_max = queue_commands_max;
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

    fn users(&mut self, count: u32) {
        for user in 0..count {
            let handle = Handle::parse(&format!("u{user}")).unwrap();
            let (name, bio) = (Name::default(), Bio::default());
            self.run(Command::Register { handle, name, bio });
        }
    }

    /// Mutes users from 1 on, for a second.
    fn mutes(&mut self, others: std::ops::Range<u32>) {
        for other in others {
            let (user, other) = (UserRef::Id(UserId(0)), UserRef::Id(UserId(other)));
            let time = MuteTime::from_secs(1).ok();
            self.run(Command::Mute { user, other, mentions: true, time });
        }
    }

    /// Runs until nothing is due; returns the number of commands.
    fn until_idle(&mut self) -> usize {
        let mut sent = 0;
        for _ in 0..1_000 {
            match self.step() {
                DueStep::Sent(commands) => sent += commands,
                DueStep::Waits => {}
                DueStep::Idle => return sent,
            }
        }
        panic!("it has no end");
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
    let mut subject = Subject::new(1_000);
    let id = |user| UserRef::Id(UserId(user));
    subject.users(ERASING_USERS_MAX + 2);
    subject.mutes(1..2);
    for user in 2..ERASING_USERS_MAX + 2 {
        let text = PostText::parse("hello").unwrap();
        subject.run(Command::post(id(user), text));
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

/// Name of the case; rows that remain in each pass, and rows that failed, each as time and user; begin of the next
/// pass; and number of rows that it looks up by name.
type Case<'a> = (&'a str, &'a [&'a [(u64, u32)]], &'a [(u64, u32)], u64, usize);

#[test]
fn a_pass_begins_after_rows_that_stay() {
    let row = |(at_ms, user): (u64, u32)| DueWork::Erase { user: UserId(user) }.at(at_ms);
    let (a, b, c) = ((5, 1), (5, 2), (9, 3));
    let cases: [Case<'_>; 7] = [
        ("nothing is left", &[&[]], &[], 20, 0),
        ("the first row that is left", &[&[a, c]], &[], 5, 0),
        ("a row that is not due yet", &[&[(99, 1)], &[(99, 1)]], &[], 20, 0),
        ("a row that failed", &[&[a, c]], &[a], 9, 0),
        ("only rows that failed", &[&[a, b]], &[a, b], 20, 0),
        ("a row that outlasts a pass", &[&[a, c], &[a, c], &[a, c]], &[], 9, 1),
        ("two of them", &[&[a, b, c], &[a, b, c], &[a, b, c], &[a, b, c], &[a, b]], &[], 20, 2),
    ];
    for (name, passes, failed, from_ms, lasting) in cases {
        let mut pass = Pass::default();
        failed.iter().for_each(|due| pass.skip(row(*due)));
        for left in passes {
            assert!(pass.begin(20), "{name}");
            let mut by_name: Vec<Due> = std::iter::from_fn(|| pass.by_name()).collect();
            by_name.retain(|due| !left.iter().any(|at| row(*at) == *due));
            by_name.into_iter().for_each(|due| pass.forget(due));
            // The rows are found two at a time.
            for found in left.chunks(2) {
                let found: Vec<Due> = found.iter().map(|at| row(*at)).collect();
                pass.found(&found, 20);
                pass.last = found.last().copied();
            }
            pass.end();
        }
        pass.begin(20);
        let found = (pass.from_ms, std::iter::from_fn(|| pass.by_name()).count());
        assert_eq!(found, (from_ms, lasting), "{name}");
    }
}

#[test]
fn lasting_and_failed_rows_are_bounded_and_undone_changes_are_found() {
    let row = |user| DueWork::Erase { user: UserId(user) }.at(u64::from(user));
    let rows: Vec<Due> = (1..200).map(row).collect();
    let mut pass = Pass::default();
    rows.iter().for_each(|due| pass.skip(*due));
    for _ in 0..300 {
        pass.begin(1_000);
        pass.found(&rows, 1_000);
        pass.end();
    }
    let passed = rows.iter().filter(|due| pass.passes_over(**due)).count();
    assert_eq!(passed, SKIPPED_MAX + LASTING_MAX);
    assert_eq!(pass.from_ms, passed as u64 + 1);
    pass.restart();
    assert_eq!(pass.from_ms, 0);
}

#[test]
fn what_the_node_does_not_accept_yet_is_sent_later_and_nothing_twice() {
    let mut subject = Subject::new(7);
    subject.users(21);
    subject.mutes(1..21);
    subject.clock.fetch_add(1_000_000, Ordering::AcqRel);
    for commands in [7, 7, 6] {
        assert_eq!(subject.step(), DueStep::Sent(commands), "as many as the node accepts");
    }
    assert_eq!(Facts::new(&subject.parts.shared.store).totals().mutes, 0);
    assert_eq!(subject.step(), DueStep::Sent(0), "nothing twice");
    assert_eq!(subject.step(), DueStep::Idle);
}

/// All other work is done if the rules fail at one row, or the disk is full, and nothing is retried endlessly.
#[test]
fn rules_that_fail_and_a_full_disk_delay_nothing_else() {
    let mut subject = Subject::new(1_000);
    subject.users(41);
    let (shared, store) = (Arc::clone(&subject.parts.shared), subject.parts.shared.store.clone());
    let due_ms = shared.time.now_ms() + 400_000;
    let draft = Draft::new(UserRef::Id(UserId(0)), PostText::parse("later").unwrap());
    let scheduled = ScheduledPost { draft, due_ms };
    subject.run(Command::Schedule(ScheduleCommand::Create(Box::new(scheduled))));
    subject.mutes(1..41);
    TEXT.set(Some("other: UserId(7)"));
    subject.clock.fetch_add(1_000_000, Ordering::AcqRel);
    let left = || {
        let totals = Facts::new(&store).totals();
        (totals.mutes, totals.posts)
    };
    shared.space.note(NodeOptions::new("").disk_reserve / 2);
    assert_eq!((subject.until_idle(), left()), (40, (1, 0)), "all but the mute of 7, and the post");
    assert_eq!((subject.until_idle(), left()), (0, (1, 0)), "neither is tried all the time");
    shared.space.note(u64::MAX);
    assert_eq!((subject.until_idle(), left()), (1, (1, 1)));
    // This simulates a restart with a version that does not fail.
    TEXT.set(None);
    subject.due = DueLoop::default();
    assert_eq!((subject.until_idle(), left()), (1, (0, 1)));
}
