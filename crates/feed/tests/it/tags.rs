//! Hashtags: indexed posts, hashtag timelines, hashtags on profiles, followed hashtags.

use crate::support::{World, block, feature, follow_tag, id, mute, unblock, unmute};
use feed::limits::{FEATURED_TAGS_MAX, FOLLOWED_TAGS_MAX, POST_TAGS_MAX};
use feed::tagged::{self, TagQuery};
use feed::{
    Batch, Command, Cursor, Done, Draft, Effect, ErasurePhase, Input, Order, Page, PageOf, Patch,
    PostId, PostText, Refusal, Shown, Span, Tag, UserId, Viewer, Visibility, merged, scan,
};
use proptest::prelude::*;
use rows::{NameTable, Rows as _};

fn tag(text: &str) -> Tag {
    Tag::parse(text).unwrap()
}

fn text(text: &str) -> PostText {
    PostText::parse(text).unwrap()
}

fn publish(world: &mut World, author: u32, words: &str, visibility: Visibility) -> PostId {
    let new = Draft { visibility, ..Draft::new(id(author), text(words)) };
    match world.run(Command::Publish(Box::new(new))) {
        Ok(Done::Posted(post)) => post,
        other => panic!("{other:?}"),
    }
}

fn read(world: &World, reader: Option<u32>, query: &TagQuery, page: &Page) -> PageOf<PostId> {
    let viewer = Viewer::new(world.facts(), reader.map(UserId));
    tagged::posts(&viewer, query, page)
}

/// All posts with a hashtag as seen by a reader.
fn all(world: &World, reader: Option<u32>, name: &str) -> Vec<PostId> {
    let page = Page::newest(100);
    read(world, reader, &TagQuery::of(tag(name)), &page).items
}

fn rows(world: &World) -> usize {
    let count = |table| world.rows.first_names(table, &[], usize::MAX).len();
    let [posts, authors] = [NameTable::TagPost, NameTable::AuthorTag].map(count);
    assert_eq!(posts, authors);
    posts
}

#[test]
fn public_posts_are_in_the_timelines_of_their_hashtags_until_they_have_them_no_longer() {
    let mut world = World::new();
    let first = publish(&mut world, 0, "#Rust is #fun", Visibility::Public);
    for hidden in [Visibility::Unlisted, Visibility::Followers, Visibility::Direct] {
        publish(&mut world, 0, "#rust @bob", hidden);
    }
    let second = world.post(1, "@ada #RUST #rust");
    assert_eq!(all(&world, Some(2), "rust"), [second, first]);
    assert_eq!(all(&world, None, "fun"), [first]);
    assert_eq!(all(&world, None, "rus"), []);
    assert_eq!(world.facts().tagged_by(UserId(0), &tag("rust"), PostId(u64::MAX), 9), [first]);
    assert_eq!(rows(&world), 3);

    world.run(Command::edit(first, Patch::of_text(text("now #fun and #new")))).unwrap();
    assert_eq!(all(&world, None, "rust"), [second]);
    assert_eq!(all(&world, None, "fun"), [first]);
    assert_eq!(all(&world, None, "new"), [first]);
    world.run(Command::DeletePost { post: first }).unwrap();
    world.run(Command::DeletePost { post: second }).unwrap();
    assert_eq!(rows(&world), 0);
}

#[test]
fn blocks_and_mutes_hide_posts_from_hashtag_timelines() {
    let mut world = World::new();
    let [ada, bob] = [0, 1].map(|author| world.post(author, "#tag"));
    world.run(block(id(1), id(2))).unwrap();
    assert_eq!(all(&world, Some(2), "tag"), [ada]);
    world.run(unblock(id(1), id(2))).unwrap();
    world.run(mute(2, 0, None)).unwrap();
    assert_eq!(all(&world, Some(2), "tag"), [bob]);
    world.run(unmute(2, 0)).unwrap();
    assert_eq!(all(&world, Some(2), "tag"), [bob, ada]);
    world.run(Command::DeleteUser { user: id(1) }).unwrap();
    assert_eq!(all(&world, Some(2), "tag"), [ada]);
    let erase = Command::EraseUser { user: UserId(1), phase: ErasurePhase::first(), from: 0 };
    world.run(erase).unwrap();
    assert_eq!(rows(&world), 1);
}

#[test]
fn only_the_first_hashtags_of_a_post_are_indexed() {
    let mut world = World::new();
    let words: String = (0..POST_TAGS_MAX + 5).map(|number| format!("#t{number} ")).collect();
    let post = world.post(0, &words);
    assert_eq!(rows(&world), POST_TAGS_MAX);
    assert_eq!(all(&world, None, &format!("t{}", POST_TAGS_MAX - 1)), [post]);
    assert_eq!(all(&world, None, &format!("t{POST_TAGS_MAX}")), []);
}

#[test]
fn a_timeline_combines_hashtags() {
    let mut world = World::new();
    let posts = ["#a", "#b", "#a #b", "#c", "#a #c"].map(|words| world.post(0, words));
    for (any, every, none, expect) in [
        ("a", "", "", vec![4, 2, 0]),
        ("a b", "", "", vec![4, 2, 1, 0]),
        ("a", "b", "", vec![2]),
        ("a b c", "a", "c", vec![2, 0]),
        ("a", "", "a", vec![]),
    ] {
        let tags = |names: &str| names.split_whitespace().map(tag).collect::<Vec<_>>();
        let query =
            TagQuery { any: tags(any), all: tags(every), none: tags(none), only_pictures: false };
        let page = Page::newest(10);
        let expect: Vec<_> = expect.into_iter().map(|index: usize| posts[index]).collect();
        assert_eq!(read(&world, None, &query, &page).items, expect, "{query:?}");
    }
}

#[test]
fn hashtags_are_found_by_their_beginning_each_once() {
    let mut world = World::new();
    world.post(0, "#rust #rusty #ruby #go #r");
    world.post(1, "#rust");
    let found = |start: &str, limit| {
        let found: Vec<_> = world.facts().tags_by_prefix(start).take(limit).collect();
        found.iter().map(|tag| tag.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(found("ru", 9), ["ruby", "rust", "rusty"]);
    assert_eq!(found("r", 2), ["r", "ruby"]);
    assert_eq!(found("rustyx", 9), Vec::<String>::new());
}

#[test]
fn a_profile_shows_a_bounded_number_of_hashtags_until_it_is_erased() {
    let mut world = World::new();
    let shown = |world: &World, user| {
        let shown = world.facts().featured_tags(UserId(user));
        shown.iter().map(|featured| featured.tag.as_str().to_owned()).collect::<Vec<_>>()
    };
    world.run(feature(1, "theirs", true)).unwrap();
    for (name, on, expect) in [
        ("b", true, vec!["b"]),
        ("a", true, vec!["a", "b"]),
        ("b", false, vec!["a"]),
        ("b", false, vec!["a"]),
    ] {
        assert_eq!(world.run(feature(0, name, on)), Ok(Done::TagFeatured));
        assert_eq!(shown(&world, 0), expect);
    }
    for number in 1..FEATURED_TAGS_MAX {
        world.run(feature(0, &format!("t{number}"), true)).unwrap();
    }
    let since = world.facts().featured_tags(UserId(0))[0].since;
    assert_eq!(world.run(feature(0, "one_more", true)), Err(Refusal::TooManyTags));
    assert_eq!(world.run(feature(0, "a", true)), Ok(Done::TagFeatured));
    assert_eq!(world.facts().featured_tags(UserId(0))[0].since, since, "it was shown before");
    assert_eq!(world.run(feature(9, "a", true)), Err(Refusal::UserNotFound));
    world.run(Command::DeleteUser { user: id(0) }).unwrap();
    let erase = Command::EraseUser { user: UserId(0), phase: ErasurePhase::LAST, from: 0 };
    world.run(erase).unwrap();
    assert_eq!(shown(&world, 0), Vec::<String>::new());
    assert_eq!(shown(&world, 1), ["theirs"]);
}

#[test]
fn a_user_follows_a_bounded_number_of_hashtags_until_they_are_erased() {
    let mut world = World::new();
    let followed = |world: &World, user| {
        let followed = world.facts().followed_tags(UserId(user));
        followed.iter().map(|followed| followed.tag.as_str().to_owned()).collect::<Vec<_>>()
    };
    world.run(follow_tag(1, "theirs", true)).unwrap();
    let changed = [Effect::Input { user: UserId(0), input: Input::Follows }];
    for (name, on, expect, is_news) in [
        ("b", true, vec!["b"], true),
        ("a", true, vec!["a", "b"], true),
        ("A", true, vec!["a", "b"], false),
        ("b", false, vec!["a"], true),
        ("b", false, vec!["a"], false),
    ] {
        assert_eq!(world.run(follow_tag(0, name, on)), Ok(Done::TagFollowed));
        assert_eq!(followed(&world, 0), expect);
        assert_eq!(world.effects, changed[..usize::from(is_news)], "{name} {on}");
        assert!(world.facts().follows_tags(UserId(0)) && !world.facts().follows_tags(UserId(2)));
    }
    for number in 1..FOLLOWED_TAGS_MAX {
        world.run(follow_tag(0, &format!("t{number}"), true)).unwrap();
    }
    assert_eq!(world.run(follow_tag(0, "one_more", true)), Err(Refusal::TooManyFollowedTags));
    assert_eq!(world.run(follow_tag(0, "a", true)), Ok(Done::TagFollowed));
    assert_eq!(world.run(follow_tag(9, "a", true)), Err(Refusal::UserNotFound));
    world.run(Command::DeleteUser { user: id(0) }).unwrap();
    let erase = Command::EraseUser { user: UserId(0), phase: ErasurePhase::LAST, from: 0 };
    world.run(erase).unwrap();
    assert_eq!(followed(&world, 0), Vec::<String>::new());
    assert_eq!(followed(&world, 1), ["theirs"]);
}

/// Creates a source of ids, each with whether it is shown, that reads `rows` ids at a time.
fn source(list: &[(u64, bool)], rows: usize) -> impl Fn(Span) -> Batch<PostId> {
    move |span| {
        let is_on = |id: &u64| (span.low..=span.high).contains(id);
        let mut rest: Vec<_> = list.iter().filter(|(id, _)| is_on(id)).collect();
        if span.order == Order::Descending {
            rest.reverse();
        }
        let rows = rows.min(span.limit);
        let read = rest.iter().take(rows).filter(|(_, is_shown)| *is_shown);
        let items = read.map(|(id, _)| PostId(*id)).collect();
        let last = rest.get(rows - 1).filter(|_| rest.len() > rows).map(|(id, _)| *id);
        Batch { items, last, rows, ends_page: false }
    }
}

/// Returns all posts from a cursor on, in the order of reading. A page upwards may end at `newest` with more to read.
fn walk(
    first: Cursor,
    limit: usize,
    newest: u64,
    read: impl Fn(&Page) -> PageOf<PostId>,
) -> Vec<PostId> {
    let (mut all, mut page) = (Vec::new(), Page::at(first, limit));
    loop {
        let PageOf { mut items, next } = read(&page);
        assert!(items.len() <= limit && items.is_sorted_by(|one, other| one > other), "{items:?}");
        if page.is_up {
            items.reverse();
        }
        all.extend(&items);
        let Some(next) = next.filter(|next| !page.is_up || *next != newest) else { return all };
        let next = if page.is_up { Cursor::After(next) } else { Cursor::Before(next) };
        let next = Page::at(next, limit);
        assert_ne!(next, page, "no progress");
        page = next;
    }
}

#[test]
fn pages_upwards_of_many_posts_within_a_second_skip_none() {
    let mut world = World::new();
    let posts: Vec<_> = (0..400).map(|_| world.post(0, "#a")).collect();
    world.now_ms += 1_000_000_000;
    let late = world.post(0, "#a");
    let (mut found, mut after) = (Vec::new(), PostId(0));
    loop {
        let page = Page::at(Cursor::After(after), 7);
        let mut page = read(&world, None, &TagQuery::of(tag("a")), &page);
        page.items.reverse();
        let Some(last) = page.items.last() else { break };
        after = *last;
        found.append(&mut page.items);
    }
    assert_eq!(found, [posts, vec![late]].concat());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Pages of two merged lists whose reads may end early, in both directions. Posts after `newest` arrive during the
    /// reads.
    #[test]
    fn pages_of_two_lists_together_have_each_post_once(
        posts in prop::collection::btree_map(1..200_u64, 0..6_u8, 0..80),
        rows in (1..9_usize, 1..9_usize),
        limit in 1..7_usize,
        newest in 0..250_u64,
    ) {
        // Ids of the first list, the second, or both; each shown or hidden in all lists.
        let list = |number: u8| -> Vec<(u64, bool)> {
            let of_list = posts.iter().filter(|(_, kind)| **kind % 3 == 2 || **kind % 3 == number);
            of_list.map(|(id, kind)| (*id, *kind < 3)).collect()
        };
        let (one, other) = (list(0), list(1));
        let read = |page: &Page| {
            let mut other = merged(0..1, |_, span| source(&other, rows.1)(span));
            let both = merged(0..2, |list, span| match list {
                0 => source(&one, rows.0)(span),
                _ => other(span),
            });
            scan(page, both, Shown::Yes).up_to(newest, page)
        };
        let shown = posts.iter().filter(|(id, kind)| **kind < 3 && **id <= newest);
        let mut expect: Vec<_> = shown.map(|(id, _)| PostId(*id)).collect();
        prop_assert_eq!(walk(Cursor::After(PostId(0)), limit, newest, read), expect.clone());
        expect.reverse();
        prop_assert_eq!(walk(Cursor::Newest, limit, newest, read), expect);
    }

    /// Compares the pages with a list of all posts. The times between posts vary, so that pages upwards must search for
    /// their time span.
    #[test]
    fn pages_of_a_hashtag_are_those_of_a_plain_list(
        posts in prop::collection::vec((0..3_u32, 0..4_usize, 0..7_u32), 0..150),
        cursors in prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, 1..9_usize), 1..12),
        muted in any::<bool>(),
        query in 0..4_usize,
    ) {
        let mut world = World::new();
        let (mut ids, mut list) = (vec![PostId(0)], Vec::new());
        let of = |any: &[&str], all: &[&str], none: &[&str]| {
            let [any, all, none] = [any, all, none].map(|tags| tags.iter().map(|name| tag(name)).collect());
            TagQuery { any, all, none, only_pictures: false }
        };
        let (query, found_in) = [
            (of(&["a"], &[], &[]), ["#a", "#a #b"].as_slice()),
            (of(&["a", "b"], &[], &[]), &["#a", "#a #b", "#b"]),
            (of(&["a"], &["b"], &[]), &["#a #b"]),
            (of(&["b", "a"], &[], &["b"]), &["#a"]),
        ][query].clone();
        for (author, words, gap) in posts {
            world.now_ms += 10_u64.pow(gap);
            let words = ["#a", "#a #b", "#b", "plain"][words];
            let post = world.post(author, words);
            ids.push(post);
            list.extend((found_in.contains(&words) && !(muted && author == 1)).then_some(post));
        }
        list.reverse();
        if muted {
            world.run(mute(2, 1, None)).unwrap();
        }
        for (index, kind, limit) in cursors {
            let at = *index.get(&ids);
            let cursor = [Cursor::Newest, Cursor::Before(at), Cursor::After(at)][usize::from(kind)];
            let mut expect: Vec<_> = list.iter().copied().filter(|post| match cursor {
                Cursor::Newest => true,
                Cursor::Before(at) => *post < at,
                Cursor::After(at) => *post > at,
            }).collect();
            let more = expect.len() > limit;
            match cursor {
                Cursor::After(_) => drop(expect.drain(..expect.len().saturating_sub(limit))),
                _ => expect.truncate(limit),
            }
            let page = Page::at(cursor, limit);
            let found = read(&world, Some(2), &query, &page);
            prop_assert_eq!((found.items, found.next.is_some()), (expect, more), "{:?} {:?}", query, page);
        }
    }
}
