//! Pages of lists with very many hidden rows: they contain everything visible, read a bounded number of rows, and
//! reveal nothing hidden.

use std::cell::Cell;
use std::collections::HashSet;

use crate::support::{World, gather, id, mute, register};
use feed::accounts::AccountState;
use feed::conversations::Conversation;
use feed::limits::{RELISTED_POSTS_MAX, SEARCHED_MAX, SIMILAR_MAX};
use feed::post_lists::{self, PublicList};
use feed::profile::ProfileFilter;
use feed::tagged::{self, TagQuery};
use feed::thread::descendants;
use feed::{
    Command, Cursor, Done, Draft, Facts, Handle, Mend, NotificationFilter, Page, PageOf, Patch,
    PostId, PostText, Reaction, Tag, UserId, Viewer, Visibility, profile,
};
use rows::{
    NameTable, PointTable, PutRows as _, Rows, Scan as _, SetTable, Span, Stamp, Totals, Value,
};
use testkit::MemoryRows;

/// Maximum number of rows read for a page of a profile, a thread or a home: five times 4,096, plus the last read of
/// each.
const ROWS_MAX: usize = 5 * 4_096 + 5 * 512;
/// Maximum number of rows and lookups for a page of up to five hashtags.
const TAG_ROWS_MAX: usize = 16 * 4_096;
/// Stamps per second, approximately.
const SECOND: u64 = 1 << 32;
const MS: u64 = 1 << 22;

/// Counts the rows of lists that are read.
struct Counted<'a> {
    rows: &'a MemoryRows,
    read: Cell<usize>,
}

impl<'a> Counted<'a> {
    fn new(world: &'a World) -> Self {
        Self { rows: &world.rows, read: Cell::new(0) }
    }

    fn add<T>(&self, found: Vec<T>) -> Vec<T> {
        self.read.set(self.read.get() + found.len() + 1);
        found
    }

    /// Returns the result of reading a page, which may read at most `rows_max` rows.
    fn within<T>(&self, rows_max: usize, read: impl FnOnce() -> T) -> T {
        self.read.set(0);
        let page = read();
        assert!(self.read.get() <= rows_max, "{} rows", self.read.get());
        page
    }
}

impl Rows for Counted<'_> {
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
        self.rows.member(table, owner, item)
    }
    fn members(&self, table: SetTable, owner: u64, span: Span) -> Vec<(u64, u64)> {
        self.add(self.rows.members(table, owner, span))
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
        self.add(self.rows.names_under(table, prefix, from, limit))
    }
    fn totals(&self) -> Totals {
        self.rows.totals()
    }
}

fn tags(names: &str) -> Vec<Tag> {
    names.split_whitespace().map(|name| Tag::parse(name).unwrap()).collect()
}

fn query(any: &str, all: &str, none: &str) -> TagQuery {
    TagQuery { any: tags(any), all: tags(all), none: tags(none), only_pictures: false }
}

/// Adds hashtags to a post by `author` with this id.
fn put(world: &mut World, names: &str, post: u64, author: u32) {
    for tag in tags(names) {
        let (tag, author, post) = (tag.as_str(), author.to_be_bytes(), (!post).to_be_bytes());
        let by_tag = [tag.as_bytes(), &[0], &post, &author].concat();
        let by_author = [&author, tag.as_bytes(), &[0], &post].concat();
        for (table, name) in [(NameTable::TagPost, by_tag), (NameTable::AuthorTag, by_author)] {
            world.rows.put_name(table, &name, Some(Value::new()));
        }
    }
}

/// Returns the posts on all pages in a direction, in ascending order, and the ids at which pages ended. Each page must
/// be within `rows_max`.
fn pages(
    counted: &Counted<'_>,
    rows_max: usize,
    first: Cursor,
    page: impl Fn(Cursor) -> PageOf<PostId>,
) -> (Vec<PostId>, Vec<PostId>) {
    let (mut all, mut ends, mut cursor) = (Vec::new(), Vec::new(), first);
    let is_up = matches!(first, Cursor::After(_));
    loop {
        let found = counted.within(rows_max, || page(cursor));
        all.extend(&found.items);
        let Some(next) = found.next.map(PostId) else { break };
        ends.push(next);
        let after = if is_up { Cursor::After(next) } else { Cursor::Before(next) };
        assert_ne!(after, cursor, "the next page is another one");
        cursor = after;
    }
    all.sort_unstable();
    (all, ends)
}

/// Checks pages of hashtags as user 2 sees them, in both directions: they must contain `expect` and no id of `hidden`.
fn check_tags(world: &World, query: &TagQuery, limit: usize, expect: &[u64], hidden: &[u64]) {
    let counted = Counted::new(world);
    let viewer = Viewer::new(Facts::new(&counted), Some(UserId(2)));
    let hidden: HashSet<_> = hidden.iter().copied().collect();
    for first in [
        Cursor::Newest,
        Cursor::After(PostId(0)),
        Cursor::After(PostId(expect.first().map_or(9, |first| first - 1))),
    ] {
        let page = |cursor| tagged::posts(&viewer, query, &Page::at(cursor, limit));
        let (found, ends) = pages(&counted, TAG_ROWS_MAX, first, page);
        let found: Vec<_> = found.iter().map(|post| post.0).collect();
        assert_eq!(found, expect, "{query:?} {first:?}");
        let named = ends.iter().find(|end| hidden.contains(&end.0) && !is_border(end.0, 12));
        assert_eq!(named, None, "{query:?} {first:?}");
    }
}

/// Whether an id is next to the border of a block. Such an id may coincide with that of a hidden post.
fn is_border(id: u64, bits: u32) -> bool {
    [0, (1 << bits) - 1].contains(&(id % (1 << bits)))
}

/// Creates a world in which user 2 has muted user 1. Returns the first id, too.
fn muted() -> (World, u64) {
    let mut world = World::new();
    world.run(mute(2, 1, None)).unwrap();
    let first = Stamp::first_of(world.now_ms).0;
    (world, first)
}

#[test]
fn thousands_of_muted_posts_are_passed_over_in_both_directions_of_two_hashtags() {
    let (mut world, _) = muted();
    let (mut shown, mut hidden) = (Vec::new(), Vec::new());
    for words in ["#a", "#b", "#a #b"] {
        shown.push(world.post(0, words).0);
        hidden.extend(
            (0..5_000).map(|number| world.post(1, ["#a", "#b", "#b #a", "#a #c"][number % 4]).0),
        );
        shown.push(world.post(0, words).0);
    }
    for limit in [1, 3, 40] {
        check_tags(&world, &query("a b", "", ""), limit, &shown, &hidden);
        check_tags(&world, &query("a b", "", "c"), limit, &shown, &hidden);
    }
    let both: Vec<_> = shown[4..].to_vec();
    check_tags(&world, &query("a c", "b", ""), 3, &both, &hidden);
}

#[test]
fn a_page_of_a_hashtag_is_bounded_however_dense_hidden_posts_are() {
    for gap in [1, 40, MS / 100, MS, 30 * MS, SECOND] {
        let (mut world, first) = muted();
        let shown = [first - SECOND, first + 1 + 30_000 * gap];
        let hidden: Vec<_> = (0..30_000).map(|number| first + 1 + number * gap).collect();
        shown.iter().for_each(|post| put(&mut world, "a b", *post, 0));
        hidden.iter().for_each(|post| put(&mut world, "a b c d e", *post, 1));
        check_tags(&world, &query("a", "", ""), 20, &shown, &hidden);
        check_tags(&world, &query("a b c d e", "", ""), 20, &shown, &hidden);
    }
}

#[test]
fn posts_that_the_query_leaves_out_end_a_page() {
    let (mut world, first) = muted();
    for number in 0..30_000 {
        put(&mut world, "x y", first + number * MS, 0);
    }
    let rare = [first + 77 * MS, first + 20_000 * MS];
    rare.iter().for_each(|post| put(&mut world, "rare z", *post, 0));
    let counted = Counted::new(&world);
    let viewer = Viewer::new(Facts::new(&counted), Some(UserId(2)));
    for (query, rows_max, expect) in [
        (query("x", "", "x"), 0, 0),
        (query("x", "y", "y"), 0, 0),
        (query("x", "unused", ""), 300, 0),
        (query("x", "y unused", ""), 400, 0),
        (query("x", "rare", ""), 400, 2),
        (query("rare", "x y", ""), 500, 2),
        (query("x", "", "y"), 4_096 + 4_096 / 2, 0),
    ] {
        for cursor in [Cursor::Newest, Cursor::After(PostId(1))] {
            let page = Page::at(cursor, 20);
            let found = counted.within(rows_max, || tagged::posts(&viewer, &query, &page));
            assert_eq!(found.items.len(), expect, "{query:?}");
        }
    }
    check_tags(&world, &query("x", "", "y"), 20, &[], &[]);
    check_tags(&world, &query("x y", "z", ""), 1, &rare, &[]);
}

/// Rows of hashtags come in bursts with pauses of different lengths, so that pages upwards search for their time span
/// again and again.
#[test]
fn a_page_upwards_of_hashtags_of_different_density_is_bounded() {
    for (burst, gap) in [(280, 1), (330, 1), (1_100, 1), (330, MS), (5_000, 100)] {
        let (mut world, first) = muted();
        let (mut hidden, mut shown) = (Vec::new(), vec![first]);
        put(&mut world, "t0 t1 t2 t3 t4", first, 0);
        for (list, pause) in (0..5).map(|list| (list, 1_u64 << (50 - 3 * list))) {
            let name = format!("t{list}");
            for start in (1..=24_000 / burst).map(|number| first + number * pause + (list << 12)) {
                for post in (0..burst).map(|number| start + number * gap * 8 + list) {
                    put(&mut world, &name, post, 1);
                    hidden.push(post);
                }
            }
        }
        shown.push(hidden.iter().max().unwrap() + 9);
        put(&mut world, "t0", shown[1], 0);
        check_tags(&world, &query("t0 t1 t2 t3 t4", "", ""), 40, &shown, &hidden);
    }
}

#[test]
fn pages_of_profiles_threads_and_homes_are_bounded_also_within_a_moment() {
    for (step_ms, bits) in [(0, 12), (1, 26), (100, 26)] {
        let mut world = World::new();
        let publish = |world: &mut World, author, parent, visibility| {
            let text = PostText::parse("to @cy").unwrap();
            let new = Draft { visibility, parent, ..Draft::new(id(author), text) };
            match world.run(Command::Publish(Box::new(new))) {
                Ok(Done::Posted(post)) => post,
                other => panic!("{other:?}"),
            }
        };
        let top = publish(&mut world, 2, None, Visibility::Public);
        let mut shown = Vec::new();
        let mut hidden = HashSet::new();
        for _ in 0..2 {
            shown.push(publish(&mut world, 0, Some(top), Visibility::Public));
            for _ in 0..30_000 {
                world.now_ms += step_ms;
                world.now_ms -= 1;
                hidden.insert(publish(&mut world, 0, Some(top), Visibility::Direct));
            }
        }
        shown.push(publish(&mut world, 0, Some(top), Visibility::Public));
        let named = |end: &PostId| hidden.contains(end) && !is_border(end.0, bits);
        let counted = Counted::new(&world);
        let (facts, author) = (Facts::new(&counted), UserId(0));
        let viewer = Viewer::new(facts, Some(UserId(1)));
        for first in [Cursor::Newest, Cursor::After(PostId(0))] {
            let page = |cursor| Page::at(cursor, 9);
            let read = |span| facts.posts_by(author, span);
            let all = ProfileFilter::default();
            let of_profile = |cursor| profile::posts(&viewer, author, &page(cursor), &all, read);
            let (found, ends) = pages(&counted, ROWS_MAX, first, of_profile);
            assert_eq!((found, ends.iter().any(named)), (shown.clone(), false));
            let authors = feed::HomeAuthors::of(vec![author, UserId(2)]);
            let of_home = |cursor| gather(facts, UserId(1), &authors, &page(cursor));
            let (found, ends) = pages(&counted, ROWS_MAX, first, of_home);
            let home = [&[top], &shown[..]].concat();
            assert_eq!((found, ends.iter().any(named)), (home, false));
        }
        let (mut found, mut next) = (Vec::new(), Some(Vec::new()));
        while let Some(from) = next {
            let page = counted.within(ROWS_MAX, || descendants(&viewer, top, &from, 9));
            found.extend(page.posts);
            next = page.next;
            assert!(!next.iter().flatten().any(named), "{next:?}");
        }
        assert_eq!(found, shown);
    }
}

#[test]
fn a_search_reads_a_bounded_number_of_handles() {
    let mut world = World::new();
    let first = world.facts().totals().users as usize;
    let many = (0..SEARCHED_MAX + 20).map(|number| format!("many{number:04}"));
    for handle in many.chain((0..SIMILAR_MAX + 5).map(|number| format!("mny{number:02}"))) {
        world.run(register(&handle)).unwrap();
    }
    let search = |start| {
        let found = world.facts().search_users(&Handle::parse(start).unwrap());
        found.map(|user| user.0 as usize - first).collect::<Vec<_>>()
    };
    let others = (SEARCHED_MAX + 20..).take(SIMILAR_MAX);
    assert_eq!(search("many"), (0..SEARCHED_MAX).chain(others).collect::<Vec<_>>());
    assert_eq!(search("nobody"), [0; 0]);
}

fn publish(
    world: &mut World,
    author: u32,
    parent: Option<PostId>,
    visibility: Visibility,
) -> PostId {
    let new = Draft::new(id(author), PostText::parse("a post").unwrap());
    match world.run(Command::Publish(Box::new(Draft { visibility, parent, ..new }))) {
        Ok(Done::Posted(post)) => post,
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_number_of_other_posts_delays_the_public_timeline() {
    let mut world = World::new();
    world.run(register("dan")).unwrap();
    let mut shown = vec![publish(&mut world, 0, None, Visibility::Public)];
    for number in 0..1_500 {
        let (parent, visibility) = match number % 3 {
            0 => (None, Visibility::Direct),
            1 => (None, Visibility::Unlisted),
            _ => (Some(shown[0]), Visibility::Public),
        };
        publish(&mut world, 1, parent, visibility);
    }
    shown.push(publish(&mut world, 0, None, Visibility::Public));
    let boost = Command::React { user: id(2), post: shown[1], reaction: Reaction::Boost, on: true };
    world.run(boost).unwrap();
    let own_thread = publish(&mut world, 0, Some(shown[1]), Visibility::Public);
    shown.push(own_thread);
    let counted = Counted::new(&world);
    let viewer = Viewer::new(Facts::new(&counted), Some(UserId(2)));
    let newest_first: Vec<_> = shown.iter().rev().copied().collect();
    for cursor in [Cursor::Newest, Cursor::After(PostId(0))] {
        let page = Page::at(cursor, 3);
        let found = counted.within(8, || post_lists::posts(&viewer, PublicList::Posts, &page));
        assert_eq!((found.items, found.next), (newest_first.clone(), None));
    }
    let page = Page::newest(1);
    let found = counted.within(8, || post_lists::posts(&viewer, PublicList::Posts, &page));
    assert_eq!((found.items, found.next.is_some()), (vec![own_thread], true));
    world.run(Command::DeletePost { post: own_thread }).unwrap();
    world.run(mute(2, 0, None)).unwrap();
    let of = |world: &World, user| {
        let viewer = Viewer::new(world.facts(), user);
        let page = Page::newest(9);
        post_lists::posts(&viewer, PublicList::Posts, &page).items
    };
    assert_eq!(of(&world, Some(UserId(2))), []);
    assert_eq!(of(&world, None), newest_first[1..]);
    world.run(Command::DeleteUser { user: id(0) }).unwrap();
    assert_eq!(of(&world, None), []);
    world.erase(0);
    assert_eq!(world.rows.members(SetTable::PostLists, 0, Span::ALL), [], "no row is left");
}

/// Rows of the lists shared by many authors.
fn shared_rows(world: &World) -> Vec<Vec<(u64, u64, u64)>> {
    [SetTable::PostLists, SetTable::OpenReplies, SetTable::Quotes]
        .map(|table| {
            let mut rows = world.rows.members_from(table, (0, 0), usize::MAX).0;
            rows.retain(|(owner, ..)| table != SetTable::PostLists || *owner < 2);
            rows
        })
        .to_vec()
}

/// Rows after a repair, which must find nothing.
fn mended(world: &World) -> MemoryRows {
    let (mut rows, mut mend) = (world.rows.clone(), Mend::new(false));
    while mend.step(&mut rows, &mut |finding| panic!("{finding:?}")) {}
    rows
}

#[test]
fn the_posts_of_a_disabled_account_cost_the_public_timeline_nothing() {
    let mut world = World::new();
    let shown = publish(&mut world, 0, None, Visibility::Public);
    for number in 0..3 * RELISTED_POSTS_MAX {
        let parent = (number % 2 == 0).then_some(shown);
        let visibility =
            [Visibility::Public, Visibility::Public, Visibility::Unlisted, Visibility::Direct]
                [number % 4];
        publish(&mut world, 1, parent, visibility);
    }
    let quote = Draft::new(id(1), PostText::parse("look").unwrap());
    world.run(Command::Publish(Box::new(Draft { quote: Some(shown), ..quote }))).unwrap();
    let boost = Command::React { user: id(1), post: shown, reaction: Reaction::Boost, on: true };
    world.run(boost).unwrap();
    let enabled = shared_rows(&world);
    let page = Page::newest(3);
    let posts = |world: &World| {
        let counted = Counted::new(world);
        let viewer = Viewer::new(Facts::new(&counted), Some(UserId(2)));
        let found = counted.within(3, || post_lists::posts(&viewer, PublicList::Posts, &page));
        (found.items, found.next.is_some())
    };
    world.set_account(1, AccountState::Disabled);
    world.relist();
    assert_eq!(posts(&world), (vec![shown], false));
    for table in [SetTable::OpenReplies, SetTable::Quotes] {
        assert_eq!(world.rows.members(table, shown.0, Span::ALL), [], "{table:?}");
    }
    assert_eq!(mended(&world), world.rows);
    // A post published, edited or half removed meanwhile is restored with the rest.
    let late = publish(&mut world, 1, None, Visibility::Public);
    let text = PostText::parse("an edit").unwrap();
    world.run(Command::edit(late, Patch::of_text(text))).unwrap();
    assert_eq!(posts(&world), (vec![shown], false));
    world.run(Command::DeletePost { post: late }).unwrap();
    for half in [AccountState::Active, AccountState::Disabled, AccountState::Active] {
        world.set_account(1, half);
        world.run(Command::DoDue(world.due()[0])).unwrap();
    }
    world.relist();
    assert_eq!(shared_rows(&world), enabled);
    assert_eq!(mended(&world), world.rows);
    world.set_account(1, AccountState::Disabled);
    world.run(Command::DeleteUser { user: id(1) }).unwrap();
    world.relist();
    world.erase(1);
    assert_eq!(posts(&world), (vec![shown], false));
}

#[test]
fn replies_of_others_do_not_displace_those_that_count() {
    let mut world = World::new();
    let top = publish(&mut world, 0, None, Visibility::Public);
    for number in 0..1_200 {
        let visibility =
            [Visibility::Direct, Visibility::Followers, Visibility::Public][number % 3];
        publish(&mut world, 1, Some(top), visibility);
    }
    for visibility in [Visibility::Public, Visibility::Unlisted, Visibility::Direct] {
        publish(&mut world, 2, Some(top), visibility);
    }
    let count = |world: &World| {
        let counted = Counted::new(world);
        let facts = Facts::new(&counted);
        counted.within(1_200, || facts.open_count(SetTable::OpenReplies, top, 500))
    };
    assert_eq!(count(&world), 402);
    world.set_account(1, AccountState::Disabled);
    assert_eq!(count(&world), 2, "at once");
    world.relist();
    assert_eq!(count(&world), 2);
    world.set_account(1, AccountState::Active);
    world.relist();
    assert_eq!(count(&world), 402);
    world.run(Command::DeleteUser { user: id(1) }).unwrap();
    assert_eq!(count(&world), 2, "at once");
}

#[test]
fn a_profile_without_replies_and_boosts_passes_over_thousands_of_them() {
    let mut world = World::new();
    let other = publish(&mut world, 1, None, Visibility::Public);
    let one = publish(&mut world, 0, None, Visibility::Public);
    for _ in 0..6_000 {
        publish(&mut world, 0, Some(other), Visibility::Public);
    }
    let filter = ProfileFilter { no_replies: true, ..ProfileFilter::default() };
    let counted = Counted::new(&world);
    let (facts, author) = (Facts::new(&counted), UserId(0));
    for cursor in [Cursor::Newest, Cursor::After(PostId(0))] {
        for reader in [None, Some(UserId(2))] {
            let viewer = Viewer::new(facts, reader);
            let page = Page::at(cursor, 20);
            let read = |span| facts.posts_by(author, span);
            let found = profile::posts(&viewer, author, &page, &filter, read);
            assert_eq!((found.items, found.next), (vec![one], None), "{cursor:?}");
        }
    }
}

#[test]
fn conversations_with_strangers_push_out_none_and_pages_are_bounded() {
    let mut world = World::new();
    world.run(register("dan")).unwrap();
    let send = |world: &mut World, author, text: &str, parent| {
        let new = Draft::new(id(author), PostText::parse(text).unwrap());
        let new = Draft { visibility: Visibility::Direct, parent, ..new };
        let Ok(Done::Posted(post)) = world.run(Command::Publish(Box::new(new))) else {
            panic!("it was not sent")
        };
        post
    };
    let friend = send(&mut world, 0, "@bob hello", None);
    let mut strange = Vec::new();
    for number in 0..700 {
        strange.push(send(&mut world, 2, &format!("@bob {number}"), None));
    }
    // Posts by a muted user, and one conversation of thousands of posts.
    for number in 0..700 {
        send(&mut world, 3, &format!("@bob {number}"), None);
    }
    let long = send(&mut world, 2, "@bob long", None);
    for _ in 0..6_000 {
        strange.push(send(&mut world, 2, "@bob again", Some(long)));
    }
    world.run(mute(1, 3, None)).unwrap();
    let last_of_long = *strange.last().unwrap();
    let mut expected: Vec<_> = strange[..700].iter().map(|post| (*post, *post)).collect();
    expected.insert(0, (friend, friend));
    expected.push((long, last_of_long));
    let counted = Counted::new(&world);
    let viewer = Viewer::new(Facts::new(&counted), Some(UserId(1)));
    for up in [false, true] {
        let (mut found, mut pages) = (Vec::new(), 0);
        let mut cursor = if up { Cursor::After(PostId(0)) } else { Cursor::Newest };
        loop {
            let page = Page::at(cursor, 40);
            let read = counted.within(3 * ROWS_MAX, || viewer.conversations(&page));
            let items = read.items.iter();
            let mut of_page: Vec<_> =
                items.map(|Conversation { first, last, .. }| (*first, *last)).collect();
            if up {
                of_page.reverse();
            }
            pages += 1;
            assert!(up || pages > 1 || of_page.len() == 40, "the long one leaves room for others");
            found.extend(of_page);
            match read.next.map(PostId) {
                Some(end) if up => cursor = Cursor::After(end),
                Some(end) => cursor = Cursor::Before(end),
                None => break,
            }
        }
        if !up {
            found.reverse();
        }
        assert_eq!(found, expected, "up: {up}");
        assert!(pages <= 20, "{pages} pages");
    }
    assert_eq!(viewer.conversation(friend).map(|found| found.last), Some(friend));
    let page = Page::at(Cursor::Before(strange[0]), 20);
    assert_eq!(viewer.direct_posts(&page).items, [friend]);
}

#[test]
fn notifications_that_are_not_shown_end_no_page_and_are_named_by_none() {
    for step_ms in [0, 1] {
        let (mut world, _) = muted();
        let mut shown = vec![world.post(0, "@cy first").0];
        let mut hidden = HashSet::new();
        for _ in 0..2 {
            for _ in 0..6_000 {
                world.now_ms += step_ms;
                world.now_ms -= 1;
                hidden.insert(world.post(1, "@cy again").0);
            }
            shown.push(world.post(0, "@cy and then").0);
        }
        let counted = Counted::new(&world);
        let viewer = Viewer::new(Facts::new(&counted), Some(UserId(2)));
        for filter in [
            NotificationFilter::default(),
            NotificationFilter { by: Some(UserId(0)), ..NotificationFilter::default() },
        ] {
            for first in [Cursor::Newest, Cursor::After(PostId(0))] {
                let page = |cursor| {
                    let found = viewer.notifications(&Page::at(cursor, 9), &filter);
                    found.filter_map(|found| Some(PostId(found.id.0)))
                };
                let (found, ends) = pages(&counted, 3 * ROWS_MAX, first, page);
                assert_eq!(found.iter().map(|post| post.0).collect::<Vec<_>>(), shown);
                let is_named = |end: &PostId| hidden.contains(&end.0) && !is_border(end.0, 12);
                assert!(!ends.iter().any(is_named), "{ends:?}");
                assert!(ends.len() > 1, "a page ends early");
            }
        }
    }
}
