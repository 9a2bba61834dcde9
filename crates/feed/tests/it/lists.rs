//! Lists: their commands, and timelines that equal the definition, computed naively.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{World, block, follow, id, mute, page_of, register, unfollow, unmute};
use feed::limits::{LIST_CHANGED_MAX, LIST_MEMBERS_MAX, LISTS_MAX};
use feed::{
    Command, Cursor, Done, Draft, List, ListChange, ListCommand, ListId, ListReplies, ListTimeline,
    ListTitle, Outcome, Page, PageOf, PostId, PostText, Reaction, Refusal, UserId, Viewer,
    Visibility, is_in_list, write,
};
use proptest::prelude::*;
use rows::{NameTable, Rows as _};

fn list(user: u32, change: ListChange) -> Command {
    Command::List(Box::new(ListCommand { user: id(user), change }))
}

fn title(text: &str) -> ListTitle {
    ListTitle::parse(text).unwrap()
}

fn create(user: u32, replies: ListReplies) -> Command {
    list(user, ListChange::Create(List { title: title("a list"), replies }))
}

fn users(users: &[u32]) -> Vec<UserId> {
    users.iter().copied().map(UserId).collect()
}

fn add(user: u32, to: ListId, others: &[u32]) -> Command {
    list(user, ListChange::Add { list: to, users: users(others) })
}

fn remove(user: u32, from: ListId, others: &[u32]) -> Command {
    list(user, ListChange::Remove { list: from, users: users(others) })
}

fn created(outcome: Outcome) -> ListId {
    let Ok(Done::ListSaved(list)) = outcome else { panic!("{outcome:?}") };
    list
}

/// Creates a world where Ada follows Bob and Cy, and has a list with Bob.
fn world() -> (World, ListId) {
    let mut world = World::new();
    world.run(register("dan")).unwrap();
    for other in [1, 2] {
        world.run(follow(id(0), id(other))).unwrap();
    }
    let list = created(world.run(create(0, ListReplies::List)));
    assert_eq!(world.run(add(0, list, &[1])), Ok(Done::ListMembersChanged));
    (world, list)
}

#[test]
fn a_list_has_users_whom_its_owner_follows_and_is_nobody_elses() {
    let (mut world, of_ada) = world();
    let edit = |title, replies| ListChange::Edit { list: of_ada, title, replies };
    for (command, outcome, members) in [
        (add(0, of_ada, &[1, 2, 2]), Ok(Done::ListMembersChanged), &[1, 2][..]),
        (add(0, of_ada, &[]), Ok(Done::ListMembersChanged), &[1, 2]),
        (add(0, of_ada, &[3]), Err(Refusal::NotFollowed), &[1, 2]),
        (add(0, of_ada, &[0]), Err(Refusal::NotFollowed), &[1, 2]),
        (add(0, of_ada, &[9]), Err(Refusal::OtherNotFound), &[1, 2]),
        (add(1, of_ada, &[0]), Err(Refusal::ListNotFound), &[1, 2]),
        (add(9, of_ada, &[0]), Err(Refusal::UserNotFound), &[1, 2]),
        (remove(1, of_ada, &[1]), Err(Refusal::ListNotFound), &[1, 2]),
        (remove(0, of_ada, &[2, 3, 9]), Ok(Done::ListMembersChanged), &[1]),
        (list(1, ListChange::Delete { list: of_ada }), Err(Refusal::ListNotFound), &[1]),
        (list(1, edit(None, None)), Err(Refusal::ListNotFound), &[1]),
        (list(0, edit(Some(title("new")), None)), Ok(Done::ListSaved(of_ada)), &[1]),
        (list(0, edit(None, Some(ListReplies::None))), Ok(Done::ListSaved(of_ada)), &[1]),
    ] {
        let before = world.snapshot();
        assert_eq!(world.run(command.clone()), outcome, "{command:?}");
        assert_eq!(world.facts().list_members(UserId(0), of_ada), users(members), "{command:?}");
        assert_eq!(world.effects, []);
        if outcome.is_err() {
            assert_eq!(world.snapshot(), before, "{command:?}");
        }
    }
    let found = world.facts().list(UserId(0), of_ada).unwrap();
    assert_eq!(found, List { title: title("new"), replies: ListReplies::None });
    assert_eq!(world.facts().lists_with(UserId(0), UserId(1)), [of_ada]);
    assert_eq!(world.run(list(0, ListChange::Delete { list: of_ada })), Ok(Done::ListDeleted));
    check_no_lists(&world);
}

fn check_no_lists(world: &World) {
    for table in [NameTable::List, NameTable::ListMember, NameTable::ListedUser] {
        assert_eq!(world.rows.first_name(table, &[]), None, "{table:?}");
    }
}

#[test]
fn whom_the_owner_follows_no_longer_is_in_no_list() {
    let delete = |user| Command::DeleteUser { user: id(user) };
    for command in [unfollow(id(0), id(1)), block(id(0), id(1)), block(id(1), id(0)), delete(1)] {
        let (mut world, one) = world();
        let two = created(world.run(create(0, ListReplies::None)));
        world.run(add(0, two, &[1, 2])).unwrap();
        let bobs = created(world.run(create(1, ListReplies::None)));
        world.run(follow(id(1), id(0))).unwrap();
        world.run(add(1, bobs, &[0])).unwrap();
        world.run(command.clone()).unwrap();
        if command == delete(1) {
            world.erase(1);
            assert_eq!(world.facts().lists(UserId(1)), []);
        }
        let facts = world.facts();
        assert_eq!(facts.list_members(UserId(0), one), [], "{command:?}");
        assert_eq!(facts.list_members(UserId(0), two), [UserId(2)], "{command:?}");
        assert_eq!(facts.lists_with(UserId(0), UserId(1)), [], "{command:?}");
        let stays = command == unfollow(id(0), id(1));
        assert_eq!(facts.is_list_member(UserId(1), bobs, UserId(0)), stays, "{command:?}");
        // A new follow does not restore memberships.
        if stays {
            world.run(follow(id(0), id(1))).unwrap();
            assert_eq!(world.facts().list_members(UserId(0), one), []);
        }
    }
    let (mut world, _) = world();
    world.run(delete(0)).unwrap();
    world.erase(0);
    check_no_lists(&world);
}

#[test]
fn the_numbers_of_lists_and_of_members_are_bounded() {
    let (mut world, first) = world();
    for _ in 1..LISTS_MAX {
        created(world.run(create(0, ListReplies::List)));
    }
    assert_eq!(world.run(create(0, ListReplies::List)), Err(Refusal::TooManyLists));
    assert_eq!(world.facts().lists(UserId(0)).len(), LISTS_MAX);
    for other in 100..99 + LIST_MEMBERS_MAX as u32 {
        write::list_member(&mut world.rows, UserId(0), first, UserId(other), true);
    }
    assert_eq!(world.facts().list_members(UserId(0), first).len(), LIST_MEMBERS_MAX);
    assert_eq!(world.run(add(0, first, &[1])), Ok(Done::ListMembersChanged));
    assert_eq!(world.run(add(0, first, &[1, 2])), Err(Refusal::ListFull));
    assert_eq!(world.run(remove(0, first, &[100])), Ok(Done::ListMembersChanged));
    assert_eq!(world.run(add(0, first, &[1, 2])), Ok(Done::ListMembersChanged));
    // A command changes at most `LIST_CHANGED_MAX` members and ignores the rest, because its cost covers no more.
    let many: Vec<u32> = (100..101 + LIST_CHANGED_MAX as u32).collect();
    assert_eq!(world.run(remove(0, first, &many)), Ok(Done::ListMembersChanged));
    assert!(world.facts().is_list_member(UserId(0), first, UserId(100 + LIST_CHANGED_MAX as u32)));
}

const USERS: u32 = 6;

#[derive(Clone, Debug)]
enum Step {
    Follow(u32, bool),
    Mute(u32, bool),
    Member(u32, bool),
    Replies(usize),
    Post(u32, Option<u32>, Option<u32>, Visibility),
    Boost(u32, usize, bool),
    Delete(usize),
    /// Deletes a user; with `true` also removes all rows.
    Leave(u32, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let user = || 0..USERS;
    let other = || 1..USERS;
    prop_oneof![
        3 => (other(), prop::bool::weighted(0.85)).prop_map(|(other, on)| Step::Follow(other, on)),
        1 => (other(), any::<bool>()).prop_map(|(other, on)| Step::Mute(other, on)),
        5 => (other(), prop::bool::weighted(0.85)).prop_map(|(other, on)| Step::Member(other, on)),
        1 => (0..3_usize).prop_map(Step::Replies),
        8 => (user(), prop::option::of(user()), prop::option::of(user()), 0..6_usize)
            .prop_map(|(author, to, named, at)| {
                Step::Post(author, to, named, Visibility::ALL[at.saturating_sub(2)])
            }),
        5 => (user(), any::<usize>(), prop::bool::weighted(0.8))
            .prop_map(|(user, at, on)| Step::Boost(user, at, on)),
        1 => any::<usize>().prop_map(Step::Delete),
        1 => (other(), any::<bool>()).prop_map(|(other, whole)| Step::Leave(other, whole)),
    ]
}

/// Simple model of the list of user 0, and of all posts.
#[derive(Default)]
struct History {
    follows: BTreeSet<u32>,
    mutes: BTreeSet<u32>,
    members: BTreeSet<u32>,
    replies: ListReplies,
    posts: BTreeMap<PostId, Posted>,
    deleted: BTreeSet<u32>,
}

#[derive(Clone)]
struct Posted {
    author: u32,
    to: Option<u32>,
    /// Whether the post is for others or mentions user 0.
    is_visible: bool,
    /// Boosted post, and its earlier boosters.
    boost: Option<(PostId, Vec<u32>)>,
}

impl History {
    /// Timeline by its definition, newest first. The whole history happens within a day.
    fn timeline(&self) -> Vec<PostId> {
        let is_member = |user: u32| self.members.contains(&user) && !self.mutes.contains(&user);
        let is_followed = |user: u32| self.follows.contains(&user) && !self.mutes.contains(&user);
        let shown = |post: &Posted| {
            if let Some((boosted, earlier)) = &post.boost {
                // The boosted post is missing if its author is being erased.
                let Some(boosted) = self.posts.get(boosted) else { return false };
                let is_no_reply = boosted.to.is_none_or(|to| to == boosted.author);
                let is_known = is_no_reply && is_member(boosted.author);
                return !self.mutes.contains(&boosted.author)
                    && !is_known
                    && !earlier.iter().any(|user| is_member(*user));
            }
            let is_wanted = |to: u32| match self.replies {
                _ if to == 0 || to == post.author => true,
                ListReplies::List => is_member(to),
                ListReplies::Followed => is_followed(to),
                ListReplies::None => false,
            };
            post.is_visible && post.to.is_none_or(is_wanted)
        };
        let all = self.posts.iter().rev();
        let shown = all.filter(|(_, post)| is_member(post.author) && shown(post));
        shown.map(|(id, _)| *id).collect()
    }

    fn page(&self, page: &Page) -> PageOf<PostId> {
        page_of(self.timeline(), page)
    }

    /// Whether a step is by or about a deleted user.
    fn is_past(&self, step: &Step) -> bool {
        let is_deleted = |user: &u32| self.deleted.contains(user);
        match step {
            Step::Follow(user, _) | Step::Mute(user, _) | Step::Member(user, _) => is_deleted(user),
            Step::Post(author, to, named, _) => {
                is_deleted(author) || [to, named].into_iter().flatten().any(is_deleted)
            }
            Step::Boost(user, ..) | Step::Leave(user, _) => is_deleted(user),
            Step::Replies(_) | Step::Delete(_) => false,
        }
    }

    fn boost(&mut self, id: PostId, user: u32, post: PostId) {
        let others =
            self.posts.values().filter_map(|other| Some((other.author, other.boost.as_ref()?)));
        let of_post = others.filter(|(_, (boosted, _))| *boosted == post);
        let earlier = of_post.map(|(booster, _)| booster).collect();
        let boost = Some((post, earlier));
        self.posts.insert(id, Posted { author: user, to: None, is_visible: true, boost });
    }
}

/// Changes follows, mutes or the list of the owner. Returns false for steps that change posts.
fn relation(world: &mut World, of_user: ListId, history: &mut History, step: &Step) -> bool {
    match *step {
        Step::Follow(other, true) => {
            world.run(follow(id(0), id(other))).unwrap();
            history.follows.insert(other);
        }
        Step::Follow(other, false) => {
            world.run(unfollow(id(0), id(other))).unwrap();
            history.follows.remove(&other);
            history.members.remove(&other);
        }
        Step::Mute(other, true) => {
            world.run(mute(0, other, None)).unwrap();
            history.mutes.insert(other);
        }
        Step::Mute(other, false) => {
            world.run(unmute(0, other)).unwrap();
            history.mutes.remove(&other);
        }
        Step::Member(other, true) => {
            let is_followed = history.follows.contains(&other);
            assert_eq!(world.run(add(0, of_user, &[other])).is_ok(), is_followed);
            history.members.extend(is_followed.then_some(other));
        }
        Step::Member(other, false) => {
            world.run(remove(0, of_user, &[other])).unwrap();
            history.members.remove(&other);
        }
        Step::Replies(at) => {
            let replies = Some(ListReplies::ALL[at]);
            world.run(list(0, ListChange::Edit { list: of_user, title: None, replies })).unwrap();
            history.replies = ListReplies::ALL[at];
        }
        Step::Leave(other, whole) => {
            world.run(Command::DeleteUser { user: id(other) }).unwrap();
            history.deleted.insert(other);
            history.follows.remove(&other);
            history.members.remove(&other);
            let of_other = |(id, post): (&PostId, &Posted)| (post.author == other).then_some(*id);
            let gone: BTreeSet<PostId> = history.posts.iter().filter_map(of_other).collect();
            history.posts.retain(|id, _| !gone.contains(id));
            if whole {
                world.erase(other);
                world.sweep_reactions();
                let is_left = |boost: &(PostId, Vec<u32>)| !gone.contains(&boost.0);
                history.posts.retain(|_, post| post.boost.as_ref().is_none_or(is_left));
            }
        }
        Step::Post(..) | Step::Boost(..) | Step::Delete(_) => return false,
    }
    true
}

fn change_posts(world: &mut World, history: &mut History, step: &Step) {
    let names = ["ada", "bob", "cy", "u3", "u4", "u5"];
    let picked = |at: usize| {
        let of_texts = history.posts.iter().filter(|(_, post)| post.boost.is_none());
        let of_texts: Vec<PostId> = of_texts.map(|(id, _)| *id).collect();
        of_texts.get(at % of_texts.len().max(1)).copied()
    };
    match *step {
        Step::Post(author, to, named, visibility) => {
            let name = |user: u32| format!("@{} ", names[user as usize]);
            let to_text = to.map(name).unwrap_or_default();
            let text = format!("{to_text}hello {}", named.map(name).unwrap_or_default());
            let text = PostText::parse(&text).unwrap();
            // In posts of the 2014 report, the text decides about the user replied to.
            let is_public = visibility == Visibility::Public;
            let new = Draft { visibility, ..Draft::new(id(author), text.clone()) };
            let outcome = world.run(match is_public {
                true => Command::post(id(author), text),
                false => Command::Publish(Box::new(new)),
            });
            let Ok(Done::Posted(post)) = outcome else { panic!("{outcome:?}") };
            let is_visible = visibility != Visibility::Direct || [to, named].contains(&Some(0));
            let to = to.filter(|_| is_public);
            history.posts.insert(post, Posted { author, to, is_visible, boost: None });
        }
        Step::Boost(user, at, on) => {
            let Some(post) = picked(at) else { return };
            let reaction = Reaction::Boost;
            let before = world.facts().reaction(UserId(user), post, reaction);
            let boost = Command::React { user: id(user), post, reaction, on };
            if world.run(boost).is_err() {
                return;
            }
            match (before, world.facts().reaction(UserId(user), post, reaction)) {
                (None, Some(boost)) => history.boost(PostId(boost), user, post),
                (Some(boost), None) => {
                    history.posts.remove(&PostId(boost));
                    let boosts = history.posts.values_mut().filter_map(|it| it.boost.as_mut());
                    for (_, earlier) in boosts.filter(|(boosted, _)| *boosted == post) {
                        earlier.retain(|other| *other != user);
                    }
                }
                _ => {}
            }
        }
        Step::Delete(at) => {
            let Some(post) = picked(at) else { return };
            world.run(Command::DeletePost { post }).unwrap();
            world.sweep_reactions();
            history.posts.retain(|id, other| {
                *id != post && other.boost.as_ref().is_none_or(|(boosted, _)| *boosted != post)
            });
        }
        Step::Follow(..) | Step::Mute(..) | Step::Member(..) | Step::Replies(_) => {}
        Step::Leave(..) => {}
    }
}

fn run(steps: &[Step]) -> (World, ListId, History) {
    let mut world = World::new();
    for user in 3..USERS {
        world.run(register(&format!("u{user}"))).unwrap();
    }
    let of_user = created(world.run(create(0, ListReplies::List)));
    let mut history = History::default();
    for step in steps {
        if history.is_past(step) {
            continue;
        }
        if !relation(&mut world, of_user, &mut history, step) {
            change_posts(&mut world, &mut history, step);
        }
    }
    (world, of_user, history)
}

proptest! {
    #[test]
    fn a_page_of_a_list_is_that_of_its_definition(
        steps in prop::collection::vec(step(), 0..120),
        limit in 1..12_usize,
    ) {
        let (world, of_user, history) = run(&steps);
        let facts = world.facts();
        let timeline = ListTimeline::new(facts, UserId(0), of_user).unwrap();
        let all = history.timeline();
        let around = all.iter().flat_map(|post| [Cursor::Before(*post), Cursor::After(*post)]);
        let viewer = Viewer::new(facts, Some(UserId(0)));
        for cursor in around.chain([Cursor::Newest, Cursor::After(PostId(0))]) {
            let page = Page::at(cursor, limit);
            prop_assert_eq!(timeline.posts(&viewer, &page), history.page(&page), "{:?}", page);
        }
        for (post, posted) in &history.posts {
            let author = UserId(posted.author);
            let span = feed::Span { low: post.0, high: post.0, ..feed::Span::ALL };
            let listed = facts.posts_by(author, span)[0];
            let shown = is_in_list(&viewer, (UserId(0), of_user), author, listed);
            prop_assert_eq!(shown, all.contains(post), "{:?}", post);
        }
    }
}

#[test]
fn only_the_owner_has_the_timeline_of_a_list() {
    let (world, of_ada) = world();
    assert!(ListTimeline::new(world.facts(), UserId(0), of_ada).is_some());
    assert!(ListTimeline::new(world.facts(), UserId(1), of_ada).is_none());
    assert!(ListTimeline::new(world.facts(), UserId(0), ListId(1)).is_none());
}
