//! Blocks and mutes: the relations that they end and forbid, and visibility, compared with a model.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{
    World, befriend, block, follow, handle, id, mute, post_story, register, unblock, unfollow,
    unfriend, unmute, view,
};
use feed::thread::{ancestors, descendants};
use feed::{
    Command, Counts, Done, Draft, DueWork, Effect, Input, Mute, PostId, PostText, Refusal,
    Rows as _, SetTable, Span, Txn, UserId, Viewer, limits,
};
use proptest::prelude::*;

const ADA: UserId = UserId(0);
const BOB: UserId = UserId(1);

fn reply(author: u32, parent: PostId) -> Command {
    Command::Publish(Box::new(Draft {
        parent: Some(parent),
        ..Draft::new(id(author), PostText::parse("a reply").unwrap())
    }))
}

fn many(user: u32, others: &[u32]) -> Command {
    Command::FollowMany { user: id(user), others: others.iter().map(|other| id(*other)).collect() }
}

#[test]
fn a_block_ends_follows_and_friendship_in_both_directions_and_an_unblock_restores_none() {
    let ended = |user, other| Effect::Follow { user, other, follows: false };
    let changed = |user, input| Effect::Input { user, input };
    let hidden = changed(ADA, Input::Hidden);
    let friends = [ADA, BOB].map(|user| changed(user, Input::Friends));
    for (before, effects) in [
        (vec![], vec![hidden.clone()]),
        (vec![follow(id(0), id(1))], vec![hidden.clone(), ended(ADA, BOB)]),
        (vec![follow(id(1), id(0))], vec![hidden.clone(), ended(BOB, ADA)]),
        (
            vec![follow(id(0), id(1)), follow(id(1), id(0)), befriend(id(1), id(0))],
            [hidden, ended(ADA, BOB), ended(BOB, ADA)].into_iter().chain(friends).collect(),
        ),
    ] {
        let mut world = World::new();
        world.run(follow(id(0), id(2))).unwrap();
        for command in before {
            world.run(command).unwrap();
        }
        assert_eq!(world.run(block(handle("ada"), id(1))), Ok(Done::Blocked));
        assert_eq!(world.effects, effects);
        let counts = Counts { following: 1, blocks: 1, ..Counts::default() };
        assert_eq!(world.facts().counts(ADA), counts);
        assert_eq!(world.facts().counts(BOB), Counts::default());
        let totals = world.rows.totals();
        assert_eq!((totals.follows, totals.friendships, totals.blocks), (1, 0, 1));
        let blocked = world.snapshot();
        assert_eq!(world.run(block(id(0), id(1))), Ok(Done::Blocked), "again");
        assert_eq!((world.effects.len(), world.snapshot()), (0, blocked));
        for _ in 0..2 {
            assert_eq!(world.run(unblock(id(0), id(1))), Ok(Done::Unblocked));
            assert!(world.effects.is_empty(), "nothing comes back");
            assert_eq!(world.facts().counts(ADA), Counts { blocks: 0, ..counts });
        }
        let lists = [SetTable::Blocks, SetTable::BlockedBy];
        assert!(
            lists.into_iter().all(|table| world.facts().users_in(table, BOB, Span::ALL).is_empty())
        );
        assert_eq!(world.run(follow(id(1), id(0))), Ok(Done::Followed));
    }
}

#[test]
fn a_block_forbids_relations_and_replies_and_does_not_tell_whoever_is_blocked() {
    let mut world = World::new();
    let (adas, bobs) = (world.post(0, "by ada"), world.post(1, "by bob"));
    world.run(block(id(0), id(1))).unwrap();
    let before = world.snapshot();
    for (command, outcome) in [
        (follow(id(0), id(1)), Err(Refusal::Blocked)),
        (follow(id(1), id(0)), Err(Refusal::OtherNotFound)),
        (many(0, &[2, 1]), Err(Refusal::Blocked)),
        (many(1, &[2, 0]), Err(Refusal::OtherNotFound)),
        (befriend(id(0), id(1)), Err(Refusal::Blocked)),
        (befriend(id(1), id(0)), Err(Refusal::OtherNotFound)),
        (reply(0, bobs), Err(Refusal::ParentNotFound)),
        (reply(1, adas), Err(Refusal::ParentNotFound)),
        // These commands succeed, because the block has already ended the follow and the friendship.
        (unfollow(id(1), id(0)), Ok(Done::Unfollowed)),
        (unfriend(id(0), id(1)), Ok(Done::Unfriended)),
        (block(id(1), id(1)), Err(Refusal::SelfBlock)),
        (mute(1, 1, None), Err(Refusal::SelfMute)),
        (block(id(1), id(9)), Err(Refusal::OtherNotFound)),
        (mute(1, 9, None), Err(Refusal::OtherNotFound)),
    ] {
        assert_eq!(world.run(command.clone()), outcome, "{command:?}");
        assert_eq!(world.snapshot(), before, "{command:?}");
    }
    // Both users may block each other. The follow is possible only after both have unblocked.
    world.run(block(id(1), id(0))).unwrap();
    world.run(unblock(id(0), id(1))).unwrap();
    assert_eq!(world.run(follow(id(0), id(1))), Err(Refusal::OtherNotFound));
    world.run(unblock(id(1), id(0))).unwrap();
    assert_eq!(world.run(follow(id(0), id(1))), Ok(Done::Followed));
}

#[test]
fn lists_of_blocks_and_mutes_are_bounded() {
    let mut world = World::new();
    Txn::new(&mut world.rows).count(ADA, |counts| {
        (counts.blocks, counts.mutes) = (limits::BLOCKS_MAX - 1, limits::MUTES_MAX - 1);
    });
    for (command, outcome) in [
        (block(id(0), id(1)), Ok(Done::Blocked)),
        (block(id(0), id(2)), Err(Refusal::TooManyBlocks)),
        (block(id(0), id(1)), Ok(Done::Blocked)),
        (mute(0, 1, None), Ok(Done::Muted)),
        (mute(0, 2, None), Err(Refusal::TooManyMutes)),
        (mute(0, 1, Some(5)), Ok(Done::Muted)),
    ] {
        assert_eq!(world.run(command.clone()), outcome, "{command:?}");
    }
}

#[test]
fn a_mute_ends_by_itself_when_its_last_time_is_over() {
    let mut world = World::new();
    let ends = |world: &World| world.facts().mute(ADA, BOB).map(|mute| mute.ends_ms);
    let changed = [Effect::Input { user: ADA, input: Input::Hidden }];
    world.run(mute(0, 1, Some(5))).unwrap();
    assert_eq!(world.effects, changed);
    let first = world.now_ms + 5_000;
    assert_eq!(ends(&world), Some(Some(first)));
    // A later mute replaces the mute and its end.
    world.run(mute(0, 1, Some(60))).unwrap();
    let second = world.now_ms + 60_000;
    assert_eq!((ends(&world), world.facts().counts(ADA).mutes), (Some(Some(second)), 1));
    world.now_ms = first;
    assert_eq!(world.end_mutes(), 0, "the first end does not count");
    world.now_ms = second - 2;
    let end = |user, other, at_ms| Command::DoDue(DueWork::EndMute { user, other }.at(at_ms));
    assert_eq!(world.run(end(ADA, BOB, second)), Ok(Done::NotDue));
    assert!(ends(&world).is_some(), "a millisecond before");
    world.now_ms = second - 1;
    for (user, other, at_ms) in [(BOB, ADA, second), (ADA, UserId(9), second), (ADA, BOB, first)] {
        assert_eq!(world.run(end(user, other, at_ms)), Ok(Done::NotDue), "no mute ends then");
    }
    assert_eq!(world.run(end(ADA, BOB, second)), Ok(Done::DueDone));
    assert_eq!(world.effects, changed);
    assert_eq!(world.run(end(ADA, BOB, second)), Ok(Done::NotDue), "two nodes may send it");
    assert_eq!((ends(&world), world.facts().counts(ADA)), (None, Counts::default()));
    assert_eq!(world.rows.totals().mutes, 0);
    // Without an end the mute stays; an unmute removes the end.
    world.run(mute(0, 1, Some(5))).unwrap();
    world.run(mute(0, 1, None)).unwrap();
    world.now_ms += 1 << 40;
    assert_eq!((world.end_mutes(), ends(&world)), (0, Some(None)));
    world.run(mute(0, 1, Some(5))).unwrap();
    world.run(unmute(0, 1)).unwrap();
    assert_eq!(world.due(), []);
    assert_eq!(world.run(unmute(0, 1)), Ok(Done::Unmuted));
    assert!(world.effects.is_empty());
}

#[test]
fn the_row_of_a_mute_has_its_end_and_whether_mentions_are_hidden() {
    for (mentions, ends_ms, number) in
        [(false, None, 0), (true, None, 1), (false, Some(7), 14), (true, Some(7), 15)]
    {
        let mute = Mute { mentions, ends_ms };
        assert_eq!((mute.number(), Mute::of_number(number)), (number, mute));
    }
}

/// Users, and an action of one of them: blocking or muting (with or without notifications) another, or nothing.
#[derive(Clone, Debug)]
enum Step {
    Block(u32, u32, bool),
    Mute(u32, u32, bool),
    Unmute(u32, u32),
    Follow(u32, u32),
    Befriend(u32, u32),
    Post(u32, u32),
    Reply(u32, usize),
}

const USERS: u32 = 4;

fn step() -> impl Strategy<Value = Step> {
    let user = || 0..USERS;
    prop_oneof![
        3 => (user(), user(), prop::bool::weighted(0.6)).prop_map(|(a, b, on)| Step::Block(a, b, on)),
        3 => (user(), user(), any::<bool>()).prop_map(|(a, b, all)| Step::Mute(a, b, all)),
        1 => (user(), user()).prop_map(|(a, b)| Step::Unmute(a, b)),
        4 => (user(), user()).prop_map(|(a, b)| Step::Follow(a, b)),
        2 => (user(), user()).prop_map(|(a, b)| Step::Befriend(a, b)),
        4 => (user(), user()).prop_map(|(a, b)| Step::Post(a, b)),
        5 => (user(), 0..100_usize).prop_map(|(a, at)| Step::Reply(a, at)),
    ]
}

#[derive(Default)]
struct Model {
    blocks: BTreeSet<(u32, u32)>,
    /// Whether the mute also hides notifications.
    mutes: BTreeMap<(u32, u32), bool>,
    follows: BTreeSet<(u32, u32)>,
    friends: BTreeSet<(u32, u32)>,
    /// Author, parent post, and the user mentioned in the text.
    posts: BTreeMap<PostId, (u32, Option<PostId>, Option<u32>)>,
}

impl Model {
    fn hidden(&self, one: u32, other: u32) -> bool {
        self.blocks.contains(&(one, other)) || self.blocks.contains(&(other, one))
    }

    fn wanted(&self, viewer: u32, post: PostId) -> bool {
        let (author, ..) = self.posts[&post];
        !self.hidden(viewer, author) && !self.mutes.contains_key(&(viewer, author))
    }

    fn below(&self, viewer: u32, post: PostId, found: &mut Vec<PostId>) {
        for (reply, _) in self.posts.iter().filter(|(_, (_, parent, _))| *parent == Some(post)) {
            found.extend(self.wanted(viewer, *reply).then_some(*reply));
            self.below(viewer, *reply, found);
        }
    }

    fn above(&self, viewer: u32, post: PostId) -> Vec<PostId> {
        let parent = |post: &PostId| self.posts[post].1;
        let above = std::iter::successors(parent(&post), parent);
        let mut found: Vec<_> = above.filter(|post| self.wanted(viewer, *post)).collect();
        found.reverse();
        found
    }
}

fn take(world: &mut World, model: &mut Model, step: &Step) {
    match *step {
        Step::Block(a, b, true) if a != b => {
            world.run(block(id(a), id(b))).unwrap();
            model.blocks.insert((a, b));
            for pair in [(a, b), (b, a)] {
                model.follows.remove(&pair);
                model.friends.remove(&pair);
            }
        }
        Step::Block(a, b, false) if a != b => {
            world.run(unblock(id(a), id(b))).unwrap();
            model.blocks.remove(&(a, b));
        }
        Step::Mute(a, b, mentions) if a != b => {
            let command = Command::Mute { user: id(a), other: id(b), mentions, time: None };
            world.run(command).unwrap();
            model.mutes.insert((a, b), mentions);
        }
        Step::Unmute(a, b) if a != b => {
            world.run(unmute(a, b)).unwrap();
            model.mutes.remove(&(a, b));
        }
        Step::Follow(a, b) if a != b => {
            let done = world.run(follow(id(a), id(b)));
            assert_eq!(done.is_ok(), !model.hidden(a, b));
            model.follows.extend(done.ok().map(|_| (a, b)));
        }
        Step::Befriend(a, b) if a != b => {
            let done = world.run(befriend(id(a), id(b)));
            assert_eq!(done.is_ok(), !model.hidden(a, b));
            model.friends.extend(done.into_iter().flat_map(|_| [(a, b), (b, a)]));
        }
        Step::Post(author, to) => {
            let post = world.post(author, &format!("@u{to}"));
            model.posts.insert(post, (author, None, Some(to)));
        }
        Step::Reply(author, at) if !model.posts.is_empty() => {
            let (parent, (replied, ..)) = model.posts.iter().nth(at % model.posts.len()).unwrap();
            let (parent, replied) = (*parent, *replied);
            let done = world.run(reply(author, parent));
            assert_eq!(done.is_ok(), !model.hidden(author, replied));
            if let Ok(Done::Posted(post)) = done {
                model.posts.insert(post, (author, Some(parent), None));
            }
        }
        _ => {}
    }
}

/// Reads on behalf of each user and compares with the model.
fn check(world: &World, model: &Model, limit: usize) {
    let facts = world.facts();
    for user in 0..USERS {
        let viewer = Viewer::new(facts, Some(UserId(user)));
        for other in 0..USERS {
            assert_eq!(viewer.visible_user(UserId(other)), !model.hidden(user, other));
            let pair = (user, other);
            assert_eq!(facts.follows(UserId(user), UserId(other)), model.follows.contains(&pair));
            assert_eq!(
                facts.are_friends(UserId(user), UserId(other)),
                model.friends.contains(&pair)
            );
        }
        let unmuted = |relations: &BTreeSet<(u32, u32)>| -> Vec<UserId> {
            let wanted = relations.iter().filter(|pair| !model.mutes.contains_key(pair));
            wanted.filter(|(one, _)| *one == user).map(|(_, other)| UserId(*other)).collect()
        };
        assert_eq!(facts.home_authors(UserId(user)).users.to_vec(), unmuted(&model.follows));
        assert_eq!(facts.story_authors(UserId(user)), unmuted(&model.friends));
        for (post, (author, ..)) in &model.posts {
            let record = facts.post(*post).unwrap();
            assert_eq!(viewer.visible(&record), !model.hidden(user, *author));
            assert_eq!(viewer.wanted(&record), model.wanted(user, *post));
            let silent = model.mutes.get(&(user, *author)) == Some(&true);
            assert_eq!(viewer.notified(*post), !model.hidden(user, *author) && !silent);
            assert_eq!(ancestors(&viewer, *post), model.above(user, *post));
            let (mut below, mut found, mut from) = (Vec::new(), Vec::new(), Vec::new());
            model.below(user, *post, &mut below);
            loop {
                let page = descendants(&viewer, *post, &from, limit);
                assert!(page.posts.len() <= limit);
                found.extend(page.posts);
                let Some(next) = page.next else { break };
                from = next;
            }
            assert_eq!(found, below, "below {post:?} for {user}");
        }
    }
    let all = Viewer::new(facts, None);
    for post in model.posts.keys() {
        assert!(all.wanted(&facts.post(*post).unwrap()) && all.notified(*post));
    }
}

proptest! {
    #[test]
    fn what_a_user_sees_is_what_blocks_and_mutes_leave(
        steps in prop::collection::vec(step(), 1..60),
        limit in 1_usize..6,
    ) {
        let (mut world, mut model) = (World::new(), Model::default());
        world.run(register("u3")).unwrap();
        for step in &steps {
            take(&mut world, &mut model, step);
        }
        check(&world, &model, limit);
    }
}

#[test]
fn stories_of_a_blocked_friend_cannot_be_viewed() {
    let mut world = World::new();
    world.run(befriend(id(0), id(1))).unwrap();
    let story = world.post_story(0, 100);
    world.run(view(story, 1)).unwrap();
    world.run(block(id(1), id(0))).unwrap();
    assert_eq!(world.run(view(story, 1)), Err(Refusal::StoryNotFound));
    world.run(post_story(1, "another", 100)).unwrap();
}
