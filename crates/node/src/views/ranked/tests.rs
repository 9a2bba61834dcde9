//! Parts of the view: what attackers can displace, and the order of popularity.

use rank::Sources;

use super::recent::Recent;
use super::recent::{POST_BYTES_MAX, TAGS_MAX};
use super::*;

const HOUR_STAMPS: u64 = 3_600_000 << STAMP_SHIFT;
/// Bits of a stamp below its milliseconds.
const STAMP_SHIFT: u32 = 22;

/// Post of a time in hours.
fn post(hour: u64, author: u32, favourites: u32, young: u32) -> Recent {
    let (id, author) = (PostId((1_000 + hour) * HOUR_STAMPS + u64::from(author)), UserId(author));
    let (tags, language) = ([0; TAGS_MAX], 0);
    Recent {
        id,
        author,
        favourites,
        boosts: 0,
        replies: 0,
        young,
        tags,
        language,
        is_plain: true,
        is_removed: false,
    }
}

#[test]
fn six_hours_count_as_much_as_half_of_the_reactions() {
    let heat = |hour, favourites| post(hour, 1, favourites, 0).heat();
    assert!(heat(12, 7) > heat(11, 7), "newer");
    assert!(heat(12, 7) > heat(12, 6), "more reactions");
    assert!((heat(12, 7) - heat(6, 15)).abs() < 0.01, "7 and 15 reactions, 6 hours apart");
}

#[test]
fn young_accounts_alone_make_nothing_popular() {
    for (favourites, young, counted) in
        [(0, 0, 0), (3, 3, 3), (1_000, 1_000, 3), (10, 4, 10), (104, 100, 11), (5, 0, 5)]
    {
        assert_eq!(post(0, 1, favourites, young).counted(), (counted, 0), "{favourites} {young}");
    }
}

#[test]
fn neither_an_author_nor_a_flood_of_hashtags_displaces_what_is_more_popular() {
    let mut topics = Topics::new(4);
    let popular = |post, author, heat| Popular { post: PostId(post), author: UserId(author), heat };
    let posts = |topics: &Topics, topic| {
        let mut posts: Vec<_> = topics.of(topic).iter().map(|found| found.post.0).collect();
        posts.sort_unstable();
        posts
    };
    for n in 0..100 {
        topics.raise(Topic::All, popular(n, 7, n as f32));
    }
    assert_eq!(posts(&topics, Topic::All), [96, 97, 98, 99], "the hottest four of an author");
    for n in 100..200 {
        topics.raise(Topic::All, popular(n, n as u32, 50.0 + n as f32));
    }
    let all = posts(&topics, Topic::All);
    assert!(all.len() == topics::POPULAR_MAX && all.contains(&199) && !all.contains(&100));

    topics.raise(Topic::Tag(1), popular(1, 1, 10.0));
    for n in 0..1_000 {
        topics.raise(Topic::Tag(100 + n), popular(u64::from(n), n, 1.0));
    }
    assert_eq!(posts(&topics, Topic::Tag(1)), [1], "the popular hashtag stays");
    assert_eq!(posts(&topics, Topic::All), all);
    topics.raise(Topic::Tag(9), popular(9, 9, 20.0));
    assert_eq!(posts(&topics, Topic::Tag(9)), [9], "a more popular one enters");
}

#[test]
fn hashtags_of_an_author_and_made_up_languages_displace_no_others() {
    let mut topics = Topics::new(1_000);
    let popular = |author, heat| {
        let post = PostId(u64::from(author));
        Popular { post, author: UserId(author), heat }
    };
    for tag in 0..1_000 {
        topics.raise(Topic::Tag(tag), popular(1, 50.0));
    }
    for n in 0..300 {
        topics.raise(Topic::Tag(2_000 + n), popular(2 + n, 1.0));
        topics.raise(Topic::Group(Group(UserId(n))), popular(2 + n, 1.0));
    }
    for language in 0..10_000 {
        topics.raise(Topic::Language(language), popular(1, 50.0));
    }
    let tags_by = |author: u32| {
        let tags = 0..3_000;
        let all = tags.filter_map(|tag| topics.of(Topic::Tag(tag)).first());
        all.filter(|first| first.author == UserId(author)).count()
    };
    assert_eq!(tags_by(1), 16);
    for n in 0..300 {
        assert_eq!(tags_by(2 + n), 1, "author {n}");
        assert!(!topics.of(Topic::Group(Group(UserId(n)))).is_empty(), "group {n}");
    }
}

#[test]
fn a_flood_of_posts_without_reactions_displaces_none_with_reactions() {
    let mut topics = Topics::new(8);
    // Posts with a favourite each, and a flood 23 hours later.
    for author in 0..64 {
        let old = post(0, author, 1, 0);
        let popular = Popular { post: old.id, author: old.author, heat: old.heat() };
        topics.raise(Topic::All, popular);
        topics.raise(Topic::Tag(author % 3), popular);
    }
    let before = topics.of(Topic::All).to_vec();
    let raise = |topics: &mut Topics, new: &Recent| {
        let popular = Popular { post: new.id, author: new.author, heat: new.heat() };
        topics.raise(Topic::All, popular);
        topics.raise(Topic::Tag(100 + new.author.0), popular);
    };
    for author in 0..500 {
        raise(&mut topics, &post(23, 100 + author, 0, 0));
    }
    assert_eq!(topics.of(Topic::All), before);
    assert!((0..3).all(|tag| !topics.of(Topic::Tag(tag)).is_empty()));
    raise(&mut topics, &post(23, 900, 1, 1));
    assert_eq!(topics.of(Topic::All)[0].author, UserId(900), "one with a favourite");
    assert_eq!(topics.of(Topic::Tag(1_000)).len(), 1);
    raise(&mut topics, &post(25, 901, 0, 0));
    assert_eq!(topics.of(Topic::All)[1].author, UserId(901), "no list stays closed");
    assert_eq!(topics.of(Topic::Tag(1_001)).len(), 1);
}

#[test]
fn posts_that_the_view_has_forgotten_take_no_places() {
    let mut topics = Topics::new(8);
    let raise = |topics: &mut Topics, new: Recent, tag| {
        let popular = Popular { post: new.id, author: new.author, heat: new.heat() };
        topics.raise(Topic::All, popular);
        topics.raise(Topic::Tag(tag), popular);
    };
    for author in 0..64 {
        raise(&mut topics, post(0, author, 9, 0), author % 3);
    }
    topics.forget_before(post(1, 0, 0, 0).id);
    raise(&mut topics, post(1, 100, 0, 0), 100);
    let of = |topic| topics.of(topic).iter().map(|found| found.author.0).collect::<Vec<_>>();
    assert_eq!((of(Topic::All), of(Topic::Tag(100))), (vec![100], vec![100]));
}

#[test]
fn an_author_with_many_hashtags_replaces_the_less_popular_ones() {
    let mut topics = Topics::new(1_000);
    for tag in 0..40 {
        let post = PostId((1_000 + u64::from(tag)) * HOUR_STAMPS);
        let popular = Popular { post, author: UserId(1), heat: 100.0 + tag as f32 };
        topics.raise(Topic::Tag(tag), popular);
        if tag == 5 {
            topics.raise(Topic::Tag(5), Popular { author: UserId(2), heat: 500.0, ..popular });
        }
    }
    let found: Vec<_> = (0..40).filter(|tag| !topics.of(Topic::Tag(*tag)).is_empty()).collect();
    let newest: Vec<_> = [5].into_iter().chain(25..40).collect();
    assert_eq!(found, newest, "the newest, and the one with a popular post");
}

#[test]
fn several_lists_are_read_in_the_order_of_popularity() {
    let mut topics = Topics::new(100);
    for n in 0..200_u32 {
        let (author, heat) = (UserId(n), (n * 37 % 101) as f32);
        topics.raise(Topic::Tag(n % 5), Popular { post: PostId(n.into()), author, heat });
    }
    let lists = || (0..5).map(|tag| topics.of(Topic::Tag(tag)));
    let mut all = lists().flatten().copied().collect::<Vec<_>>();
    all.sort_by(|a, b| b.heat.total_cmp(&a.heat).then(b.post.cmp(&a.post)));
    assert!(lists().all(|list| list.len() == 40));
    assert!(topics::merged(lists()).eq(all.iter().map(|found| found.post)));
}

#[test]
fn the_last_reactions_of_active_users_are_kept() {
    let mut reactions = Reactions::new(2);
    let of = |reactions: &Reactions, user| {
        reactions.of(UserId(user)).map(|post| post.0).collect::<Vec<_>>()
    };
    for n in 1..=20 {
        reactions.add(UserId(1), PostId(n));
    }
    reactions.add(UserId(1), PostId(20));
    assert_eq!(of(&reactions, 1), (5..=20).rev().collect::<Vec<_>>());
    reactions.remove(UserId(1), PostId(20));
    reactions.remove(UserId(1), PostId(5));
    assert_eq!(of(&reactions, 1), (6..=19).rev().collect::<Vec<_>>());
    reactions.add(UserId(1), PostId(30));
    assert_eq!(of(&reactions, 1)[..2], [30, 19]);
    // One account that reacts to everything takes one place.
    for user in 2..50 {
        reactions.add(UserId(user), PostId(1));
        reactions.add(UserId(1), PostId(100 + u64::from(user)));
    }
    assert_eq!(of(&reactions, 49), [1]);
    assert_eq!(of(&reactions, 2), [0; 0], "replaced");
    assert_eq!(of(&reactions, 1).len(), REACTIONS_MAX);
}

/// Shares in percent of the pairs of a community that are in one group, and of the other pairs that are: of six
/// communities of 40 users, of whom each follows 6 of the community and 2 of all.
fn grouped(seed: u64) -> (u32, u32) {
    let (communities, size) = (6, 40);
    let users = communities * size;
    let mut reactions = Reactions::new(users as usize);
    let mut random = seed;
    let mut next = |below: u32| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((random >> 33) % u64::from(below)) as u32
    };
    let mut follows = Vec::new();
    for user in 0..users {
        reactions.add_author(UserId(user));
        let community = user / size * size;
        let mut of: Vec<_> = (0..6).map(|_| UserId(community + next(size))).collect();
        of.extend((0..2).map(|_| UserId(next(users))));
        follows.push(of);
    }
    for _ in 0..10 {
        for user in 0..users {
            let neighbors = follows[user as usize].iter().copied();
            if let Some(group) = reactions.joined(UserId(user), neighbors) {
                reactions.set_group(UserId(user), group);
            }
        }
    }
    let group = |user: u32| reactions.groups([UserId(user)].into_iter())[0].0;
    let (mut same, mut of_same, mut other, mut of_other) = (0, 0, 0, 0);
    for a in 0..users {
        for b in 0..a {
            let together = u32::from(group(a) == group(b));
            if a / size == b / size {
                (same, of_same) = (same + together, of_same + 1);
            } else {
                (other, of_other) = (other + together, of_other + 1);
            }
        }
    }
    (same * 100 / of_same, other * 100 / of_other)
}

#[test]
fn users_of_a_community_find_each_other() {
    let found: Vec<_> = (1..=20).map(grouped).collect();
    let mean = |of: fn(&(u32, u32)) -> u32| found.iter().map(of).sum::<u32>() / 20;
    let (same, other) = (mean(|it| it.0), mean(|it| it.1));
    assert!(same >= 95 && other <= 10, "{same} % of a community, {other} % of others: {found:?}");
    println!("{same} % of a community, {other} % of others");
}

#[test]
fn the_ring_has_the_newest_posts() {
    let mut posts = Recents::new(3);
    for hour in 0..5 {
        assert!(posts.push(post(hour, 1, 0, 0)));
    }
    assert!(!posts.push(post(4, 1, 9, 0)), "again");
    let has = |posts: &Recents, hour| posts.get(post(hour, 1, 0, 0).id).is_some();
    assert_eq!([0, 1, 2, 3, 4].map(|hour| has(&posts, hour)), [false, false, true, true, true]);
    posts.remove(post(3, 1, 0, 0).id);
    assert!(!has(&posts, 3) && has(&posts, 4));
}

#[test]
fn the_table_of_recent_posts_stays_within_its_size_while_posts_are_replaced() {
    for max in [100, 448, 1_000] {
        let mut posts = Recents::new(max);
        for hour in 0..20_000 {
            assert!(posts.push(post(hour, 1, 0, 0)));
        }
        assert!(posts.bytes() <= max * POST_BYTES_MAX, "{max}: {} bytes", posts.bytes());
        let found = (0..20_000).filter(|hour| posts.get(post(*hour, 1, 0, 0).id).is_some());
        assert!(found.eq(20_000 - max as u64..20_000), "{max}");
    }
}

fn item(post: u64) -> Item {
    let (post, sources) = (PostId(post), Sources::default());
    Item { post, sources, explores: false, likers: None, booster: None }
}

fn snapshot(user: u32, made_ms: u64) -> Snapshot {
    let items: Vec<_> = (1..=10).map(item).collect();
    Snapshot::new(UserId(user), "x", (&items, Box::default()), made_ms)
}

#[test]
fn a_ranking_is_in_use_from_its_last_page_on() {
    let snapshots = Snapshots::new(10_000);
    let number = snapshots.keep(snapshot(1, 1_000)).number;
    let has_since = |ms| snapshots.has_since(UserId(1), "x", ms);
    assert!(has_since(999) && !has_since(1_000));
    assert!(snapshots.get(UserId(1), "x", number, 5_000).is_some());
    assert!(has_since(4_999) && !has_since(5_000));
    assert!(!snapshots.has_since(UserId(1), "y", 0) && !snapshots.has_since(UserId(2), "x", 0));
}

#[test]
fn a_user_keeps_two_rankings_and_the_budget_holds() {
    let snapshots = Snapshots::new(3_000);
    let kept = |user, number| snapshots.get(UserId(user), "x", number, 4).is_some();
    let first = snapshots.keep(snapshot(1, 0)).number;
    let other = snapshots.keep(snapshot(2, 0)).number;
    let numbers = [1, 2, 3].map(|ms| snapshots.keep(snapshot(1, ms)).number);
    assert!(!kept(1, first) && !kept(1, numbers[0]) && kept(1, numbers[1]) && kept(1, numbers[2]));
    assert!(kept(2, other) && !kept(1, other), "the snapshot of another user");
    assert!(snapshots.get(UserId(1), "y", numbers[2], 4).is_none(), "another feed");
    for user in 10..40 {
        snapshots.keep(snapshot(user, 4));
    }
    let left = (0..100).filter(|number| (0..40).any(|user| kept(user, *number))).count();
    assert!((1..14).contains(&left), "{left} of 220 bytes and more each");
    let last = snapshots.keep(snapshot(1, 900_000)).number;
    assert!(kept(1, last) && !kept(39, last - 1), "expired");
}

#[test]
fn a_user_who_reloads_displaces_no_other_and_is_dropped_after_them() {
    let snapshots = Snapshots::new(20 * 512);
    // A read would make the user wait again.
    let has = |user| snapshots.has(UserId(user));
    let others = [10, 11, 12];
    for user in others {
        snapshots.keep(snapshot(user, 0));
    }
    for _ in 0..1_000 {
        snapshots.keep(snapshot(9, 0));
    }
    assert!(has(9) && others.into_iter().all(has));
    // Users 10 to 12 have waited longest, and user 9 has made a ranking since.
    let mut user = 100;
    while has(12) {
        snapshots.keep(snapshot(user, 0));
        user += 1;
    }
    assert!(user > 101 && has(9));
}

#[test]
fn who_reads_pages_keeps_the_ranking_as_long_as_who_reloads() {
    let snapshots = Snapshots::new(20 * 512);
    let kept = |user, number| snapshots.get(UserId(user), "x", number, 0).is_some();
    let [first, second] = [1, 2].map(|user| snapshots.keep(snapshot(user, 0)).number);
    for user in 100..1_000 {
        snapshots.keep(snapshot(user, 0));
        assert!(kept(1, first), "{user} rankings were made since");
    }
    assert!(!kept(2, second));
}

#[test]
fn a_snapshot_returns_the_items_that_it_was_made_of() {
    let named = |user| {
        let mut likers = Likers::default();
        likers.add(UserId(user));
        likers
    };
    let (mut liked, mut boosted) = (item(7), item(8));
    (liked.likers, boosted.booster) = (Some(named(3)), Some(UserId(4)));
    liked.sources.insert(rank::Source::Popular);
    boosted.explores = true;
    let items = [item(6), liked, boosted];
    let made = Snapshot::new(UserId(1), "x", (&items, [5].into()), 0);
    let users = |it: Item| it.likers.map(|likers| likers.named().collect::<Vec<_>>());
    let all: Vec<_> = (0..4).map(|place| made.item(place)).collect();
    assert!(all[3].is_none() && made.len() == 3 && made.has_tag(5) && !made.has_tag(6));
    for (found, item) in all.into_iter().flatten().zip(items) {
        assert_eq!(users(found), users(item));
        assert_eq!(
            (found.post, found.sources, found.explores, found.booster),
            (item.post, item.sources, item.explores, item.booster)
        );
    }
    let snapshots = Snapshots::new(1_000);
    let made = snapshots.keep(made);
    made.has_read(2);
    let shown = |now_ms| {
        let mut shown: Vec<_> = snapshots.shown(UserId(1), now_ms).into_iter().collect();
        shown.sort_unstable();
        shown
    };
    assert_eq!(shown(0), [(PostId(6), 1), (PostId(7), 1)]);
    assert_eq!(shown(900_000), [], "expired");
}

#[test]
fn a_post_finds_the_ranking_in_which_it_was_read() {
    let snapshots = Snapshots::new(10_000);
    let find =
        |user, feed, post, now_ms| snapshots.place_after(UserId(user), feed, PostId(post), now_ms);
    assert_eq!(find(1, "x", 4, 0), None);
    let older = snapshots.keep(snapshot(1, 0));
    assert_eq!(find(1, "x", 4, 0), Some((older.number, 4)));
    let newer = snapshots.keep(snapshot(1, 1));
    assert_eq!(find(1, "x", 4, 1), Some((newer.number, 4)), "neither was read");
    older.has_read(5);
    newer.has_read(3);
    for (post, place) in [
        (3, Some((newer.number, 3))),
        (4, Some((older.number, 4))),
        (5, Some((older.number, 5))),
        (6, Some((newer.number, 6))),
        (11, None),
    ] {
        assert_eq!(find(1, "x", post, 1), place, "{post}");
    }
    assert_eq!(
        (find(1, "y", 3, 1), find(2, "x", 3, 1), find(1, "x", 3, 600_002)),
        (None, None, None)
    );
    let has = |user, feed, since_ms| snapshots.has_since(UserId(user), feed, since_ms);
    assert!(has(1, "x", 0) && !has(1, "x", 1) && !has(1, "y", 0) && !has(2, "x", 0));
}

#[test]
fn hashtags_of_several_authors_trend_by_the_reactions_of_their_posts_together() {
    let mut topics = Topics::new(1_000);
    let raise = |topics: &mut Topics, tag, post: Recent| {
        let popular = Popular { post: post.id, author: post.author, heat: post.heat() };
        topics.raise(Topic::Tag(tag), popular);
    };
    // Posts of hour 10 without reactions, unless said.
    for author in 0..8 {
        raise(&mut topics, 1, post(10, author, 0, 0));
    }
    for author in 10..12 {
        raise(&mut topics, 2, post(10, author, 2, 0));
    }
    for author in 20..22 {
        raise(&mut topics, 3, post(4, author, 6, 0));
    }
    for hour in 0..3 {
        raise(&mut topics, 4, post(8 + hour, 30, 1_000, 0));
    }
    raise(&mut topics, 5, post(10, 40, 9, 0));
    raise(&mut topics, 5, post(0, 41, 1_000, 0));
    let since = post(1, 0, 0, 0).id;
    let found = |topics: &Topics, max| {
        let found = topics.popular_tags(since, max).into_iter();
        found.map(|(tag, posts)| (tag, posts.len())).collect::<Vec<_>>()
    };
    // One author, or one besides old posts, is no trend. Six hours halve the reactions.
    // Posts without reactions come last, however many there are.
    assert_eq!(found(&topics, 9), [(3, 2), (2, 2), (1, 8)]);
    assert_eq!(found(&topics, 1), [(3, 2)]);
    topics.remove_author(UserId(20));
    assert_eq!(found(&topics, 9), [(2, 2), (1, 8)]);
}

#[test]
fn deleted_posts_and_those_of_hidden_users_leave_their_places() {
    let mut view = View::new(Sizes::of(1 << 20));
    for author in 1..=3 {
        view.apply(Event::Posted {
            post: post(u64::from(author), author, 9, 0),
            is_new_author: true,
        });
    }
    let authors = |view: &View| {
        let mut all: Vec<_> = view.topics.of(Topic::All).iter().map(|it| it.author.0).collect();
        all.sort_unstable();
        (all, view.new_posts.iter().map(|(_, author)| author.0).collect::<Vec<_>>())
    };
    assert_eq!(authors(&view), (vec![1, 2, 3], vec![1, 2, 3]));
    view.apply(Event::Removed(post(1, 1, 0, 0).id));
    assert_eq!(authors(&view), (vec![2, 3], vec![2, 3]));
    view.apply(Event::Hidden(UserId(2)));
    assert_eq!(authors(&view), (vec![3], vec![3]));
}

#[test]
fn a_deleted_post_leaves_the_groups_of_those_who_reacted() {
    let mut view = View::new(Sizes::of(1 << 20));
    let posts = [1, 2, 3].map(|author| post(u64::from(author), author, 0, 0));
    for post in posts.clone() {
        view.apply(Event::Posted { post, is_new_author: false });
    }
    let group = Group(UserId(1));
    view.join(UserId(2), group);
    let counts = Counts { favourites: 1, boosts: 0, young: 0 };
    view.apply(Event::Reacted { user: UserId(2), post: posts[2].id, is_added: true, counts });
    let of_group = |view: &View| view.topics.of(Topic::Group(group)).len();
    assert_eq!(of_group(&view), 1);
    view.apply(Event::Removed(posts[2].id));
    assert!(view.topics.has_removed());
    view.topics.sweep_groups();
    assert!(!view.topics.has_removed());
    assert_eq!(of_group(&view), 0);
}

#[test]
fn many_deleted_posts_leave_the_groups_in_one_pass() {
    let mut view = View::new(Sizes::of(1 << 20));
    let group = Group(UserId(1));
    let apply = |view: &mut View, event| {
        view.apply(event);
        (view.topics.of(Topic::Group(group)).len(), view.topics.has_removed())
    };
    for author in 1..=5 {
        let post = post(u64::from(author), author, 0, 0);
        view.apply(Event::Posted { post, is_new_author: false });
        view.join(UserId(author), group);
    }
    let counts = Counts { favourites: 1, boosts: 0, young: 0 };
    let liked = [1, 2, 3].map(|author| post(u64::from(author), author, 0, 0).id);
    for post in liked {
        view.apply(Event::Reacted { user: UserId(5), post, is_added: true, counts });
    }
    for post in liked {
        assert_eq!(apply(&mut view, Event::Removed(post)), (3, true), "no pass for each post");
    }
    // Posts that the view does not have need no pass.
    for id in 0..2 * topics::REMOVED_MAX as u64 {
        assert_eq!(apply(&mut view, Event::Removed(PostId(id))), (3, true));
    }
    for n in 0..topics::REMOVED_MAX as u64 - 4 {
        let new = post(10 + n, 9, 0, 0);
        let id = new.id;
        view.apply(Event::Posted { post: new, is_new_author: false });
        assert_eq!(apply(&mut view, Event::Removed(id)), (3, true), "{n}");
    }
    let new = post(9_999, 9, 0, 0);
    let id = new.id;
    view.apply(Event::Posted { post: new, is_new_author: false });
    assert_eq!(apply(&mut view, Event::Removed(id)), (0, false));
}
