//! Boosts: their rows, the homes that show them, and their end.

use crate::support::{World, block, follow, gather, id, mute, register, unfollow};
use feed::limits::{BOOST_RECENT_MS, EARLIER_BOOSTS_MAX, ERASE_ROWS_MAX};
use feed::{
    Boost, Command, Done, Draft, Effect, Notice, Outcome, Page, Patch, PostChange, PostCounts,
    PostId, PostText, Reaction, Refusal, Span, UserId, Viewer, Visibility,
};

fn react(user: u32, post: PostId, on: bool) -> Command {
    Command::React { user: id(user), post, reaction: Reaction::Boost, on }
}

/// Boosts a post and returns the boost.
fn boost(world: &mut World, user: u32, post: PostId) -> PostId {
    assert_eq!(world.run(react(user, post, true)), Ok(Done::Reacted));
    PostId(world.log.last().unwrap().stamp.0)
}

fn publish(world: &mut World, author: u32, visibility: Visibility) -> PostId {
    let new = Draft::new(id(author), PostText::parse("a post").unwrap());
    match world.run(Command::Publish(Box::new(Draft { visibility, ..new }))) {
        Ok(Done::Posted(post)) => post,
        other => panic!("{other:?}"),
    }
}

/// Home timeline of a user, newest first.
fn home(world: &World, user: u32) -> Vec<PostId> {
    let (facts, user) = (world.facts(), UserId(user));
    let page = Page::newest(100);
    gather(facts, user, &facts.home_authors(user), &page).items
}

#[test]
fn a_boost_is_a_post_of_its_own_until_it_is_taken_back_and_leaves_no_rows() {
    let mut world = World::new();
    let post = world.post(0, "a post");
    let id = boost(&mut world, 1, post);
    let made = Boost { post, author: UserId(0), is_recent: true, earlier: Vec::new() };
    let found = world.facts().post(id).unwrap();
    assert_eq!((found.author, found.content.text.as_str()), (UserId(1), ""));
    assert_eq!(found.boost, Some(made));
    let (author, listed) = (UserId(1), found.listed());
    let changed = |change| Effect::Post { post: id, author, listed, users: None, change };
    let notified = Effect::Notified { user: UserId(0) };
    assert_eq!(world.effects, [changed(PostChange::Published), notified]);
    assert_eq!(world.facts().counts(UserId(1)).posts, 1);
    assert_eq!(world.notices(0), [(1, Notice::Boost(post))]);
    let counts = world.facts().post_counts(post);
    assert_eq!(counts, PostCounts { favourites: 0, boosts: 1, boosters: vec![UserId(1)] });
    assert_eq!(world.facts().reaction(UserId(1), post, Reaction::Boost), Some(id.0));
    assert_eq!(world.facts().reacted_by(post, Reaction::Boost, Span::ALL), [UserId(1)]);
    // A second boost, and a boost of the boost, change nothing.
    for post in [post, id] {
        assert_eq!(world.run(react(1, post, true)), Ok(Done::Reacted));
        assert!(world.effects.is_empty());
    }
    assert_eq!(world.run(react(1, post, false)), Ok(Done::Reacted));
    assert_eq!(world.effects, [changed(PostChange::Deleted)]);
    assert_eq!(world.run(react(1, post, false)), Ok(Done::Reacted), "there is none");
    assert_eq!(world.facts().stored_post(id), None);
    assert!(world.facts().posts_by(author, Span::ALL).is_empty());
    assert!(world.notices(0).is_empty());
    // A boost of one's own post notifies nobody, so no row is left.
    let before = world.snapshot();
    boost(&mut world, 0, post);
    assert_eq!(world.effects.len(), 1);
    world.run(react(0, post, false)).unwrap();
    assert!(world.snapshot() == before);
}

#[test]
fn a_boost_can_be_deleted_as_a_post_and_boosted_again() {
    let mut world = World::new();
    let post = world.post(0, "a post");
    let first = boost(&mut world, 1, post);
    assert_eq!(world.run(Command::DeletePost { post: first }), Ok(Done::Deleted));
    assert_eq!(world.facts().post_counts(post), PostCounts::default());
    assert!(world.notices(0).is_empty());
    let second = boost(&mut world, 1, post);
    assert_ne!(first, second);
    assert!(world.facts().post(second).unwrap().boost.unwrap().earlier.is_empty());
}

#[test]
fn only_what_everybody_may_see_is_boosted_and_a_boost_is_nothing_but_that() {
    let mut world = World::new();
    world.run(follow(id(1), id(0))).unwrap();
    for (visibility, expect) in [
        (Visibility::Public, Ok(Done::Reacted)),
        (Visibility::Unlisted, Ok(Done::Reacted)),
        (Visibility::Followers, Err(Refusal::BoostNotOpen)),
        (Visibility::Direct, Err(Refusal::PostNotFound)),
    ] {
        let post = publish(&mut world, 0, visibility);
        assert_eq!(world.run(react(1, post, true)), expect, "{visibility:?}");
    }
    let post = world.post(0, "a post");
    let boost = boost(&mut world, 1, post);
    let reply = Draft::new(id(2), PostText::parse("yes").unwrap());
    let reply = Draft { parent: Some(boost), ..reply };
    let Ok(Done::Posted(reply)) = world.run(Command::Publish(Box::new(reply))) else {
        panic!("a reply to a boost is one to the boosted post")
    };
    let reply = world.facts().post(reply).unwrap();
    assert_eq!((reply.in_reply_to, reply.reply_to), (Some(post), Some(UserId(0))));
    assert_eq!((reply.thread, reply.mentions), (Some(post), vec![UserId(0)]));
    assert!(world.facts().replies_to(boost, Span::ALL).is_empty());
    let text = PostText::parse("mine").unwrap();
    let edit = Command::edit(boost, Patch::of_text(text));
    assert_eq!(world.run(edit), Err(Refusal::PostNotFound));
    let favourite =
        Command::React { user: id(2), post: boost, reaction: Reaction::Favourite, on: true };
    world.run(favourite).unwrap();
    assert_eq!(world.facts().post_counts(post).favourites, 1, "of the boosted post");
    let pin = Command::React { user: id(1), post: boost, reaction: Reaction::Pin, on: true };
    assert_eq!(world.run(pin), Err(Refusal::PinNotOwn));
    assert_eq!(world.run(react(2, PostId(7), true)), Err(Refusal::PostNotFound));
    world.run(block(id(0), id(2))).unwrap();
    assert_eq!(world.run(react(2, post, true)), Err(Refusal::PostNotFound));
}

#[test]
fn authors_boost_their_own_posts_for_followers_for_the_same_users() {
    let mut world = World::new();
    world.run(register("dan")).unwrap();
    world.run(follow(id(1), id(0))).unwrap();
    let text = PostText::parse("hello @cy").unwrap();
    let new = Draft { visibility: Visibility::Followers, ..Draft::new(id(0), text) };
    let Ok(Done::Posted(post)) = world.run(Command::Publish(Box::new(new))) else { panic!() };
    for other in [1, 2] {
        assert_eq!(world.run(react(other, post, true)), Err(Refusal::BoostNotOpen), "{other}");
    }
    let made = boost(&mut world, 0, post);
    let found = world.facts().post(made).unwrap();
    assert_eq!(found.visibility, Visibility::Followers);
    for (user, expect) in [(0, true), (1, true), (2, false), (3, false)] {
        let visible = Viewer::new(world.facts(), Some(UserId(user))).visible(&found);
        assert_eq!(visible, expect, "{user}");
    }
    let direct = publish(&mut world, 0, Visibility::Direct);
    assert_eq!(world.run(react(0, direct, true)), Err(Refusal::BoostNotOpen));
    world.run(react(0, post, false)).unwrap();
    assert_eq!(world.facts().post_counts(post), PostCounts::default());
}

/// User 3 reads. User 0 wrote the post; users 1 and 2 boost it in this order.
#[test]
fn a_home_has_a_boost_if_the_post_is_not_there_anyway() {
    for (follows, is_old, is_reply, expect) in [
        (&[0, 1][..], false, false, "post"),
        (&[0, 1], true, false, "post first"),
        (&[0, 1], false, true, "first"),
        (&[1], false, false, "first"),
        (&[2], false, false, "second"),
        (&[1, 2], false, false, "first"),
        (&[1, 2], true, true, "first"),
        (&[0, 1, 2], true, false, "post first"),
        (&[], false, false, ""),
    ] {
        let mut world = World::new();
        world.run(register("dan")).unwrap();
        for user in follows {
            world.run(follow(id(3), id(*user))).unwrap();
        }
        let post = world.post(0, if is_reply { "@cy hello" } else { "hello" });
        if is_old {
            world.now_ms += BOOST_RECENT_MS;
        }
        let first = boost(&mut world, 1, post);
        let second = boost(&mut world, 2, post);
        let name = |found: &PostId| match *found {
            found if found == post => "post",
            found if found == first => "first",
            found if found == second => "second",
            other => panic!("{other:?}"),
        };
        let found: Vec<_> = home(&world, 3).iter().rev().map(name).collect();
        assert_eq!(found.join(" "), expect, "{follows:?}, old {is_old}, reply {is_reply}");
        // The booster sees the boost at home as a reader without follows does.
        assert!(home(&world, 1).contains(&first));
        assert!(!home(&world, 0).contains(&first) || is_old || is_reply, "one's own post");
    }
}

fn earlier(world: &World, boost: PostId) -> Vec<u32> {
    let boost = world.facts().post(boost).unwrap().boost.unwrap();
    boost.earlier.into_iter().map(|user| user.0).collect()
}

#[test]
fn a_boost_knows_those_of_the_day_before_and_no_older_ones() {
    let mut world = World::new();
    for user in ["dan", "eve"] {
        world.run(register(user)).unwrap();
    }
    let post = world.post(0, "a post");
    let first = boost(&mut world, 1, post);
    let start = world.now_ms;
    // Each boost is within a day of the one before, but the third and the last are not within a day of the first.
    world.now_ms = start + BOOST_RECENT_MS - 2;
    let second = boost(&mut world, 2, post);
    world.now_ms = start + BOOST_RECENT_MS - 1;
    let third = boost(&mut world, 3, post);
    world.now_ms = start + 2 * BOOST_RECENT_MS - 3;
    let last = boost(&mut world, 4, post);
    let all = [first, second, third, last].map(|boost| earlier(&world, boost));
    assert_eq!(all, [vec![], vec![1], vec![2], vec![3, 2]]);
    for reader in [1, 4] {
        world.run(follow(id(0), id(reader))).unwrap();
    }
    assert_eq!(home(&world, 0), [last, post], "of one's own post, a day later");
}

#[test]
fn a_boost_knows_a_bounded_number_of_earlier_ones_and_never_its_own_user() {
    let mut world = World::new();
    let users = 3..EARLIER_BOOSTS_MAX as u32 + 7;
    for user in users.clone() {
        world.run(register(&format!("u{user}"))).unwrap();
    }
    let post = world.post(0, "a post");
    let last = users.clone().map(|user| boost(&mut world, user, post)).last().unwrap();
    let before = users.end - 1 - EARLIER_BOOSTS_MAX as u32..users.end - 1;
    assert_eq!(earlier(&world, last), before.rev().collect::<Vec<_>>());
    // After a second boost by the first booster, all recorded boosts are later than the first.
    world.run(react(users.start, post, false)).unwrap();
    let again = boost(&mut world, users.start, post);
    let last = users.end - EARLIER_BOOSTS_MAX as u32..users.end;
    assert_eq!(earlier(&world, again), last.rev().collect::<Vec<_>>());
}

#[test]
fn a_boost_that_is_taken_back_neither_hides_the_next_one_nor_shows_a_post_twice() {
    let mut world = World::new();
    world.run(register("dan")).unwrap();
    let post = world.post(0, "a post");
    for user in [1, 2] {
        world.run(follow(id(3), id(user))).unwrap();
    }
    // The first boost hides the later one as long as it exists.
    let first = boost(&mut world, 1, post);
    let second = boost(&mut world, 2, post);
    assert_eq!(home(&world, 3), [first]);
    world.run(react(1, post, false)).unwrap();
    assert_eq!(home(&world, 3), [second]);
    let listed = world.facts().post(second).unwrap().listed();
    let (author, users, change) = (UserId(2), None, PostChange::Shown);
    let shown = Effect::Post { post: second, author, listed, users, change };
    assert!(world.effects.contains(&shown), "{:?}", world.effects);
    let again = boost(&mut world, 1, post);
    assert_eq!((earlier(&world, second), earlier(&world, again)), (vec![], vec![2]));
    assert_eq!(home(&world, 3), [second]);
    // A boost that has ended does not displace other boosters.
    boost(&mut world, 0, post);
    world.run(react(0, post, false)).unwrap();
    // Deleting the boost as a post has the same effect.
    world.run(Command::DeletePost { post: second }).unwrap();
    assert_eq!(home(&world, 3), [again]);
    let last = boost(&mut world, 2, post);
    assert_eq!(earlier(&world, last), [1]);
    assert_eq!(home(&world, 3), [again]);
}

/// A user who follows a booster of a post always has a boost of it at home.
#[test]
fn a_boost_is_at_home_of_who_follows_one_who_boosts() {
    const USERS: u32 = 40;
    let mut world = World::new();
    for user in 3..USERS {
        world.run(register(&format!("u{user}"))).unwrap();
    }
    let post = world.post(0, "a post");
    let readers = [1, 2].map(|reader| (reader, (3 + reader..USERS).step_by(5 * reader as usize)));
    for (reader, follows) in readers.clone() {
        for user in follows {
            world.run(follow(id(reader), id(user))).unwrap();
        }
    }
    let mut random = testkit::Random::new(7);
    let mut boosters = std::collections::BTreeSet::new();
    let mut bounded = 0;
    for step in 0..3_000 {
        // Phases of many boosts alternate with phases of many ends of boosts.
        let on = !random.once_in(if step / 100 % 2 == 0 { 8 } else { 2 });
        let user = 3 + random.below(u64::from(USERS) - 3) as u32;
        world.run(react(user, post, on)).unwrap();
        match on {
            true => boosters.insert(user),
            false => boosters.remove(&user),
        };
        for (reader, mut follows) in readers.clone() {
            let expect = follows.any(|user| boosters.contains(&user));
            let found = home(&world, reader).len();
            assert_eq!(found > 0, expect, "{step}: {reader}, {boosters:?}");
            bounded += usize::from(found > 1);
        }
    }
    assert!(bounded < 3_000, "nearly always one");
    assert_eq!(world.facts().post_counts(post).boosts as usize, boosters.len());
}

#[test]
fn what_a_mute_or_a_block_hides_is_not_boosted_for_its_user() {
    let mut world = World::new();
    world.run(follow(id(2), id(1))).unwrap();
    let post = world.post(0, "a post");
    let found = boost(&mut world, 1, post);
    let shown = |world: &World| {
        let (viewer, post) =
            (Viewer::new(world.facts(), Some(UserId(2))), world.facts().post(found).unwrap());
        let posted = world.facts().posts_by(UserId(1), Span::ALL)[0];
        assert_eq!(viewer.visible(&post), viewer.visible_posted(UserId(1), posted));
        (viewer.visible(&post), viewer.wanted(&post), viewer.wants_boosts_of(UserId(0)))
    };
    assert_eq!(shown(&world), (true, true, true));
    world.run(mute(2, 0, None)).unwrap();
    assert_eq!(shown(&world), (true, false, false));
    world.run(block(id(0), id(2))).unwrap();
    assert_eq!(shown(&world), (false, false, false));
}

#[test]
fn boosts_of_a_deleted_post_are_gone_at_once_and_removed_in_pieces() {
    let mut world = World::new();
    let fans = ERASE_ROWS_MAX as u32 / 2;
    for user in 3..3 + fans {
        world.run(register(&format!("u{user}"))).unwrap();
    }
    let (post, other) = (world.post(0, "a post"), world.post(0, "another"));
    let boosts: Vec<_> = (3..3 + fans).map(|user| boost(&mut world, user, post)).collect();
    let kept = boost(&mut world, 3, other);
    world.run(Command::DeletePost { post }).unwrap();
    assert_eq!(world.facts().post(boosts[0]), None, "at once");
    assert_eq!(world.notices(0), [(3, Notice::Boost(other))]);
    assert_eq!(world.facts().counts(UserId(3)).posts, 2, "their rows are stored");
    assert_eq!(world.sweep_reactions(), 3);
    assert_eq!(world.facts().counts(UserId(3)).posts, 1);
    assert_eq!(world.facts().totals().posts, 2);
    assert!(boosts.iter().all(|boost| world.facts().stored_post(*boost).is_none()));
    assert!(world.facts().post(kept).is_some());
}

#[test]
fn a_deleted_user_neither_boosts_nor_is_boosted() {
    let mut world = World::new();
    let (adas, bobs) = (world.post(0, "by ada"), world.post(1, "by bob"));
    let (of_ada, of_bob) = (boost(&mut world, 1, adas), boost(&mut world, 2, bobs));
    let second = boost(&mut world, 2, adas);
    world.run(Command::DeleteUser { user: id(1) }).unwrap();
    let facts = world.facts();
    assert_eq!((facts.post(of_ada), facts.post(of_bob)), (None, None));
    assert_eq!((facts.post_counts(adas).boosts, facts.counts(UserId(2)).posts), (1, 2));
    world.erase(1);
    world.sweep_reactions();
    let facts = world.facts();
    assert_eq!((facts.stored_post(of_ada), facts.stored_post(of_bob)), (None, None));
    assert_eq!((facts.post_counts(adas).boosts, facts.counts(UserId(2)).posts), (1, 1));
    assert_eq!(facts.totals().posts, 2);
    assert!(facts.post(second).is_some());
    let left: Outcome = world.run(react(2, adas, false));
    assert_eq!(left, Ok(Done::Reacted));
    assert_eq!(world.facts().post_counts(adas), PostCounts::default());
}

#[test]
fn an_unfollow_ends_boosts_at_home() {
    let mut world = World::new();
    world.run(follow(id(2), id(1))).unwrap();
    let post = world.post(0, "a post");
    let found = boost(&mut world, 1, post);
    assert_eq!(home(&world, 2), [found]);
    world.run(unfollow(id(2), id(1))).unwrap();
    assert!(home(&world, 2).is_empty());
}
