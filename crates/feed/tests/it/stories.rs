//! Stories: visibility and expiry, pages of stories compared with their definition, and sweeping.

use crate::support::{DAY_MS, World, befriend, id, page_of, register, unfriend, view};
use feed::stories::{StoryRef, gather};
use feed::{
    Command, Cursor, Done, DueWork, Effect, Facts, Outcome, Page, PageOf, Refusal, StampedCommand,
    Story, StoryChange, StoryId, Txn, UserId, apply, limits,
};
use proptest::prelude::*;
use rows::{Rows, RowsMut, Span, Totals};
use testkit::MemoryRows;

/// Creates a world where Ada (0) and Bob (1) are friends, and Cy (2) has no friends.
fn friends() -> World {
    let mut world = World::new();
    world.run(befriend(id(0), id(1))).unwrap();
    world
}

fn home(facts: Facts<'_, MemoryRows>, reader: u32, now_ms: u64, page: &Page) -> PageOf<StoryRef> {
    gather(&facts.friends_all(UserId(reader)), page, |friend, span, found| {
        found.extend(facts.live_stories_by(friend, now_ms, span));
    })
}

fn newest(limit: usize) -> Page {
    Page::newest(limit)
}

#[test]
fn a_story_is_seen_by_its_author_and_their_friends_until_the_millisecond_it_expires() {
    for (viewer, after_ms, outcome, recorded) in [
        (0, 1, Ok(Done::StoryViewed), false),
        (1, 1, Ok(Done::StoryViewed), true),
        (2, 1, Err(Refusal::StoryNotFound), false),
        (0, 1_999, Ok(Done::StoryViewed), false),
        (1, 1_999, Ok(Done::StoryViewed), true),
        (0, 2_000, Err(Refusal::StoryNotFound), false),
        (1, 2_000, Err(Refusal::StoryNotFound), false),
        (1, DAY_MS, Err(Refusal::StoryNotFound), false),
    ] {
        let mut world = friends();
        let story = world.post_story(0, 2);
        let posted_ms = world.now_ms;
        world.now_ms += after_ms - 1;
        assert_eq!(world.run(view(story, viewer)), outcome, "{viewer} after {after_ms} ms");
        let views = world.facts().story_views(story, Span::ALL);
        let expected = if recorded { vec![(UserId(viewer), posted_ms + after_ms)] } else { vec![] };
        assert_eq!(views, expected, "{viewer} after {after_ms} ms");
        let seen = world.facts().seen(UserId(viewer), story);
        assert_eq!(seen, recorded, "{viewer} after {after_ms} ms");
        assert_eq!(world.effects.len(), usize::from(recorded));
        let listed = !world.facts().live_stories_by(UserId(0), world.now_ms, Span::ALL).is_empty();
        assert_eq!(listed, after_ms < 2_000);
        let home = home(world.facts(), 1, world.now_ms, &newest(10));
        assert_eq!(home.items.len(), usize::from(after_ms < 2_000));
    }
}

#[test]
fn an_ex_friend_sees_nothing_from_the_moment_of_unfriending() {
    let mut world = friends();
    let story = world.post_story(0, 60);
    assert_eq!(home(world.facts(), 1, world.now_ms, &newest(10)).items.len(), 1);
    world.run(unfriend(id(1), id(0))).unwrap();
    assert_eq!(home(world.facts(), 1, world.now_ms, &newest(10)).items, []);
    assert_eq!(world.run(view(story, 1)), Err(Refusal::StoryNotFound));
}

/// Effect of a change of a story by user 0.
fn changed(story: StoryId, change: StoryChange) -> Effect {
    Effect::Story { story, author: UserId(0), change }
}

#[test]
fn a_second_view_changes_neither_the_time_of_the_first_nor_the_list() {
    let mut world = friends();
    let story = world.post_story(0, 60);
    world.run(view(story, 1)).unwrap();
    let first = world.facts().story_views(story, Span::ALL);
    assert_eq!(world.effects, [changed(story, StoryChange::Viewed { viewer: UserId(1) })]);
    assert_eq!(world.run(view(story, 1)), Ok(Done::StoryViewed));
    assert_eq!(world.facts().story_views(story, Span::ALL), first);
    assert_eq!(world.facts().seen_by(UserId(1), Span::ALL), [story]);
    assert_eq!(world.effects, []);
}

#[test]
fn a_deleted_story_is_gone_for_every_reader_whatever_their_clock_says() {
    let mut world = friends();
    let story = world.post_story(0, 60);
    world.run(view(story, 1)).unwrap();
    assert_eq!(world.run(Command::DeleteStory { story }), Ok(Done::StoryDeleted));
    assert_eq!(world.effects, [changed(story, StoryChange::Gone)]);
    assert_eq!(world.facts().story(story), None);
    assert_eq!(world.facts().story_text(story), None);
    assert_eq!(world.facts().stories_by(UserId(0), Span::ALL), []);
    assert_eq!(home(world.facts(), 1, 0, &newest(10)).items, []);
    for again in [Command::DeleteStory { story }, view(story, 0), view(story, 1)] {
        assert_eq!(world.run(again), Err(Refusal::StoryNotFound));
    }
    assert_eq!(world.sweep(), 1);
    assert_eq!(world.effects, [], "its end was an effect of its deletion");
    assert_eq!(world.facts().story_views(story, Span::ALL), []);
    assert_eq!(world.facts().seen_by(UserId(1), Span::ALL), []);
}

#[test]
fn an_expired_story_cannot_be_deleted_and_its_sweep_reports_its_end() {
    let mut world = friends();
    let story = world.post_story(0, 1);
    world.now_ms += 999;
    assert_eq!(world.run(Command::DeleteStory { story }), Err(Refusal::StoryNotFound));
    assert_eq!(world.sweep(), 1);
    assert_eq!(world.effects, [changed(story, StoryChange::Gone)]);
    assert_eq!(world.rows.totals().stories, 0);
}

#[test]
fn a_story_is_removed_from_the_millisecond_on_in_which_it_expires() {
    let mut world = friends();
    let story = world.post_story(0, 1);
    let removal = Command::DoDue(DueWork::RemoveStory { story }.at(world.now_ms + 1_000));
    world.now_ms += 998;
    for done in [Done::NotDue, Done::DueDone, Done::NotDue] {
        assert_eq!(world.run(removal.clone()), Ok(done), "{}", world.now_ms);
    }
}

/// Creates a world in which Ada's many friends have all viewed her only story, which has just expired.
fn crowd(viewers: u32) -> (World, StoryId) {
    let mut world = World::new();
    for viewer in 3..3 + viewers {
        world.run(register(&format!("v{viewer}"))).unwrap();
        world.run(befriend(id(0), id(viewer))).unwrap();
    }
    let story = world.post_story(0, 3_600);
    for viewer in 3..3 + viewers {
        world.run(view(story, viewer)).unwrap();
    }
    world.now_ms += 3_600_000;
    (world, story)
}

#[test]
fn a_story_with_many_views_is_removed_in_bounded_pieces_its_text_first() {
    let (mut world, story) = crowd(3_000);
    let views = |world: &World| world.facts().story_views(story, Span::ALL).len();
    let mut left = views(&world);
    assert_eq!(left, 3_000);
    let removal = world.due()[0];
    while left > 0 {
        assert_eq!(world.run(Command::DoDue(removal)), Ok(Done::DueDone));
        assert_eq!(world.facts().story_text(story), None);
        let removed = left - views(&world);
        assert!((1..=limits::STORY_VIEWS_REMOVED as usize).contains(&removed), "{removed}");
        left -= removed;
    }
    assert_eq!(world.run(Command::DoDue(removal)), Ok(Done::NotDue));
    assert_eq!(left, 0);
    assert_eq!(world.facts().story(story), None);
    assert_eq!(world.rows.totals().stories, 0);
}

fn apply_all(rows: &mut MemoryRows, entries: &[StampedCommand]) -> Vec<Outcome> {
    let apply = |entry| apply(&mut Txn::new(rows), entry, &mut Vec::new()).outcome;
    entries.iter().map(apply).collect()
}

/// Replays `log` from `applied` over facts of that position and ephemeral rows of `ahead`. All outcomes and facts must
/// be the same as without the crash.
fn check_replay(log: &[StampedCommand], applied: usize, ahead: usize) {
    let states: Vec<(MemoryRows, Vec<Outcome>)> = [applied, ahead, log.len()]
        .map(|end| {
            let mut rows = MemoryRows::default();
            let outcomes = apply_all(&mut rows, &log[..end]);
            (rows, outcomes)
        })
        .into();
    let (straight, outcomes) = &states[2];
    let mut replayed = states[0].0.with_fleeting_of(&states[1].0);
    assert_eq!(apply_all(&mut replayed, &log[applied..]), outcomes[applied..]);
    assert_eq!(&replayed, straight, "applied {applied}, ahead {ahead} of {}", log.len());
}

#[test]
fn a_replay_across_the_pieces_of_a_sweep_takes_the_same_pieces() {
    let (mut world, _) = crowd(700);
    let begun = world.log.len();
    world.sweep();
    let end = world.log.len();
    assert_eq!(end - begun, 3);
    for (applied, ahead) in [(begun, end - 1), (begun, end), (begun + 1, end), (begun - 500, end)] {
        check_replay(&world.log, applied, ahead);
    }
}

const PEOPLE: u32 = 5;

#[derive(Clone, Debug)]
enum Step {
    Befriend(u32, u32, bool),
    Tell(u32, u64),
    Delete(usize),
    View(usize, u32),
    Wait(u64),
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    let user = || 0..PEOPLE;
    let pick = || any::<prop::sample::Index>().prop_map(|at| at.index(1_000));
    prop_oneof![
        4 => (user(), user(), prop::bool::weighted(0.8)).prop_map(|(u, v, on)| Step::Befriend(u, v, on)),
        6 => (user(), prop_oneof![1..5u64, 1..100u64]).prop_map(|(u, secs)| Step::Tell(u, secs)),
        1 => pick().prop_map(Step::Delete),
        4 => (pick(), user()).prop_map(|(at, viewer)| Step::View(at, viewer)),
        3 => prop_oneof![0..1_500u64, 0..20_000u64].prop_map(Step::Wait),
        2 => Just(Step::Sweep),
    ]
}

/// Simple model of a story.
#[derive(Clone, Debug)]
struct Plain {
    story: StoryId,
    author: u32,
    expires_ms: u64,
    deleted: bool,
    views: Vec<(UserId, u64)>,
}

/// A world and a simple model of its history.
struct History {
    world: World,
    friends: Vec<(u32, u32)>,
    stories: Vec<Plain>,
}

impl History {
    fn of(steps: &[Step]) -> Self {
        let mut world = World::new();
        for handle in ["dot", "eve"] {
            world.run(register(handle)).unwrap();
        }
        let mut history = Self { world, friends: Vec::new(), stories: Vec::new() };
        steps.iter().for_each(|step| history.take(step));
        history
    }

    fn are_friends(&self, one: u32, other: u32) -> bool {
        self.friends.contains(&(one.min(other), one.max(other)))
    }

    fn live(&self) -> impl Iterator<Item = &Plain> {
        self.stories.iter().filter(|story| !story.deleted && self.world.now_ms < story.expires_ms)
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Befriend(one, other, on) => {
                let pair = (one.min(other), one.max(other));
                self.friends.retain(|friends| *friends != pair);
                if on && one != other {
                    self.friends.push(pair);
                }
                let set = if on { befriend } else { unfriend };
                assert_eq!(self.world.run(set(id(one), id(other))).is_ok(), one != other);
            }
            Step::Tell(author, secs) => {
                let story = self.world.post_story(author, secs);
                let expires_ms = self.world.now_ms + secs * 1_000;
                let views = Vec::new();
                self.stories.push(Plain { story, author, expires_ms, deleted: false, views });
            }
            Step::Delete(at) => self.with_story(at, |world, plain, live| {
                let done = world.run(Command::DeleteStory { story: plain.story });
                assert_eq!(done.is_ok(), live);
                plain.deleted |= live;
            }),
            Step::View(at, viewer) => {
                let friends = self.friends.clone();
                self.with_story(at, |world, plain, live| {
                    let done = world.run(view(plain.story, viewer));
                    let pair = (viewer.min(plain.author), viewer.max(plain.author));
                    let is_friend = friends.contains(&pair);
                    assert_eq!(done.is_ok(), live && (is_friend || viewer == plain.author));
                    let seen = plain.views.iter().any(|(user, _)| user.0 == viewer);
                    if done.is_ok() && is_friend && !seen {
                        plain.views.push((UserId(viewer), world.now_ms));
                    }
                });
            }
            Step::Wait(ms) => self.world.now_ms += ms,
            Step::Sweep => {
                self.world.sweep();
            }
        }
    }

    /// Runs `run` with a story, and with whether it will be live when the next command is stamped.
    fn with_story(&mut self, at: usize, run: impl FnOnce(&mut World, &mut Plain, bool)) {
        if !self.stories.is_empty() {
            let at = at % self.stories.len();
            let plain = &mut self.stories[at];
            let live = !plain.deleted && self.world.now_ms + 1 < plain.expires_ms;
            run(&mut self.world, plain, live);
        }
    }

    /// Page of stories by its definition.
    fn page(&self, reader: u32, page: &Page) -> PageOf<StoryRef> {
        let visible = self.live().filter(|plain| self.are_friends(reader, plain.author));
        let visible = visible.map(|plain| StoryRef {
            story: plain.story,
            author: UserId(plain.author),
            expires_ms: plain.expires_ms,
        });
        let mut items: Vec<StoryRef> = visible.collect();
        items.sort_by_key(|item| std::cmp::Reverse(item.story));
        page_of(items, page)
    }

    /// Checks that every read of single stories and users agrees with the model.
    fn check_reads(&self) {
        let facts = self.world.facts();
        let now_ms = self.world.now_ms;
        for plain in self.live() {
            let story = facts.story(plain.story).unwrap();
            assert_eq!((story.author.0, story.expires_ms), (plain.author, plain.expires_ms));
            assert!(facts.story_text(plain.story).is_some());
            let mut views = plain.views.clone();
            views.sort_unstable();
            assert_eq!(facts.story_views(plain.story, Span::ALL), views);
            assert!(views.iter().all(|(viewer, _)| facts.seen(*viewer, plain.story)));
        }
        for author in 0..PEOPLE {
            for limit in [1, 3, usize::MAX] {
                let live = self.live().filter(|plain| plain.author == author).rev_ids(limit);
                let span = Span::below(None, limit).unwrap();
                let found = facts.live_stories_by(UserId(author), now_ms, span);
                assert_eq!(found.iter().map(|item| item.story).collect::<Vec<_>>(), live);
            }
        }
    }
}

trait RevIds {
    fn rev_ids(self, limit: usize) -> Vec<StoryId>;
}

impl<'a, I: Iterator<Item = &'a Plain>> RevIds for I {
    fn rev_ids(self, limit: usize) -> Vec<StoryId> {
        let mut ids: Vec<StoryId> = self.map(|plain| plain.story).collect();
        ids.sort_unstable_by(|one, other| other.cmp(one));
        ids.truncate(limit);
        ids
    }
}

/// Story of a command that is about one story.
fn story_of(entry: &StampedCommand) -> Option<StoryId> {
    match entry.command {
        Command::PostStory { .. } => Some(StoryId(entry.stamp.0)),
        Command::DeleteStory { story } | Command::ViewStory { story, .. } => Some(story),
        _ => None,
    }
}

/// Rows without the values that depend on the number of views and sweeps.
fn without_marks(mut rows: MemoryRows) -> MemoryRows {
    rows.put_totals(Totals { last_stamp: None, ..rows.totals() });
    rows
}

proptest! {
    #[test]
    fn a_gathered_page_of_stories_equals_the_definition(
        steps in prop::collection::vec(step(), 0..150),
        reader in 0..PEOPLE,
        limit in 1usize..12,
        pick in any::<prop::sample::Index>(),
        offset in -1i64..=1,
        which in 0..3,
    ) {
        let history = History::of(&steps);
        history.check_reads();
        let around = match history.stories.len() {
            0 => StoryId(5),
            count => StoryId(history.stories[pick.index(count)].story.0.saturating_add_signed(offset)),
        };
        let cursor = match which {
            0 => Cursor::Newest,
            1 => Cursor::Before(around),
            _ => Cursor::After(around),
        };
        let page = Page::at(cursor, limit);
        let gathered = home(history.world.facts(), reader, history.world.now_ms, &page);
        prop_assert_eq!(gathered, history.page(reader, &page));
    }

    #[test]
    fn a_sweep_leaves_the_rows_of_a_history_without_the_dead_stories(
        steps in prop::collection::vec(step(), 0..150),
    ) {
        let mut history = History::of(&steps);
        history.world.sweep();
        let now_ms = history.world.now_ms;
        // A story that expires in the next millisecond is left to the next command.
        let left = |plain: &&Plain| !plain.deleted && plain.expires_ms > now_ms + 1;
        let left: Vec<StoryId> = history.stories.iter().filter(left).map(|plain| plain.story).collect();
        let kept = |entry: &&StampedCommand| story_of(entry).is_none_or(|story| left.contains(&story));
        let kept: Vec<StampedCommand> = history.world.log.iter().filter(kept).cloned().collect();
        let mut expected = MemoryRows::default();
        apply_all(&mut expected, &kept);
        prop_assert_eq!(without_marks(history.world.rows), without_marks(expected));
    }

    #[test]
    fn a_replay_over_newer_ephemeral_rows_gives_the_same_outcomes_and_rows(
        steps in prop::collection::vec(step(), 1..100),
        applied in any::<prop::sample::Index>(),
        ahead in any::<prop::sample::Index>(),
    ) {
        let mut history = History::of(&steps);
        history.world.sweep();
        let log = &history.world.log;
        let (one, other) = (applied.index(log.len() + 1), ahead.index(log.len() + 1));
        check_replay(log, one.min(other), one.max(other));
    }
}

#[test]
fn the_cost_of_a_page_grows_with_friends_and_limit_not_with_stories() {
    const FRIENDS: u32 = 20;
    for stories in [10, 100, 1_000u64] {
        let friends: Vec<UserId> = (0..FRIENDS).map(UserId).collect();
        let (mut reads, mut read) = (0, 0);
        let page = gather(&friends, &newest(10), |author, span, found| {
            // The n-th newest story of friend f has the id n * FRIENDS + f, counted from the greatest.
            let ids =
                (0..stories).map(|n| 1_000_000 - n * u64::from(FRIENDS) - u64::from(author.0));
            let ids = ids.filter(|story| (span.low..=span.high).contains(story)).take(span.limit);
            let before = found.len();
            found.extend(ids.map(|story| StoryRef {
                story: StoryId(story),
                author,
                expires_ms: 1,
            }));
            reads += 1;
            read += found.len() - before;
        });
        assert_eq!(page.items.len(), 10);
        assert!(reads <= FRIENDS && read <= FRIENDS as usize * 8, "{reads} reads of {read}");
    }
}

#[test]
fn a_story_row_shows_whether_the_story_is_live() {
    let story = Story { author: UserId(0), expires_ms: 5, views: 0 };
    assert!(story.is_live(4) && !story.is_live(5));
    assert!(!Story { expires_ms: 0, ..story }.is_live(0), "a deleted one never does");
}
