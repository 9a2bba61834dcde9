//! Favourites, bookmarks, pins, and notifications.

use crate::support::{World, block, follow, id, mute, register, unfollow, unmute};
use feed::limits::{ERASE_ROWS_MAX, NOTIFICATIONS_MAX, PINS_MAX};
use feed::{
    Command, Cursor, Done, Draft, Effect, Notice, NotificationFilter, NotificationId, Outcome,
    Page, PostId, PostText, Reaction, Refusal, Span, UserId, Viewer, Visibility,
};
use rows::{Rows as _, SetTable};

const FAVOURITE: Reaction = Reaction::Favourite;

fn react(user: u32, post: PostId, reaction: Reaction, on: bool) -> Command {
    Command::React { user: id(user), post, reaction, on }
}

fn favourite(world: &mut World, user: u32, post: PostId) -> Outcome {
    world.run(react(user, post, FAVOURITE, true))
}

fn newest_id(world: &World, user: u32) -> NotificationId {
    let page = Page::newest(1);
    let viewer = Viewer::new(world.facts(), Some(UserId(user)));
    viewer.notifications(&page, &NotificationFilter::default()).items[0].id
}

fn stored_notices(world: &World, user: u32) -> usize {
    world.rows.members(SetTable::Notifications, user.into(), Span::ALL).len()
}

#[test]
fn a_reaction_is_listed_until_it_is_undone_and_leaves_no_rows() {
    for reaction in [FAVOURITE, Reaction::Bookmark, Reaction::Pin, Reaction::Less] {
        let mut world = World::new();
        let post = world.post(0, "a post");
        let before = world.snapshot();
        assert_eq!(world.run(react(0, post, reaction, true)), Ok(Done::Reacted));
        let stamp = world.log.last().unwrap().stamp.0;
        // A second reaction changes nothing.
        assert_eq!(world.run(react(0, post, reaction, true)), Ok(Done::Reacted));
        let facts = world.facts();
        assert_eq!(facts.reaction(UserId(0), post, reaction), Some(stamp));
        assert_eq!(facts.reaction(UserId(1), post, reaction), None);
        assert_eq!(facts.reactions_of(UserId(0), reaction, Span::ALL), [(stamp, post)]);
        let favourites = u32::from(reaction == FAVOURITE);
        assert_eq!(facts.post_counts(post).favourites, favourites);
        assert_eq!(facts.reacted_by(post, FAVOURITE, Span::ALL).len(), favourites as usize);
        assert!(world.effects.is_empty() && world.notices(0).is_empty(), "of one's own post");
        for _ in 0..2 {
            assert_eq!(world.run(react(0, post, reaction, false)), Ok(Done::Reacted));
            assert!(world.snapshot() == before, "{reaction:?} leaves rows");
        }
    }
}

#[test]
fn one_reacts_to_what_one_sees_and_ends_it_also_when_it_is_hidden() {
    let mut world = World::new();
    let text = PostText::parse("to followers").unwrap();
    let new = Draft { visibility: Visibility::Followers, ..Draft::new(id(0), text) };
    let Ok(Done::Posted(post)) = world.run(Command::Publish(Box::new(new))) else { panic!() };
    assert_eq!(favourite(&mut world, 1, post), Err(Refusal::PostNotFound));
    assert_eq!(favourite(&mut world, 1, PostId(7)), Err(Refusal::PostNotFound));
    assert_eq!(world.run(react(9, post, FAVOURITE, true)), Err(Refusal::UserNotFound));
    world.run(follow(id(1), id(0))).unwrap();
    assert_eq!(favourite(&mut world, 1, post), Ok(Done::Reacted));
    world.run(unfollow(id(1), id(0))).unwrap();
    assert_eq!(world.run(react(1, post, FAVOURITE, false)), Ok(Done::Reacted));
    let again = world.run(react(1, post, FAVOURITE, false));
    assert_eq!(again, Err(Refusal::PostNotFound), "it is hidden and was ended");
    assert_eq!(world.facts().post_counts(post).favourites, 0);
}

#[test]
fn a_user_pins_a_few_posts_of_their_own_that_are_not_direct() {
    let mut world = World::new();
    let pin = |post| react(0, post, Reaction::Pin, true);
    let posts: Vec<_> = (0..=PINS_MAX).map(|_| world.post(0, "mine")).collect();
    let other = world.post(1, "not mine");
    assert_eq!(world.run(pin(other)), Err(Refusal::PinNotOwn));
    let new = Draft::new(id(0), PostText::parse("direct").unwrap());
    let new = Draft { visibility: Visibility::Direct, ..new };
    let Ok(Done::Posted(direct)) = world.run(Command::Publish(Box::new(new))) else { panic!() };
    assert_eq!(world.run(pin(direct)), Err(Refusal::PinDirect));
    for post in &posts[..PINS_MAX] {
        assert_eq!(world.run(pin(*post)), Ok(Done::Reacted));
    }
    assert_eq!(world.run(pin(posts[PINS_MAX])), Err(Refusal::TooManyPins));
    // Deleting a post frees its pin at once.
    world.run(Command::DeletePost { post: posts[0] }).unwrap();
    assert_eq!(world.run(pin(posts[PINS_MAX])), Ok(Done::Reacted));
    assert_eq!(world.facts().pins(UserId(0)), posts[1..]);
}

#[test]
fn reactions_to_a_deleted_post_are_removed_in_pieces_and_those_to_others_stay() {
    let mut world = World::new();
    let fans = ERASE_ROWS_MAX as u32;
    for user in 3..3 + fans {
        world.run(register(&format!("u{user}"))).unwrap();
    }
    let (post, other) = (world.post(0, "liked"), world.post(0, "too"));
    for user in 3..3 + fans {
        favourite(&mut world, user, post).unwrap();
    }
    world.run(react(3, post, Reaction::Bookmark, true)).unwrap();
    favourite(&mut world, 3, other).unwrap();
    assert_eq!(world.facts().post_counts(post).favourites, fans);
    assert_eq!(world.sweep_reactions(), 0, "a live post is not swept");
    assert_eq!(world.facts().post_counts(post).favourites, fans);
    world.run(Command::DeletePost { post }).unwrap();
    assert_eq!(world.facts().post_counts(post).favourites, 0);
    assert_eq!(world.notices(0), [(3, Notice::Favourite(other))]);
    assert_eq!(world.sweep_reactions(), 3);
    assert!(world.facts().reactions_left(post, 0, 1).is_empty());
    let stamps = world.facts().reactions_of(UserId(3), FAVOURITE, Span::ALL);
    assert_eq!(stamps.iter().map(|(_, post)| *post).collect::<Vec<_>>(), [other]);
    assert!(world.facts().reactions_of(UserId(3), Reaction::Bookmark, Span::ALL).is_empty());
    assert!(world.facts().reactions_of(UserId(4), FAVOURITE, Span::ALL).is_empty());
}

#[test]
fn a_deleted_user_neither_counts_nor_leaves_reactions_and_notifications() {
    let mut world = World::new();
    let post = world.post(0, "liked");
    let before = world.rows.members(SetTable::Reactions, post.0, Span::ALL);
    for reaction in [FAVOURITE, Reaction::Bookmark, Reaction::Less] {
        world.run(react(1, post, reaction, true)).unwrap();
    }
    let own = world.post(1, "own");
    world.run(react(1, own, Reaction::Pin, true)).unwrap();
    favourite(&mut world, 2, own).unwrap();
    favourite(&mut world, 2, post).unwrap();
    assert_eq!(world.facts().post_counts(post).favourites, 2);
    world.run(Command::DeleteUser { user: id(1) }).unwrap();
    assert_eq!(world.facts().post_counts(post).favourites, 1, "at once");
    assert_eq!(world.notices(0), [(2, Notice::Favourite(post))]);
    world.erase(1);
    world.sweep_reactions();
    assert_eq!(world.facts().post_counts(post).favourites, 1);
    world.run(react(2, post, FAVOURITE, false)).unwrap();
    assert_eq!(world.rows.members(SetTable::Reactions, post.0, Span::ALL), before);
    for reaction in Reaction::ALL {
        assert!(world.facts().reactions_of(UserId(1), reaction, Span::ALL).is_empty());
    }
    assert_eq!((stored_notices(&world, 1), world.facts().notice_state(UserId(1)).stored), (0, 0));
}

#[test]
fn users_are_notified_of_mentions_favourites_and_follows_while_these_exist() {
    let mut world = World::new();
    let post = world.post(0, "a post");
    favourite(&mut world, 1, post).unwrap();
    assert_eq!(world.effects, [Effect::Notified { user: UserId(0) }]);
    world.run(follow(id(1), id(0))).unwrap();
    assert_eq!(world.effects[1..], [Effect::Notified { user: UserId(0) }]);
    let mention = world.post(1, "hello @ada");
    let all = [(1, Notice::Mention(mention)), (1, Notice::Follow), (1, Notice::Favourite(post))];
    assert_eq!(world.notices(0), all);
    // Pages merge both lists in one order.
    let viewer = Viewer::new(world.facts(), Some(UserId(0)));
    let (mut cursor, mut found) = (Cursor::Newest, Vec::new());
    loop {
        let page = Page::at(cursor, 1);
        let page = viewer.notifications(&page, &NotificationFilter::default());
        found.extend(page.items.iter().copied());
        cursor = Cursor::Before(page.items[0].id);
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!(found.iter().map(|shown| (shown.actor.0, shown.notice)).collect::<Vec<_>>(), all);
    // A mute of notifications, and a block, hide earlier notifications.
    world.run(mute(0, 1, None)).unwrap();
    assert_eq!(world.notices(0), []);
    world.run(unmute(0, 1)).unwrap();
    assert_eq!(world.notices(0), all);
    world.run(unfollow(id(1), id(0))).unwrap();
    world.run(react(1, post, FAVOURITE, false)).unwrap();
    assert_eq!(world.notices(0), all[..1]);
    // A follower who soon follows again does not notify again.
    world.run(follow(id(1), id(0))).unwrap();
    assert_eq!((world.notices(0).as_slice(), world.effects.len()), (&all[..2], 1));
    world.run(block(id(0), id(1))).unwrap();
    assert_eq!(world.notices(0), []);
}

#[test]
fn notifications_are_dismissed_and_cleared() {
    let mut world = World::new();
    let post = world.post(0, "a post");
    favourite(&mut world, 1, post).unwrap();
    let mention = world.post(1, "hello @ada");
    favourite(&mut world, 2, post).unwrap();
    let dismiss = |notification| Command::DismissNotification { user: id(0), notification };
    let newest = newest_id(&world, 0);
    assert_eq!(world.run(dismiss(newest)), Ok(Done::NotificationDismissed));
    assert_eq!(world.run(dismiss(newest)), Err(Refusal::NotificationNotFound));
    assert_eq!(world.facts().post_counts(post).favourites, 2, "the favourite stays");
    let mentioned = NotificationId(mention.0);
    assert_eq!(world.run(dismiss(mentioned)), Ok(Done::NotificationDismissed));
    assert_eq!(world.run(dismiss(mentioned)), Err(Refusal::NotificationNotFound));
    assert_eq!(world.notices(0), [(1, Notice::Favourite(post))]);
    world.run(react(2, post, FAVOURITE, false)).unwrap();
    let clear = Command::ClearNotifications { user: id(0) };
    assert_eq!(world.run(clear), Ok(Done::NotificationsCleared));
    assert_eq!(world.notices(0), []);
    let next = world.post(1, "again @ada");
    assert_eq!(world.notices(0), [(1, Notice::Mention(next))]);
}

#[test]
fn a_limited_number_of_notifications_is_stored_and_the_oldest_go_first() {
    let mut world = World::new();
    let posts = NOTIFICATIONS_MAX + 20;
    let posts: Vec<_> = (0..posts).map(|_| world.post(0, "a post")).collect();
    let mention = world.post(1, "an old one, @ada");
    for post in &posts {
        favourite(&mut world, 1, *post).unwrap();
    }
    assert_eq!(stored_notices(&world, 0), NOTIFICATIONS_MAX as usize);
    assert_eq!(world.facts().notice_state(UserId(0)).stored, NOTIFICATIONS_MAX);
    let shown = world.notices(0);
    let newest = posts[20..].iter().rev().map(|post| (1, Notice::Favourite(*post)));
    let newest = newest.chain([(1, Notice::Mention(mention))]);
    assert!(shown.iter().copied().eq(newest), "{} of them", shown.len());
    // Dismissing a mention does not affect the others.
    let notification = NotificationId(mention.0);
    world.run(Command::DismissNotification { user: id(0), notification }).unwrap();
    assert_eq!(world.notices(0).len(), NOTIFICATIONS_MAX as usize);
    // After clearing, each new notification removes two old ones.
    world.run(Command::ClearNotifications { user: id(0) }).unwrap();
    for post in &posts[..10] {
        favourite(&mut world, 2, *post).unwrap();
    }
    assert_eq!(world.facts().notice_state(UserId(0)).stored, NOTIFICATIONS_MAX - 10);
    assert_eq!(world.notices(0).len(), 10);
}

#[test]
fn a_muted_user_neither_notifies_nor_takes_room() {
    let mut world = World::new();
    let post = world.post(0, "a post");
    favourite(&mut world, 1, post).unwrap();
    world.run(mute(0, 2, None)).unwrap();
    favourite(&mut world, 2, post).unwrap();
    assert_eq!(world.effects, []);
    world.run(follow(id(2), id(0))).unwrap();
    assert!(!world.effects.contains(&Effect::Notified { user: UserId(0) }));
    assert_eq!(stored_notices(&world, 0), 1);
    world.run(unmute(0, 2)).unwrap();
    assert_eq!(world.notices(0), [(1, Notice::Favourite(post))], "what was hidden stays so");
}
