//! Polls: who may vote how often, counts, effects of edits on votes, and notifications of the end.

use crate::support::{World, block, follow, id, mute, register};
use feed::limits::{ERASE_ROWS_MAX, POLL_NOTICES_MAX};
use feed::polls::{NewPoll, PollOptions, PollTime};
use feed::{
    Command, Content, Done, Draft, DueWork, Effect, Mend, Notice, Outcome, Patch, Poll,
    PollChoices, PollCounts, PollId, PostId, PostText, Reaction, Refusal, UserId, Visibility,
};
use rows::{NameTable, PointTable, Rows as _, Scan as _, SetTable, Table};

fn new(options: &[&str], multiple: bool) -> NewPoll {
    NewPoll {
        options: PollOptions::parse(options.iter().copied()).unwrap(),
        multiple,
        hide_totals: false,
        time: PollTime::from_secs(300).unwrap(),
    }
}

fn publish(world: &mut World, author: u32, visibility: Visibility, poll: NewPoll) -> PostId {
    let text = PostText::parse("well, @cy?").unwrap();
    let draft = Draft { visibility, poll: Some(poll), ..Draft::new(id(author), text) };
    match world.run(Command::Publish(Box::new(draft))) {
        Ok(Done::Posted(post)) => post,
        other => panic!("{other:?}"),
    }
}

fn ask(world: &mut World, author: u32) -> PostId {
    publish(world, author, Visibility::Public, new(&["yes", "no", "maybe"], false))
}

fn vote(world: &mut World, user: u32, post: PostId, choices: &[usize]) -> Outcome {
    let choices = PollChoices::new(choices.iter().copied()).unwrap();
    world.run(Command::Vote { user: id(user), post, choices })
}

fn edit(world: &mut World, post: PostId, poll: Option<NewPoll>) -> Outcome {
    world.run(Command::edit(post, Patch { poll: Some(poll), ..Patch::default() }))
}

const VOTED: Outcome = Ok(Done::Voted);

fn poll(world: &World, post: PostId) -> Poll {
    world.facts().post(post).unwrap().poll.unwrap()
}

/// Number of voters, and votes for each option.
fn counts(world: &World, post: PostId) -> (u32, [u32; 4]) {
    let PollCounts { voters, votes } = world.facts().poll_counts(poll(world, post).id);
    (voters, votes)
}

/// Ends a poll that is over, until all are notified. Returns the number of commands.
fn end(world: &mut World, post: PostId) -> usize {
    world.do_due_of(|work| work == DueWork::EndPoll { post })
}

fn sweep(world: &mut World) -> usize {
    world.do_due_of(|work| matches!(work, DueWork::SweepVotes { .. }))
}

/// Checks that the rows agree, with the command that checks a data directory.
fn check_rows(world: &World) {
    let mut rows = world.rows.clone();
    let (mut mend, mut found) = (Mend::new(false), Vec::new());
    while mend.step(&mut rows, &mut |finding| found.push(finding)) {}
    assert!(found.is_empty(), "{found:?}");
}

const fn is_of_poll(work: DueWork) -> bool {
    matches!(work, DueWork::EndPoll { .. } | DueWork::SweepVotes { .. })
}

fn has_no_rows(world: &World) -> bool {
    let sets = [SetTable::PollVotes, SetTable::Votes];
    sets.into_iter().all(|table| world.rows.members_from(table, (0, 0), 1).0.is_empty())
        && world.rows.points_from(PointTable::PollCounts, 0, 1).0.is_empty()
        && !world.due().into_iter().any(|due| is_of_poll(due.work))
}

#[test]
fn one_votes_for_further_options_of_a_poll_that_allows_several() {
    let mut world = World::new();
    let one = ask(&mut world, 0);
    let several = new(&["yes", "no", "maybe"], true);
    let several = publish(&mut world, 0, Visibility::Public, several);
    let voted = || Err(Refusal::AlreadyVoted);
    for (user, post, choices, expect, counted) in [
        (1, one, &[0][..], VOTED, (1, [1, 0, 0, 0])),
        (1, one, &[1], voted(), (1, [1, 0, 0, 0])),
        (1, several, &[0], VOTED, (1, [1, 0, 0, 0])),
        (1, several, &[0], voted(), (1, [1, 0, 0, 0])),
        (1, several, &[0, 2], voted(), (1, [1, 0, 0, 0])),
        (1, several, &[3], Err(Refusal::BadChoice), (1, [1, 0, 0, 0])),
        (1, several, &[2], VOTED, (1, [1, 0, 1, 0])),
        (2, several, &[1, 2], VOTED, (2, [1, 1, 2, 0])),
        (1, several, &[1], VOTED, (2, [1, 2, 2, 0])),
        (1, several, &[0, 1, 2], voted(), (2, [1, 2, 2, 0])),
    ] {
        assert_eq!(vote(&mut world, user, post, choices), expect, "{user}: {choices:?}");
        assert_eq!(counts(&world, post), counted, "{user}: {choices:?}");
    }
    let chosen = world.facts().vote(poll(&world, several).id, UserId(1)).unwrap();
    assert_eq!(chosen.iter().collect::<Vec<_>>(), [0, 1, 2]);
    check_rows(&world);
}

#[test]
fn one_votes_once_in_time_for_what_the_poll_has_and_not_in_ones_own() {
    let mut world = World::new();
    let plain = world.post(0, "no poll");
    let one = ask(&mut world, 0);
    let many = publish(&mut world, 0, Visibility::Public, new(&["a", "b", "c", "d"], true));
    for (user, post, choices, expect) in [
        (1, plain, vec![0], Err(Refusal::PollNotFound)),
        (1, PostId(7), vec![0], Err(Refusal::PollNotFound)),
        (9, one, vec![0], Err(Refusal::UserNotFound)),
        (0, one, vec![0], Err(Refusal::OwnPoll)),
        (1, one, vec![0, 1], Err(Refusal::OneChoice)),
        (1, one, vec![3], Err(Refusal::BadChoice)),
        (1, one, vec![1], VOTED),
        (1, one, vec![1], Err(Refusal::AlreadyVoted)),
        (1, one, vec![0], Err(Refusal::AlreadyVoted)),
        (2, one, vec![1], VOTED),
        (1, many, vec![3, 0], VOTED),
        (2, many, vec![0], VOTED),
        (2, many, vec![0, 1], Err(Refusal::AlreadyVoted)),
    ] {
        let before = world.snapshot();
        let outcome = vote(&mut world, user, post, &choices);
        assert_eq!(outcome, expect, "{user}, {choices:?}");
        assert!(outcome.is_ok() || world.snapshot() == before, "a refusal changes nothing");
    }
    assert_eq!(counts(&world, one), (2, [0, 2, 0, 0]));
    assert_eq!(counts(&world, many), (2, [2, 0, 0, 1]), "several options, each voter once");
    let choices = world.facts().vote(poll(&world, many).id, UserId(1)).unwrap();
    assert_eq!(choices.iter().collect::<Vec<_>>(), [0, 3]);
    world.run(register("dan")).unwrap();
    // The last millisecond before the end, and the end.
    world.now_ms = poll(&world, one).ends_ms - 2;
    assert_eq!(vote(&mut world, 3, one, &[0]), VOTED);
    world.run(register("eve")).unwrap();
    assert_eq!(vote(&mut world, 4, one, &[0]), Err(Refusal::PollEnded));
    check_rows(&world);
}

#[test]
fn only_those_who_may_see_a_post_vote_in_its_poll() {
    let mut world = World::new();
    world.run(register("dan")).unwrap();
    world.run(follow(id(1), id(0))).unwrap();
    world.run(block(id(3), id(0))).unwrap();
    for (visibility, voters) in [
        (Visibility::Public, [true, true, false]),
        (Visibility::Unlisted, [true, true, false]),
        (Visibility::Followers, [true, true, false]),
        (Visibility::Direct, [false, true, false]),
    ] {
        let post = publish(&mut world, 0, visibility, new(&["a", "b"], false));
        for (user, may) in (1..).zip(voters) {
            let expect = if may { VOTED } else { Err(Refusal::PollNotFound) };
            assert_eq!(vote(&mut world, user, post, &[0]), expect, "{visibility:?} of {user}");
        }
    }
    let post = ask(&mut world, 2);
    world.run(Command::DeleteUser { user: id(2) }).unwrap();
    assert_eq!(vote(&mut world, 1, post, &[0]), Err(Refusal::PollNotFound));
}

#[test]
fn a_post_has_a_poll_or_pictures_and_a_text() {
    let mut world = World::new();
    let draft =
        Draft { poll: Some(new(&["a", "b"], false)), ..Draft::of(id(0), Content::default()) };
    assert_eq!(world.run(Command::Publish(Box::new(draft))), Err(Refusal::BadText));
}

#[test]
fn other_options_begin_a_new_poll_and_the_same_ones_keep_the_votes() {
    let mut world = World::new();
    let post = ask(&mut world, 0);
    world
        .run(Command::React { user: id(1), post, reaction: Reaction::Favourite, on: true })
        .unwrap();
    vote(&mut world, 1, post, &[0]).unwrap();
    vote(&mut world, 2, post, &[1]).unwrap();
    let before = poll(&world, post);
    assert_eq!(before.id, PollId(post.0));
    // A later end, and hidden counts.
    let same = NewPoll { hide_totals: true, ..new(&["yes", "no", "maybe"], false) };
    edit(&mut world, post, Some(same.clone())).unwrap();
    let after = poll(&world, post);
    assert_eq!((after.id, after.hide_totals), (before.id, true));
    assert!(after.ends_ms > before.ends_ms);
    assert_eq!(counts(&world, post), (2, [1, 1, 0, 0]));
    check_rows(&world);
    // An edit of the text keeps the poll.
    let text = PostText::parse("other words").unwrap();
    world.run(Command::edit(post, Patch::of_text(text))).unwrap();
    assert_eq!(poll(&world, post), after);
    for other in [new(&["yes", "maybe", "no"], false), new(&["yes", "maybe", "no"], true)] {
        edit(&mut world, post, Some(other)).unwrap();
        assert_eq!(counts(&world, post), (0, [0; 4]), "all votes are gone at once");
        assert_eq!(vote(&mut world, 1, post, &[2]), VOTED);
        assert_eq!(counts(&world, post), (1, [0, 0, 1, 0]));
        check_rows(&world);
    }
    assert_eq!(sweep(&mut world), 2, "of the two polls before");
    assert_eq!(counts(&world, post), (1, [0, 0, 1, 0]));
    assert_eq!(world.facts().post_counts(post).favourites, 1, "reactions to the post stay");
    edit(&mut world, post, None).unwrap();
    assert_eq!(world.facts().post(post).unwrap().poll, None);
    assert_eq!(vote(&mut world, 2, post, &[0]), Err(Refusal::PollNotFound));
    sweep(&mut world);
    assert!(has_no_rows(&world));
    check_rows(&world);
}

#[test]
fn a_poll_that_has_ended_does_not_begin_again_without_other_options() {
    let mut world = World::new();
    let post = ask(&mut world, 0);
    vote(&mut world, 1, post, &[0]).unwrap();
    let before = poll(&world, post);
    world.now_ms = before.ends_ms;
    end(&mut world, post);
    edit(&mut world, post, Some(new(&["yes", "no", "maybe"], false))).unwrap();
    assert_eq!(poll(&world, post), before);
    assert_eq!(vote(&mut world, 2, post, &[0]), Err(Refusal::PollEnded));
    assert_eq!(end(&mut world, post), 0);
    let of_polls = |world: &World, user| {
        world.notices(user).into_iter().filter(|(_, notice)| *notice == Notice::Poll(post)).count()
    };
    assert_eq!([0, 1].map(|user| of_polls(&world, user)), [1, 1], "nobody is notified again");
    edit(&mut world, post, Some(new(&["up", "down"], false))).unwrap();
    assert_eq!(vote(&mut world, 2, post, &[0]), VOTED);
}

#[test]
fn author_and_voters_are_notified_of_the_end_once_in_pieces() {
    let mut world = World::new();
    let voters = 2 * POLL_NOTICES_MAX as u32;
    for user in 3..=voters {
        world.run(register(&format!("u{user}"))).unwrap();
    }
    let post = ask(&mut world, 0);
    for user in 1..=voters {
        assert_eq!(vote(&mut world, user, post, &[user as usize % 3]), VOTED);
    }
    assert_eq!(end(&mut world, post), 0);
    assert_eq!(world.notices(1), [], "it has not ended");
    world.run(mute(5, 0, None)).unwrap();
    world.run(block(id(6), id(0))).unwrap();
    world.run(Command::DeleteUser { user: id(7) }).unwrap();
    let due = poll(&world, post).end_of(post);
    world.now_ms = due.at_ms - 2;
    assert_eq!(world.run(Command::DoDue(due)), Ok(Done::NotDue), "a millisecond before");
    world.now_ms = due.at_ms;
    // Two nodes may send the same command.
    let mut notified = 0;
    for done in [Done::DueDone, Done::DueDone, Done::DueDone, Done::NotDue] {
        assert_eq!(world.run(Command::DoDue(due)), Ok(done));
        assert!(world.effects.len() <= POLL_NOTICES_MAX + 1);
        notified += world.effects.len();
        check_rows(&world);
    }
    assert_eq!(notified, voters as usize + 1 - 3);
    for user in 0..=voters {
        let count = usize::from(![5, 6, 7].contains(&user));
        let found =
            world.notices(user).iter().filter(|found| **found == (0, Notice::Poll(post))).count();
        assert_eq!(found, count, "{user}");
    }
    // The notification is shown as long as the poll exists.
    world.run(Command::DeletePost { post }).unwrap();
    assert!(!world.notices(1).contains(&(0, Notice::Poll(post))));
    assert_eq!(sweep(&mut world), 1);
    assert!(has_no_rows(&world));
    check_rows(&world);
}

#[test]
fn a_notification_of_the_end_is_dismissed_and_counts_as_others_do() {
    let mut world = World::new();
    let posts = [ask(&mut world, 0), ask(&mut world, 0)];
    for post in posts {
        vote(&mut world, 1, post, &[0]).unwrap();
    }
    world.now_ms += 400_000;
    for post in posts {
        end(&mut world, post);
        assert_eq!(world.effects.last(), Some(&Effect::Notified { user: UserId(1) }));
    }
    assert_eq!(world.notices(1), [(0, Notice::Poll(posts[1])), (0, Notice::Poll(posts[0]))]);
    let newest = world.rows.members(SetTable::Notifications, 1, rows::Span::ALL)[1].0;
    let notification = feed::NotificationId(newest);
    world.run(Command::DismissNotification { user: id(1), notification }).unwrap();
    assert_eq!(world.notices(1), [(0, Notice::Poll(posts[0]))]);
    check_rows(&world);
}

#[test]
fn a_deleted_user_neither_counts_nor_leaves_votes_and_polls() {
    let mut world = World::new();
    let (of_ada, of_bob) = (ask(&mut world, 0), ask(&mut world, 1));
    for (user, post) in [(1, of_ada), (2, of_ada), (2, of_bob), (0, of_bob)] {
        vote(&mut world, user, post, &[2]).unwrap();
    }
    world.run(Command::DeleteUser { user: id(1) }).unwrap();
    assert_eq!(counts(&world, of_ada), (1, [0, 0, 1, 0]), "at once");
    world.erase(1);
    assert_eq!(counts(&world, of_ada), (1, [0, 0, 1, 0]));
    assert_eq!(world.facts().votes_of(UserId(2), PollId(0), 9).len(), 2, "they are swept later");
    assert_eq!(sweep(&mut world), 1);
    assert_eq!(world.facts().votes_of(UserId(2), PollId(0), 9), [PollId(of_ada.0)]);
    assert_eq!(world.facts().votes_of(UserId(1), PollId(0), 9), []);
    check_rows(&world);
    world.run(Command::DeletePost { post: of_ada }).unwrap();
    sweep(&mut world);
    assert!(has_no_rows(&world));
}

#[test]
fn votes_of_a_deleted_poll_are_removed_in_pieces_and_those_of_a_deleted_user_too() {
    let mut world = World::new();
    let voters = ERASE_ROWS_MAX as u32 / 2 + 10;
    for user in 3..=voters {
        world.run(register(&format!("u{user}"))).unwrap();
    }
    let post = ask(&mut world, 0);
    for user in 1..=voters {
        vote(&mut world, user, post, &[0]).unwrap();
    }
    let polls: Vec<_> = (0..ERASE_ROWS_MAX / 3 + 10).map(|_| ask(&mut world, 0)).collect();
    for post in &polls {
        vote(&mut world, 1, *post, &[1]).unwrap();
    }
    world.run(Command::DeletePost { post }).unwrap();
    assert_eq!(sweep(&mut world), 2);
    world.run(Command::DeleteUser { user: id(1) }).unwrap();
    let step = |world: &mut World| {
        let (user, phase) = (UserId(1), feed::ErasurePhase::of(Table::Set(SetTable::Votes)));
        world.run(Command::EraseUser { user, phase, from: 0 }).unwrap();
        world.facts().votes_of(user, PollId(0), usize::MAX).len()
    };
    assert_eq!([step(&mut world), step(&mut world)], [10, 0]);
    world.erase(1);
    assert!(polls.iter().all(|post| counts(&world, *post) == (0, [0; 4])));
    check_rows(&world);
}

#[test]
fn lost_rows_of_polls_come_back() {
    use rows::PutRows as _;
    let mut world = World::new();
    let post = ask(&mut world, 0);
    edit(&mut world, post, Some(new(&["a", "b"], true))).unwrap();
    for user in [1, 2] {
        vote(&mut world, user, post, &[0, 1]).unwrap();
    }
    let (poll, whole) = (poll(&world, post), world.rows.clone());
    let end = whole.first_name(NameTable::Due, &[]).unwrap();
    type Damage<'a> = &'a dyn Fn(&mut testkit::MemoryRows);
    let damages: [(&str, Damage<'_>); 8] = [
        ("counts", &|rows| rows.put_point(PointTable::PollCounts, poll.id.0, None)),
        ("wrong counts", &|rows| {
            let counts = PollCounts { voters: 7, votes: [1; 4] };
            rows.put_point(PointTable::PollCounts, poll.id.0, Some(rows::encode(&counts)));
        }),
        ("by poll", &|rows| rows.put_member(SetTable::PollVotes, poll.id.0, 1, None)),
        ("by user", &|rows| rows.put_member(SetTable::Votes, 2, poll.id.0, None)),
        ("differing", &|rows| rows.put_member(SetTable::Votes, 2, poll.id.0, Some(1))),
        ("end", &|rows| rows.put_name(NameTable::Due, &end, None)),
        ("wrong end", &|rows| {
            let later = [&[1], &end[1..]].concat();
            rows.put_name(NameTable::Due, &later, Some(rows::Value::new()));
        }),
        ("swept", &|rows| {
            feed::write::due(rows, DueWork::SweepVotes { poll: poll.id }.at(7), Some(0));
        }),
    ];
    for (what, damage) in damages {
        let mut rows = whole.clone();
        damage(&mut rows);
        let (mut mend, mut found) = (Mend::new(false), Vec::new());
        while mend.step(&mut rows, &mut |finding| found.push(finding)) {}
        assert!(!found.is_empty() && rows == whole, "{what}: {found:?}");
    }
    // Votes in the poll of a lost post are uncounted and removed.
    let mut rows = whole.clone();
    rows.put_point(PointTable::Post, post.0, None);
    world.rows = rows;
    let mut mend = Mend::new(false);
    while mend.step(&mut world.rows, &mut |_| {}) {}
    assert_eq!(sweep(&mut world), 1);
    assert!(has_no_rows(&world));
}
