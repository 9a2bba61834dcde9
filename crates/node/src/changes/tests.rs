//! Change feed of a node: its kinds, positions and limits, and what a start finds.

use std::fs;
use std::path::Path;

use feed::accounts::{AccountCommand, AccountState, PasswordHash, Role};
use feed::{
    Bio, Command, Done, Handle, Idempotency, Lifetime, Name, Patch, PostId, PostText, Reaction,
    Request, StoryId, UserEdit, UserId, UserRef,
};
use testkit::files::copy;

use super::*;
use crate::{Durability, Node};

fn options(data: &Path) -> NodeOptions {
    let mut options = NodeOptions::new(data);
    (options.durability, options.changes_max) = (Durability::Never, BYTES_MIN);
    options
}

fn id(user: u32) -> UserRef {
    UserRef::Id(UserId(user))
}

fn text(text: &str) -> PostText {
    PostText::parse(text).unwrap()
}

fn register(handle: &str) -> Command {
    let (name, bio) = (Name::default(), Bio::default());
    Command::Register { handle: Handle::parse(handle).unwrap(), name, bio }
}

fn set_state(state: AccountState) -> Command {
    Command::Account(AccountCommand::SetState { user: id(0), state })
}

fn react(user: u32, post: PostId, reaction: Reaction, on: bool) -> Command {
    Command::React { user: id(user), post, reaction, on }
}

fn not_interested(on: bool) -> Command {
    Command::NotInterested { user: id(0), other: id(1), on }
}

async fn submit(node: &Node, command: impl Into<Request>) -> Done {
    node.submit(command.into()).await.unwrap().outcome.unwrap()
}

async fn post(node: &Node, author: u32) -> PostId {
    let Done::Posted(post) = submit(node, Command::post(id(author), text("hello"))).await else {
        panic!("a post")
    };
    post
}

/// All records after a place, read in pages.
fn all(node: &Node, after: Option<Place>, limit: usize) -> Vec<(Place, u64, Record)> {
    let (mut found, mut after) = (Vec::new(), after);
    loop {
        let Records { items, next } = node.changes(after, limit).unwrap();
        assert!(items.len() <= limit);
        let is_end = items.is_empty() && next == node.changes_end();
        found.extend(items);
        after = Some(next);
        if is_end {
            return found;
        }
    }
}

fn records(found: &[(Place, u64, Record)]) -> Vec<(Kind, u32, u64)> {
    found.iter().map(|(_, _, record)| (record.kind, record.user.0, record.id)).collect()
}

/// A command, and the records that it makes.
type Step = (Command, Vec<(Kind, u32, u64)>);

/// Commands of all kinds that make records, for two posts by two users and a story by the second.
fn steps(one: PostId, two: PostId, story: StoryId) -> Vec<Step> {
    use Kind::*;
    let follow = || Command::Follow { user: id(0), other: id(1) };
    let befriend = || Command::Befriend { user: id(0), other: id(1) };
    let Ok(password) = PasswordHash::parse("$argon2id$v=19$m=8,t=1,p=1$c2FsdA$aGFzaA") else {
        panic!("a hash")
    };
    let open = AccountCommand::Open { user: id(0), email: None, password, role: Role::User };
    vec![
        (Command::EditUser(Box::new(UserEdit::new(id(0)))), vec![(UserEdited, 0, 0)]),
        (follow(), vec![(Followed, 0, 1)]),
        (follow(), vec![]),
        (Command::Unfollow { user: id(0), other: id(1) }, vec![(Unfollowed, 0, 1)]),
        (
            Command::FollowMany { user: id(0), others: vec![id(2), id(1)] },
            vec![(Followed, 0, 1), (Followed, 0, 2)],
        ),
        (befriend(), vec![(Befriended, 0, 1)]),
        (befriend(), vec![]),
        (Command::Unfriend { user: id(0), other: id(1) }, vec![(Unfriended, 0, 1)]),
        (Command::edit(one, Patch::of_text(text("new"))), vec![(PostEdited, 0, one.0)]),
        (react(1, one, Reaction::Favourite, true), vec![(Favourited, 1, one.0)]),
        (react(1, one, Reaction::Favourite, true), vec![]),
        (react(1, one, Reaction::Favourite, false), vec![(Unfavourited, 1, one.0)]),
        (react(1, one, Reaction::Bookmark, true), vec![(Bookmarked, 1, one.0)]),
        (react(1, one, Reaction::Bookmark, false), vec![(Unbookmarked, 1, one.0)]),
        (react(1, one, Reaction::Less, true), vec![(LessAdded, 1, one.0)]),
        (react(1, one, Reaction::Less, false), vec![(LessRemoved, 1, one.0)]),
        (not_interested(true), vec![(NotInterestedAdded, 0, 1)]),
        (not_interested(false), vec![(NotInterestedRemoved, 0, 1)]),
        (react(0, one, Reaction::Pin, true), vec![(Pinned, 0, one.0)]),
        (react(0, one, Reaction::Pin, false), vec![(Unpinned, 0, one.0)]),
        (Command::DeletePost { post: two }, vec![(PostDeleted, 1, two.0)]),
        (Command::DeleteStory { story }, vec![(StoryEnded, 1, story.0)]),
        (Command::Block { user: id(0), other: id(2) }, vec![(Unfollowed, 0, 2), (Blocked, 0, 2)]),
        (Command::Unblock { user: id(0), other: id(2) }, vec![(Unblocked, 0, 2)]),
        (
            Command::Mute { user: id(0), other: id(1), mentions: true, time: None },
            vec![(Muted, 0, 1)],
        ),
        (Command::Unmute { user: id(0), other: id(1) }, vec![(Unmuted, 0, 1)]),
        (Command::Account(open), vec![(AccountOpened, 0, 0)]),
        (set_state(AccountState::Disabled), vec![(AccountChanged, 0, 0), (UserDisabled, 0, 0)]),
        (set_state(AccountState::Active), vec![(AccountChanged, 0, 0), (UserEnabled, 0, 0)]),
        (Command::DeleteUser { user: id(2) }, vec![(UserDeleted, 2, 0)]),
    ]
}

#[tokio::test]
async fn each_kind_of_change_is_recorded_once_and_nothing_else() {
    let data = tempfile::tempdir().unwrap();
    let node = Node::open(&options(data.path())).unwrap();
    for handle in ["ada", "bob", "cyd"] {
        submit(&node, register(handle)).await;
    }
    let (one, two) = (post(&node, 0).await, post(&node, 1).await);
    let life = Lifetime::from_secs(60).unwrap();
    let story = Command::PostStory { author: id(1), text: text("hi"), life };
    let Done::StoryPosted { story, .. } = submit(&node, story).await else { panic!("a story") };
    let mut seen = records(&all(&node, None, 100));
    assert_eq!(seen.len(), 6);
    for (command, expect) in steps(one, two, story) {
        let before = node.changes_end();
        let what = format!("{command:?}");
        submit(&node, command).await;
        // Work that becomes due is done meanwhile, and has no records.
        assert_eq!(records(&all(&node, Some(before), 100)), expect, "{what}");
        seen.extend(expect);
    }
    for kind in Kind::ALL {
        assert!(seen.iter().any(|(of, ..)| of == kind), "{kind:?}");
    }
    node.close();
}

#[tokio::test]
async fn a_boost_is_a_post_and_what_changes_nothing_has_no_record() {
    let data = tempfile::tempdir().unwrap();
    let node = Node::open(&options(data.path())).unwrap();
    submit(&node, register("ada")).await;
    let one = post(&node, 0).await;
    let before = node.changes_end();
    submit(&node, react(0, one, Reaction::Boost, true)).await;
    submit(&node, react(0, one, Reaction::Boost, false)).await;
    assert!(node.submit(register("ada").into()).await.unwrap().outcome.is_err());
    let once = || Request {
        idempotency: Some(Idempotency { key: [1; 16], content: [2; 8] }),
        command: register("bob"),
    };
    submit(&node, once()).await;
    submit(&node, once()).await;
    let found = records(&all(&node, Some(before), 100));
    let [(Kind::PostPublished, 0, boost), (Kind::PostDeleted, 0, ended), bob] = found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((ended, bob), (boost, (Kind::UserRegistered, 1, 0)));
    node.close();
}

#[tokio::test]
async fn reading_on_from_any_position_gives_the_rest_once_whatever_the_pages() {
    let data = tempfile::tempdir().unwrap();
    let node = Node::open(&options(data.path())).unwrap();
    for group in 0..12 {
        // Groups of several records, of one and of none.
        let commands = (0..group % 4).map(|user| register(&format!("u{group}x{user}")));
        let commands = commands.chain([register("same")]).map(Request::from);
        drop(node.submit_all(commands.collect()).await.unwrap());
    }
    let whole = all(&node, None, 1_000);
    assert_eq!(whole.len(), 19);
    for limit in [1, 2, 3, 5, 100] {
        assert_eq!(all(&node, None, limit), whole);
        assert_eq!(all(&node, Some(Place::after(0)), limit), whole);
        for (at, (place, ..)) in whole.iter().enumerate() {
            assert_eq!(all(&node, Some(*place), limit), whole[at + 1..], "{place} {limit}");
            let later = whole.iter().position(|(other, ..)| other.group > place.group);
            let later = &whole[later.unwrap_or(whole.len())..];
            assert_eq!(all(&node, Some(Place::after(place.group)), limit), later);
        }
    }
    let beyond = Place::after(node.changes_end().group + 1);
    assert!(matches!(node.changes(Some(beyond), 1), Err(Unavailable::Gone)));
    node.close();
}

/// The records depend only on the log: a start that applies all of it again makes the same ones, and recognizes those
/// that were not lost.
#[tokio::test]
async fn a_replay_makes_the_lost_records_again_and_doubles_none() {
    let data = tempfile::tempdir().unwrap();
    let (changes, store) = (data.path().join("changes"), data.path().join("store"));
    let early = data.path().join("early");
    let node = Node::open(&options(data.path())).unwrap();
    for user in 0..20 {
        submit(&node, register(&format!("user{user}"))).await;
        if user == 10 {
            copy(&changes, &early);
        }
    }
    post(&node, 3).await;
    let expect = all(&node, None, 100);
    assert_eq!(expect.len(), 21);
    node.close();
    drop(node);
    for kept in [Some(&changes), Some(&early), None] {
        fs::remove_dir_all(&store).unwrap();
        match kept {
            Some(kept) if *kept == changes => {}
            Some(kept) => {
                fs::remove_dir_all(&changes).unwrap();
                copy(kept, &changes);
            }
            None => fs::remove_dir_all(&changes).unwrap(),
        }
        let node = Node::open(&options(data.path())).unwrap();
        assert_eq!(all(&node, None, 100), expect, "{kept:?}");
        node.close();
    }
}

#[tokio::test]
async fn a_feed_that_does_not_continue_the_store_begins_again() {
    let data = tempfile::tempdir().unwrap();
    let on = options(data.path());
    let off = NodeOptions { changes_max: 0, ..on.clone() };
    let mut users = 0;
    let mut run = async |options: &NodeOptions, after: Option<Place>| {
        let node = Node::open(options).unwrap();
        users += 1;
        submit(&node, register(&format!("user{users}"))).await;
        let found = node.changes(after, 100).map(|found| records(&found.items));
        let end = node.changes_end();
        node.close();
        (found, end)
    };
    let (found, _) = run(&off, None).await;
    assert!(matches!(found, Err(Unavailable::Off)));
    // The first user was registered before.
    let (found, first) = run(&on, None).await;
    assert_eq!(found.unwrap(), [(Kind::UserRegistered, 1, 0)]);
    let (found, second) = run(&on, Some(first)).await;
    assert_eq!(found.unwrap(), [(Kind::UserRegistered, 2, 0)]);
    drop(run(&off, None).await);
    let (found, _) = run(&on, Some(second)).await;
    assert!(matches!(found, Err(Unavailable::Gone)), "a change is missing");
    let (found, third) = run(&on, None).await;
    assert_eq!(found.unwrap(), [(Kind::UserRegistered, 4, 0), (Kind::UserRegistered, 5, 0)]);
    // Damage does not prevent a start.
    let file = fs::read_dir(data.path().join("changes")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&file).unwrap();
    bytes[520] ^= 1;
    fs::write(&file, bytes).unwrap();
    let (found, _) = run(&on, Some(Place::after(third.group - 1))).await;
    assert!(matches!(found, Err(Unavailable::Gone)));
}

fn edits(count: u64) -> Vec<Effect> {
    vec![Effect::Act { user: UserId(1), act: feed::Act::Edited }; count as usize]
}

#[test]
fn groups_without_records_take_no_space_and_a_checkpoint_notes_the_last_one() {
    let data = tempfile::tempdir().unwrap();
    let options = options(data.path());
    let open = |applied, last| ChangeLog::open(&options, (Position(applied), Position(last)));
    let mut log = open(7, 7).unwrap();
    log.shrink(false);
    let empty = log.kept().bytes();
    let groups = 10 * SEGMENT_BYTES / 512;
    for group in 8..groups {
        log.record(Position(group), group, &edits(u64::from(group == 100)));
    }
    log.shrink(false);
    assert_eq!(log.kept().bytes() - empty, 512);
    let found = log.kept().read(None, Position(groups - 1), 10).unwrap();
    assert_eq!((found.items.len(), found.items[0].0.group), (1, 100));
    assert_eq!(found.next, Place::after(groups - 1));
    drop(log);
    // Without a checkpoint, a replay passes the groups after the last entry again, and only they are accepted.
    let mut log = open(99, groups).unwrap();
    (100..groups)
        .for_each(|group| log.record(Position(group), group, &edits(u64::from(group == 100))));
    log.record(Position(groups), 0, &edits(2));
    assert_eq!(log.kept().read(None, Position(groups), 10).unwrap().items.len(), 3);
    // A store that is ahead of the last entry has records that the feed lacks, unless a checkpoint noted that there
    // are none.
    for is_noted in [true, false] {
        log.record(Position(groups + 1), 0, &[]);
        log.record(Position(groups + 2), 0, &[]);
        if is_noted {
            log.sync_point().run();
            log.sync_point().run();
            log.shrink(false);
            assert_eq!(log.kept().bytes() - empty, 3 * 512);
        }
        drop(log);
        log = open(groups + 2 + u64::from(!is_noted), groups + 4).unwrap();
        let found = log.kept().read(None, Position(groups + 4), 10).unwrap().items.len();
        assert_eq!(found, if is_noted { 3 } else { 0 });
    }
    assert!(!log.kept().has_failed());
}

#[test]
fn a_start_finds_the_segments_of_many_files() {
    let data = tempfile::tempdir().unwrap();
    let mut options = options(data.path());
    options.changes_max = u64::MAX;
    let mut log = ChangeLog::open(&options, (Position(0), Position(0))).unwrap();
    // Large groups, so that few fill a segment.
    let effects = edits(70_000);
    let groups = 48;
    for group in 1..=groups {
        log.record(Position(2 * group - 1), 0, &effects);
        log.record(Position(2 * group), 0, &[]);
    }
    let segments = |log: &ChangeLog| {
        let segments = log.kept();
        let segments = segments.segments.lock();
        segments.iter().map(|segment| (segment.first, segment.from)).collect::<Vec<_>>()
    };
    let before = segments(&log);
    assert!(before.len() > 2 * SEGMENTS_OPEN_MAX, "{}", before.len());
    drop(log);
    let log = ChangeLog::open(&options, (Position(1), Position(2 * groups))).unwrap();
    let after = segments(&log);
    assert_eq!(after.len(), before.len());
    for ((first, from), (same_first, exact)) in after.into_iter().zip(before) {
        // Whether the group before the first entry had records is not known from the files.
        assert!(
            first == same_first && (exact..=exact + 1).contains(&from),
            "{first} {from} {exact}"
        );
    }
    for group in [1, groups / 2, groups] {
        let after = Place::after(2 * group - 2);
        let found = log.kept().read(Some(after), Position(2 * groups), 1).unwrap().items;
        assert_eq!(found[0].0, Place { group: 2 * group - 1, index: Some(0) });
    }
}

#[tokio::test]
async fn a_node_without_a_feed_writes_no_file_for_it() {
    let data = tempfile::tempdir().unwrap();
    let files = || {
        let names = fs::read_dir(data.path()).unwrap().map(|file| file.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect::<std::collections::BTreeSet<_>>()
    };
    let run = async |changes_max| {
        let node = Node::open(&NodeOptions { changes_max, ..options(data.path()) }).unwrap();
        submit(&node, register(&format!("user{changes_max}"))).await;
        node.close();
        files()
    };
    let without = run(0).await;
    let with = run(BYTES_MIN).await;
    let added: Vec<_> = with.difference(&without).collect();
    assert_eq!(added, ["changes"]);
}

#[test]
fn the_files_are_bounded_and_what_is_kept_has_no_gap() {
    let data = tempfile::tempdir().unwrap();
    let mut options = options(data.path());
    options.changes_max = 2 * SEGMENT_BYTES;
    let dir = options.changes_dir().unwrap();
    let ends = (Position(7), Position(u64::MAX / 2));
    let mut log = ChangeLog::open(&options, ends).unwrap();
    let groups = 13_000;
    for group in 8..groups {
        let effects = edits(group % 3);
        log.record(Position(group), group, &effects);
        // A replay brings some again.
        log.record(Position(group.saturating_sub(3)), 0, &effects);
        log.shrink(false);
        let files = fs::read_dir(&dir).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
        if group % 500 == 0 {
            assert!(files.sum::<u64>() <= options.changes_max + 2 * SEGMENT_BYTES, "{group}");
        }
    }
    let up_to = Position(groups - 1);
    let kept = log.kept();
    let read = |after, limit| kept.read(after, up_to, limit);
    assert!(matches!(read(Some(Place::after(7)), 10), Err(Unavailable::Gone)));
    let Ok(Gap::Removed(oldest)) = kept.gap(Some(Place::after(7)), up_to) else { panic!() };
    assert!(read(Some(oldest), 10).is_ok());
    assert_eq!(kept.gap(Some(Place::after(groups)), up_to).unwrap(), Gap::Foreign);
    let (mut after, mut found) = (None, Vec::new());
    while after != Some(Place::after(up_to.0)) {
        let Records { items, next } = read(after, 97).unwrap();
        found.extend(items.into_iter().map(|(place, ms, _)| (place.group, ms, place.index)));
        after = Some(next);
    }
    let first = found[0].0;
    // Two of three groups have records.
    let per_segment = SEGMENT_BYTES / 512 * 3 / 2;
    assert!(groups - first > per_segment && groups - first < 4 * per_segment, "{first}");
    let of = |group: u64| (0..group % 3).map(move |index| (group, group, Some(index as u32)));
    // The oldest kept group may have no records.
    let expect: Vec<_> = (first..groups).flat_map(of).collect();
    assert_eq!(found, expect);

    // A damaged block ends a page before it; what follows its segment can be read.
    let mut files: Vec<_> = fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut bytes = fs::read(&files[0]).unwrap();
    let at = bytes.len() / 2;
    bytes[at..at + 512].iter_mut().for_each(|byte| *byte ^= 1);
    fs::write(&files[0], bytes).unwrap();
    let (mut after, mut read_before) = (None, 0);
    while let Ok(Records { items, next }) = read(after, 10_000) {
        (after, read_before) = (Some(next), read_before + items.len());
        assert!(next.group < up_to.0, "the damage is found");
    }
    assert!(read_before > 100, "{read_before}");
    let Ok(Gap::Damaged(next)) = kept.gap(after, up_to) else { panic!() };
    assert!(next.group > after.unwrap().group && next.group < up_to.0, "{next} {after:?}");
    assert!(!read(Some(next), 10).unwrap().items.is_empty());
}

#[test]
fn the_files_become_small_while_the_disk_has_little_space_and_only_then() {
    let data = tempfile::tempdir().unwrap();
    let mut options = options(data.path());
    options.changes_max = 4 * BYTES_MIN;
    let mut log = ChangeLog::open(&options, (Position(0), Position(0))).unwrap();
    let per_segment = SEGMENT_BYTES / 512;
    (1..=12 * per_segment).for_each(|group| log.record(Position(group), group, &edits(1)));
    assert!(!log.shrink(false));
    assert!(log.kept().bytes() > BYTES_MIN + SEGMENT_BYTES);
    let removed = std::iter::repeat_with(|| log.shrink(true)).take_while(|removed| *removed);
    assert!((3..=6).contains(&removed.count()), "one segment at a time");
    assert!(log.kept().bytes() <= BYTES_MIN);
    assert!(!log.kept().has_failed());
}

#[tokio::test]
async fn an_error_of_the_files_ends_the_feed_and_nothing_else() {
    let data = tempfile::tempdir().unwrap();
    let (on, changes) = (options(data.path()), data.path().join("changes"));
    // The directory cannot be made.
    fs::write(&changes, "").unwrap();
    let node = Node::open(&on).unwrap();
    submit(&node, register("ada")).await;
    assert!(matches!(node.changes(None, 1), Err(Unavailable::Failed)));
    assert!(node.sizes().changes_failed);
    node.changes_after(node.changes_end()).await;
    node.close();
    drop(node);
    // The next start begins again.
    fs::remove_file(&changes).unwrap();
    let node = Node::open(&on).unwrap();
    assert_eq!(records(&all(&node, None, 1)), []);
    submit(&node, register("bob")).await;
    assert_eq!(records(&all(&node, None, 1)), [(Kind::UserRegistered, 1, 0)]);
    // The next segment cannot be made.
    fs::remove_dir_all(&changes).unwrap();
    let same = || Command::EditUser(Box::new(UserEdit::new(id(0))));
    for _ in 0..2 * SEGMENT_BYTES / 512 {
        submit(&node, same()).await;
        if node.sizes().changes_failed {
            break;
        }
    }
    assert!(matches!(node.changes(None, 1), Err(Unavailable::Failed)));
    submit(&node, register("cyd")).await;
    node.close();
    drop(node);
    let node = Node::open(&on).unwrap();
    assert_eq!(node.facts().totals().users, 3);
    submit(&node, register("dan")).await;
    assert_eq!(records(&all(&node, None, 1)), [(Kind::UserRegistered, 3, 0)]);
    node.close();
}

#[tokio::test]
async fn a_command_that_opens_the_directory_continues_the_feed() {
    let data = tempfile::tempdir().unwrap();
    let on = options(data.path());
    let node = Node::open(&on).unwrap();
    submit(&node, register("ada")).await;
    node.close();
    drop(node);
    let node = Node::open(&NodeOptions::new(data.path()).for_commands()).unwrap();
    submit(&node, register("bob")).await;
    node.close();
    drop(node);
    let node = Node::open(&on).unwrap();
    let expect = [(Kind::UserRegistered, 0, 0), (Kind::UserRegistered, 1, 0)];
    assert_eq!(records(&all(&node, None, 10)), expect);
    node.close();
}

#[tokio::test]
async fn groups_without_records_move_the_position_of_a_reader_on_for_nothing() {
    let data = tempfile::tempdir().unwrap();
    let node = Node::open(&options(data.path())).unwrap();
    submit(&node, register("ada")).await;
    let after = node.changes_end();
    for _ in 0..3 {
        assert!(node.submit(register("ada").into()).await.unwrap().outcome.is_err());
    }
    // Not even files are needed.
    fs::remove_dir_all(data.path().join("changes")).unwrap();
    let Records { items, next } = node.changes(Some(after), 10).unwrap();
    assert_eq!((items, next), (vec![], node.changes_end()));
    assert!(next.group > after.group);
    let waits = tokio::time::timeout(std::time::Duration::ZERO, node.changes_after(after));
    assert!(waits.await.is_err(), "nothing has changed");
    submit(&node, register("bob")).await;
    node.changes_after(after).await;
    node.close();
}
