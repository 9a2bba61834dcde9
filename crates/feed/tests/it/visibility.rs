//! Visibility of posts in all reads of `feed`.

use crate::support;
use crate::support::{World, block, follow, gather, id, unfollow};
use feed::profile::ProfileFilter;
use feed::thread::{ancestors, descendants};
use feed::{
    Command, Cursor, Done, Draft, Effect, Language, Listed, Page, PageOf, Patch, PostChange,
    PostId, PostText, Refusal, SetTable, Span, UserId, Viewer, Visibility, Warning, profile,
};
use rows::EPOCH_MS;

fn new(author: u32, text: &str, visibility: Visibility) -> Draft {
    Draft { visibility, ..Draft::new(id(author), PostText::parse(text).unwrap()) }
}

fn publish(world: &mut World, new: Draft) -> PostId {
    match world.run(Command::Publish(Box::new(new))) {
        Ok(Done::Posted(post)) => post,
        other => panic!("{other:?}"),
    }
}

/// Whether a user sees a post by user 0: directly, in the list of the author's posts, and above and below other posts.
fn sees(world: &World, user: Option<u32>, parent: PostId, post: PostId) -> bool {
    let viewer = Viewer::new(world.facts(), user.map(UserId));
    let visible = viewer.visible(&world.facts().post(post).unwrap());
    let posted = world.facts().posts_by(UserId(0), Span::ALL);
    let posted = *posted.iter().find(|(other, _)| *other == post).unwrap();
    assert_eq!(viewer.visible_posted(UserId(0), posted), visible, "{user:?} in a list");
    let below = descendants(&viewer, parent, &[], 9).posts;
    assert_eq!(below.contains(&post), visible, "{user:?} below");
    visible
}

#[test]
fn a_post_is_seen_by_whom_it_is_for() {
    // Visibility of a post by user 0 that mentions 1; user 2 follows 0, and user 3 does not.
    for (visibility, expect) in [
        (Visibility::Public, [true, true, true, true]),
        (Visibility::Unlisted, [true, true, true, true]),
        (Visibility::Followers, [true, true, true, false]),
        (Visibility::Direct, [true, true, false, false]),
    ] {
        let mut world = World::new();
        world.run(support::register("dan")).unwrap();
        world.run(follow(id(2), id(0))).unwrap();
        let parent = world.post(0, "a question");
        let answer = new(0, "to @bob", visibility);
        let post = publish(&mut world, Draft { parent: Some(parent), ..answer });
        let found = [0, 1, 2, 3].map(|user| sees(&world, Some(user), parent, post));
        assert_eq!(found, expect, "{visibility:?}");
        assert!(sees(&world, None, parent, post), "the application");
        // Only users who see the post can reply to it and see the replies.
        for (user, expect) in (0..).zip(expect) {
            let reply = Draft { parent: Some(post), ..new(user, "yes", Visibility::Public) };
            let done = world.run(Command::Publish(Box::new(reply)));
            match expect {
                true => {
                    let Ok(Done::Posted(reply)) = done else { panic!("{done:?}") };
                    let viewer = Viewer::new(world.facts(), Some(UserId(3)));
                    let above = ancestors(&viewer, reply);
                    assert_eq!(above.last() == Some(&post), visibility.is_open(), "above");
                }
                false => assert_eq!(done, Err(Refusal::ParentNotFound), "{visibility:?}"),
            }
        }
        // An unfollow and a block also affect earlier posts.
        world.run(unfollow(id(2), id(0))).unwrap();
        assert_eq!(sees(&world, Some(2), parent, post), visibility.is_open());
        world.run(block(id(0), id(1))).unwrap();
        assert!(!sees(&world, Some(1), parent, post), "{visibility:?} across a block");
    }
}

#[test]
fn an_edit_changes_what_it_names_and_nothing_else() {
    let mut world = World::new();
    let post = publish(&mut world, new(0, "to @bob", Visibility::Followers));
    let (warning, language) = (Warning::parse("food").unwrap(), Language::parse("de").ok());
    for (change, expect) in [
        (Patch { warning: Some(warning), ..Patch::default() }, ("to @bob", "food", false, None)),
        (Patch { sensitive: Some(true), ..Patch::default() }, ("to @bob", "food", true, None)),
        (
            Patch { language: Some(language), ..Patch::default() },
            ("to @bob", "food", true, Some("de")),
        ),
        (Patch::of_text(PostText::parse("to @cy").unwrap()), ("to @cy", "food", true, Some("de"))),
        (
            Patch { warning: Some(Warning::default()), language: Some(None), ..Patch::default() },
            ("to @cy", "", true, None),
        ),
    ] {
        assert_eq!(world.run(Command::edit(post, change.clone())), Ok(Done::PostEdited));
        let edited = world.log.last().unwrap().stamp;
        let found = world.facts().post(post).unwrap();
        assert_eq!((found.edited, found.visibility), (Some(edited), Visibility::Followers));
        let language = found.content.language.as_ref().map(Language::as_str);
        let shown = (
            found.content.text.as_str(),
            found.content.warning.as_str(),
            found.content.sensitive,
            language,
        );
        assert_eq!(shown, expect);
        // The same edit changes nothing.
        assert_eq!(world.run(Command::edit(post, change)), Ok(Done::PostEdited));
        assert_eq!(world.facts().post(post).unwrap().edited, Some(edited));
        assert!(world.effects.is_empty());
    }
    let edited = world.run(Command::edit(post, Patch::default()));
    assert_eq!(edited, Ok(Done::PostEdited), "nothing is named");
    let missing = Command::edit(PostId(7), Patch::default());
    assert_eq!(world.run(missing), Err(Refusal::PostNotFound));
}

#[test]
fn a_direct_post_keeps_its_recipients_when_it_is_edited() {
    let mut world = World::new();
    let post = publish(&mut world, new(0, "to @bob", Visibility::Direct));
    let (listed, users) = (Listed::new(None, Visibility::Direct), Some(vec![UserId(1)].into()));
    let (author, user, change) = (UserId(0), UserId(1), PostChange::Published);
    let direct = Effect::Post { post, author, listed, users, change };
    assert_eq!(world.effects, [direct, Effect::Mention { post, author, user, change }]);
    let text = PostText::parse("about @cy").unwrap();
    world.run(Command::edit(post, Patch::of_text(text))).unwrap();
    let edited = world.facts().post(post).unwrap();
    assert_eq!(edited.content.text.as_str(), "about @cy");
    assert_eq!(edited.mentions, [UserId(1)]);
    assert!(world.facts().is_mentioned(UserId(1), post));
    assert!(!world.facts().is_mentioned(UserId(2), post));
}

#[test]
fn an_edit_that_mentions_somebody_no_more_hides_a_post_for_followers() {
    let mut world = World::new();
    let post = publish(&mut world, new(0, "to @bob", Visibility::Followers));
    let visible = |world: &World| {
        let viewer = Viewer::new(world.facts(), Some(UserId(1)));
        (viewer.visible(&world.facts().post(post).unwrap()), viewer.notified(post))
    };
    assert_eq!(visible(&world), (true, true));
    let text = PostText::parse("to nobody").unwrap();
    world.run(Command::edit(post, Patch::of_text(text))).unwrap();
    assert_eq!(visible(&world), (false, false));
    // For these users, the post is deleted.
    let (author, user, change) = (UserId(0), UserId(1), PostChange::Deleted);
    let gone = Effect::Mention { post, author, user, change };
    assert_eq!(world.effects[1..], [gone]);
}

/// Milliseconds of the longest block of ids at whose borders pages end: about 70 minutes.
const BLOCK_MS: u64 = 1 << 22;

/// A page of the posts of user 0 as seen by user 1.
fn profile(world: &World, cursor: Cursor, limit: usize) -> PageOf<PostId> {
    let viewer = Viewer::new(world.facts(), Some(UserId(1)));
    let page = Page::at(cursor, limit);
    let read = |span| world.facts().posts_by(UserId(0), span);
    profile::posts(&viewer, UserId(0), &page, &ProfileFilter::default(), read)
}

#[test]
fn hidden_posts_take_no_place_on_a_profile_and_end_no_page() {
    let mut world = World::new();
    let mut shown = Vec::new();
    for _ in 0..3 {
        shown.push(publish(&mut world, new(0, "hello", Visibility::Public)));
        for _ in 0..30 {
            publish(&mut world, new(0, "to @cy", Visibility::Direct));
        }
    }
    let page = |cursor, expect: &[PostId], more| {
        let (page, found) = (Page::at(cursor, 2), profile(&world, cursor, 2));
        let items = found.items;
        let end = if page.is_up { items.first() } else { items.last() };
        let next = end.filter(|_| more).map(|end| end.0);
        assert_eq!((items.as_slice(), found.next), (expect, next));
    };
    page(Cursor::Newest, &[shown[2], shown[1]], true);
    page(Cursor::Before(shown[1]), &shown[..1], false);
    page(Cursor::After(PostId(0)), &[shown[1], shown[0]], true);
    page(Cursor::After(shown[1]), &shown[2..], false);
}

/// Whether a page ends between two blocks.
fn is_border(cursor: PostId) -> bool {
    let block = BLOCK_MS << 22;
    cursor.0.is_multiple_of(block) || (cursor.0 + 1).is_multiple_of(block)
}

/// Moves the clock so that the next command falls into the next block.
fn to_next_block(world: &mut World) {
    world.now_ms = EPOCH_MS + (world.now_ms - EPOCH_MS).next_multiple_of(BLOCK_MS);
}

#[test]
fn home_pages_after_very_many_hidden_posts_end_between_blocks_of_ids() {
    let mut world = World::new();
    to_next_block(&mut world);
    let first = publish(&mut world, new(0, "first", Visibility::Public));
    for many in [600, 4_200, 600] {
        to_next_block(&mut world);
        for _ in 0..many {
            publish(&mut world, new(0, "to @cy", Visibility::Direct));
        }
    }
    to_next_block(&mut world);
    let last = publish(&mut world, new(0, "last", Visibility::Public));
    let other = publish(&mut world, new(2, "of another", Visibility::Public));
    let home = |cursor| {
        let page = Page::at(cursor, 9);
        gather(world.facts(), UserId(1), &feed::HomeAuthors::of(vec![UserId(0), UserId(2)]), &page)
    };

    let down = home(Cursor::Newest);
    assert_eq!((down.items, down.next), (vec![other, last], Some(last.0)));
    let down = home(Cursor::Before(last));
    assert_eq!((down.items.as_slice(), down.next.is_some()), (&[][..], true));
    let end = PostId(down.next.unwrap());
    assert!(is_border(end), "{end:?}");
    let down = home(Cursor::Before(end));
    assert_eq!((down.items, down.next), (vec![first], None));

    let up = home(Cursor::After(first));
    assert_eq!((up.items.as_slice(), up.next.is_some()), (&[][..], true));
    let end = PostId(up.next.unwrap());
    assert!(is_border(end), "{end:?}");
    let up = home(Cursor::After(end));
    assert_eq!((up.items, up.next), (vec![other, last], None));
}

#[test]
fn pages_after_very_many_hidden_posts_end_at_a_post_or_between_blocks_of_ids() {
    let mut world = World::new();
    to_next_block(&mut world);
    let top = publish(&mut world, new(2, "a question", Visibility::Public));
    let reply = |visibility| Draft { parent: Some(top), ..new(0, "to @cy", visibility) };
    let first = publish(&mut world, reply(Visibility::Public));
    let mut hidden = Vec::new();
    for many in [600, 4_200, 600] {
        to_next_block(&mut world);
        hidden.extend((0..many).map(|_| publish(&mut world, reply(Visibility::Direct))));
    }
    to_next_block(&mut world);
    let last = publish(&mut world, reply(Visibility::Public));
    let is_border = |cursor: PostId| {
        assert!(!hidden.contains(&cursor) && cursor != first && cursor != last);
        is_border(cursor)
    };

    let down = profile(&world, Cursor::Newest, 9);
    assert_eq!((down.items.as_slice(), down.next.is_some()), (&[last][..], true));
    assert_eq!(down.next, Some(last.0), "the last that may be known");
    let down = profile(&world, Cursor::Before(last), 9);
    assert_eq!((down.items.as_slice(), down.next.is_some()), (&[][..], true));
    let end = PostId(down.next.unwrap());
    assert!(is_border(end), "{end:?}");
    let down = profile(&world, Cursor::Before(end), 9);
    assert_eq!((down.items, down.next), (vec![first], None));

    let up = profile(&world, Cursor::After(first), 9);
    assert_eq!((up.items.as_slice(), up.next.is_some()), (&[][..], true));
    let end = PostId(up.next.unwrap());
    assert!(is_border(end), "{end:?}");
    let up = profile(&world, Cursor::After(end), 9);
    assert_eq!((up.items, up.next), (vec![last], None));

    let viewer = Viewer::new(world.facts(), Some(UserId(1)));
    let page = descendants(&viewer, top, &[], 9);
    assert_eq!((page.posts, page.next), (vec![first], Some(vec![first])));
    let page = descendants(&viewer, top, &[first], 9);
    let next = page.next.unwrap();
    assert!(page.posts.is_empty() && next.len() == 1 && is_border(next[0]), "{next:?}");
    let page = descendants(&viewer, top, &next, 9);
    assert_eq!((page.posts, page.next), (vec![last], None));
}

/// A viewer who mutes or blocks one participant, or may not see a reply, still reads the replies of others below it.
#[test]
fn a_hidden_post_in_a_thread_hides_neither_what_is_below_nor_what_is_above_it() {
    let mut world = World::new();
    world.run(support::register("dan")).unwrap();
    let top = publish(&mut world, new(0, "a question", Visibility::Public));
    let by = |world: &mut World, author, parent, visibility| {
        publish(world, Draft { parent: Some(parent), ..new(author, "@ada hm", visibility) })
    };
    let hidden = by(&mut world, 2, top, Visibility::Public);
    let again = by(&mut world, 2, hidden, Visibility::Public);
    let below = by(&mut world, 3, again, Visibility::Public);
    let last = by(&mut world, 0, below, Visibility::Public);
    let direct = by(&mut world, 3, top, Visibility::Direct);
    let after = by(&mut world, 0, direct, Visibility::Public);
    let mute = Command::Mute { user: id(1), other: id(2), mentions: true, time: None };
    world.run(mute).unwrap();
    let viewer = Viewer::new(world.facts(), Some(UserId(1)));
    assert_eq!(ancestors(&viewer, last), [top, below]);
    let all = [below, last, after];
    assert_eq!(descendants(&viewer, top, &[], 9).posts, all);
    for limit in 1..4 {
        let (mut found, mut from) = (Vec::new(), Vec::new());
        loop {
            let page = descendants(&viewer, top, &from, limit);
            found.extend(page.posts);
            let Some(next) = page.next else { break };
            assert!(next.iter().all(|post| all.contains(post)), "no cursor names a hidden post");
            from = next;
        }
        assert_eq!(found, all, "{limit}");
    }
    assert_eq!(descendants(&viewer, hidden, &[], 9).posts, [below, last]);
    let application = Viewer::new(world.facts(), None);
    assert_eq!(descendants(&application, top, &[], 9).posts.len(), 6);
}

#[test]
fn hidden_replies_take_no_place_in_a_thread_and_do_not_count() {
    let mut world = World::new();
    world.run(support::register("dan")).unwrap();
    let top = publish(&mut world, new(0, "a question", Visibility::Public));
    let mut shown = Vec::new();
    for _ in 0..3 {
        for _ in 0..30 {
            let reply = new(2, "psst", Visibility::Direct);
            publish(&mut world, Draft { parent: Some(top), ..reply });
        }
        let reply = Draft { parent: Some(top), ..new(3, "yes", Visibility::Public) };
        shown.push(publish(&mut world, reply));
    }
    let viewer = Viewer::new(world.facts(), Some(UserId(1)));
    let page = descendants(&viewer, top, &[], 2);
    assert_eq!((page.posts.as_slice(), page.next), (&shown[..2], Some(vec![shown[1]])));
    let page = descendants(&viewer, top, &[shown[1]], 2);
    assert_eq!((page.posts.as_slice(), page.next), (&shown[2..], None));
    let author = Viewer::new(world.facts(), Some(UserId(2)));
    assert_eq!(descendants(&author, top, &[], 100).posts.len(), 93, "their author sees them");
    assert_eq!(world.facts().open_count(SetTable::OpenReplies, top, 40), 3);
    assert_eq!(world.facts().open_count(SetTable::OpenReplies, top, 2), 2);
    world.run(Command::DeleteUser { user: id(3) }).unwrap();
    assert_eq!(
        world.facts().open_count(SetTable::OpenReplies, top, 40),
        0,
        "their author is deleted"
    );
}
