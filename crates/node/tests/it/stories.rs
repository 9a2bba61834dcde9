//! Tests of stories as a node returns them: exactly while they are live, whatever the clock, the sweeper, restarts and
//! checkpoints do meanwhile, and erased from the disk afterwards.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use feed::{
    Bio, Command, Cursor, Done, DueWork, Handle, Lifetime, Name, Outcome, Page, PostId, PostText,
    Refusal, StoryId, UserId, UserRef,
};
use node::{Clock, Durability, Node, NodeOptions, Request};
use proptest::prelude::*;
use rows::Span;
use testkit::files::files;

use crate::support;

const USERS: u32 = 5;
const START_MS: u64 = 1_800_000_000_000;

/// A node with a clock that the test sets, in a directory that outlives it.
struct Subject {
    /// `None` only during a restart.
    node: Option<Node>,
    options: NodeOptions,
    clock: Arc<AtomicU64>,
    runtime: tokio::runtime::Runtime,
    data: tempfile::TempDir,
}

impl Subject {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let clock = Arc::new(AtomicU64::new(START_MS));
        let mut options = NodeOptions::new(data.path());
        options.durability = Durability::Never;
        options.overlay_memory = 20_000;
        options.clock = Clock::from_fn({
            let clock = Arc::clone(&clock);
            move || clock.load(Ordering::Acquire)
        });
        let node = Some(Node::open(&options).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let subject = Self { node, options, clock, runtime, data };
        for user in 0..USERS {
            let handle = Handle::parse(&format!("u{user}")).unwrap();
            let (name, bio) = (Name::default(), Bio::default());
            subject.submit(Command::Register { handle, name, bio }).unwrap();
        }
        subject
    }

    fn node(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    fn submit(&self, command: Command) -> Outcome {
        self.runtime.block_on(self.node().submit(Request::from(command))).unwrap().outcome
    }

    fn befriend(&self, user: u32, other: u32, friends: bool) -> Outcome {
        let (user, other) = (id(user), id(other));
        self.submit(match friends {
            true => Command::Befriend { user, other },
            false => Command::Unfriend { user, other },
        })
    }

    fn post_story(&self, author: u32, secs: u64, text: &str) -> (StoryId, u64) {
        let (text, life) = (PostText::parse(text).unwrap(), Lifetime::from_secs(secs).unwrap());
        match self.submit(Command::PostStory { author: id(author), text, life }) {
            Ok(Done::StoryPosted { story, expires_ms }) => (story, expires_ms),
            other => panic!("{other:?}"),
        }
    }

    fn view(&self, story: StoryId, viewer: u32) -> Outcome {
        self.submit(Command::ViewStory { story, viewer: id(viewer) })
    }

    /// Returns a page of a home, which must be the same from memory, before and after the facts were read.
    fn home(&self, user: u32, page: &Page) -> (Vec<Shown>, bool) {
        let (node, user) = (self.node(), UserId(user));
        let (mut out, mut before, mut after) = (Vec::new(), Vec::new(), Vec::new());
        let ends_before = node.try_stories_home(user, page, &mut before);
        let ends = node.stories_home(user, page, &mut out);
        for (from_memory, bytes) in
            [(ends_before, before), (node.try_stories_home(user, page, &mut after), after)]
        {
            match from_memory {
                Some(from_memory) => assert_eq!((from_memory, &bytes), (ends, &out)),
                None => assert_eq!(bytes, b""),
            }
        }
        (shown(&out), ends.more)
    }

    fn newest_home(&self, user: u32) -> Vec<StoryId> {
        self.home(user, &newest(100)).0.iter().map(|(story, _)| *story).collect()
    }

    fn by(&self, author: u32, reader: Option<u32>) -> Vec<StoryId> {
        let mut out = Vec::new();
        self.node().stories_by(UserId(author), reader.map(UserId), &newest(100), &mut out);
        shown(&out).iter().map(|(story, _)| *story).collect()
    }

    fn shows(&self, story: StoryId, reader: u32) -> bool {
        self.node().story(story, Some(UserId(reader)), &mut Vec::new())
    }

    fn set_clock(&self, ms: u64) {
        self.clock.store(ms, Ordering::Release);
    }

    fn restart(&mut self) {
        self.node.take().unwrap().close();
        self.node = Some(Node::open(&self.options).unwrap());
    }
}

fn id(user: u32) -> UserRef {
    UserRef::Id(UserId(user))
}

fn newest(limit: usize) -> Page {
    Page::newest(limit)
}

/// A story in an answer, and whether it is marked as seen.
type Shown = (StoryId, bool);

fn shown(items: &[u8]) -> Vec<Shown> {
    let list = [b"[", items, b"]"].concat();
    let list: Vec<serde_json::Value> = serde_json::from_slice(&list).unwrap();
    let id = |story: &serde_json::Value| StoryId(story["id"].as_str().unwrap().parse().unwrap());
    list.iter().map(|story| (id(story), story["seen"] == true)).collect()
}

#[test]
fn a_story_is_gone_from_every_answer_at_the_instant_it_expires() {
    let subject = Subject::new();
    subject.befriend(0, 1, true).unwrap();
    let (story, expires_ms) = subject.post_story(0, 10, "soon gone");
    for (at_ms, live) in [(START_MS, true), (expires_ms - 1, true), (expires_ms, false)] {
        subject.set_clock(at_ms);
        let expected: Vec<StoryId> = live.then_some(story).into_iter().collect();
        assert_eq!(subject.newest_home(1), expected, "home at {at_ms}");
        assert_eq!(subject.by(0, Some(1)), expected, "the author's own at {at_ms}");
        assert_eq!(subject.by(0, None), expected, "all that the application sees at {at_ms}");
        assert_eq!(subject.shows(story, 1), live, "by id at {at_ms}");
        let views = subject.node().story_views(story, UserId(0), Span::ALL);
        assert_eq!(views.is_some(), live, "views at {at_ms}");
        let seen = subject.view(story, 1);
        assert_eq!(seen.is_ok(), live, "{seen:?} at {at_ms}");
    }
}

#[test]
fn an_expired_story_stays_gone_when_the_clock_steps_back_and_over_a_restart() {
    let mut subject = Subject::new();
    subject.befriend(0, 1, true).unwrap();
    let (_, expires_ms) = subject.post_story(0, 10, "short");
    let (long, _) = subject.post_story(0, 1_000, "long");
    subject.set_clock(expires_ms + 1_000);
    assert_eq!(subject.newest_home(1), [long]);
    subject.node().do_due();
    assert_eq!(subject.node().facts().totals().stories, 1);
    subject.set_clock(START_MS);
    assert_eq!(subject.newest_home(1), [long], "after a step back");
    subject.restart();
    assert_eq!(subject.newest_home(1), [long], "after a step back while the node was down");
    assert!(subject.node().now_ms() > expires_ms);
    subject.set_clock(START_MS + 2_000_000);
    subject.restart();
    assert!(subject.newest_home(1).is_empty(), "after a leap while the node was down");
}

#[test]
fn a_pile_of_stories_that_expired_long_ago_while_the_node_was_stopped_is_removed() {
    let mut subject = Subject::new();
    subject.befriend(0, 1, true).unwrap();
    let pile: Vec<StoryId> = (0..300).map(|_| subject.post_story(0, 10, "pile").0).collect();
    let (kept, _) = subject.post_story(0, 604_800, "long");
    subject.view(pile[7], 1).unwrap();
    subject.node.take().unwrap().close();
    subject.set_clock(START_MS + 3 * 86_400_000);
    subject.node = Some(Node::open(&subject.options).unwrap());
    assert_eq!(subject.newest_home(1), [kept]);
    subject.node().do_due();
    let facts = subject.node().facts();
    assert_eq!(facts.totals().stories, 1);
    assert!(pile.iter().all(|story| facts.stored_story(*story).is_none()));
    let work: Vec<DueWork> = facts.first_due(0, None, 9).iter().map(|due| due.work).collect();
    assert_eq!(work, [DueWork::RemoveStory { story: kept }]);
}

#[test]
fn a_story_is_no_post_even_if_it_was_shown_just_now() {
    let subject = Subject::new();
    subject.befriend(0, 1, true).unwrap();
    let (story, _) = subject.post_story(0, 10, "for friends");
    assert!(subject.shows(story, 1));
    let (post, mut out) = (PostId(story.0), Vec::new());
    assert!(!subject.node().try_post(post, &mut out) && !subject.node().post(post, &mut out));
    assert_eq!(out, b"");
}

#[test]
fn stories_are_for_friends_as_long_as_they_are_friends() {
    let subject = Subject::new();
    let (story, _) = subject.post_story(0, 10, "for friends");
    let sees = |reader| {
        let by = subject.by(0, Some(reader)) == [story];
        assert_eq!(subject.shows(story, reader), by, "by id and in the list: {reader}");
        if reader != 0 {
            assert_eq!(subject.newest_home(reader) == [story], by, "at home: {reader}");
        }
        by
    };
    assert!(sees(0) && !sees(1));
    assert_eq!(subject.view(story, 1), Err(Refusal::StoryNotFound));
    subject.befriend(1, 0, true).unwrap();
    assert!(sees(1) && !sees(2));
    assert_eq!(subject.view(story, 1), Ok(Done::StoryViewed));
    subject.befriend(0, 1, false).unwrap();
    assert!(!sees(1) && sees(0));
    assert_eq!(subject.view(story, 1), Err(Refusal::StoryNotFound));
    assert_eq!(subject.by(0, None), [story], "the application sees everything");
}

#[test]
fn only_the_author_can_read_who_saw_a_story_and_the_home_marks_it() {
    let subject = Subject::new();
    subject.befriend(0, 1, true).unwrap();
    let (story, _) = subject.post_story(0, 10, "seen?");
    let marks = |out: &mut Vec<u8>| {
        out.clear();
        subject.node().stories_home(UserId(1), &newest(1), out);
        String::from_utf8(out.clone()).unwrap()
    };
    let mut out = Vec::new();
    assert!(marks(&mut out).contains("\"seen\":false"));
    subject.set_clock(START_MS + 5);
    subject.view(story, 1).unwrap();
    subject.set_clock(START_MS + 9);
    subject.view(story, 1).unwrap();
    subject.view(story, 0).unwrap();
    assert!(marks(&mut out).contains("\"seen\":true"));
    let views = |author| subject.node().story_views(story, UserId(author), Span::ALL);
    assert_eq!(views(0), Some(vec![(UserId(1), START_MS + 5)]), "once, when it was first seen");
    assert_eq!((views(1), views(2)), (None, None));
}

/// Returns every file below `dir` that contains `needle`.
fn files_with(dir: &Path, needle: &[u8]) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(needle.len()).any(|window| window == needle)
    };
    files(dir).into_iter().filter(holds).collect()
}

/// Maximum duration of an erasure: half of the shortest time that can be set.
const ERASURE_MAX: Duration = Duration::from_secs(5);

#[test]
fn the_text_of_a_dead_story_is_erased_from_every_file() {
    let mut subject = Subject::new();
    subject.befriend(0, 1, true).unwrap();
    let (_, expires_ms) = subject.post_story(0, 10, "perishable-4711");
    let (deleted, _) = subject.post_story(0, 9_000, "withdrawn-4712");
    let (kept, _) = subject.post_story(0, 9_000, "lasting-4713");
    subject.restart();
    let files = |text: &str| files_with(subject.data.path(), text.as_bytes());
    assert!(files("perishable-4711").len() > 1, "it is in the log and in the store");
    subject.submit(Command::DeleteStory { story: deleted }).unwrap();
    subject.set_clock(expires_ms + 2_000);
    subject.node().do_due();
    subject.node().erase_stories();
    let start = Instant::now();
    while !files("perishable-4711").is_empty() || !files("withdrawn-4712").is_empty() {
        assert!(start.elapsed() < ERASURE_MAX, "an erasure that nobody hurries is late");
        std::thread::yield_now();
    }
    assert!(!files("lasting-4713").is_empty());
    subject.restart();
    assert_eq!(subject.newest_home(1), [kept]);
}

#[test]
fn the_stories_of_a_deleted_user_are_erased_from_every_file() {
    let mut subject = Subject::new();
    subject.befriend(0, 1, true).unwrap();
    let (kept, _) = subject.post_story(1, 9_000, "staying-9357");
    subject.post_story(0, 9_000, "withering-0862");
    subject.view(kept, 0).unwrap();
    subject.restart();
    let files = |text: &str| files_with(subject.data.path(), text.as_bytes());
    assert!(!files("withering-0862").is_empty(), "it is in a file");
    subject.submit(Command::DeleteUser { user: id(0) }).unwrap();
    subject.node().do_due();
    let views = subject.node().story_views(kept, UserId(1), Span::ALL);
    assert_eq!(views, Some(vec![]), "nobody saw it");
    subject.set_clock(subject.node().now_ms() + 2_000);
    subject.node().do_due();
    subject.node().erase_stories();
    let start = Instant::now();
    while !files("withering-0862").is_empty() {
        assert!(start.elapsed() < ERASURE_MAX, "an erasure that nobody hurries is late");
        std::thread::yield_now();
    }
    assert!(!files("staying-9357").is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Friends(u32, u32, bool),
    /// Posts stories with these lifetimes in seconds.
    Post(u32, Vec<u64>),
    Delete(usize),
    View(usize, u32),
    Advance(u64),
    Rewind(u64),
    Home(u32, usize),
    Sweep,
    Erase,
    DeleteUser(u32),
    Restart,
    /// Exports, and imports into another directory.
    Move,
}

fn step() -> impl Strategy<Value = Step> {
    let user = 0..USERS;
    prop_oneof![
        4 => (user.clone(), user.clone(), prop::bool::weighted(0.75))
            .prop_map(|(a, b, on)| Step::Friends(a, b, on)),
        8 => (user.clone(), prop::collection::vec(1u64..20, 1..2))
            .prop_map(|(author, lives)| Step::Post(author, lives)),
        1 => (user.clone(), prop::collection::vec(1u64..20, 8..20))
            .prop_map(|(author, lives)| Step::Post(author, lives)),
        2 => (0usize..1_000).prop_map(Step::Delete),
        4 => (0usize..1_000, user.clone()).prop_map(|(story, viewer)| Step::View(story, viewer)),
        4 => (1u64..8_000).prop_map(Step::Advance),
        1 => (1u64..5_000).prop_map(Step::Rewind),
        6 => (user.clone(), 1usize..12).prop_map(|(user, limit)| Step::Home(user, limit)),
        1 => Just(Step::Sweep),
        1 => Just(Step::Erase),
        1 => user.clone().prop_map(Step::DeleteUser),
        1 => Just(Step::Restart),
    ]
}

/// Model of the acknowledged changes, stored as simply as possible.
#[derive(Default)]
struct Model {
    friends: Vec<(u32, u32)>,
    /// Id, author, expiry, viewers.
    stories: Vec<(StoryId, u32, u64, Vec<u32>)>,
    deleted: Vec<u32>,
}

impl Model {
    fn are_friends(&self, one: u32, other: u32) -> bool {
        self.friends.contains(&(one, other)) || self.friends.contains(&(other, one))
    }

    /// Returns the home of a user, newest first.
    fn home(&self, user: u32, now_ms: u64) -> Vec<Shown> {
        let shown = |(story, author, expires_ms, viewers): &(StoryId, u32, u64, Vec<u32>)| {
            let visible = self.are_friends(user, *author) && now_ms < *expires_ms;
            visible.then_some((*story, viewers.contains(&user)))
        };
        self.stories.iter().rev().filter_map(shown).collect()
    }
}

/// Reads a home page by page, downwards and upwards.
fn check_home(subject: &Subject, model: &Model, user: u32, limit: usize) {
    let expected = model.home(user, subject.node().now_ms());
    let (mut cursor, mut found) = (Cursor::Newest, Vec::new());
    loop {
        let (page, more) = subject.home(user, &Page::at(cursor, limit));
        assert!(page.len() <= limit, "{page:?}");
        found.extend(page);
        match found.last().filter(|_| more) {
            Some((last, _)) => cursor = Cursor::Before(*last),
            None => break,
        }
    }
    assert_eq!(found, expected, "stories home of {user}");
    let (mut cursor, mut found) = (Cursor::After(StoryId(0)), Vec::new());
    loop {
        let (page, more) = subject.home(user, &Page::at(cursor, limit));
        found.splice(0..0, page);
        match found.first().filter(|_| more) {
            Some((first, _)) => cursor = Cursor::After(*first),
            None => break,
        }
    }
    assert_eq!(found, expected, "stories home of {user}, from the oldest up");
}

fn delete_user(subject: &Subject, model: &mut Model, user: u32) {
    let deleted = Command::DeleteUser { user: id(user) };
    assert_eq!(subject.submit(deleted), Ok(Done::UserDeleted));
    model.deleted.push(user);
    model.friends.retain(|(one, other)| ![*one, *other].contains(&user));
    let (gone, left): (Vec<_>, Vec<_>) =
        model.stories.drain(..).partition(|(_, author, ..)| *author == user);
    model.stories = left;
    model.stories.iter_mut().for_each(|(.., viewers)| viewers.retain(|other| *other != user));
    for (story, ..) in gone {
        assert!(!subject.node().story(story, None, &mut Vec::new()), "gone for all");
    }
    for user in (0..USERS).filter(|user| !model.deleted.contains(user)) {
        check_home(subject, model, user, 3);
    }
}

fn take(subject: &mut Subject, model: &mut Model, step: &Step) {
    let users = match *step {
        Step::Friends(a, b, _) => vec![a, b],
        Step::Post(user, _)
        | Step::View(_, user)
        | Step::Home(user, _)
        | Step::DeleteUser(user) => {
            vec![user]
        }
        _ => vec![],
    };
    if users.iter().any(|user| model.deleted.contains(user)) {
        return;
    }
    match *step {
        Step::DeleteUser(user) => delete_user(subject, model, user),
        Step::Friends(a, b, on) => {
            let outcome = subject.befriend(a, b, on);
            assert_eq!(outcome.is_ok(), a != b);
            model.friends.retain(|pair| *pair != (a, b) && *pair != (b, a));
            if on && a != b {
                model.friends.push((a, b));
            }
        }
        Step::Post(author, ref lives) => {
            for secs in lives {
                let (story, expires_ms) = subject.post_story(author, *secs, "posted");
                model.stories.push((story, author, expires_ms, Vec::new()));
            }
        }
        Step::Delete(at) if !model.stories.is_empty() => {
            let (story, _, expires_ms, _) = model.stories.remove(at % model.stories.len());
            let outcome = subject.submit(Command::DeleteStory { story });
            assert_eq!(outcome.is_ok(), subject.node().now_ms() < expires_ms, "{outcome:?}");
        }
        Step::View(at, viewer) if !model.stories.is_empty() => {
            let at = at % model.stories.len();
            let (story, author, expires_ms) =
                (model.stories[at].0, model.stories[at].1, model.stories[at].2);
            let outcome = subject.view(story, viewer);
            let may = author == viewer || model.are_friends(author, viewer);
            assert_eq!(outcome.is_ok(), may && subject.node().now_ms() < expires_ms);
            let viewers = &mut model.stories[at].3;
            if outcome.is_ok() && viewer != author && !viewers.contains(&viewer) {
                viewers.push(viewer);
                viewers.sort_unstable();
            }
        }
        Step::Delete(_) | Step::View(..) => {}
        Step::Advance(ms) => subject.set_clock(subject.node().now_ms() + ms),
        Step::Rewind(ms) => subject.set_clock(subject.node().now_ms() - ms),
        Step::Home(user, limit) => check_home(subject, model, user, limit),
        Step::Sweep => subject.node().do_due(),
        Step::Erase => subject.node().erase_stories(),
        Step::Restart => {
            // A story that was shown as expired is durably so after the sweep.
            subject.node().do_due();
            subject.restart();
        }
        Step::Move => {
            subject.node().do_due();
            subject.node.take().unwrap().close();
            (subject.options, subject.data) = support::moved(&subject.options);
            subject.node = Some(Node::open(&subject.options).unwrap());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn stories_equal_their_definition_through_clocks_sweeps_restarts_and_imports(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let (mut subject, mut model) = (Subject::new(), Model::default());
        for (at, step) in steps.iter().enumerate() {
            if at == steps.len() / 2 {
                take(&mut subject, &mut model, &Step::Move);
            }
            take(&mut subject, &mut model, step);
        }
        subject.node().do_due();
        let now_ms = subject.node().now_ms();
        for user in (0..USERS).filter(|user| !model.deleted.contains(user)) {
            check_home(&subject, &model, user, 3);
        }
        for (story, author, expires_ms, viewers) in &model.stories {
            let views = subject.node().story_views(*story, UserId(*author), Span::ALL);
            let views = views.map(|views| views.into_iter().map(|(user, _)| user.0).collect());
            prop_assert_eq!(views, (now_ms < *expires_ms).then_some(viewers.clone()));
        }
    }
}
