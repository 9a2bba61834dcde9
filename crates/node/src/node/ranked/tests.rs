//! Ranked feeds of random worlds, compared with the definition.

use std::collections::BTreeSet;

use feed::Reaction::{Boost, Favourite};
use feed::{Command, Content, Done, Draft, Handle, Name, PostText, Reaction, Tag, UserRef};
use proptest::prelude::*;
use rank::Feeds;

use super::*;
use crate::{Durability, NodeOptions};

const USERS: u32 = 6;
/// Each user can react to at most as many posts as the view reads for a user.
const POSTS: usize = 8;
const FEED: &str =
    "[feeds.x]\nsources = { following = 100, liked-by-followed = 400 }\nscore = \"likes\"";

#[derive(Clone, Copy, Debug)]
enum Step {
    Follow(u32, u32, bool),
    Block(u32, u32),
    Mute(u32, u32),
    Post(u32, Visibility, bool),
    React(u32, usize, Reaction, bool),
    Delete(usize),
    /// Applies the changes so far to the view.
    Read,
}

fn step() -> impl Strategy<Value = Step> {
    let user = || 0..USERS;
    let visibility = prop_oneof![
        6 => Just(Visibility::Public),
        1 => Just(Visibility::Unlisted),
        1 => Just(Visibility::Followers),
        1 => Just(Visibility::Direct),
    ];
    prop_oneof![
        6 => (user(), user(), prop::bool::weighted(0.9)).prop_map(|(a, b, on)| Step::Follow(a, b, on)),
        1 => (user(), user()).prop_map(|(a, b)| Step::Block(a, b)),
        1 => (user(), user()).prop_map(|(a, b)| Step::Mute(a, b)),
        5 => (user(), visibility, prop::bool::weighted(0.2))
            .prop_map(|(a, v, s)| Step::Post(a, v, s)),
        8 => (user(), 0..POSTS, prop::bool::weighted(0.8))
            .prop_map(|(a, post, on)| Step::React(a, post, Favourite, on)),
        3 => (user(), 0..POSTS).prop_map(|(a, post)| Step::React(a, post, Boost, true)),
        1 => (0..POSTS).prop_map(Step::Delete),
        2 => Just(Step::Read),
    ]
}

struct World {
    node: Node,
    posts: Vec<(PostId, UserId)>,
    data: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut options = NodeOptions::new(data.path());
        options.durability = Durability::Never;
        let node = Node::open(&options).unwrap();
        let mut world = Self { node, posts: Vec::new(), data };
        for user in 0..USERS {
            let (handle, name) = (Handle::parse(&format!("u{user}")).unwrap(), Name::default());
            world.submit(Command::Register { handle, name, bio: Default::default() }).await;
        }
        world
    }

    /// Submits a command; returns `None` if it is refused.
    async fn submit(&mut self, command: Command) -> Option<Done> {
        self.node.submit(command.into()).await.unwrap().outcome.ok()
    }

    async fn run(&mut self, step: Step) {
        let user = |id| UserRef::Id(UserId(id));
        match step {
            Step::Follow(a, b, on) => {
                let (user, other) = (user(a), user(b));
                let command = match on {
                    true => Command::Follow { user, other },
                    false => Command::Unfollow { user, other },
                };
                self.submit(command).await;
            }
            Step::Block(a, b) => {
                self.submit(Command::Block { user: user(a), other: user(b) }).await;
            }
            Step::Mute(a, b) => {
                let (user, other) = (user(a), user(b));
                self.submit(Command::Mute { user, other, mentions: false, time: None }).await;
            }
            Step::Post(a, visibility, sensitive) if self.posts.len() < POSTS => {
                let text = PostText::parse("a post about #gardens").unwrap();
                let content = Content { sensitive, ..Content::of_text(text) };
                let draft = Draft { visibility, ..Draft::of(user(a), content) };
                if let Some(Done::Posted(post)) = self.submit(Command::Publish(draft.into())).await
                {
                    self.posts.push((post, UserId(a)));
                }
            }
            Step::React(a, at, reaction, on) => {
                if let Some((post, _)) = self.posts.get(at).copied() {
                    self.submit(Command::React { user: user(a), post, reaction, on }).await;
                }
            }
            Step::Delete(at) => {
                if let Some((post, _)) = self.posts.get(at).copied() {
                    self.submit(Command::DeletePost { post }).await;
                }
            }
            Step::Post(..) => {}
            Step::Read => self.node.catch_up_ranked(),
        }
    }

    /// Posts that the feed must have for a viewer, with the followed users who reacted, and whether the author is
    /// followed.
    fn expected(&self, viewer: UserId) -> BTreeSet<(PostId, bool, Vec<UserId>)> {
        let facts = self.node.facts();
        let hides = |user: UserId| {
            let blocks = |a, b| facts.blocks(a, b);
            blocks(viewer, user) || blocks(user, viewer) || facts.mute(viewer, user).is_some()
        };
        let reacts = |user, post| {
            let reacts = |reaction| facts.reaction(user, post, reaction).is_some();
            reacts(Favourite) || reacts(Boost)
        };
        let home: Vec<_> = self.node.home_ids(viewer, &Page::newest(100)).items;
        let home: Vec<_> =
            home.into_iter().filter_map(|id| Some(facts.post(id)?.boosted_or(id))).collect();
        let mut expected = BTreeSet::new();
        for (id, author) in self.posts.iter().copied().filter(|(_, author)| *author != viewer) {
            let Some(post) = facts.post(id).filter(|_| !hides(author)) else { continue };
            let follows = facts.follows(viewer, author);
            let is_public = post.visibility == Visibility::Public;
            let is_at_home = home.contains(&id)
                && if follows { post.visibility != Visibility::Direct } else { is_public };
            let liked = |other: &UserId| {
                facts.follows(viewer, *other) && !hides(*other) && reacts(*other, id)
            };
            let likers: Vec<_> = (0..USERS).map(UserId).filter(liked).collect();
            let likers = if is_public { likers } else { Vec::new() };
            let is_liked =
                !likers.is_empty() && !reacts(viewer, id) && (follows || !post.content.sensitive);
            if is_at_home || is_liked {
                expected.insert((id, follows, likers));
            }
        }
        expected
    }

    fn found(&self, feed: &Feed, viewer: UserId) -> BTreeSet<(PostId, bool, Vec<UserId>)> {
        let mut found = BTreeSet::new();
        let mut page = RankedPage { place: None, limit: 3, explains: false };
        loop {
            let (posts, next) = self.node.ranked(viewer, ("x", feed), &page).unwrap();
            assert!(posts.len() <= 3);
            for RankedPost { post, reasons, .. } in posts {
                let likers = reasons.iter().find_map(|reason| match reason {
                    Reason::LikedByFollowed { users, others } => Some((users.clone(), *others)),
                    _ => None,
                });
                let (mut users, others) = likers.unwrap_or_default();
                // Further users are only counted: the test knows who they are.
                let reacted = self.expected(viewer).into_iter().find(|(id, ..)| *id == post);
                if others > 0
                    && let Some((_, _, all)) = reacted
                {
                    assert!(
                        users.iter().all(|user| all.contains(user))
                            && all.len() == users.len() + others as usize
                    );
                    users = all;
                }
                assert!(
                    found.insert((post, reasons.contains(&Reason::Followed), users)),
                    "{post:?} twice"
                );
            }
            match next {
                Some(_) => page.place = next,
                None => return found,
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Part of the changes are loaded from the facts, the others are followed.
    #[test]
    fn a_feed_has_the_posts_and_reasons_of_the_definition(steps in prop::collection::vec(step(), 10..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new().await;
            for step in steps {
                world.run(step).await;
            }
            let feeds = Feeds::parse(FEED).unwrap();
            for viewer in (0..USERS).map(UserId) {
                let found = world.found(feeds.named("x").unwrap(), viewer);
                assert_eq!(found, world.expected(viewer), "for {viewer:?}");
            }
            world.node.close();
        });
    }
}

/// All accounts of the test are young, so three reactions and three replies count, whatever these accounts do.
#[tokio::test]
async fn young_accounts_count_little_whatever_they_do_and_after_a_start() {
    let file = "[feeds.x]\nsources = { following = 9 }\nscore = \"likes + boosts + 10 * replies\"";
    let feeds = Feeds::parse(file).unwrap();
    let mut world = World::new().await;
    world.run(Step::Follow(5, 0, true)).await;
    world.run(Step::Read).await;
    world.run(Step::Post(0, Visibility::Public, false)).await;
    let score = |node: &Node| {
        let page = RankedPage { place: None, limit: 1, explains: true };
        let (posts, _) = node.ranked(UserId(5), ("x", feeds.named("x").unwrap()), &page).unwrap();
        posts[0].explained.unwrap().0
    };
    for on in [true, true, false, true] {
        world.run(Step::React(0, 0, Favourite, on)).await;
    }
    assert_eq!(score(&world.node), 0.0, "the author's own favourite");
    for user in 1..USERS {
        world.run(Step::React(user, 0, Favourite, true)).await;
        world.run(Step::React(user, 0, Boost, true)).await;
        let text = PostText::parse("a reply").unwrap();
        let user = UserRef::Id(UserId(user));
        let draft = Draft { parent: Some(world.posts[0].0), ..Draft::new(user, text) };
        world.submit(Command::Publish(draft.into())).await.unwrap();
    }
    assert_eq!(score(&world.node), 33.0);
    for _ in 0..20 {
        world.run(Step::React(1, 0, Favourite, false)).await;
        world.run(Step::React(1, 0, Favourite, true)).await;
    }
    assert_eq!(score(&world.node), 33.0, "a favourite that is repeated");
    world.node.close();
    let mut options = NodeOptions::new(world.data.path());
    options.durability = Durability::Never;
    drop(world.node);
    let node = Node::open(&options).unwrap();
    assert_eq!(score(&node), 33.0, "after a start");
    node.close();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn readers_read_and_follow_the_view_while_a_new_one_is_loaded() {
    let runtime = runtime();
    let mut world = runtime.block_on(World::new());
    for (a, b) in [(0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (2, 1)] {
        runtime.block_on(world.run(Step::Follow(a, b, true)));
    }
    for user in 0..3 {
        runtime.block_on(world.run(Step::Post(user, Visibility::Public, false)));
    }
    let node = world.node.clone();
    let views = node.views();
    let popular = || {
        views.catch_up_ranked(node.facts(), node.now_ms());
        views.ranked.popular()
    };
    assert_eq!(popular(), []);
    let posts: Vec<_> = world.posts.iter().map(|(post, _)| *post).collect();
    let (world, steps) = (std::cell::RefCell::new(world), std::cell::Cell::new(0));
    // The load asks before each post, and then before each user, whether it must stop. So each change is about a post
    // that is loaded already, or not to be loaded.
    views.load_ranked(node.facts(), node.now_ms(), || {
        let run = |step| runtime.block_on(world.borrow_mut().run(step));
        match steps.replace(steps.get() + 1) {
            1 => {
                run(Step::React(4, 0, Favourite, true));
                assert_eq!(popular(), [posts[0]], "the present view");
            }
            2 => run(Step::React(4, 1, Favourite, true)),
            3 => {
                run(Step::Delete(1));
                run(Step::Post(3, Visibility::Public, false));
                run(Step::React(5, 3, Favourite, true));
            }
            _ => {}
        }
        false
    });
    let new = world.borrow().posts[3].0;
    assert!(views.ranked.group_of(UserId(0)).is_some(), "only the new view has groups");
    let mut found = views.ranked.popular();
    found.sort_unstable();
    assert_eq!(found, [posts[0], new]);
    node.close();
}

#[test]
fn many_changes_during_a_load_are_in_the_new_view() {
    let runtime = runtime();
    let mut world = runtime.block_on(World::new());
    for user in 0..3 {
        runtime.block_on(world.run(Step::Post(user, Visibility::Public, false)));
    }
    let text = || PostText::parse("one of many").unwrap();
    let more = || Command::Publish(Draft::new(UserRef::Id(UserId(5)), text()).into()).into();
    let node = world.node.clone();
    let publish = |count: usize| {
        let posts = (0..count).map(|_| more()).collect();
        runtime.block_on(node.submit_all(posts)).unwrap();
    };
    publish(200);
    let (views, steps) = (node.views(), std::cell::Cell::new(0));
    views.load_ranked(node.facts(), node.now_ms(), || {
        let step = steps.replace(steps.get() + 1);
        // More posts than one user may have followed at a time.
        if step < 100 && step % 10 == 3 {
            publish(30);
        }
        false
    });
    let page = Span::below(None, 1_000).unwrap();
    let all = node.facts().public_posts(feed::post_lists::PublicList::Posts, page);
    let ids: Vec<_> = all.iter().map(|(post, _)| *post).collect();
    assert_eq!(ids.len(), 503);
    let authors = views.ranked.authors(&ids);
    assert!(authors.iter().all(|(_, author)| author.is_some()));
    node.close();
}

#[test]
fn a_post_by_an_author_in_whom_the_user_is_not_interested_leaves_when_it_is_no_longer_at_home() {
    let runtime = runtime();
    let mut world = runtime.block_on(World::new());
    let mut run = |step| runtime.block_on(world.run(step));
    run(Step::Follow(5, 0, true));
    run(Step::Follow(5, 1, true));
    for user in [2, 1] {
        run(Step::Post(user, Visibility::Public, false));
    }
    run(Step::React(0, 0, Boost, true));
    run(Step::React(1, 0, Favourite, true));
    let not = Command::NotInterested {
        user: UserRef::Id(UserId(5)),
        other: UserRef::Id(UserId(2)),
        on: true,
    };
    runtime.block_on(world.submit(not)).unwrap();
    let feeds = "[feeds.x]\nsources = { following = 9, liked-by-followed = 9 }\nscore = \"-age\"";
    let feeds = Feeds::parse(feeds).unwrap();
    let read = |world: &World, place| {
        let page = RankedPage { place, limit: 1, explains: false };
        let found = world.node.ranked(UserId(5), ("x", feeds.named("x").unwrap()), &page);
        let (posts, place) = found.unwrap();
        (posts.iter().map(|found| found.post).collect::<Vec<_>>(), place)
    };
    let (first, place) = read(&world, None);
    assert_eq!((first, read(&world, place).0), (vec![world.posts[1].0], vec![world.posts[0].0]));
    runtime.block_on(world.run(Step::Follow(5, 0, false)));
    assert_eq!(read(&world, place).0, []);
    world.node.close();
}

#[test]
fn the_first_ranking_after_the_load_has_interest_groups() {
    let runtime = runtime();
    let mut world = runtime.block_on(World::new());
    for (a, b) in [(0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (2, 1), (3, 4), (4, 3), (5, 1), (5, 2)] {
        runtime.block_on(world.run(Step::Follow(a, b, true)));
    }
    for user in [0, 1, 2, 3, 4] {
        runtime.block_on(world.run(Step::Post(user, Visibility::Public, false)));
    }
    world.node.load_ranked();
    let feeds = "[feeds.x]\nsources = { groups = 9 }\nscore = \"likes\"";
    let feeds = Feeds::parse(feeds).unwrap();
    let page = RankedPage { place: None, limit: 50, explains: false };
    let feed = feeds.named("x").unwrap();
    let (posts, _) = world.node.ranked(UserId(5), ("x", feed), &page).unwrap();
    let found: BTreeSet<_> = posts.iter().map(|found| found.post).collect();
    assert_eq!(found, world.posts[..3].iter().map(|(post, _)| *post).collect());
    assert!(posts.iter().all(|found| found.reasons.contains(&Reason::Group)), "{posts:?}");
    world.node.close();
}

#[test]
fn a_post_of_an_unfollowed_author_stays_in_a_ranking_only_with_a_followed_hashtag() {
    let runtime = runtime();
    let mut world = runtime.block_on(World::new());
    for user in 0..2 {
        runtime.block_on(world.run(Step::Follow(5, user, true)));
        runtime.block_on(world.run(Step::Post(user, Visibility::Public, false)));
    }
    let feeds = "[feeds.x]\nsources = { following = 9 }\nscore = \"-age\"";
    let feeds = Feeds::parse(feeds).unwrap();
    let read = |world: &World, place| {
        let page = RankedPage { place, limit: 1, explains: false };
        world.node.ranked(UserId(5), ("x", feeds.named("x").unwrap()), &page).unwrap()
    };
    let (_, place) = read(&world, None);
    assert!(place.is_some());
    runtime.block_on(world.run(Step::Follow(5, 0, false)));
    assert!(read(&world, place).0.is_empty());
    let tag = Tag::parse("gardens").unwrap();
    let follow = Command::FollowTag { user: UserRef::Id(UserId(5)), tag, on: true };
    runtime.block_on(world.submit(follow)).unwrap();
    let (posts, _) = read(&world, place);
    assert_eq!((posts[0].post, &posts[0].reasons), (world.posts[0].0, &vec![Reason::AtHome]));
    world.node.close();
}

#[test]
fn a_user_with_many_changes_makes_the_view_skip_none_of_others() {
    let runtime = runtime();
    let mut world = runtime.block_on(World::new());
    for user in 0..2 {
        runtime.block_on(world.run(Step::Post(user, Visibility::Public, false)));
    }
    let node = world.node.clone();
    let catch_up = || node.views().catch_up_ranked(node.facts(), node.now_ms());
    catch_up();
    let post = world.posts[0].0;
    let toggle = |n| {
        let (user, reaction) = (UserRef::Id(UserId(2)), Favourite);
        Command::React { user, post, reaction, on: n % 2 == 0 }.into()
    };
    runtime.block_on(node.submit_all((0..3_000).map(toggle).collect())).unwrap();
    runtime.block_on(world.run(Step::React(3, 1, Favourite, true)));
    catch_up();
    assert_eq!(node.views().ranked.popular(), [world.posts[1].0]);
    node.close();
}
