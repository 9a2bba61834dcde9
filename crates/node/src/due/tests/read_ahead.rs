//! Tests that every row that the writer reads for due work was read ahead, so that the writer does not wait for the
//! disk.

use std::cell::RefCell;
use std::collections::BTreeSet;

use feed::polls::{NewPoll, PollOptions, PollTime};
use feed::schedule::{ScheduleCommand, ScheduledPost};
use feed::{
    Bio, Command, Done, Draft, Due, Facts, Handle, Lifetime, MuteTime, Name, Patch, PollChoices,
    PostId, PostText, Reaction, Request, Txn, UserId, UserRef,
};
use rows::{
    EPOCH_MS, NameTable, PointTable, PutRows, Rows, RowsMut, SetTable, Span, Stamp, StampClock,
    Totals, Value,
};
use testkit::MemoryRows;

use super::super::read_ahead;

/// Tag of a table, and a key, an owner or the beginning of a name.
type Place = (u8, Vec<u8>);

/// Rows that record what was read before it was written.
#[derive(Default)]
struct Recorder {
    rows: MemoryRows,
    read: RefCell<BTreeSet<Place>>,
    written: BTreeSet<Place>,
}

impl Recorder {
    fn note(&self, tag: u8, key: &[u8]) {
        let place = (tag, key.to_vec());
        if !self.written.contains(&place) {
            self.read.borrow_mut().insert(place);
        }
    }

    fn take(&mut self) -> BTreeSet<Place> {
        self.written.clear();
        self.read.take()
    }
}

impl Rows for Recorder {
    fn point(&self, table: PointTable, key: u64) -> Option<Value> {
        self.note(table.tag(), &key.to_be_bytes());
        self.rows.point(table, key)
    }
    fn each_point(&self, _: PointTable, _: &mut dyn FnMut(u64, &[u8])) {
        unreachable!("no command reads all rows")
    }
    fn points_below(&self, _: PointTable, _: u64, _: usize, _: &mut dyn FnMut(u64, &[u8])) {
        unreachable!("no command reads many rows")
    }
    fn member(&self, table: SetTable, owner: u64, item: u64) -> Option<u64> {
        self.note(table.tag(), &owner.to_be_bytes());
        self.rows.member(table, owner, item)
    }
    fn members(&self, table: SetTable, owner: u64, span: Span) -> Vec<(u64, u64)> {
        self.note(table.tag(), &owner.to_be_bytes());
        self.rows.members(table, owner, span)
    }
    fn name(&self, table: NameTable, key: &[u8]) -> Option<Value> {
        self.note(table.tag(), key);
        self.rows.name(table, key)
    }
    fn names_under(&self, table: NameTable, prefix: &[u8], from: &[u8], n: usize) -> Vec<Vec<u8>> {
        self.note(table.tag(), prefix);
        self.rows.names_under(table, prefix, from, n)
    }
    fn totals(&self) -> Totals {
        self.rows.totals()
    }
}

impl PutRows for Recorder {
    fn put_point(&mut self, table: PointTable, key: u64, value: Option<Value>) {
        self.written.insert((table.tag(), key.to_be_bytes().to_vec()));
        self.rows.put_point(table, key, value);
    }
    fn put_member(&mut self, table: SetTable, owner: u64, item: u64, value: Option<u64>) {
        self.rows.put_member(table, owner, item, value);
    }
    fn put_name(&mut self, table: NameTable, key: &[u8], value: Option<Value>) {
        self.written.insert((table.tag(), key.to_vec()));
        self.rows.put_name(table, key, value);
    }
}

impl RowsMut for Recorder {
    fn put_totals(&mut self, totals: Totals) {
        self.rows.put_totals(totals);
    }
}

struct World {
    rows: Recorder,
    clock: StampClock,
    now_ms: u64,
}

impl World {
    fn run(&mut self, command: Command) -> Done {
        let stamp = self.clock.next(self.now_ms);
        let command = Request::from(command).stamped(stamp);
        let reply = feed::apply(&mut Txn::new(&mut self.rows), &command, &mut Vec::new());
        reply.outcome.unwrap()
    }

    fn post(&mut self, author: u32) -> PostId {
        let done = self.run(Command::Publish(Box::new(post(author))));
        let Done::Posted(id) = done else { panic!("{done:?}") };
        id
    }

    /// Returns the places that the writer reads for due work and that were not read ahead.
    fn not_read_ahead(&mut self, due: Due) -> Vec<Place> {
        self.rows.take();
        let command = read_ahead::command(Facts::new(&self.rows), due);
        let ahead = self.rows.take();
        assert_eq!(self.run(command), Done::DueDone, "{due:?}");
        let read = self.rows.take();
        read.difference(&ahead).cloned().collect()
    }
}

fn id(user: u32) -> UserRef {
    UserRef::Id(UserId(user))
}

fn post(author: u32) -> Draft {
    Draft::new(id(author), PostText::parse("hello @u1").unwrap())
}

/// Returns a world in which work of every kind is due.
fn world() -> World {
    let (rows, clock) = (Recorder::default(), StampClock::new(Stamp(0)));
    let mut world = World { rows, clock, now_ms: EPOCH_MS + 1_000_000_000 };
    for user in 0..4 {
        let handle = Handle::parse(&format!("u{user}")).unwrap();
        world.run(Command::Register { handle, name: Name::default(), bio: Bio::default() });
    }
    let [edited, deleted] = [world.post(0), world.post(0)];
    for user in 1..4 {
        for post in [edited, deleted] {
            for reaction in [Reaction::Boost, Reaction::Favourite] {
                world.run(Command::React { user: id(user), post, reaction, on: true });
            }
        }
    }
    let text = PostText::parse("other words").unwrap();
    world.run(Command::edit(edited, Patch::of_text(text)));
    world.run(Command::DeletePost { post: deleted });
    let poll = NewPoll {
        options: PollOptions::parse(["a", "b"]).unwrap(),
        multiple: false,
        hide_totals: false,
        time: PollTime::from_secs(300).unwrap(),
    };
    for is_deleted in [false, true] {
        let draft = Draft { poll: Some(poll.clone()), ..post(0) };
        let Done::Posted(post) = world.run(Command::Publish(Box::new(draft))) else { panic!() };
        let choices = PollChoices::new([1]).unwrap();
        world.run(Command::Vote { user: id(1), post, choices });
        if is_deleted {
            world.run(Command::DeletePost { post });
        }
    }
    let due_ms = world.now_ms + 400_000;
    let scheduled = ScheduledPost { draft: post(0), due_ms };
    world.run(Command::Schedule(ScheduleCommand::Create(Box::new(scheduled))));
    let time = MuteTime::from_secs(1).ok();
    world.run(Command::Mute { user: id(0), other: id(2), mentions: true, time });
    let (text, life) = (PostText::parse("hm").unwrap(), Lifetime::from_secs(60).unwrap());
    world.run(Command::PostStory { author: id(0), text, life });
    world.run(Command::Follow { user: id(3), other: id(0) });
    world.post(3);
    world.run(Command::DeleteUser { user: id(3) });
    world.now_ms += 1_000_000;
    world
}

#[test]
fn what_the_writer_reads_for_something_that_is_due_was_read_before() {
    let mut world = world();
    let mut kinds = BTreeSet::new();
    while let Some(due) = Facts::new(&world.rows).first_due(0, None, 1).first().copied() {
        let name = format!("{:?}", due.work);
        kinds.insert(name.split(' ').next().unwrap().to_owned());
        let left = world.not_read_ahead(due);
        assert!(left.is_empty(), "{due:?}: {left:x?}");
    }
    assert_eq!(kinds.len(), 8, "{kinds:?}");
}
