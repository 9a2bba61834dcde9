//! Notifications by choice: new posts of chosen users and edits of boosted posts; and muted threads.

use crate::support::{World, block, follow, id, register, unfollow};
use feed::follow_options::{FollowOptions, FollowWith};
use feed::limits::{EDIT_NOTICES_MAX, FOLLOW_OPTIONS_MAX, MUTED_THREADS_MAX, NOTIFYING_MAX};
use feed::{
    Command, Cursor, Done, Draft, Due, DueWork, Effect, Input, Notice, NoticeKind,
    NotificationFilter, NotificationId, Page, Patch, PostId, PostText, Reaction, Refusal, UserEdit,
    UserId, Viewer, Visibility,
};
use rows::{NameTable, Rows as _};

impl World {
    fn follow_with(
        &mut self,
        user: u32,
        other: u32,
        boosts: Option<bool>,
        notify: Option<bool>,
    ) -> feed::Outcome {
        let with = FollowWith { user: id(user), other: id(other), boosts, notify };
        self.run(Command::FollowWith(Box::new(with)))
    }

    /// Whether boosts are hidden, and whether new posts notify the user.
    fn options(&self, user: u32, other: u32) -> (bool, bool) {
        let found = self.facts().follow_options(UserId(user), UserId(other));
        (found.hides_boosts, found.notified_since.is_some())
    }

    fn reply(&mut self, author: u32, text: &str, parent: PostId) -> PostId {
        let new = Draft::new(id(author), PostText::parse(text).unwrap());
        let new = Draft { parent: Some(parent), ..new };
        match self.run(Command::Publish(Box::new(new))) {
            Ok(Done::Posted(post)) => post,
            other => panic!("{other:?}"),
        }
    }

    fn direct(&mut self, author: u32, text: &str) -> PostId {
        let new = Draft::new(id(author), PostText::parse(text).unwrap());
        let new = Draft { visibility: Visibility::Direct, ..new };
        match self.run(Command::Publish(Box::new(new))) {
            Ok(Done::Posted(post)) => post,
            other => panic!("{other:?}"),
        }
    }

    fn react(&mut self, user: u32, post: PostId, reaction: Reaction) {
        let command = Command::React { user: id(user), post, reaction, on: true };
        self.run(command).unwrap();
    }

    fn edit(&mut self, post: PostId, text: &str) {
        let text = PostText::parse(text).unwrap();
        self.run(Command::edit(post, Patch::of_text(text))).unwrap();
    }

    fn mute_thread(&mut self, user: u32, post: PostId, on: bool) -> feed::Outcome {
        self.run(Command::MuteThread { user: id(user), post, on })
    }

    /// Pages of a user's notifications in one direction: the ids shown, in the order of reading.
    fn pages(&self, user: u32, limit: usize, up: bool) -> Vec<u64> {
        let viewer = Viewer::new(self.facts(), Some(UserId(user)));
        let (mut found, mut pages) = (Vec::new(), 0);
        let mut cursor = if up { Cursor::After(NotificationId(0)) } else { Cursor::Newest };
        loop {
            let page =
                viewer.notifications(&Page::at(cursor, limit), &NotificationFilter::default());
            assert!(
                page.items.len() == limit || page.next.is_none(),
                "only the last page is short"
            );
            let ids = page.items.iter().map(|found| found.id.0);
            let ids: Vec<_> = if up { ids.rev().collect() } else { ids.collect() };
            found.extend(ids);
            pages += 1;
            assert!(pages < 10_000, "the pages have an end");
            match page.next.map(NotificationId) {
                Some(end) if up => cursor = Cursor::After(end),
                Some(end) => cursor = Cursor::Before(end),
                None => return found,
            }
        }
    }
}

#[test]
fn options_belong_to_a_follow_or_a_request_and_end_with_it() {
    let mut world = World::new();
    assert_eq!(world.follow_with(0, 1, Some(false), None), Ok(Done::Followed));
    assert_eq!(world.options(0, 1), (true, false));
    assert_eq!(world.follow_with(0, 1, None, Some(true)), Ok(Done::Followed));
    assert_eq!(world.options(0, 1), (true, true), "what is not named stays");
    world.run(follow(id(0), id(1))).unwrap();
    assert_eq!(world.options(0, 1), (true, true));
    world.run(unfollow(id(0), id(1))).unwrap();
    world.run(follow(id(0), id(1))).unwrap();
    assert_eq!(world.options(0, 1), (false, false));
    let locked = UserEdit { locked: Some(true), ..UserEdit::new(id(2)) };
    world.run(Command::EditUser(Box::new(locked))).unwrap();
    assert_eq!(world.follow_with(0, 2, Some(false), Some(true)), Ok(Done::FollowRequested));
    assert_eq!(world.options(0, 2), (true, true));
    let answer = |accept| Command::AnswerRequest { user: id(2), other: id(0), accept };
    world.run(answer(false)).unwrap();
    assert_eq!(world.options(0, 2), (false, false));
    world.follow_with(0, 2, Some(false), None).unwrap();
    world.run(answer(true)).unwrap();
    assert_eq!(
        (world.facts().follows(UserId(0), UserId(2)), world.options(0, 2)),
        (true, (true, false))
    );
    world.run(block(id(2), id(0))).unwrap();
    assert_eq!(world.options(0, 2), (false, false));
    let before = world.snapshot();
    assert_eq!(world.follow_with(0, 2, Some(false), None), Err(Refusal::OtherNotFound));
    assert_eq!(world.follow_with(0, 0, Some(false), None), Err(Refusal::SelfFollow));
    assert_eq!(world.follow_with(0, 9, Some(false), None), Err(Refusal::OtherNotFound));
    assert_eq!(world.snapshot(), before);
    assert_eq!(world.rows.first_name(NameTable::FollowOptions, &[]), None);
}

#[test]
fn options_are_bounded_and_go_with_their_users() {
    let mut world = World::new();
    for other in 3..FOLLOW_OPTIONS_MAX as u32 + 5 {
        world.run(register(&format!("u{other}"))).unwrap();
    }
    for other in 3..NOTIFYING_MAX as u32 + 3 {
        world.follow_with(0, other, None, Some(true)).unwrap();
    }
    let full = Err(Refusal::TooManyFollowOptions);
    assert_eq!(world.follow_with(0, 1, None, Some(true)), full);
    assert!(!world.facts().follows(UserId(0), UserId(1)), "a refused command changes nothing");
    for other in NOTIFYING_MAX as u32 + 3..FOLLOW_OPTIONS_MAX as u32 + 3 {
        world.follow_with(0, other, Some(false), None).unwrap();
    }
    assert_eq!(world.follow_with(0, 1, Some(false), None), full);
    assert_eq!(world.follow_with(0, 1, Some(true), Some(false)), Ok(Done::Followed));
    let row = world.rows.name(NameTable::FollowOptions, &0_u32.to_be_bytes()).unwrap();
    assert!(row.len() <= feed::limits::FOLLOW_OPTIONS_BYTES_MAX, "{}", row.len());
    world.run(Command::DeleteUser { user: id(3) }).unwrap();
    world.erase(3);
    assert_eq!(world.facts().all_follow_options(UserId(0)).len(), FOLLOW_OPTIONS_MAX - 1);
    assert_eq!(world.follow_with(0, 1, None, Some(true)), Ok(Done::Followed));
    world.run(Command::DeleteUser { user: id(0) }).unwrap();
    world.erase(0);
    assert_eq!(world.rows.first_name(NameTable::FollowOptions, &[]), None);
    assert_eq!(world.facts().follow_options(UserId(0), UserId(4)), FollowOptions::default());
}

#[test]
fn hiding_boosts_changes_home_at_once() {
    let mut world = World::new();
    world.run(follow(id(0), id(1))).unwrap();
    world.follow_with(0, 1, Some(false), None).unwrap();
    assert!(
        world.effects.contains(&Effect::Input { user: UserId(0), input: Input::Hidden }),
        "views read it again"
    );
    world.follow_with(0, 1, Some(false), Some(true)).unwrap();
    assert!(world.effects.is_empty());
}

#[test]
fn users_are_notified_of_posts_since_they_asked_for_it() {
    let mut world = World::new();
    world.post(1, "before");
    world.follow_with(0, 1, None, Some(true)).unwrap();
    let post = world.post(1, "one");
    let own = world.reply(1, "a thread", post);
    let other = world.post(2, "of somebody else");
    world.reply(1, "an answer", other);
    world.react(1, other, Reaction::Boost);
    let mention = world.post(1, "hello @ada");
    let expected = [(1, Notice::Mention(mention)), (1, Notice::Post(own)), (1, Notice::Post(post))];
    assert_eq!(world.notices(0), expected);
    let dismiss = |post: PostId| Command::DismissNotification {
        user: id(0),
        notification: NotificationId(post.0),
    };
    world.run(dismiss(own)).unwrap();
    assert_eq!(world.run(dismiss(own)), Err(Refusal::NotificationNotFound));
    assert_eq!(world.notices(0).len(), 2);
    world.run(Command::DeletePost { post }).unwrap();
    assert_eq!(world.notices(0), [(1, Notice::Mention(mention))]);
    let last = world.post(1, "last");
    let mute = Command::Mute { user: id(0), other: id(1), mentions: true, time: None };
    world.run(mute).unwrap();
    assert_eq!(world.notices(0), []);
    world.run(Command::Unmute { user: id(0), other: id(1) }).unwrap();
    assert_eq!(world.notices(0)[0], (1, Notice::Post(last)));
    world.follow_with(0, 1, None, Some(false)).unwrap();
    assert_eq!(world.notices(0), [(1, Notice::Mention(mention))]);
    world.follow_with(0, 1, None, Some(true)).unwrap();
    assert_eq!(world.notices(0), [(1, Notice::Mention(mention))], "only of what comes");
    let next = world.post(1, "next");
    assert_eq!(world.notices(0)[0], (1, Notice::Post(next)));
    world.run(Command::ClearNotifications { user: id(0) }).unwrap();
    assert_eq!(world.notices(0), []);
}

#[test]
fn pages_have_every_post_once_however_many_replies_are_between() {
    let mut world = World::new();
    let (mut expected, parent) = (Vec::new(), world.post(2, "before all"));
    for other in [1, 2] {
        world.follow_with(0, other, None, Some(true)).unwrap();
    }
    for number in 0..20_u32 {
        expected.push(world.post(1 + number % 2, "a post").0);
        for _ in 0..number * 9 {
            world.reply(1, "nothing to the reader", parent);
            world.direct(2, "@bob between us");
        }
        expected.push(world.post(2, "to @ada").0);
    }
    let viewer = Viewer::new(world.facts(), Some(UserId(0)));
    let first = viewer.notifications(&Page::newest(20), &NotificationFilter::default());
    assert_eq!(first.items.len(), 20, "a page is full whatever is between");
    for limit in [1, 2, 7, 40, 5_000] {
        assert_eq!(world.pages(0, limit, true), expected, "limit {limit}");
        let down: Vec<_> = expected.iter().rev().copied().collect();
        assert_eq!(world.pages(0, limit, false), down, "limit {limit}");
    }
}

/// Sends the node's next commands about edits.
fn notify_of_edits(world: &mut World) -> usize {
    let edits = edits(world);
    for due in &edits {
        assert_eq!(world.run(Command::DoDue(*due)), Ok(Done::DueDone));
    }
    edits.len()
}

/// Edits with boosters who are not notified yet.
fn edits(world: &World) -> Vec<Due> {
    let is_edit = |due: &Due| matches!(due.work, DueWork::NotifyOfEdit { .. });
    world.due().into_iter().filter(is_edit).collect()
}

const HOUR_MS: u64 = 3_600_000;

#[test]
fn who_boosted_a_post_is_notified_of_an_edit_after_a_quiet_hour() {
    let mut world = World::new();
    let boosters = 3..EDIT_NOTICES_MAX as u32 + 8;
    for user in boosters.clone() {
        world.run(register(&format!("u{user}"))).unwrap();
    }
    let post = world.post(0, "one");
    world.edit(post, "two");
    assert_eq!(edits(&world), [], "nobody boosted it");
    world.now_ms += HOUR_MS;
    for user in boosters.clone().chain([0]) {
        world.react(user, post, Reaction::Boost);
    }
    world.react(1, post, Reaction::Favourite);
    world.edit(post, "three");
    let first = edits(&world)[0];
    assert_eq!(notify_of_edits(&mut world), 1);
    world.edit(post, "four");
    assert_eq!(edits(&world).len(), 1, "of the last edit alone");
    let old = world.snapshot();
    assert_eq!(world.run(Command::DoDue(first)), Ok(Done::NotDue));
    assert_eq!(world.snapshot(), old, "of an edit before the last one nobody is notified");
    let last = boosters.end - 1;
    let mute = Command::Mute { user: id(last - 1), other: id(0), mentions: true, time: None };
    world.run(mute).unwrap();
    world.run(block(id(last - 2), id(0))).unwrap();
    while notify_of_edits(&mut world) > 0 {}
    let one = [(0, Notice::Edit(post))];
    assert_eq!((world.notices(3), world.notices(last)), (one.to_vec(), one.to_vec()));
    for user in [1, last - 1, last - 2] {
        assert_eq!(world.notices(user), [], "{user}");
    }
    assert!(world.notices(0).iter().all(|(_, notice)| *notice != Notice::Edit(post)));
    world.edit(post, "five");
    assert_eq!(notify_of_edits(&mut world), 0, "soon after another one");
    let viewer = Viewer::new(world.facts(), Some(UserId(last)));
    let page = viewer.notifications(&Page::newest(1), &NotificationFilter::default());
    let notification = page.items[0].id;
    world.run(Command::DismissNotification { user: id(last), notification }).unwrap();
    assert_eq!(world.notices(last), []);
    world.now_ms += HOUR_MS;
    world.edit(post, "six");
    while notify_of_edits(&mut world) > 0 {}
    assert_eq!(world.notices(3), one, "one at a time");
    assert_eq!(world.notices(last), one, "after it was dismissed");
    world.now_ms += HOUR_MS;
    world.edit(post, "seven");
    world.run(Command::DeletePost { post }).unwrap();
    assert_eq!(edits(&world), [], "no row is left");
    assert_eq!(world.notices(3), []);
}

#[test]
fn edits_of_a_deleted_author_notify_nobody() {
    let mut world = World::new();
    let post = world.post(0, "one");
    world.react(1, post, Reaction::Boost);
    world.edit(post, "two");
    world.run(Command::DeleteUser { user: id(0) }).unwrap();
    assert_eq!((notify_of_edits(&mut world), notify_of_edits(&mut world)), (1, 0));
    world.erase(0);
    assert_eq!(world.notices(1), []);
}

#[test]
fn a_mute_that_leaves_mentions_hides_notifications_of_posts() {
    let mut world = World::new();
    world.follow_with(0, 1, None, Some(true)).unwrap();
    let mention = world.post(1, "@ada one");
    world.post(1, "two");
    let mute = Command::Mute { user: id(0), other: id(1), mentions: false, time: None };
    world.run(mute).unwrap();
    assert_eq!(world.notices(0), [(1, Notice::Mention(mention))]);
}

#[test]
fn of_a_muted_thread_nobody_is_notified_before_or_after() {
    let mut world = World::new();
    let first = world.post(0, "one");
    let reply = world.reply(1, "two", first);
    let deep = world.reply(2, "@ada three", reply);
    world.react(1, first, Reaction::Favourite);
    world.react(2, first, Reaction::Boost);
    let other = world.post(1, "another, @ada");
    let all = world.notices(0);
    assert_eq!(all.len(), 5);
    assert_eq!(world.mute_thread(0, deep, true), Ok(Done::ThreadMuted));
    assert_eq!(world.notices(0), [(1, Notice::Mention(other))]);
    world.reply(2, "@ada four", deep);
    assert_eq!(world.notices(0), [(1, Notice::Mention(other))]);
    let viewer = Viewer::new(world.facts(), Some(UserId(0)));
    assert!(!viewer.notified(deep) && viewer.notified(other));
    assert_eq!(world.notices(1).len(), 1, "others are notified");
    let muted = world.snapshot();
    world.mute_thread(0, first, true).unwrap();
    assert_eq!(world.snapshot(), muted);
    world.mute_thread(0, reply, false).unwrap();
    assert_eq!(world.notices(0).len(), 6);
    world.run(block(id(2), id(1))).unwrap();
    assert_eq!(world.mute_thread(2, reply, true), Err(Refusal::PostNotFound));
    assert_eq!(world.mute_thread(2, PostId(7), true), Err(Refusal::PostNotFound));
}

#[test]
fn the_thread_that_was_muted_first_is_forgotten_when_there_are_too_many() {
    let mut world = World::new();
    let posts: Vec<_> = (0..=MUTED_THREADS_MAX).map(|_| world.post(0, "one")).collect();
    for post in &posts {
        world.mute_thread(1, *post, true).unwrap();
    }
    assert_eq!(world.facts().muted_threads(UserId(1)), posts[1..]);
    let row = world.rows.name(NameTable::MutedThreads, &1_u32.to_be_bytes()).unwrap();
    assert!(row.len() <= feed::limits::MUTED_THREADS_BYTES_MAX, "{}", row.len());
    world.run(Command::DeleteUser { user: id(1) }).unwrap();
    world.erase(1);
    assert_eq!(world.rows.first_name(NameTable::MutedThreads, &[]), None);
}

#[test]
fn a_filter_of_notifications_finds_what_is_below_many_others() {
    let mut world = World::new();
    world.run(follow(id(2), id(0))).unwrap();
    let mine = world.post(0, "mine");
    world.react(2, mine, Reaction::Favourite);
    let early = world.post(2, "@ada early");
    for number in 0..300 {
        world.post(1, &format!("@ada {number}"));
    }
    let dismissed = NotificationId(world.post(1, "@ada away").0);
    let command = Command::DismissNotification { user: id(0), notification: dismissed };
    world.run(command).unwrap();
    let late = world.post(2, "@ada late");
    let viewer = Viewer::new(world.facts(), Some(UserId(0)));
    let of = |cursor, limit, kinds: Option<&[NoticeKind]>, by: Option<u32>| {
        let filter = NotificationFilter {
            kinds: kinds.map(<[_]>::to_vec),
            by: by.map(UserId),
            ..Default::default()
        };
        let page = viewer.notifications(&Page::at(cursor, limit), &filter);
        let notices: Vec<_> = page.items.iter().map(|found| found.notice).collect();
        (notices, page.next.is_some())
    };
    let (newest, oldest) = (Cursor::Newest, Cursor::After(NotificationId(0)));
    let (favourite, mention) = (Notice::Favourite(mine), Notice::Mention);
    for cursor in [newest, oldest] {
        for (kinds, by, expected) in [
            (Some(&[NoticeKind::Follow][..]), None, vec![Notice::Follow]),
            (Some(&[NoticeKind::Favourite, NoticeKind::Poll]), None, vec![favourite]),
            (
                Some(&[NoticeKind::Follow, NoticeKind::Favourite]),
                None,
                vec![favourite, Notice::Follow],
            ),
            (None, Some(2), vec![mention(late), mention(early), favourite, Notice::Follow]),
            (Some(&[NoticeKind::Mention]), Some(2), vec![mention(late), mention(early)]),
            (Some(&[]), None, vec![]),
            (None, Some(0), vec![]),
        ] {
            assert_eq!(of(cursor, 20, kinds, by), (expected, false), "{cursor:?} {kinds:?} {by:?}");
        }
    }
    let (found, more) = of(newest, 1, None, Some(2));
    assert_eq!((found, more), (vec![mention(late)], true));
    let (found, more) = of(Cursor::Before(NotificationId(late.0)), 20, None, Some(1));
    assert!(found.len() == 20 && more, "the dismissed one takes no place");
}

/// Ids of a user's notifications, newest first.
fn notice_ids(world: &World, user: u32) -> Vec<u64> {
    world.pages(user, 40, false)
}

#[test]
fn a_mention_that_an_edit_adds_is_announced_when_it_is_added() {
    let mut world = World::new();
    let post = world.post(0, "one");
    let other = world.post(2, "hello @bob");
    let notices = |world: &World| world.notices(1);
    assert_eq!(notices(&world), [(2, Notice::Mention(other))]);
    world.run(Command::ClearNotifications { user: id(1) }).unwrap();
    let mention = [(0, Notice::Mention(post))];
    for text in ["two, @bob", "three, @bob", "four"] {
        world.edit(post, text);
        let is_mentioned = text.contains('@');
        assert_eq!(notices(&world), if is_mentioned { &mention[..] } else { &[] }, "{text}");
        let is_notified = |effect: &Effect| matches!(effect, Effect::Notified { .. });
        assert_eq!(world.effects.iter().any(is_notified), text == "two, @bob", "{text}");
        let found = world.facts().mentions_of(UserId(1), rows::Span::ALL);
        assert_eq!(found.contains(&post), is_mentioned, "{text}");
    }
    for number in 0..20 {
        let before = notice_ids(&world, 1);
        world.edit(post, &format!("@bob {number}"));
        let after = notice_ids(&world, 1);
        assert!(after.len() == 1 && after != before, "it is announced once, as a new one");
        let newest = NotificationId(after[0]);
        let viewer = Viewer::new(world.facts(), Some(UserId(1)));
        assert!(viewer.notification(newest).is_some() && viewer.notified(post));
        world.edit(post, "nobody");
        assert_eq!(world.facts().notice_state(UserId(1)).stored, 0, "nothing is left of it");
    }
    world.edit(post, "@bob");
    let notification = NotificationId(notice_ids(&world, 1)[0]);
    world.run(Command::DismissNotification { user: id(1), notification }).unwrap();
    assert_eq!(notices(&world), []);
    world.edit(post, "@bob @ada @cy");
    assert_eq!((notices(&world), world.notices(0)), (vec![], vec![]), "neither again nor oneself");
    assert_eq!(world.notices(2), mention);
    world.run(Command::DeletePost { post }).unwrap();
    assert_eq!(world.notices(2), []);
}

#[test]
fn a_mention_that_an_edit_adds_is_not_announced_to_those_who_would_not_see_it() {
    let mut world = World::new();
    let post = world.post(0, "one");
    let mute = Command::Mute { user: id(1), other: id(0), mentions: true, time: None };
    world.run(mute).unwrap();
    world.run(block(id(2), id(0))).unwrap();
    world.edit(post, "@bob and @cy");
    assert_eq!((world.notices(1), world.notices(2)), (vec![], vec![]));
    assert_eq!(
        world.facts().notice_state(UserId(1)).stored + world.facts().notice_state(UserId(2)).stored,
        0
    );
}

#[test]
fn mentions_that_edits_added_end_no_page() {
    let mut world = World::new();
    let posts: Vec<PostId> = (0..12).map(|number| world.post(0, &format!("{number}"))).collect();
    for (at, post) in posts.into_iter().enumerate() {
        world.post(2, &format!("@bob {at}"));
        if at % 3 == 0 {
            world.edit(post, &format!("@bob added {at}"));
        }
    }
    let all = notice_ids(&world, 1);
    assert_eq!(all.len(), 16);
    for limit in 1..8 {
        assert_eq!(world.pages(1, limit, false), all, "{limit}");
        let mut upwards = world.pages(1, limit, true);
        upwards.reverse();
        assert_eq!(upwards, all, "{limit}");
    }
}
