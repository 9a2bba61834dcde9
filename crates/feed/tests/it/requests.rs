//! Locked users and follow requests.

use crate::support::{World, answer, block, follow, id, lock, unfollow};
use feed::limits::FOLLOWING_MAX;
use feed::{Command, Counts, Done, Effect, Notice, NotificationFilter, Outcome, Page, Refusal};
use feed::{SetTable, Span, Txn, UserId, Viewer};

const ADA: UserId = UserId(0);
const BOB: UserId = UserId(1);

/// Whether Bob follows Ada, and whether he asks to.
fn state(world: &World) -> (bool, bool) {
    let facts = world.facts();
    let asks = facts.requests(BOB, ADA);
    let of_ada = facts.users_in(SetTable::FollowRequests, ADA, Span::ALL);
    assert_eq!(of_ada.contains(&BOB), asks);
    let (ada, bob) = (facts.counts(ADA), facts.counts(BOB));
    assert_eq!((ada.requests, bob.requested), (u32::from(asks), u32::from(asks)));
    let follows = facts.follows(BOB, ADA);
    assert_eq!((ada.followers, bob.following), (u32::from(follows), u32::from(follows)));
    (follows, asks)
}

fn notices(world: &World) -> Vec<(UserId, Notice)> {
    let viewer = Viewer::new(world.facts(), Some(ADA));
    let page = Page::newest(100);
    let found = viewer.notifications(&page, &NotificationFilter::default()).items.into_iter();
    found.map(|found| (found.actor, found.notice)).collect()
}

#[test]
fn whoever_follows_a_locked_user_asks_until_the_user_answers() {
    let none: Outcome = Err(Refusal::RequestNotFound);
    let (follow, unfollow) = (|| follow(id(1), id(0)), || unfollow(id(1), id(0)));
    let mut world = World::new();
    for (command, outcome, expect, effects) in [
        (answer(0, 1, true), none, (false, false), 0),
        (lock(0, true), Ok(Done::Edited(ADA)), (false, false), 0),
        // The effect is the notification.
        (follow(), Ok(Done::FollowRequested), (false, true), 1),
        (follow(), Ok(Done::FollowRequested), (false, true), 0),
        (unfollow(), Ok(Done::Unfollowed), (false, false), 0),
        (answer(0, 1, true), none, (false, false), 0),
        // The notification exists already.
        (follow(), Ok(Done::FollowRequested), (false, true), 0),
        (answer(0, 1, false), Ok(Done::RequestAnswered), (false, false), 0),
        (follow(), Ok(Done::FollowRequested), (false, true), 0),
        (answer(1, 0, true), none, (false, true), 0),
        // Plus a notification of the follow.
        (answer(0, 1, true), Ok(Done::RequestAnswered), (true, false), 2),
        (follow(), Ok(Done::Followed), (true, false), 0),
        (unfollow(), Ok(Done::Unfollowed), (false, false), 1),
        (follow(), Ok(Done::FollowRequested), (false, true), 0),
        // Unlocking accepts no request.
        (lock(0, false), Ok(Done::Edited(ADA)), (false, true), 0),
        // The notification of a follow exists already.
        (follow(), Ok(Done::Followed), (true, false), 1),
        (lock(0, true), Ok(Done::Edited(ADA)), (true, false), 0),
        (follow(), Ok(Done::Followed), (true, false), 0),
    ] {
        assert_eq!(world.run(command.clone()), outcome, "{command:?}");
        assert_eq!(state(&world), expect, "{command:?}");
        assert_eq!(world.effects.len(), effects, "{command:?}: {:?}", world.effects);
    }
}

#[test]
fn a_request_is_notified_while_it_exists() {
    let mut world = World::new();
    world.run(lock(0, true)).unwrap();
    world.run(follow(id(1), id(0))).unwrap();
    assert_eq!(world.effects, [Effect::Notified { user: ADA }]);
    assert_eq!(notices(&world), [(BOB, Notice::FollowRequest)]);
    world.run(answer(0, 1, true)).unwrap();
    assert_eq!(notices(&world), [(BOB, Notice::Follow)], "in place of that of the request");
    let changed = Effect::Follow { user: BOB, other: ADA, follows: true };
    assert_eq!(world.effects, [changed, Effect::Notified { user: ADA }]);
    // Neither a repeated nor a rejected request notifies again.
    world.run(unfollow(id(1), id(0))).unwrap();
    world.run(follow(id(1), id(0))).unwrap();
    world.run(answer(0, 1, true)).unwrap();
    assert_eq!(notices(&world), [(BOB, Notice::Follow)]);
    world.run(follow(id(2), id(0))).unwrap();
    world.run(answer(0, 2, false)).unwrap();
    assert_eq!(notices(&world), [(BOB, Notice::Follow)]);
}

#[test]
fn an_accepted_follower_who_is_muted_with_notifications_makes_none() {
    let mut world = World::new();
    world.run(lock(0, true)).unwrap();
    world.run(follow(id(1), id(0))).unwrap();
    let (user, other) = (id(0), id(1));
    world.run(Command::Mute { user, other, mentions: true, time: None }).unwrap();
    world.run(answer(0, 1, true)).unwrap();
    world.run(Command::Unmute { user: id(0), other: id(1) }).unwrap();
    assert_eq!(notices(&world), []);
}

#[test]
fn a_block_ends_requests_in_both_directions() {
    for (user, other) in [(0, 1), (1, 0)] {
        let mut world = World::new();
        world.run(lock(0, true)).unwrap();
        world.run(follow(id(1), id(0))).unwrap();
        world.run(block(id(user), id(other))).unwrap();
        assert_eq!(state(&world), (false, false));
    }
}

#[test]
fn many_follows_ask_those_who_are_locked() {
    let mut world = World::new();
    let many = |others: &[u32]| {
        let others = others.iter().map(|other| id(*other)).collect();
        Command::FollowMany { user: id(1), others }
    };
    world.run(lock(0, true)).unwrap();
    world.run(many(&[0])).unwrap();
    assert_eq!((state(&world), world.effects.len()), ((false, true), 0));
    world.run(many(&[0, 2])).unwrap();
    assert!(world.facts().follows(BOB, UserId(2)) && world.facts().requests(BOB, ADA));
    world.run(lock(0, false)).unwrap();
    world.run(many(&[0, 2])).unwrap();
    let counts = world.facts().counts(BOB);
    assert_eq!(counts, Counts { following: 2, ..Counts::default() });
    assert_eq!(rows::Rows::totals(&world.rows).follows, 2);
}

#[test]
fn requests_count_as_follows() {
    let mut world = World::new();
    world.run(lock(0, true)).unwrap();
    world.run(follow(id(1), id(0))).unwrap();
    let full = FOLLOWING_MAX - 1;
    Txn::new(&mut world.rows).count(BOB, |counts| counts.following = full);
    let before = world.snapshot();
    assert_eq!(world.run(follow(id(1), id(2))), Err(Refusal::TooManyFollows));
    let many = Command::FollowMany { user: id(1), others: vec![id(0), id(2)] };
    assert_eq!(world.run(many), Err(Refusal::TooManyFollows));
    assert_eq!(world.snapshot(), before);
    assert_eq!(world.run(answer(0, 1, true)), Ok(Done::RequestAnswered), "it was counted before");
}
