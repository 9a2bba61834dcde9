//! Checks and repairs of all rows: rows of commands give no finding; lost indexes, counts and totals are restored
//! exactly; after any other loss, nothing contradicts itself.

use std::cell::Cell;

use crate::support;
use crate::support::World;
use feed::follow_options::{FollowOptions, FollowWith, OptionsOf};
use feed::relation::{RELATIONS, Relation};
use feed::whole::CONVERSATION_MARKS;
use feed::{
    Command, Draft, Due, DueWork, ErasurePhase, Facts, Label, ListId, Mend, Patch, PostId,
    SampleBits, SampleId, ScheduledId, SetName, StoryId, UserId, schedule::ScheduleCommand,
};
use proptest::prelude::*;
use rows::{
    Finding, MemberRow, NameTable, PointTable, PutRows, Rows, RowsMut, Scan, SetTable, Span, Table,
    Totals, Value,
};
use testkit::MemoryRows;

/// An action of users or the node. Numbers choose among existing things.
#[derive(Clone, Debug)]
enum Act {
    Follow(u32, u32, bool),
    Befriend(u32, u32, bool),
    Block(u32, u32, bool),
    Mute(u32, u32, Option<u64>),
    Unmute(u32, u32),
    Post(u32, u32),
    Reply(u32, usize),
    EditPost(usize, u32),
    DeletePost(usize),
    Story(u32, u64),
    ViewStory(usize, u32),
    DeleteStory(usize),
    Wait(u64),
    Sample(u8, u8),
    DeleteSample(usize),
    DeleteUser(u32),
    Erase(u32, u8),
    React(u32, usize, usize, bool),
    Clear(u32),
    Dismiss(u32, usize),
    DoDue(usize),
    Markers(u32, u64),
    Note(u32, u32, bool),
    Lock(u32, bool),
    Answer(u32, u32, bool),
    Feature(u32, u32, bool),
    FollowTag(u32, u32, bool),
    List(u32),
    Listed(u32, usize, u32, bool),
    Poll(u32, Option<usize>),
    Vote(u32, usize, u8),
    Schedule(u32),
    Scheduled(u32, bool),
    FollowWith(u32, u32, Option<bool>, Option<bool>),
    MuteThread(u32, usize, bool),
    NotInterested(u32, u32, bool),
}

const USERS: u32 = 6;

fn act() -> impl Strategy<Value = Act> {
    let user = || 0..USERS;
    prop_oneof![
        4 => (user(), user(), any::<bool>()).prop_map(|(a, b, yes)| Act::Follow(a, b, yes)),
        3 => (user(), user(), any::<bool>()).prop_map(|(a, b, yes)| Act::Befriend(a, b, yes)),
        2 => (user(), user(), any::<bool>()).prop_map(|(a, b, yes)| Act::Block(a, b, yes)),
        2 => (user(), user(), prop::option::of(1..5_u64)).prop_map(|(a, b, s)| Act::Mute(a, b, s)),
        1 => (user(), user()).prop_map(|(a, b)| Act::Unmute(a, b)),
        4 => (user(), user()).prop_map(|(a, b)| Act::Post(a, b)),
        2 => (user(), any::<usize>()).prop_map(|(a, n)| Act::Reply(a, n)),
        1 => (any::<usize>(), user()).prop_map(|(n, b)| Act::EditPost(n, b)),
        1 => any::<usize>().prop_map(Act::DeletePost),
        3 => (user(), 1..5_u64).prop_map(|(a, secs)| Act::Story(a, secs)),
        3 => (any::<usize>(), user()).prop_map(|(n, a)| Act::ViewStory(n, a)),
        1 => any::<usize>().prop_map(Act::DeleteStory),
        1 => (1..4_000_u64).prop_map(Act::Wait),
        2 => (0..3_u8, 0..3_u8).prop_map(|(set, label)| Act::Sample(set, label)),
        1 => any::<usize>().prop_map(Act::DeleteSample),
        1 => (2..USERS).prop_map(Act::DeleteUser),
        2 => (2..USERS, 0..=ErasurePhase::first().phases_left() as u8).prop_map(|(a, step)| Act::Erase(a, step)),
        6 => (user(), any::<usize>(), 0..feed::Reaction::ALL.len(), prop::bool::weighted(0.7))
            .prop_map(|(a, n, kind, on)| Act::React(a, n, kind, on)),
        1 => user().prop_map(Act::Clear),
        1 => (user(), any::<usize>()).prop_map(|(a, n)| Act::Dismiss(a, n)),
        6 => any::<usize>().prop_map(Act::DoDue),
        1 => (user(), 0..9_u64).prop_map(|(a, n)| Act::Markers(a, n)),
        2 => (user(), user(), prop::bool::weighted(0.8)).prop_map(|(a, b, on)| Act::Note(a, b, on)),
        2 => (user(), prop::bool::weighted(0.7)).prop_map(|(a, on)| Act::Lock(a, on)),
        1 => (user(), user(), any::<bool>()).prop_map(|(a, b, yes)| Act::Answer(a, b, yes)),
        2 => (user(), user(), prop::bool::weighted(0.8)).prop_map(|(a, b, on)| Act::Feature(a, b, on)),
        2 => (user(), user(), prop::bool::weighted(0.8)).prop_map(|(a, b, on)| Act::FollowTag(a, b, on)),
        1 => user().prop_map(Act::List),
        3 => (user(), any::<usize>(), user(), prop::bool::weighted(0.8))
            .prop_map(|(a, n, b, on)| Act::Listed(a, n, b, on)),
        2 => (user(), prop::option::weighted(0.3, any::<usize>())).prop_map(|(a, n)| Act::Poll(a, n)),
        5 => (user(), any::<usize>(), 0..2_u8).prop_map(|(a, n, c)| Act::Vote(a, n, c)),
        1 => (300_000..400_000_u64).prop_map(Act::Wait),
        2 => user().prop_map(Act::Schedule),
        2 => (user(), any::<bool>()).prop_map(|(a, cancels)| Act::Scheduled(a, cancels)),
        3 => (user(), user(), any::<Option<bool>>(), any::<Option<bool>>())
            .prop_map(|(a, b, boosts, notify)| Act::FollowWith(a, b, boosts, notify)),
        2 => (user(), any::<usize>(), prop::bool::weighted(0.7))
            .prop_map(|(a, n, on)| Act::MuteThread(a, n, on)),
        2 => (user(), user(), any::<bool>()).prop_map(|(a, b, on)| Act::NotInterested(a, b, on)),
    ]
}

fn chosen(rows: &MemoryRows, table: PointTable, number: usize) -> u64 {
    let (found, _) = rows.points_from(table, 0, usize::MAX);
    found.get(number % found.len().max(1)).map_or(1, |(key, _)| *key)
}

fn mark(world: &World, user: u32, last_read: u64) -> Command {
    let home = world.facts().markers(UserId(user)).home;
    support::mark(user, last_read, home.map(|marker| marker.version))
}

/// Makes the command that removes the first rows left of a deleted user. If none are left, its phase is `step` phases
/// after the first.
fn erase(world: &World, user: UserId, step: u8) -> Command {
    let mut phase = ErasurePhase::first();
    (0..step).for_each(|_| phase = phase.next());
    let facts = world.facts();
    let mut before = ErasurePhase::first();
    while before != ErasurePhase::LAST {
        if !facts.items_in_phase(user, before, 0, 1).is_empty() {
            phase = before;
            break;
        }
        before = before.next();
    }
    Command::EraseUser { user, phase, from: 0 }
}

fn other_command(world: &World, act: &Act) -> Option<Command> {
    let id = support::id;
    let post = |number| PostId(chosen(&world.rows, PointTable::Post, number));
    Some(match *act {
        Act::Poll(a, edited) => support::poll(a, edited.map(post)),
        Act::Vote(a, n, choice) => support::vote(a, post(n), choice.into()),
        Act::FollowWith(a, b, boosts, notify) => {
            let with = FollowWith { user: id(a), other: id(b), boosts, notify };
            Command::FollowWith(Box::new(with))
        }
        Act::MuteThread(a, n, on) => Command::MuteThread { user: id(a), post: post(n), on },
        Act::NotInterested(a, b, on) => support::not_interested(a, b, on),
        Act::Schedule(a) => support::schedule(a, world.now_ms + 310_000),
        Act::Scheduled(a, cancels) => {
            let found = world.facts().scheduled_of(UserId(a), ScheduledId(0), 1);
            let at = found.first().copied().unwrap_or(ScheduledId(7));
            let due_ms = world.now_ms + 310_000;
            Command::Schedule(match cancels {
                true => ScheduleCommand::Cancel { user: id(a), id: at },
                false => ScheduleCommand::Move { user: id(a), id: at, due_ms },
            })
        }
        _ => return None,
    })
}

fn command(world: &World, act: &Act) -> Option<Command> {
    let id = support::id;
    let text = |text: String| feed::PostText::parse(&text).unwrap();
    let story = |number| StoryId(chosen(&world.rows, PointTable::Story, number));
    let post = |number| PostId(chosen(&world.rows, PointTable::Post, number));
    Some(match *act {
        Act::Follow(a, b, true) => support::follow(id(a), id(b)),
        Act::Follow(a, b, false) => support::unfollow(id(a), id(b)),
        Act::Befriend(a, b, true) => support::befriend(id(a), id(b)),
        Act::Befriend(a, b, false) => support::unfriend(id(a), id(b)),
        Act::Block(a, b, true) => support::block(id(a), id(b)),
        Act::Block(a, b, false) => support::unblock(id(a), id(b)),
        Act::Mute(a, b, secs) => support::mute(a, b, secs),
        Act::Unmute(a, b) => support::unmute(a, b),
        Act::Post(a, b) => support::post(a, &format!("to @u{b} and @ada #t{b} #all")),
        Act::Reply(a, n) => Command::Publish(Box::new(Draft {
            parent: Some(post(n)),
            ..Draft::new(id(a), text("yes".into()))
        })),
        Act::EditPost(n, b) => {
            Command::edit(post(n), Patch::of_text(text(format!("now @u{b} #t{b} #edited"))))
        }
        Act::DeletePost(n) => Command::DeletePost { post: post(n) },
        Act::Story(a, secs) => support::post_story(a, "a story", secs),
        Act::ViewStory(n, a) => support::view(story(n), a),
        Act::DeleteStory(n) => Command::DeleteStory { story: story(n) },
        Act::Sample(set, label) => Command::AddSample {
            set: SetName::parse(&format!("s{set}")).unwrap(),
            label: Label::parse(&format!("l{label}")).unwrap(),
            bits: Box::new(SampleBits::from([label; 128])),
        },
        Act::DeleteSample(n) => {
            Command::DeleteSample { sample: SampleId(chosen(&world.rows, PointTable::Sample, n)) }
        }
        Act::DeleteUser(a) => Command::DeleteUser { user: id(a) },
        Act::Erase(a, step) => erase(world, UserId(a), step),
        Act::React(a, n, kind, on) => {
            let reaction = feed::Reaction::ALL[kind];
            Command::React { user: id(a), post: post(n), reaction, on }
        }
        Act::Markers(a, last_read) => mark(world, a, last_read),
        Act::Lock(a, on) => support::lock(a, on),
        Act::Answer(a, b, yes) => support::answer(a, b, yes),
        Act::Feature(a, b, on) => support::feature(a, &format!("t{b}"), on),
        Act::FollowTag(a, b, on) => support::follow_tag(a, &format!("t{b}"), on),
        Act::Note(a, b, on) => support::note(a, b, if on { "a note" } else { "" }),
        Act::List(a) => support::create_list(a),
        Act::Listed(a, n, b, on) => {
            let lists = world.facts().lists(UserId(a));
            let list = lists.get(n % lists.len().max(1)).copied().unwrap_or(ListId(7));
            support::put_in_list(a, list, b, on)
        }
        Act::Clear(a) => Command::ClearNotifications { user: id(a) },
        Act::Dismiss(a, n) => {
            let notification = feed::NotificationId(post(n).0);
            Command::DismissNotification { user: id(a), notification }
        }
        Act::DoDue(n) => {
            let due = world.due();
            Command::DoDue(*due.get(n % due.len().max(1))?)
        }
        _ => return other_command(world, act),
    })
}

fn world_of(acts: &[Act]) -> World {
    let mut world = World::new();
    for user in 3..USERS {
        world.run(support::register(&format!("u{user}"))).unwrap();
    }
    for act in acts {
        match act {
            Act::Wait(ms) => world.now_ms += ms,
            // An act that is impossible now makes no command, and a command may be refused.
            act => drop(command(&world, act).map(|command| world.run(command))),
        }
    }
    world
}

pub(crate) fn mend(rows: &mut MemoryRows) -> Vec<Finding> {
    let (mut check, mut findings) = (Mend::new(false), Vec::new());
    while check.step(rows, &mut |finding| findings.push(finding)) {}
    findings
}

/// Rows that follow from others.
fn derived(rows: &MemoryRows) -> Vec<(SetTable, u64, u64)> {
    let tables = [
        SetTable::AuthorPosts,
        SetTable::Mentions,
        SetTable::AuthorStories,
        SetTable::Seen,
        SetTable::Samples,
        SetTable::Replies,
        SetTable::Boosts,
    ];
    let related = RELATIONS.into_iter().flat_map(Relation::tables);
    // Only the muting user's row has the end.
    let related = related.filter(|table| *table != SetTable::Mutes);
    let found = tables.into_iter().chain(related).flat_map(|table| {
        let (found, _) = rows.members_from(table, (0, 0), usize::MAX);
        found.into_iter().map(move |(owner, item, _)| (table, owner, item))
    });
    // Mentions of deleted users are removed, but posts still name them.
    let is_deleted = |user| rows_of_deleted(rows, user);
    found.filter(|(table, owner, _)| *table != SetTable::Mentions || !is_deleted(*owner)).collect()
}

fn rows_of_deleted(rows: &MemoryRows, user: u64) -> bool {
    rows.member(SetTable::DeletedUsers, user, 0).is_some()
}

fn all_of(rows: &MemoryRows) -> Vec<(PointTable, u64)> {
    let of =
        |table| rows.points_from(table, 0, usize::MAX).0.into_iter().map(move |row| (table, row.0));
    PointTable::ALL.into_iter().flat_map(of).collect()
}

/// Due rows that follow from other rows.
fn derived_due(rows: &MemoryRows) -> Vec<Due> {
    let is_derived = |due: &Due| {
        matches!(
            due.work,
            DueWork::EndMute { .. }
                | DueWork::RemoveStory { .. }
                | DueWork::Publish { .. }
                | DueWork::SweepReactions { .. }
                | DueWork::SweepVotes { .. }
                | DueWork::Erase { .. }
        )
    };
    Facts::new(rows).first_due(0, None, usize::MAX).into_iter().filter(is_derived).collect()
}

/// The rows with all removals restarted.
fn removals_begun_again(mut rows: MemoryRows) -> MemoryRows {
    let due = Facts::new(&rows).first_due(0, None, usize::MAX);
    for due in due.into_iter().filter(|due| due.work.removes()) {
        feed::write::due(&mut rows, due, Some(0));
    }
    rows
}

/// The rows after a check: due removals have another time and restart.
fn without_pending(rows: &MemoryRows) -> MemoryRows {
    let mut rows = rows.clone();
    for due in derived_due(&rows) {
        let from = match due.work {
            DueWork::RemoveStory { story } if Facts::new(&rows).story(story).is_none() => None,
            DueWork::SweepReactions { .. } | DueWork::SweepVotes { .. } => None,
            _ => Some(0),
        };
        feed::write::due(&mut rows, due, from);
    }
    rows
}

/// Rows that count the lookups of members.
struct Counting {
    rows: MemoryRows,
    looked_up: Cell<usize>,
}

impl Rows for Counting {
    fn point(&self, table: PointTable, key: u64) -> Option<Value> {
        self.rows.point(table, key)
    }
    fn each_point(&self, table: PointTable, each: &mut dyn FnMut(u64, &[u8])) {
        self.rows.each_point(table, each);
    }
    fn points_below(
        &self,
        table: PointTable,
        below: u64,
        limit: usize,
        each: &mut dyn FnMut(u64, &[u8]),
    ) {
        self.rows.points_below(table, below, limit, each);
    }
    fn member(&self, table: SetTable, owner: u64, item: u64) -> Option<u64> {
        if table != SetTable::DeletedUsers {
            self.looked_up.set(self.looked_up.get() + 1);
        }
        self.rows.member(table, owner, item)
    }
    fn members(&self, table: SetTable, owner: u64, span: Span) -> Vec<(u64, u64)> {
        self.rows.members(table, owner, span)
    }
    fn name(&self, table: NameTable, key: &[u8]) -> Option<Value> {
        self.rows.name(table, key)
    }
    fn names_under(
        &self,
        table: NameTable,
        prefix: &[u8],
        from: &[u8],
        limit: usize,
    ) -> Vec<Vec<u8>> {
        self.rows.names_under(table, prefix, from, limit)
    }
    fn totals(&self) -> Totals {
        self.rows.totals()
    }
}

impl Scan for Counting {
    fn points_from(
        &self,
        table: PointTable,
        from: u64,
        limit: usize,
    ) -> (Vec<(u64, Value)>, Option<u64>) {
        self.rows.points_from(table, from, limit)
    }
    fn members_from(
        &self,
        table: SetTable,
        from: (u64, u64),
        limit: usize,
    ) -> (Vec<MemberRow>, Option<(u64, u64)>) {
        self.rows.members_from(table, from, limit)
    }
}

impl PutRows for Counting {
    fn put_point(&mut self, table: PointTable, key: u64, value: Option<Value>) {
        self.rows.put_point(table, key, value);
    }
    fn put_member(&mut self, table: SetTable, owner: u64, item: u64, value: Option<u64>) {
        self.rows.put_member(table, owner, item, value);
    }
    fn put_name(&mut self, table: NameTable, key: &[u8], value: Option<Value>) {
        self.rows.put_name(table, key, value);
    }
}

impl RowsMut for Counting {
    fn put_totals(&mut self, totals: Totals) {
        self.rows.put_totals(totals);
    }
}

/// A lookup may read a block from disk: millions of them take minutes.
#[test]
fn lost_follows_come_back_without_a_look_up_for_each() {
    let mut world = World::new();
    let users = 60;
    for user in 2..users {
        world.run(support::register(&format!("u{user}"))).unwrap();
    }
    let ids = || (0..users).flat_map(|a| (0..users).map(move |b| (a, b)));
    for (a, b) in ids().filter(|(a, b)| a != b && (a * b) % 7 < 3) {
        world.run(support::follow(support::id(a), support::id(b))).unwrap();
        // The two may be friends already.
        let _ = world.run(support::befriend(support::id(a), support::id(b)));
    }
    let whole = world.rows;
    for (kept, lost) in [
        (SetTable::Following, SetTable::Followers),
        (SetTable::Followers, SetTable::Following),
        (SetTable::Friends, SetTable::Friends),
    ] {
        let mut rows = whole.clone();
        let (found, _) = whole.members_from(lost, (0, 0), usize::MAX);
        let of_one_direction =
            |row: &&MemberRow| kept != lost || (row.0 + row.1) % 2 == u64::from(row.0 < row.1);
        let removed = found.iter().filter(of_one_direction);
        let removed = removed.map(|row| rows.put_member(lost, row.0, row.1, None)).count();
        assert!(removed > 800, "{lost:?}: {removed}");
        let mut counting = Counting { rows, looked_up: Cell::new(0) };
        let (mut check, mut findings) = (Mend::new(false), 0);
        while check.step(&mut counting, &mut |finding| findings += usize::from(!finding.is_lost)) {}
        assert_eq!(findings, removed);
        assert_eq!(counting.rows, whole);
        let looked_up = counting.looked_up.get();
        assert!(looked_up < removed / 2, "{lost:?}: {looked_up} look-ups for {removed} rows");
    }
}

#[test]
fn lost_follows_and_posts_are_counted_for_each_user() {
    let mut world = World::new();
    let (ada, bob) = (support::id(0), support::id(1));
    world.run(support::follow(ada, bob)).unwrap();
    for text in ["one", "two", "three"] {
        world.run(support::post(1, text)).unwrap();
    }
    world.rows.put_member(SetTable::Following, 0, 1, None);
    world.rows.put_member(SetTable::Followers, 1, 0, None);
    let (posts, _) = world.rows.points_from(PointTable::Post, 0, 1);
    world.rows.put_point(PointTable::Post, posts[0].0, None);
    world.rows.put_member(SetTable::AuthorPosts, 1, posts[0].0, None);
    let findings = mend(&mut world.rows).into_iter().filter(|finding| finding.is_lost);
    let lost: Vec<_> = findings.map(|finding| finding.what).collect();
    assert_eq!(
        lost,
        ["1 of 1 follows of user 0", "1 of 1 followers of user 1", "1 of 3 posts of user 1"]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn rows_of_commands_give_no_finding(acts in prop::collection::vec(act(), 0..120)) {
        let mut world = world_of(&acts);
        let before = world.rows.clone();
        prop_assert_eq!(mend(&mut world.rows), vec![]);
        prop_assert_eq!(&world.rows, &removals_begun_again(before));
    }

    #[test]
    fn what_follows_from_other_rows_comes_back(
        acts in prop::collection::vec(act(), 20..120),
        removed in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        totals in any::<bool>(),
    ) {
        let mut world = world_of(&acts);
        let before = world.rows.clone();
        let rows = derived(&before);
        for index in removed.iter().filter(|_| !rows.is_empty()) {
            let (table, owner, item) = *index.get(&rows);
            // A relation is lost only if both directions are removed.
            let opposite = match table {
                SetTable::Following => SetTable::Followers,
                SetTable::Followers => SetTable::Following,
                SetTable::Friends => SetTable::Friends,
                SetTable::Blocks => SetTable::BlockedBy,
                SetTable::BlockedBy => SetTable::Blocks,
                SetTable::Requested => SetTable::FollowRequests,
                SetTable::FollowRequests => SetTable::Requested,
                SetTable::NotInterested => SetTable::NotInterestedBy,
                SetTable::NotInterestedBy => SetTable::NotInterested,
                // Only the muting user's row has the number.
                SetTable::MutedBy => SetTable::Mutes,
                _ => table,
            };
            let is_relation = opposite != table || table == SetTable::Friends;
            if !is_relation || world.rows.member(opposite, item, owner).is_some() {
                world.rows.put_member(table, owner, item, None);
            }
        }
        for user in 0..u64::from(USERS) {
            if !before.members(SetTable::DeletedUsers, user, Span::ALL).is_empty() {
                continue;
            }
            world.rows.put_point(PointTable::Counts, user, None);
        }
        for table in [
            NameTable::Handle,
            NameTable::SampleLabel,
            NameTable::TagPost,
            NameTable::AuthorTag,
        ] {
            for name in world.rows.first_names(table, &[], 3) {
                world.rows.put_name(table, &name, None);
            }
        }
        for due in derived_due(&world.rows).into_iter().take(9) {
            feed::write::due(&mut world.rows, due, None);
        }
        if totals {
            let mut wrong = world.rows.totals();
            (wrong.posts, wrong.follows, wrong.friendships, wrong.stories) = (7, 7, 7, 7);
            (wrong.users_deleted, wrong.users_erasing) = (0, 0);
            (wrong.blocks, wrong.mutes) = (7, 0);
            world.rows.put_totals(wrong);
        }
        let findings = mend(&mut world.rows);
        prop_assert!(findings.iter().all(|finding| !finding.is_lost), "{findings:?}");
        let zero = feed::Counts::default().encode();
        for user in 0..u64::from(USERS) {
            let is_zero = before.point(PointTable::Counts, user) == Some(zero.clone());
            if is_zero && world.rows.point(PointTable::Counts, user).is_none() {
                world.rows.put_point(PointTable::Counts, user, Some(zero.clone()));
            }
        }
        prop_assert_eq!(without_pending(&world.rows), without_pending(&before));
        prop_assert_eq!(mend(&mut world.rows), vec![]);
    }

    #[test]
    fn whatever_is_lost_nothing_contradicts_itself_and_commands_go_on(
        acts in prop::collection::vec(act(), 20..120),
        later in prop::collection::vec(act(), 0..60),
        points in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        members in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        malformed in any::<bool>(),
    ) {
        let mut world = world_of(&acts);
        let (before, all, rows) = (world.rows.clone(), all_of(&world.rows), derived(&world.rows));
        for index in &points {
            let (table, key) = *index.get(&all);
            let value = malformed.then(|| Value::from_slice(&[0xff; 3]));
            world.rows.put_point(table, key, value);
        }
        for index in members.iter().filter(|_| !rows.is_empty()) {
            let (table, owner, item) = *index.get(&rows);
            world.rows.put_member(table, owner, item, None);
        }
        let findings = mend(&mut world.rows);
        // Counts of a deleted user are invisible, and no other row implies markers.
        let unseen = [PointTable::Counts, PointTable::Markers];
        // No other row implies that a user without stored notifications has cleared them.
        let is_seen = |index: &prop::sample::Index| {
            let (table, key) = *index.get(&all);
            let state = || before.point(table, key).map(|row| rows::decode::<feed::NoticeState>(&row));
            let has_notices = || state().is_some_and(|state| state.stored > 0);
            !unseen.contains(&table) && (malformed || table != PointTable::NoticeState || has_notices())
        };
        prop_assert!(!points.iter().any(is_seen) || !findings.is_empty());
        prop_assert_eq!(mend(&mut world.rows), vec![]);
        for act in later {
            if let Some(command) = command(&world, &act) {
                // The command may be refused.
                let _ = world.run(command);
            }
        }
        prop_assert_eq!(mend(&mut world.rows), vec![]);
    }
}

#[test]
fn a_lost_table_of_reactions_comes_back_from_the_other() {
    let mut world = World::new();
    let post = world.post(0, "a post");
    for reaction in feed::Reaction::ALL {
        let user = support::id(0);
        world.run(Command::React { user, post, reaction, on: true }).unwrap();
    }
    let whole = world.rows.clone();
    for reaction in feed::Reaction::ALL {
        let stamp = world.facts().reaction(UserId(0), post, reaction).unwrap();
        let mut rows = whole.clone();
        let table = reaction.table().unwrap_or(SetTable::AuthorPosts);
        rows.put_member(table, 0, stamp, None);
        assert!(!mend(&mut rows).is_empty());
        assert!(rows == whole, "{reaction:?} of the user");
    }
    let mut rows = whole.clone();
    for (item, _) in whole.members(SetTable::Reactions, post.0, Span::ALL) {
        rows.put_member(SetTable::Reactions, post.0, item, None);
    }
    assert!(!mend(&mut rows).is_empty());
    assert!(rows == whole, "those of the post");
}

#[test]
fn hashtags_of_a_lost_post_are_removed_and_missing_ones_are_added() {
    let mut world = World::new();
    let [lost, post] = ["#tag one", "#tag two"].map(|text| world.post(0, text));
    world.rows.put_point(PointTable::Post, lost.0, None);
    let tables = [NameTable::TagPost, NameTable::AuthorTag];
    let row = |rows: &MemoryRows, table| rows.first_names(table, &[], 9);
    let wanted = tables.map(|table| vec![row(&world.rows, table)[0].clone()]);
    assert!(!mend(&mut world.rows).is_empty());
    assert_eq!(tables.map(|table| row(&world.rows, table)), wanted);
    for (table, names) in tables.into_iter().zip(&wanted) {
        world.rows.put_name(table, &names[0], None);
        assert_eq!(mend(&mut world.rows).len(), 1);
        assert_eq!(tables.map(|table| row(&world.rows, table)), wanted);
    }
    for table in [NameTable::FeaturedTag, NameTable::FollowedTag] {
        world.rows.put_name(table, b"\0\0\0\x09tag", Some(rows::encode(&7_u64)));
        assert_eq!(mend(&mut world.rows).len(), 1, "there is no such user");
    }
    assert!(world.facts().has_tag(&feed::Tag::parse("tag").unwrap(), (post, UserId(0))));
}

#[test]
fn filters_are_those_of_a_user_and_a_malformed_row_is_removed() {
    let mut world = World::new();
    world.run(support::create_filter(0, "word")).unwrap();
    let whole = world.rows.clone();
    assert_eq!(mend(&mut world.rows), vec![]);
    let row = whole.name(NameTable::Filters, &[0; 4]).unwrap();
    let none: [feed::filters::Filter; 0] = [];
    for (name, value) in [
        (&[0, 0, 0, 9][..], row.clone()),
        (&[0, 0, 0, 0, 0], row.clone()),
        (&[0, 0, 0, 1], rows::encode(&none.as_slice())),
        (&[0, 0, 0, 1], Value::from_slice(&[9, 9])),
    ] {
        let mut rows = whole.clone();
        rows.put_name(NameTable::Filters, name, Some(value));
        assert_eq!(mend(&mut rows).len(), 1, "{name:?}");
        assert_eq!(rows, whole);
    }
}

#[test]
fn marks_of_conversations_are_those_of_a_user_and_a_malformed_row_is_removed() {
    let mut world = World::new();
    let post = world.post(0, "one");
    let mark = feed::conversations::ConversationMark { first: post, read: post, is_removed: true };
    CONVERSATION_MARKS.put(&mut world.rows, UserId(0), &[mark]);
    let whole = world.rows.clone();
    assert_eq!(mend(&mut world.rows), vec![]);
    let row = whole.name(NameTable::Conversations, &[0; 4]).unwrap();
    for (name, value) in [
        (&[0, 0, 0, 9][..], row.clone()),
        (&[0, 0, 0, 0, 0], row),
        (&[0, 0, 0, 1], rows::encode(&vec![mark; 2])),
        (&[0, 0, 0, 1], Value::from_slice(&[0])),
        (&[0, 0, 0, 1], Value::from_slice(&[9, 9])),
    ] {
        let mut rows = whole.clone();
        rows.put_name(NameTable::Conversations, name, Some(value));
        assert_eq!(mend(&mut rows).len(), 1, "{name:?}");
        assert_eq!(rows, whole);
    }
}

#[test]
fn options_of_follows_and_muted_threads_are_those_of_a_user() {
    let mut world = World::new();
    let post = world.post(0, "one");
    let with = |notify| FollowWith {
        user: support::id(0),
        other: support::id(1),
        boosts: Some(false),
        notify,
    };
    world.run(Command::FollowWith(Box::new(with(Some(true))))).unwrap();
    world.run(Command::MuteThread { user: support::id(0), post, on: true }).unwrap();
    let whole = world.rows.clone();
    assert_eq!(mend(&mut world.rows), vec![]);
    let of = |other| OptionsOf {
        other: UserId(other),
        options: FollowOptions { hides_boosts: true, notified_since: None },
    };
    let (options, threads) = (NameTable::FollowOptions, NameTable::MutedThreads);
    let row = whole.name(options, &[0; 4]).unwrap();
    for (table, name, value) in [
        (options, &[0, 0, 0, 9][..], row.clone()),
        (options, &[0, 0, 0, 0, 0], row),
        (options, &[0, 0, 0, 1], rows::encode(&vec![of(2)])),
        (options, &[0, 0, 0, 1], rows::encode(&vec![of(2); 2])),
        (options, &[0, 0, 0, 1], Value::from_slice(&[0])),
        (threads, &[0, 0, 0, 9], rows::encode(&vec![post])),
        (threads, &[0, 0, 0, 1], rows::encode(&vec![post; 2])),
        (threads, &[0, 0, 0, 1], Value::from_slice(&[9, 9])),
        (NameTable::Due, &[7; 16], Value::new()),
    ] {
        let mut rows = whole.clone();
        rows.put_name(table, name, Some(value));
        assert_eq!(mend(&mut rows).len(), 1, "{table:?} {name:?}");
        assert_eq!(rows, whole);
    }
}

#[test]
fn versions_are_those_of_an_edited_post_and_a_malformed_row_is_removed() {
    let mut world = World::new();
    let [edited, plain] = ["one", "two"].map(|text| world.post(0, text));
    let text = feed::PostText::parse("three").unwrap();
    world.run(Command::edit(edited, Patch::of_text(text))).unwrap();
    let whole = world.rows.clone();
    assert_eq!(mend(&mut world.rows), vec![]);
    let row = whole.name(NameTable::PostVersions, &edited.0.to_be_bytes()).unwrap();
    let versions = world.facts().post_versions(edited);
    let twice = [versions.clone(), versions].concat();
    for (post, value) in [
        (plain.0, row.clone()),
        (7, row),
        (7, Value::from_slice(&[9, 9])),
        (7, rows::encode(&Vec::<feed::PostVersion>::new())),
        (7, rows::encode(&twice)),
    ] {
        let mut rows = whole.clone();
        rows.put_name(NameTable::PostVersions, &post.to_be_bytes(), Some(value));
        assert_eq!(mend(&mut rows).len(), 1, "{post}");
        assert_eq!(rows, whole);
    }
    let mut rows = whole.clone();
    rows.put_point(PointTable::Post, edited.0, None);
    assert!(!mend(&mut rows).is_empty());
    assert_eq!(rows.first_name(NameTable::PostVersions, &[]), None);
}

#[test]
fn members_of_lists_have_both_rows_and_are_followed() {
    let mut world = World::new();
    for other in [1, 2] {
        world.run(support::follow(support::id(0), support::id(other))).unwrap();
    }
    world.run(support::create_list(0)).unwrap();
    let list = world.facts().lists(UserId(0))[0];
    for other in [1, 2] {
        world.run(support::put_in_list(0, list, other, true)).unwrap();
    }
    let whole = world.rows.clone();
    for table in [NameTable::ListMember, NameTable::ListedUser] {
        for name in whole.first_names(table, &[], 9) {
            let mut rows = whole.clone();
            rows.put_name(table, &name, None);
            assert_eq!(mend(&mut rows).len(), 1, "{table:?}");
            assert_eq!(rows, whole, "{table:?}: the row comes back");
        }
    }
    let wrong = [(0, list, 0), (1, list, 0), (0, ListId(7), 1), (9, list, 1)];
    for (user, list, other) in wrong {
        let mut rows = whole.clone();
        feed::write::list_member(&mut rows, UserId(user), list, UserId(other), true);
        assert_eq!(mend(&mut rows).len(), 2, "{other} in the list {} of {user}", list.0);
        assert_eq!(rows, whole);
    }
    let mut rows = whole.clone();
    rows.put_name(NameTable::List, &whole.first_names(NameTable::List, &[], 1)[0], None);
    assert_eq!(mend(&mut rows).len(), 4, "a list that is lost has no members");
}

#[test]
fn nobody_asks_to_follow_whom_they_follow() {
    let mut world = World::new();
    world.run(support::follow(support::id(0), support::id(1))).unwrap();
    let whole = world.rows.clone();
    world.rows.put_member(SetTable::Requested, 0, 1, Some(0));
    world.rows.put_member(SetTable::FollowRequests, 1, 0, Some(0));
    assert_eq!(mend(&mut world.rows).len(), 2, "both rows");
    assert_eq!(world.rows, whole);
}

#[test]
fn posts_of_an_account_are_in_lists_unless_it_is_disabled() {
    let mut world = World::new();
    let post = world.post(0, "one");
    let listed = world.rows.clone();
    world.set_account(0, feed::accounts::AccountState::Disabled);
    assert_eq!(mend(&mut world.rows), vec![], "while they are being removed");
    world.relist();
    let hidden = world.rows.clone();
    assert_eq!(mend(&mut world.rows), vec![]);
    let row = listed.members(SetTable::PostLists, 0, Span::ALL);
    assert_eq!(row, [(post.0, 0)]);
    world.rows.put_member(SetTable::PostLists, 0, post.0, Some(0));
    assert_eq!(mend(&mut world.rows).len(), 1);
    assert_eq!(world.rows, hidden);
    let mut rows = listed.clone();
    rows.put_member(SetTable::PostLists, 0, post.0, None);
    assert_eq!(mend(&mut rows).len(), 1);
    assert_eq!(rows, listed);
}

/// A row that was removed may be back from an older file.
#[test]
fn the_removal_of_a_deleted_user_begins_again_after_a_repair() {
    let mut world = World::new();
    let (post, user) = (world.post(0, "one"), UserId(0));
    let whole = world.rows.clone();
    world.run(Command::DeleteUser { user: support::id(0) }).unwrap();
    for table in [SetTable::AuthorPosts, SetTable::Mentions] {
        let phase = ErasurePhase::of(Table::Set(table));
        world.run(Command::EraseUser { user, phase, from: 0 }).unwrap();
    }
    let due = world.due()[0];
    let row = whole.point(PointTable::Post, post.0);
    world.rows.put_point(PointTable::Post, post.0, row);
    mend(&mut world.rows);
    // Continue as the node does.
    while let Some((mut phase, _)) = world.facts().erasure(due) {
        while phase != ErasurePhase::LAST
            && world.facts().items_in_phase(user, phase, 0, 1).is_empty()
        {
            phase = phase.next();
        }
        world.run(Command::EraseUser { user, phase, from: 0 }).unwrap();
    }
    assert!(world.facts().stored_post(post).is_none());
    assert_eq!(mend(&mut world.rows), vec![], "nothing is left");
}
