//! Scheduled posts: their allowed times, that each is published once with the state of that moment, and the removal of
//! those that cannot be published.

use crate::support;
use crate::support::{World, block, id};
use feed::accounts::{AccountCommand, AccountState, PasswordHash, Role};
use feed::limits::{SCHEDULED_MAX, SCHEDULED_MS_MAX, SCHEDULED_MS_MIN, UNATTACHED_MEDIA_MAX};
use feed::media::{
    BlurHash, Description, FileHash, MediaCommand, MediaDone, MediaFile, MediaId, MediaKey,
    MediaUse, NewMedia,
};
use feed::polls::{NewPoll, PollOptions, PollTime};
use feed::schedule::{ScheduleCommand, ScheduleDone, ScheduledPost};
use feed::{
    Command, Done, Draft, DueWork, Mend, Outcome, PostId, PostText, Refusal, ScheduledId, Span,
    UserId,
};
use rows::{NameTable, Rows as _, Table};

const HOUR: u64 = 3_600_000;

fn run(world: &mut World, command: ScheduleCommand) -> Outcome {
    world.run(Command::Schedule(command))
}

/// Schedules a post for an hour later.
fn new(world: &World, author: u32, text: &str) -> ScheduledPost {
    let text = PostText::parse(text).unwrap_or(PostText::none());
    ScheduledPost { draft: Draft::new(id(author), text), due_ms: world.now_ms + HOUR }
}

/// Schedules a post with pictures.
fn with(world: &World, media: &[MediaId], text: &str) -> ScheduledPost {
    let mut post = new(world, 0, text);
    post.draft.content.media = media.to_vec();
    post
}

fn create(world: &mut World, post: ScheduledPost) -> Outcome {
    run(world, ScheduleCommand::Create(Box::new(post)))
}

fn created(world: &mut World, post: ScheduledPost) -> ScheduledId {
    match create(world, post) {
        Ok(Done::Schedule(ScheduleDone::Saved(id))) => id,
        other => panic!("{other:?}"),
    }
}

fn publish(world: &mut World, user: u32, id: ScheduledId) -> Outcome {
    let post = world.facts().scheduled(UserId(user), id);
    let due_ms = post.map_or(world.now_ms, |post| post.due_ms);
    world.run(Command::DoDue(DueWork::Publish { user: UserId(user), id }.at(due_ms)))
}

const PUBLISHED: Outcome = Ok(Done::DueDone);
const NOT_DUE: Outcome = Ok(Done::NotDue);

fn picture(world: &mut World, owner: u32, content: u8) -> MediaId {
    let new = NewMedia {
        owner: id(owner),
        key: MediaKey([content; 16]),
        original: MediaFile {
            hash: FileHash([content; 32]),
            bytes: 1,
            is_png: false,
            width: 1,
            height: 1,
        },
        preview: None,
        blurhash: BlurHash::parse("U00").unwrap(),
        description: Description::default(),
        focus: None,
        profile: None,
    };
    match world.run(Command::Media(MediaCommand::Add(Box::new(new)))) {
        Ok(Done::Media(MediaDone::Added(media))) => media,
        other => panic!("{other:?}"),
    }
}

fn posts(world: &World, user: u32) -> Vec<PostId> {
    world.facts().posts_by(UserId(user), Span::ALL).into_iter().map(|(post, _)| post).collect()
}

fn used(world: &World, media: MediaId) -> Option<MediaUse> {
    world.facts().media(media).map(|media| media.used)
}

fn check_rows(world: &World) {
    let mut rows = world.rows.clone();
    let (mut mend, mut found) = (Mend::new(false), Vec::new());
    while mend.step(&mut rows, &mut |finding| found.push(finding)) {}
    assert!(found.is_empty(), "{found:?}");
}

fn has_no_rows(world: &World) -> bool {
    let is_due = |due: feed::Due| matches!(due.work, DueWork::Publish { .. });
    world.rows.first_name(NameTable::Scheduled, &[]).is_none()
        && !world.due().into_iter().any(is_due)
}

#[test]
fn a_post_is_scheduled_five_minutes_to_ten_years_ahead() {
    let mut world = World::new();
    let at = created(&mut world, new(&World::new(), 0, "later"));
    for (ahead_ms, good) in [
        (0, false),
        (SCHEDULED_MS_MIN - 1, false),
        (SCHEDULED_MS_MIN, true),
        (SCHEDULED_MS_MAX, true),
        (SCHEDULED_MS_MAX + 1, false),
    ] {
        // The command has a stamp one millisecond later.
        let due_ms = world.now_ms + 1 + ahead_ms;
        let post = ScheduledPost { due_ms, ..new(&world, 0, "later") };
        assert_eq!(create(&mut world, post).is_ok(), good, "{ahead_ms}");
        let due_ms = world.now_ms + 1 + ahead_ms;
        let moved = run(&mut world, ScheduleCommand::Move { user: id(0), id: at, due_ms });
        assert_eq!(moved.is_ok(), good, "{ahead_ms}");
        check_rows(&world);
    }
    for due_ms in [0, 1, u64::MAX] {
        let post = ScheduledPost { due_ms, ..new(&world, 0, "later") };
        assert_eq!(create(&mut world, post), Err(Refusal::BadScheduledTime));
    }
}

#[test]
fn it_is_published_once_when_it_is_due_as_a_post_of_that_moment() {
    let mut world = World::new();
    let parent = world.post(1, "hello");
    let mut post = new(&world, 0, "hi @bob and @dan #tag");
    post.draft.parent = Some(parent);
    let options = PollOptions::parse(["a", "b"]).unwrap();
    let time = PollTime::from_secs(300).unwrap();
    post.draft.poll = Some(NewPoll { options, multiple: true, hide_totals: true, time });
    let at = created(&mut world, post.clone());
    assert_eq!(world.effects, []);
    assert_eq!(world.facts().scheduled(UserId(0), at), Some(post.clone()));
    let due = DueWork::Publish { user: UserId(0), id: at }.at(post.due_ms);
    assert_eq!(world.due(), [due]);
    check_rows(&world);
    world.run(support::register("dan")).unwrap();
    world.now_ms = post.due_ms - 2;
    assert_eq!(publish(&mut world, 0, at), NOT_DUE);
    assert_eq!(posts(&world, 0), []);
    assert_eq!(publish(&mut world, 0, at), PUBLISHED);
    // Two nodes may send the same command.
    assert_eq!(publish(&mut world, 0, at), NOT_DUE);
    let found = posts(&world, 0);
    let shown = world.facts().post(found[0]).unwrap();
    assert_eq!((found.len(), shown.in_reply_to), (1, Some(parent)));
    assert_eq!(shown.mentions, [UserId(1), UserId(3)], "who exists when it is published");
    let poll = shown.poll.unwrap();
    assert_eq!(poll.ends_ms, found[0].unix_ms() + 300_000, "its time begins then");
    assert!(has_no_rows(&world));
    check_rows(&world);
}

#[test]
fn what_could_not_be_published_now_is_refused_and_changes_nothing() {
    let mut world = World::new();
    let hidden = world.post(1, "hello");
    let (mine, theirs) = (picture(&mut world, 0, 1), picture(&mut world, 1, 2));
    world.run(block(id(1), id(0))).unwrap();
    let poll = || {
        let options = PollOptions::parse(["a", "b"]).unwrap();
        let time = PollTime::from_secs(300).unwrap();
        Some(NewPoll { options, multiple: false, hide_totals: false, time })
    };
    let plain = |world: &World| new(world, 0, "later");
    let mut reply = plain(&world);
    reply.draft.parent = Some(hidden);
    let media = |media: &[MediaId]| with(&world, media, "later");
    let mut both = media(&[mine]);
    both.draft.poll = poll();
    for (post, expect) in [
        (new(&world, 0, ""), Refusal::BadText),
        (new(&world, 9, "later"), Refusal::UserNotFound),
        (reply, Refusal::ParentNotFound),
        (media(&[theirs]), Refusal::MediaNotFound),
        (media(&[mine, mine]), Refusal::MediaAttached),
        (both, Refusal::PollWithMedia),
    ] {
        let before = world.snapshot();
        assert_eq!(create(&mut world, post), Err(expect));
        assert!(world.snapshot() == before);
    }
    let at = created(&mut world, new(&World::new(), 0, "later"));
    let due_ms = world.now_ms + HOUR;
    for command in [
        ScheduleCommand::Cancel { user: id(2), id: at },
        ScheduleCommand::Move { user: id(2), id: at, due_ms },
        ScheduleCommand::Cancel { user: id(0), id: ScheduledId(7) },
    ] {
        assert_eq!(run(&mut world, command), Err(Refusal::ScheduledNotFound), "not theirs");
    }
}

#[test]
fn what_cannot_be_published_when_it_is_due_is_removed() {
    let mut world = World::new();
    let password = PasswordHash::parse("$argon2id$v=19$m=8,t=1,p=1$c2FsdA$aGFzaA").unwrap();
    let role = Role::User;
    let open = AccountCommand::Open { user: id(2), email: None, password, role };
    world.run(Command::Account(open)).unwrap();
    let parent = world.post(1, "hello");
    let media = picture(&mut world, 0, 1);
    let mut reply = new(&world, 0, "hi");
    (reply.draft.parent, reply.draft.content.media) = (Some(parent), vec![media]);
    let reply = created(&mut world, reply);
    let blocked = world.post(1, "hello again");
    let mut other = new(&world, 0, "hi");
    other.draft.parent = Some(blocked);
    let other = created(&mut world, other);
    let disabled = new(&world, 2, "later");
    let disabled = created(&mut world, disabled);
    world.run(Command::DeletePost { post: parent }).unwrap();
    world.run(block(id(1), id(0))).unwrap();
    let state = AccountState::Disabled;
    world.run(Command::Account(AccountCommand::SetState { user: id(2), state })).unwrap();
    world.now_ms += HOUR;
    for (user, id) in [(0, reply), (0, other), (2, disabled)] {
        assert_eq!(publish(&mut world, user, id), PUBLISHED);
        assert_eq!(posts(&world, user), []);
    }
    assert!(has_no_rows(&world));
    assert!(used(&world, media).is_some_and(MediaUse::is_unattached));
    check_rows(&world);
}

#[test]
fn its_pictures_are_held_until_it_is_published_or_cancelled() {
    let mut world = World::new();
    let media: Vec<_> = (1..=4).map(|content| picture(&mut world, 0, content)).collect();
    let post = |world: &World, media: &[MediaId]| with(world, media, "");
    let first = post(&world, &media[..2]);
    let first = created(&mut world, first);
    assert_eq!(used(&world, media[0]), Some(MediaUse::Scheduled(first)));
    assert_eq!(world.facts().media_space(UserId(0)).unattached, 2);
    let again = post(&world, &media[1..3]);
    assert_eq!(create(&mut world, again), Err(Refusal::MediaAttached));
    let delete = MediaCommand::Delete { user: id(0), media: media[0] };
    assert_eq!(world.run(Command::Media(delete)), Err(Refusal::MediaAttached));
    world.now_ms += 2 * support::DAY_MS;
    assert_eq!(world.do_due_of(|work| matches!(work, DueWork::RemoveMedia { .. })), 2);
    assert!(used(&world, media[0]).is_some() && used(&world, media[2]).is_none());
    check_rows(&world);
    assert_eq!(publish(&mut world, 0, first), PUBLISHED);
    let shown = world.facts().post(posts(&world, 0)[0]).unwrap();
    assert_eq!(shown.content.media, media[..2]);
    assert_eq!(used(&world, media[1]), Some(MediaUse::Post(posts(&world, 0)[0])));
    check_rows(&world);
    // A cancellation does not exceed the limit of unattached pictures.
    let held: Vec<_> = (10..14).map(|content| picture(&mut world, 0, content)).collect();
    let second = post(&world, &held);
    let second = created(&mut world, second);
    for content in 0..UNATTACHED_MEDIA_MAX - 2 {
        picture(&mut world, 0, content as u8 + 20);
    }
    run(&mut world, ScheduleCommand::Cancel { user: id(0), id: second }).unwrap();
    assert_eq!(world.facts().media_space(UserId(0)).unattached, UNATTACHED_MEDIA_MAX);
    let left = held.iter().filter(|media| used(&world, **media).is_some()).count();
    assert_eq!(left, 2);
    assert!(has_no_rows(&world));
    check_rows(&world);
}

#[test]
fn the_number_of_scheduled_posts_is_bounded_and_a_deleted_user_leaves_none() {
    let mut world = World::new();
    let media = picture(&mut world, 0, 1);
    let first = with(&world, &[media], "first");
    let first = created(&mut world, first);
    for _ in 1..SCHEDULED_MAX {
        let post = new(&world, 0, "later");
        created(&mut world, post);
    }
    let post = new(&world, 0, "later");
    assert_eq!(create(&mut world, post), Err(Refusal::TooManyScheduled));
    let of_other = new(&world, 1, "later");
    let of_other = created(&mut world, of_other);
    run(&mut world, ScheduleCommand::Cancel { user: id(0), id: first }).unwrap();
    let post = new(&world, 0, "later");
    let last = created(&mut world, post);
    world.run(Command::DeleteUser { user: id(0) }).unwrap();
    world.now_ms += HOUR;
    assert_eq!(publish(&mut world, 0, last), PUBLISHED);
    assert_eq!(world.facts().totals().posts, 0, "and nothing is published");
    check_rows(&world);
    let phase = feed::ErasurePhase::of(Table::Name(NameTable::Scheduled));
    let mut commands = 0;
    while !world.facts().items_in_phase(UserId(0), phase, 0, 1).is_empty() {
        world.run(Command::EraseUser { user: UserId(0), phase, from: 0 }).unwrap();
        commands += 1;
    }
    assert!(commands > 0, "they were left");
    world.erase(0);
    assert_eq!(world.facts().media(media), None);
    assert_eq!(publish(&mut world, 1, of_other), PUBLISHED);
    assert!(has_no_rows(&world) && posts(&world, 1).len() == 1);
    check_rows(&world);
}

#[test]
fn lost_rows_of_scheduled_posts_come_back() {
    use rows::PutRows as _;
    let mut world = World::new();
    let media = picture(&mut world, 0, 1);
    let post = with(&world, &[media], "");
    let at = created(&mut world, post.clone());
    let due = world.rows.first_name(NameTable::Due, &[]).unwrap();
    let key = [&[0; 4][..], &at.0.to_be_bytes()].concat();
    let whole = world.rows.clone();
    let mend = |rows: &mut testkit::MemoryRows| {
        let (mut mend, mut found) = (Mend::new(false), Vec::new());
        while mend.step(rows, &mut |finding| found.push(finding)) {}
        assert!(!found.is_empty());
        let mut again = 0;
        let mut mend = Mend::new(false);
        while mend.step(rows, &mut |_| again += 1) {}
        assert_eq!(again, 0, "a second check finds nothing");
    };
    let mut rows = whole.clone();
    rows.put_name(NameTable::Due, &due, None);
    mend(&mut rows);
    assert!(rows == whole);
    let mut rows = whole.clone();
    rows.put_name(NameTable::Due, &[&[1], &due[1..]].concat(), Some(rows::Value::new()));
    mend(&mut rows);
    assert!(rows == whole);
    // A lost post releases its picture, and a post without text that loses its picture is removed.
    world.rows.put_name(NameTable::Scheduled, &key, None);
    mend(&mut world.rows);
    assert!(used(&world, media).is_some_and(MediaUse::is_unattached) && has_no_rows(&world));
    world.rows = whole;
    world.rows.put_name(NameTable::Media, &media.0.to_be_bytes(), None);
    mend(&mut world.rows);
    assert!(has_no_rows(&world));
}
