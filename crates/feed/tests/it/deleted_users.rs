//! Deleting users: every read looks at once as if the user had undone everything by hand, and in the end no row is
//! left, regardless of the order of removal.

use crate::support;
use crate::support::{
    World, befriend, block, edit_user, follow, gather, handle, id, mute, note, post, post_story,
    register, unblock, unfollow, unfriend, unmute, view,
};
use feed::thread::{ancestors, descendants};
use feed::{
    Command, Counts, Done, Draft, Effect, ErasurePhase, Facts, Idempotency, Listed, Name, Outcome,
    Page, Patch, Post, PostChange, PostId, PostText, ProfileFields, Refusal, Rows, SetTable, Span,
    StampedCommand, StoryChange, StoryId, Txn, User, UserChange, UserEdit, UserId, Viewer,
    Visibility, apply, limits,
};
use proptest::prelude::*;
use rows::{NameTable, PointTable, Scan as _, Table};
use testkit::MemoryRows;

const USERS: u32 = 5;

fn delete(user: u32) -> Command {
    Command::DeleteUser { user: id(user) }
}

/// Removes the first rows that are left of a deleted user. Returns false at the end.
fn erase(world: &mut World) -> bool {
    let Some(user) = world.facts().erasing().first().copied() else { return false };
    let (mut phase, mut from) = (ErasurePhase::first(), 0);
    while phase != ErasurePhase::LAST {
        if let Some(first) = world.facts().items_in_phase(user, phase, 0, 1).first() {
            from = *first;
            break;
        }
        phase = phase.next();
    }
    assert_eq!(world.run(Command::EraseUser { user, phase, from }), Ok(Done::DueDone));
    true
}

fn erase_all(world: &mut World) {
    while erase(world) {}
}

/// Creates a world where Ada has a post, a story, a follow, a follower, a friend, a mention and a view.
fn busy() -> (World, PostId, PostId, StoryId) {
    let mut world = World::new();
    for command in [
        follow(id(0), id(1)),
        follow(id(1), id(0)),
        follow(id(1), id(2)),
        befriend(id(0), id(1)),
        befriend(id(2), id(1)),
        // Blocks and mutes by Ada and of Ada, and one of each between other users.
        mute(1, 0, Some(9)),
        mute(0, 1, Some(9)),
        mute(1, 2, None),
        register("dan"),
        block(id(0), id(3)),
        block(id(3), id(0)),
        block(id(1), id(3)),
    ] {
        world.run(command).unwrap();
    }
    let adas = world.post(0, "hello @bob");
    let bobs = world.post(1, "hello @ada and @cy");
    let story = world.post_story(0, 100);
    let seen = world.post_story(1, 100);
    world.run(view(seen, 0)).unwrap();
    world.run(view(seen, 2)).unwrap();
    (world, adas, bobs, story)
}

#[test]
fn a_deleted_user_and_what_they_made_are_gone_at_once() {
    let (mut world, adas, bobs, story) = busy();
    assert_eq!(world.run(delete(0)), Ok(Done::UserDeleted));
    assert_eq!(world.effects, [Effect::User { user: UserId(0), change: UserChange::Deleted }]);
    let facts = world.facts();
    assert!(!facts.exists(UserId(0)) && facts.exists(UserId(1)));
    assert_eq!(facts.user(UserId(0)), None);
    assert_eq!(facts.resolve(&handle("ada")), None);
    assert_eq!((facts.post(adas), facts.has_post(adas)), (None, false));
    assert_eq!(facts.posts_by(UserId(0), Span::ALL), []);
    let (posts, next) = facts.posts_before(PostId(u64::MAX), 2);
    let (older, end) = facts.posts_before(next.unwrap(), 2);
    let posts: Vec<_> = posts.into_iter().chain(older).collect();
    let posts: Vec<_> = posts.into_iter().map(|loaded| (loaded.author, loaded.posted)).collect();
    assert_eq!(posts, [(UserId(1), (bobs, Listed::default()))], "hidden posts count as rows");
    assert_eq!(end, None);
    assert_eq!(facts.story(story), None);
    let totals = facts.totals();
    assert_eq!((totals.posts, totals.follows, totals.friendships), (1, 1, 1));
    let bob =
        Counts { posts: 1, following: 1, friends: 1, blocks: 1, mutes: 1, ..Counts::default() };
    assert_eq!(facts.counts(UserId(1)), bob);
    for limit in [1, 2, usize::MAX] {
        let span = Span { limit, ..Span::ALL };
        assert_eq!(facts.users_in(SetTable::Following, UserId(1), span), [UserId(2)]);
        assert_eq!(facts.users_in(SetTable::Friends, UserId(1), span), [UserId(2)]);
    }
    assert!(facts.post(bobs).unwrap().mentions.contains(&UserId(0)), "as the text does");
    let text = || PostText::parse("hi").unwrap();
    let edit = edit_user(UserEdit::new(id(0)));
    let reply =
        Command::Publish(Box::new(Draft { parent: Some(adas), ..Draft::new(id(1), text()) }));
    for (command, refusal) in [
        (delete(0), Refusal::UserNotFound),
        (Command::DeleteUser { user: handle("ada") }, Refusal::UserNotFound),
        (register("ada"), Refusal::HandleTaken),
        (edit, Refusal::UserNotFound),
        (post(0, "back"), Refusal::UserNotFound),
        (follow(id(2), id(0)), Refusal::OtherNotFound),
        (follow(handle("ada"), id(2)), Refusal::UserNotFound),
        (unfollow(id(1), id(0)), Refusal::OtherNotFound),
        (befriend(id(2), id(0)), Refusal::OtherNotFound),
        (unfriend(id(1), id(0)), Refusal::OtherNotFound),
        (post_story(0, "back", 10), Refusal::UserNotFound),
        (view(story, 1), Refusal::StoryNotFound),
        (Command::DeleteStory { story }, Refusal::StoryNotFound),
        (Command::DeletePost { post: adas }, Refusal::PostNotFound),
        (Command::edit(adas, Patch::of_text(text())), Refusal::PostNotFound),
        (reply, Refusal::ParentNotFound),
    ] {
        let before = world.snapshot();
        assert_eq!(world.run(command.clone()), Err(refusal), "{command:?}");
        assert_eq!(world.snapshot(), before, "{command:?}");
    }
    let mention = world.post(1, "@ada are you there");
    let mention = world.facts().post(mention).unwrap();
    assert_eq!((mention.reply_to, mention.mentions), (None, vec![]), "nobody is mentioned");
}

/// Both users are deleted while relations with the other are still stored.
#[test]
fn no_row_is_left_in_the_end_but_the_handle() {
    let (mut world, adas, _, story) = busy();
    let edit = UserEdit {
        name: Some(Name::parse("Ada L.").unwrap()),
        fields: Some(ProfileFields::parse([("Web", "a.example")]).unwrap()),
        bot: Some(true),
        visibility: Some(Visibility::Followers),
        ..UserEdit::new(id(0))
    };
    world.run(edit_user(edit)).unwrap();
    world.run(support::mark(0, 7, None)).unwrap();
    for (user, other) in [(0, 0), (0, 2), (2, 0)] {
        world.run(note(user, other, "a note")).unwrap();
    }
    for (user, other) in [(0, 2), (2, 0)] {
        world.run(support::lock(other, true)).unwrap();
        world.run(unfollow(id(user), id(other))).unwrap();
        world.run(follow(id(user), id(other))).unwrap();
    }
    world.run(delete(0)).unwrap();
    world.run(delete(1)).unwrap();
    let totals = world.rows.totals();
    assert_eq!((totals.posts, totals.follows, totals.friendships), (0, 0, 0));
    let mut effects = Vec::new();
    while erase(&mut world) {
        effects.append(&mut world.effects);
    }
    let (author, user, change) = (UserId(0), UserId(1), PostChange::Deleted);
    let gone = [
        Effect::Mention { post: adas, author, user, change },
        Effect::Story { story, author, change: StoryChange::Gone },
    ];
    assert!(gone.iter().all(|effect| effects.contains(effect)), "{effects:?}");
    world.now_ms += 2_000;
    world.sweep();
    check_erased(&world.rows, UserId(0));
    check_erased(&world.rows, UserId(1));
    let left = world.facts().stored_user(UserId(0)).unwrap();
    assert_eq!(left, User::of(left.handle.clone(), left.registered), "nothing but the handle");
    assert_eq!(world.facts().counts(UserId(2)), Counts::default());
    let late = Command::EraseUser { user: UserId(0), phase: ErasurePhase::LAST, from: 0 };
    let before = world.snapshot();
    assert_eq!(world.run(late), Ok(Done::NotDue));
    assert_eq!(world.snapshot(), before);
}

#[test]
fn a_late_erasure_does_not_move_the_progress_back() {
    let mut world = World::new();
    world.run(delete(0)).unwrap();
    let erase = |phase, from| Command::EraseUser { user: UserId(0), phase, from };
    let [stories, lists, following] = [
        Table::Set(SetTable::AuthorStories),
        Table::Name(NameTable::List),
        Table::Set(SetTable::Following),
    ]
    .map(ErasurePhase::of);
    // Phases are compared in the order of removal, not of tags.
    world.run(erase(lists, 5)).unwrap();
    let before = world.snapshot();
    for (phase, from) in [(lists, 4), (ErasurePhase::first(), 9), (stories, u64::MAX)] {
        assert_eq!(world.run(erase(phase, from)), Ok(Done::NotDue), "{phase:?} {from}");
        assert_eq!(world.snapshot(), before);
    }
    for (phase, from) in [(lists, 5), (lists, 6), (following, 0)] {
        assert_eq!(world.run(erase(phase, from)), Ok(Done::DueDone), "{phase:?} {from}");
    }
}

#[test]
fn a_retry_of_a_deletion_returns_the_first_result() {
    let mut world = World::new();
    let key = Some(Idempotency { key: [1; 16], content: [1; 8] });
    let first = world.apply(Command::DeleteUser { user: handle("ada") }, key);
    let again = world.apply(Command::DeleteUser { user: handle("ada") }, key);
    assert_eq!((first.outcome, first.replayed), (Ok(Done::UserDeleted), false));
    assert_eq!((again.outcome, again.replayed), (Ok(Done::UserDeleted), true));
    assert_eq!(world.rows.totals().users_deleted, 1);
}

#[test]
fn only_so_many_deleted_users_may_have_rows_left() {
    let mut world = World::new();
    for user in 3..=limits::ERASING_USERS_MAX {
        world.run(register(&format!("u{user}"))).unwrap();
    }
    for user in 1..=limits::ERASING_USERS_MAX {
        world.run(delete(user)).unwrap();
    }
    let before = world.snapshot();
    assert_eq!(world.run(delete(0)), Err(Refusal::TooManyDeletions));
    assert_eq!(world.snapshot(), before);
    assert!(erase(&mut world));
    assert_eq!(world.run(delete(0)), Ok(Done::UserDeleted));
}

fn check_erased(rows: &MemoryRows, user: UserId) {
    let number = u64::from(user.0);
    assert!(Facts::new(rows).is_deleted(user) && !Facts::new(rows).has_rows_left(user));
    for other in 0..USERS {
        let note = Facts::new(rows).note(user, UserId(other));
        assert_eq!((note, Facts::new(rows).note(UserId(other), user)), (None, None));
    }
    for table in [SetTable::Notes, SetTable::NotedBy, SetTable::Requested, SetTable::FollowRequests]
    {
        let rows = rows.members_from(table, (0, 0), usize::MAX).0;
        assert!(rows.iter().all(|(owner, item, _)| *owner != number && *item != number));
    }
    for table in [PointTable::Counts, PointTable::NoticeState, PointTable::Markers] {
        assert_eq!(rows.point(table, number), None, "{table:?}");
    }
    let lists = SetTable::ALL.into_iter().filter(|table| table.has_dense_owners());
    for table in lists.filter(|table| *table != SetTable::DeletedUsers) {
        assert_eq!(rows.members(table, number, Span::ALL), [], "{table:?}");
        // The items of `LockedUsers` are not users.
        for other in (0..u64::from(USERS)).filter(|_| table != SetTable::LockedUsers) {
            assert_eq!(rows.member(table, other, number), None, "{table:?} of {other}");
        }
    }
    rows.each_point(PointTable::Post, &mut |_, row| {
        assert_ne!(rows::decode::<Post>(row).author, user);
    });
    rows.each_point(PointTable::Story, &mut |id, _| {
        let views = Facts::new(rows).story_views(StoryId(id), Span::ALL);
        assert!(views.iter().all(|(viewer, _)| *viewer != user));
    });
}

#[derive(Clone, Debug)]
enum Step {
    Follow(u32, u32, bool),
    Befriend(u32, u32, bool),
    Block(u32, u32, bool),
    Mute(u32, u32, Option<u64>),
    Unmute(u32, u32),
    Note(u32, u32, &'static str),
    Lock(u32, bool),
    Post(u32, Option<u32>),
    Reply(u32, usize),
    DeletePost(usize),
    Story(u32),
    View(usize, u32),
    Sweep,
    Delete(u32),
    Erase(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let user = || 0..USERS;
    prop_oneof![
        5 => (user(), user(), prop::bool::weighted(0.8)).prop_map(|(a, b, on)| Step::Follow(a, b, on)),
        4 => (user(), user(), prop::bool::weighted(0.8)).prop_map(|(a, b, on)| Step::Befriend(a, b, on)),
        2 => (user(), user(), prop::bool::weighted(0.5)).prop_map(|(a, b, on)| Step::Block(a, b, on)),
        2 => (user(), user(), prop::option::of(1..9_u64)).prop_map(|(a, b, s)| Step::Mute(a, b, s)),
        1 => (user(), user()).prop_map(|(a, b)| Step::Unmute(a, b)),
        3 => (user(), user(), prop::sample::select(vec!["", "a", "b"])).prop_map(|(a, b, text)| Step::Note(a, b, text)),
        2 => (user(), any::<bool>()).prop_map(|(a, on)| Step::Lock(a, on)),
        4 => (user(), prop::option::of(user())).prop_map(|(a, to)| Step::Post(a, to)),
        4 => (user(), 0..1_000_usize).prop_map(|(a, at)| Step::Reply(a, at)),
        1 => (0..1_000_usize).prop_map(Step::DeletePost),
        3 => user().prop_map(Step::Story),
        3 => (0..1_000_usize, user()).prop_map(|(at, viewer)| Step::View(at, viewer)),
        1 => Just(Step::Sweep),
        1 => user().prop_map(Step::Delete),
        2 => (1..4_usize).prop_map(Step::Erase),
    ]
}

/// The same history in two worlds: one deletes users; in the other, they undo everything by hand.
struct Worlds {
    deleting: World,
    undoing: World,
    alive: Vec<u32>,
    posts: Vec<PostId>,
    stories: Vec<StoryId>,
}

impl Worlds {
    fn new() -> Self {
        let (mut deleting, mut undoing) = (World::new(), World::new());
        for user in 3..USERS {
            let register = register(&format!("u{user}"));
            assert_eq!(deleting.run(register.clone()), undoing.run(register));
        }
        let alive = (0..USERS).collect();
        Self { deleting, undoing, alive, posts: Vec::new(), stories: Vec::new() }
    }

    fn both(&mut self, command: Command) -> Outcome {
        let outcome = self.deleting.run(command.clone());
        assert_eq!(self.undoing.run(command), outcome);
        outcome
    }

    fn picked<T: Copy>(items: &[T], at: usize) -> Option<T> {
        items.get(at % items.len().max(1)).copied()
    }

    fn take(&mut self, step: &Step) {
        let handles = ["ada", "bob", "cy", "u3", "u4"];
        let exists = |user: &u32| self.alive.contains(user);
        match *step {
            Step::Follow(a, b, on) if exists(&a) && exists(&b) => {
                let set = if on { follow } else { unfollow };
                let _ = self.both(set(id(a), id(b)));
            }
            Step::Befriend(a, b, on) if exists(&a) && exists(&b) => {
                let set = if on { befriend } else { unfriend };
                let _ = self.both(set(id(a), id(b)));
            }
            Step::Block(a, b, on) if exists(&a) && exists(&b) => {
                let set = if on { block } else { unblock };
                let _ = self.both(set(id(a), id(b)));
            }
            Step::Mute(a, b, secs) if exists(&a) && exists(&b) => {
                let _ = self.both(mute(a, b, secs));
            }
            Step::Unmute(a, b) if exists(&a) && exists(&b) => drop(self.both(unmute(a, b))),
            Step::Note(a, b, text) if exists(&a) && exists(&b) => drop(self.both(note(a, b, text))),
            Step::Lock(a, on) if exists(&a) => drop(self.both(support::lock(a, on))),
            // A deleted user could still be mentioned in the other world.
            Step::Post(author, to) if exists(&author) && to.as_ref().is_none_or(exists) => {
                let text =
                    to.map_or("hi".into(), |to| format!("@{} hi #tag", handles[to as usize]));
                let Ok(Done::Posted(id)) = self.both(post(author, &text)) else { panic!("posted") };
                self.posts.push(id);
            }
            Step::Reply(author, at) if exists(&author) => self.reply(author, at),
            Step::DeletePost(at) => {
                if let Some(post) = Self::picked(&self.posts, at) {
                    let _ = self.both(Command::DeletePost { post });
                }
            }
            Step::Story(author) if exists(&author) => {
                let story = self.both(post_story(author, "story", 3_600));
                let Ok(Done::StoryPosted { story, .. }) = story else { panic!("{story:?}") };
                self.stories.push(story);
            }
            Step::View(at, viewer) if exists(&viewer) => {
                if let Some(story) = Self::picked(&self.stories, at) {
                    let _ = self.both(view(story, viewer));
                }
            }
            Step::Sweep => {
                self.deleting.sweep();
                self.undoing.sweep();
                self.deleting.end_mutes();
                self.undoing.end_mutes();
            }
            Step::Delete(user) if exists(&user) => {
                self.alive.retain(|other| *other != user);
                self.deleting.run(delete(user)).unwrap();
                undo(&mut self.undoing, user);
            }
            Step::Erase(count) => {
                for _ in 0..count {
                    erase(&mut self.deleting);
                }
            }
            _ => {}
        }
        // Ids are times, so both worlds need equal clocks.
        let now_ms = self.deleting.now_ms.max(self.undoing.now_ms) + 300;
        (self.deleting.now_ms, self.undoing.now_ms) = (now_ms, now_ms);
    }

    fn reply(&mut self, author: u32, at: usize) {
        let Some(parent) = Self::picked(&self.posts, at) else { return };
        let text = PostText::parse("a reply").unwrap();
        let new = Draft { parent: Some(parent), ..Draft::new(id(author), text) };
        if let Ok(Done::Posted(id)) = self.both(Command::Publish(Box::new(new))) {
            self.posts.push(id);
        }
    }

    fn check(&self) {
        let now_ms = self.deleting.now_ms;
        let [left, right] = [&self.deleting, &self.undoing].map(World::facts);
        let totals = |facts: Facts<'_, MemoryRows>| {
            let totals = facts.totals();
            (totals.posts, totals.follows, totals.friendships)
        };
        assert_eq!(totals(left), totals(right));
        for user in self.alive.iter().copied().map(UserId) {
            let [left, right] = [left, right].map(|facts| seen_by(facts, user, now_ms));
            assert_eq!(left, right, "{user:?}");
        }
        for post in &self.posts {
            let [left, right] = [left, right].map(|facts| thread(facts, *post));
            assert_eq!(left, right);
        }
        for story in &self.stories {
            let views = |facts: Facts<'_, MemoryRows>| {
                let mut views = facts.story_views(*story, Span::ALL);
                views.retain(|(viewer, _)| self.alive.contains(&viewer.0));
                facts.story(*story).map(|found| (found.author, views))
            };
            assert_eq!(views(left), views(right));
        }
    }
}

fn undo(world: &mut World, user: u32) {
    let (of, facts) = (UserId(user), world.facts());
    let posts =
        facts.posts_by(of, Span::ALL).into_iter().map(|(post, _)| Command::DeletePost { post });
    let stories = facts.stories_by(of, Span::ALL).into_iter();
    let stories = stories.map(|(story, _)| Command::DeleteStory { story });
    let people = |table| facts.users_in(table, of, Span::ALL).into_iter();
    let following = people(SetTable::Following).map(|other| unfollow(id(user), id(other.0)));
    let followers = people(SetTable::Followers).map(|other| unfollow(id(other.0), id(user)));
    let friends = people(SetTable::Friends).map(|other| unfriend(id(user), id(other.0)));
    let blocks = people(SetTable::Blocks).map(|other| unblock(id(user), id(other.0)));
    let blocked = people(SetTable::BlockedBy).map(|other| unblock(id(other.0), id(user)));
    let mutes = people(SetTable::Mutes).map(|other| unmute(user, other.0));
    let muted = people(SetTable::MutedBy).map(|other| unmute(other.0, user));
    let asked = people(SetTable::Requested).map(|other| unfollow(id(user), id(other.0)));
    let asking = people(SetTable::FollowRequests).map(|other| unfollow(id(other.0), id(user)));
    let notes = people(SetTable::Notes).map(|other| note(user, other.0, ""));
    let noted = people(SetTable::NotedBy).map(|other| note(other.0, user, ""));
    let relations = following.chain(followers).chain(friends).chain(blocks).chain(blocked);
    let all = posts.chain(stories).chain(relations).chain(mutes).chain(muted);
    // Notes end after the blocks, because a block hides a user from the authors of notes about that user.
    let all: Vec<_> = all.chain(asked).chain(asking).chain(notes).chain(noted).collect();
    for command in all {
        world.run(command).unwrap();
    }
}

/// Everything that a user can read, as text.
fn seen_by(facts: Facts<'_, MemoryRows>, user: UserId, now_ms: u64) -> String {
    let people = |table| facts.users_in(table, user, Span::ALL);
    let lists = [
        SetTable::Following,
        SetTable::Followers,
        SetTable::Friends,
        SetTable::Blocks,
        SetTable::BlockedBy,
        SetTable::Mutes,
        SetTable::MutedBy,
        SetTable::Notes,
        SetTable::NotedBy,
        SetTable::Requested,
        SetTable::FollowRequests,
        SetTable::NotInterested,
        SetTable::NotInterestedBy,
    ];
    let lists = lists.map(people);
    let page = Page::newest(1_000);
    let authors = facts.home_authors(user);
    let home = gather(facts, user, &authors, &page);
    let mut mentions = facts.mentions_of(user, Span::ALL);
    mentions.retain(|post| facts.has_post(*post));
    let friends = facts.friends_all(user).into_iter();
    let stories: Vec<_> =
        friends.flat_map(|friend| facts.live_stories_by(friend, now_ms, Span::ALL)).collect();
    let seen: Vec<_> = stories.iter().filter(|story| facts.seen(user, story.story)).collect();
    let own = (facts.posts_by(user, Span::ALL), facts.live_stories_by(user, now_ms, Span::ALL));
    let about = (facts.user(user), facts.counts(user));
    format!("{about:?} {lists:?} {home:?} {mentions:?} {stories:?} {seen:?} {own:?}")
}

fn thread(facts: Facts<'_, MemoryRows>, post: PostId) -> String {
    let all = Viewer::new(facts, None);
    let mut below = descendants(&all, post, &[], 1_000).posts;
    below.retain(|post| facts.has_post(*post));
    let below = facts.has_post(post).then_some(below);
    format!("{:?} {:?} {below:?}", facts.post(post), ancestors(&all, post))
}

fn replayed(log: &[StampedCommand], mut rows: MemoryRows) -> MemoryRows {
    for entry in log {
        apply(&mut Txn::new(&mut rows), entry, &mut Vec::new());
    }
    rows
}

proptest! {
    #[test]
    fn a_deletion_is_as_if_the_user_had_undone_everything(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut worlds = Worlds::new();
        for step in &steps {
            worlds.take(step);
            worlds.check();
        }
        erase_all(&mut worlds.deleting);
        worlds.check();
        worlds.deleting.now_ms += 2_000;
        worlds.deleting.sweep();
        for user in (0..USERS).filter(|user| !worlds.alive.contains(user)) {
            check_erased(&worlds.deleting.rows, UserId(user));
        }
    }

    /// After a crash, views of stories may be removed or present too early.
    #[test]
    fn a_replay_over_newer_ephemeral_rows_removes_as_much(
        steps in prop::collection::vec(step(), 1..80),
        applied in any::<prop::sample::Index>(),
        ahead in any::<prop::sample::Index>(),
    ) {
        let mut worlds = Worlds::new();
        steps.iter().for_each(|step| worlds.take(step));
        erase_all(&mut worlds.deleting);
        let log = &worlds.deleting.log;
        let (one, other) = (applied.index(log.len() + 1), ahead.index(log.len() + 1));
        let (applied, ahead) = (one.min(other), one.max(other));
        let [before, newer] = [applied, ahead].map(|end| replayed(&log[..end], MemoryRows::default()));
        let rows = replayed(&log[applied..], before.with_fleeting_of(&newer));
        prop_assert_eq!(rows, worlds.deleting.rows);
    }
}
