//! Pictures: uploading, attaching and removing them, and their space.

use crate::support::{World, id};
use feed::limits::{POST_MEDIA_MAX, UNATTACHED_MEDIA_MAX, UNATTACHED_MS};
use feed::media::{
    BlurHash, Description, FileHash, Focus, MediaChange, MediaCommand, MediaDone, MediaFile,
    MediaId, MediaKey, MediaSpace, MediaUse, NewMedia, ProfilePicture,
};
use feed::{
    Command, Content, Done, Draft, Due, DueWork, Effect, Mend, Outcome, Patch, PostChange, PostId,
    PostText, Refusal, UserId,
};

fn file(content: u8, bytes: u32) -> MediaFile {
    MediaFile { hash: FileHash([content; 32]), bytes, is_png: false, width: 8, height: 4 }
}

pub(crate) fn new(owner: u32, content: u8) -> NewMedia {
    NewMedia {
        owner: id(owner),
        key: MediaKey([content; 16]),
        original: file(content, 5_000),
        preview: Some(file(content + 100, 100)),
        blurhash: BlurHash::parse("U00").unwrap(),
        description: Description::default(),
        focus: None,
        profile: None,
    }
}

fn run(world: &mut World, command: MediaCommand) -> Outcome {
    world.run(Command::Media(command))
}

pub(crate) fn added(world: &mut World, new: NewMedia) -> MediaId {
    match run(world, MediaCommand::Add(Box::new(new))) {
        Ok(Done::Media(MediaDone::Added(media))) => media,
        other => panic!("{other:?}"),
    }
}

fn publish(world: &mut World, author: u32, text: &str, media: &[MediaId]) -> Outcome {
    let text = PostText::parse(text).unwrap_or(PostText::none());
    let content = Content { media: media.to_vec(), ..Content::of_text(text) };
    let draft = Draft::of(id(author), content);
    world.run(Command::Publish(Box::new(draft)))
}

pub(crate) fn published(world: &mut World, author: u32, text: &str, media: &[MediaId]) -> PostId {
    match publish(world, author, text, media) {
        Ok(Done::Posted(post)) => post,
        other => panic!("{other:?}"),
    }
}

fn edit(
    world: &mut World,
    post: PostId,
    media: Option<&[MediaId]>,
    described: &[MediaChange],
) -> Outcome {
    let (media, described) = (media.map(<[_]>::to_vec), described.to_vec());
    world.run(Command::edit(post, Patch { media, described, ..Patch::default() }))
}

fn space(pictures: u32, unattached: u32) -> MediaSpace {
    // Each picture has two files: one of two blocks, and one of one block.
    MediaSpace { pictures, unattached, bytes: u64::from(pictures) * 3 * 4_096 }
}

/// Checks that the rows agree, with the command that checks a data directory.
fn check_rows(world: &World) {
    let mut rows = world.rows.clone();
    let mut mend = Mend::new(false);
    let mut found = Vec::new();
    while mend.step(&mut rows, &mut |finding| found.push(finding)) {}
    assert!(found.is_empty(), "{found:?}");
}

const USER: UserId = UserId(0);

#[test]
fn a_picture_is_attached_to_one_post_and_goes_with_it() {
    let mut world = World::new();
    let media: Vec<_> = (1..=4).map(|content| added(&mut world, new(0, content))).collect();
    assert_eq!(world.effects, []);
    assert_eq!(world.facts().media_space(USER), space(4, 4));
    let post = published(&mut world, 0, "", &media);
    assert_eq!(world.facts().post(post).unwrap().content.media, media);
    assert!(matches!(world.effects[..], [Effect::Post { change: PostChange::Published, .. }]));
    assert_eq!(world.facts().media(media[0]).unwrap().used, MediaUse::Post(post));
    assert_eq!(world.facts().media_space(USER), space(4, 0));
    assert_eq!(world.facts().all_media_space(), space(4, 0));
    let attached = Err(Refusal::MediaAttached);
    assert_eq!(publish(&mut world, 0, "again", &media[..1]), attached);
    assert_eq!(run(&mut world, MediaCommand::Delete { user: id(0), media: media[0] }), attached);
    check_rows(&world);
    world.run(Command::DeletePost { post }).unwrap();
    assert_eq!(world.facts().media_space(USER), MediaSpace::default());
    assert!(media.iter().all(|media| world.facts().media(*media).is_none()));
    assert!(!world.facts().needs_file(&FileHash([1; 32])));
    check_rows(&world);
}

#[test]
fn pictures_of_others_and_too_many_are_refused_and_change_nothing() {
    let mut world = World::new();
    let media: Vec<_> = (1..=5).map(|content| added(&mut world, new(0, content))).collect();
    let before = world.snapshot();
    for (author, text, media, refusal) in [
        (1, "x", vec![media[0]], Refusal::MediaNotFound),
        (0, "x", vec![MediaId(7)], Refusal::MediaNotFound),
        (0, "x", media.clone(), Refusal::TooManyMedia),
        (0, "x", vec![media[0]; 2], Refusal::MediaAttached),
        (0, "", vec![], Refusal::BadText),
        (9, "x", vec![media[0]], Refusal::UserNotFound),
    ] {
        assert_eq!(publish(&mut world, author, text, &media), Err(refusal), "{author} {media:?}");
    }
    let not_found = Err(Refusal::MediaNotFound);
    assert_eq!(run(&mut world, MediaCommand::Delete { user: id(1), media: media[0] }), not_found);
    let change = MediaChange { media: media[0], description: None, focus: None };
    let change = MediaCommand::Change { user: id(1), change: Box::new(change) };
    assert_eq!(run(&mut world, change), not_found);
    assert_eq!(world.snapshot(), before);
    assert_eq!(POST_MEDIA_MAX, 4);
}

#[test]
fn an_edit_removes_adds_and_describes_pictures() {
    let mut world = World::new();
    let media: Vec<_> = (1..=3).map(|content| added(&mut world, new(0, content))).collect();
    let post = published(&mut world, 0, "", &media[..2]);
    let described = MediaChange {
        media: media[1],
        description: Some(Description::parse("a cat").unwrap()),
        focus: Some(Focus::new(0.5, -0.5).unwrap()),
    };
    // One picture is removed, one is kept and described, one is new.
    let kept = [media[2], media[1]];
    assert_eq!(
        edit(&mut world, post, Some(&kept), std::slice::from_ref(&described)),
        Ok(Done::PostEdited)
    );
    assert!(matches!(world.effects[..], [Effect::Post { change: PostChange::Edited, .. }]));
    assert_eq!(world.facts().post(post).unwrap().content.media, kept);
    assert!(world.facts().media(media[0]).is_none());
    let found = world.facts().media(media[1]).unwrap();
    assert_eq!((found.description.as_str(), found.focus), ("a cat", described.focus));
    assert_eq!(world.facts().media_space(USER), space(2, 0));
    assert!(world.facts().post(post).unwrap().edited.is_some());
    check_rows(&world);
    // An edit without pictures keeps them; an edit that would leave nothing is refused.
    let sensitive = Patch { sensitive: Some(true), ..Patch::default() };
    world.run(Command::edit(post, sensitive)).unwrap();
    assert_eq!(world.facts().post(post).unwrap().content.media, kept);
    assert_eq!(edit(&mut world, post, Some(&[]), &[]), Err(Refusal::BadText));
    let foreign = added(&mut world, new(1, 9));
    let refused = edit(&mut world, post, Some(&[foreign]), &[]);
    assert_eq!(refused, Err(Refusal::MediaNotFound));
    assert_eq!(world.facts().post(post).unwrap().content.media, kept);
}

#[test]
fn a_picture_that_is_not_attached_within_a_day_is_removed_and_others_stay() {
    let mut world = World::new();
    let old: Vec<_> = (1..=3).map(|content| added(&mut world, new(0, content))).collect();
    let post = published(&mut world, 0, "x", &old[..1]);
    let first = world.due()[0];
    world.now_ms = first.at_ms - 2;
    assert_eq!(world.run(Command::DoDue(first)), Ok(Done::NotDue), "a millisecond before");
    assert_eq!(unattached(&world), [old[1], old[2]]);
    world.now_ms += UNATTACHED_MS;
    let young = added(&mut world, new(0, 9));
    assert_eq!(unattached(&world), [old[1], old[2], young]);
    assert_eq!(expire(&mut world), 2);
    assert_eq!(unattached(&world), [young]);
    assert_eq!(world.facts().post(post).unwrap().content.media, old[..1]);
    assert_eq!(world.facts().media_space(USER), space(2, 1));
    check_rows(&world);
}

/// Unattached pictures, those unattached longest first.
fn unattached(world: &World) -> Vec<MediaId> {
    let unattached = |due: Due| match due.work {
        DueWork::RemoveMedia { media } => Some(media),
        _ => None,
    };
    world.due().into_iter().filter_map(unattached).collect()
}

/// Removes pictures that are unattached for a day. Returns their number.
fn expire(world: &mut World) -> usize {
    world.do_due_of(|work| matches!(work, DueWork::RemoveMedia { .. }))
}

#[test]
fn pictures_of_a_post_that_is_written_anew_are_unattached_for_a_day() {
    let mut world = World::new();
    let media: Vec<_> = (1..=3).map(|content| added(&mut world, new(0, content))).collect();
    let post = published(&mut world, 0, "x", &media[..2]);
    world.now_ms += 10 * UNATTACHED_MS;
    let redraft = MediaCommand::Redraft { post };
    assert_eq!(run(&mut world, redraft.clone()), Ok(Done::Deleted));
    assert_eq!(run(&mut world, redraft), Err(Refusal::PostNotFound));
    assert_eq!(unattached(&world), [media[2], media[0], media[1]], "by the time, not the age");
    assert_eq!(world.facts().media_space(USER), space(3, 3));
    check_rows(&world);
    published(&mut world, 0, "y", &media[..1]);
    assert_eq!(expire(&mut world), 1);
    assert_eq!(unattached(&world), media[1..2]);
    world.now_ms += UNATTACHED_MS + 1;
    assert_eq!(expire(&mut world), 1);
    assert_eq!(world.facts().media_space(USER), space(1, 0));
    check_rows(&world);
}

#[test]
fn a_post_that_is_written_anew_leaves_no_more_unattached_pictures_than_a_user_may_have() {
    let mut world = World::new();
    let media: Vec<_> = (1..=2).map(|content| added(&mut world, new(0, content))).collect();
    let post = published(&mut world, 0, "x", &media);
    for content in 1..UNATTACHED_MEDIA_MAX as u8 {
        added(&mut world, new(0, content));
    }
    run(&mut world, MediaCommand::Redraft { post }).unwrap();
    assert_eq!(world.facts().media_space(USER), space(64, 64));
    assert!(world.facts().media(media[0]).is_some() && world.facts().media(media[1]).is_none());
    check_rows(&world);
}

#[test]
fn a_profile_has_one_picture_of_each_kind_and_the_one_before_is_removed() {
    let mut world = World::new();
    let of =
        |content, profile| NewMedia { profile: Some(profile), preview: None, ..new(0, content) };
    let first = added(&mut world, of(1, ProfilePicture::Avatar));
    let header = added(&mut world, of(2, ProfilePicture::Header));
    let second = added(&mut world, of(3, ProfilePicture::Avatar));
    let user = world.facts().user(USER).unwrap();
    assert_eq!((user.avatar, user.header), (Some(second), Some(header)));
    assert!(world.facts().media(first).is_none());
    let attached = Err(Refusal::MediaAttached);
    assert_eq!(publish(&mut world, 0, "x", &[second]), attached);
    let description = Some(Description::parse("me").unwrap());
    for (user, media, expect) in
        [(0, second, Ok(Done::Media(MediaDone::Changed))), (1, second, Err(Refusal::MediaNotFound))]
    {
        let change = MediaChange { media, description: description.clone(), focus: None };
        let change = MediaCommand::Change { user: id(user), change: Box::new(change) };
        assert_eq!(run(&mut world, change), expect);
    }
    assert_eq!(world.facts().media(second).unwrap().description.as_str(), "me");
    check_rows(&world);
    let clear = MediaCommand::ClearProfile { user: id(0), picture: ProfilePicture::Avatar };
    for _ in 0..2 {
        assert_eq!(run(&mut world, clear.clone()), Ok(Done::Media(MediaDone::Changed)));
        let user = world.facts().user(USER).unwrap();
        assert_eq!((user.avatar, user.header), (None, Some(header)));
    }
    assert_eq!(world.facts().media_space(USER).pictures, 1);
    check_rows(&world);
}

#[test]
fn a_file_is_needed_until_the_last_picture_with_it_is_gone() {
    let mut world = World::new();
    let (one, two) = (added(&mut world, new(0, 1)), added(&mut world, new(1, 1)));
    let hash = FileHash([1; 32]);
    let (needed, next) = world.facts().needed_files(&[], 9);
    assert_eq!((needed, next), (vec![hash, FileHash([101; 32])], None));
    run(&mut world, MediaCommand::Delete { user: id(0), media: one }).unwrap();
    assert!(world.facts().needs_file(&hash));
    run(&mut world, MediaCommand::Delete { user: id(1), media: two }).unwrap();
    assert!(!world.facts().needs_file(&hash));
    assert_eq!(world.facts().needed_files(&[], 9).0, []);
}

#[test]
fn what_a_deleted_user_uploaded_is_hidden_at_once_and_then_removed() {
    let mut world = World::new();
    let empty = world.rows.clone();
    let media: Vec<_> = (1..=4).map(|content| added(&mut world, new(2, content))).collect();
    published(&mut world, 2, "", &media[..2]);
    let avatar = NewMedia { profile: Some(ProfilePicture::Avatar), ..new(2, 9) };
    let avatar = added(&mut world, avatar);
    world.run(Command::DeleteUser { user: id(2) }).unwrap();
    for media in media.iter().chain([&avatar]) {
        assert!(world.facts().shown_media(*media).is_none());
    }
    check_rows(&world);
    world.erase(2);
    check_rows(&world);
    let (needed, _) = world.facts().needed_files(&[], 99);
    assert_eq!((needed, world.facts().all_media_space()), (vec![], MediaSpace::default()));
    for media in media.iter().chain([&avatar]) {
        assert!(world.facts().media(*media).is_none());
    }
    drop(empty);
}

#[test]
fn the_number_of_pictures_that_are_not_attached_is_bounded() {
    let mut world = World::new();
    for content in 0..UNATTACHED_MEDIA_MAX as u8 {
        added(&mut world, new(0, content));
    }
    let more = MediaCommand::Add(Box::new(new(0, 99)));
    let refused = Err(Refusal::TooManyUnattachedMedia);
    assert_eq!(run(&mut world, more.clone()), refused);
    added(&mut world, NewMedia { profile: Some(ProfilePicture::Avatar), ..new(0, 98) });
    let media = unattached(&world)[0];
    run(&mut world, MediaCommand::Delete { user: id(0), media }).unwrap();
    assert!(run(&mut world, more).is_ok());
}

#[test]
fn lost_and_wrong_rows_of_pictures_are_found_and_mended() {
    use rows::{NameTable, PutRows as _, Rows as _};
    let mut world = World::new();
    let media: Vec<_> = (1..=3).map(|content| added(&mut world, new(0, content))).collect();
    let post = published(&mut world, 0, "text", &media[..2]);
    added(&mut world, NewMedia { profile: Some(ProfilePicture::Avatar), ..new(0, 7) });
    let tables = [
        NameTable::Media,
        NameTable::MediaFile,
        NameTable::MediaOf,
        NameTable::Due,
        NameTable::MediaSpace,
    ];
    for table in tables {
        for name in world.rows.first_names(table, &[], 99) {
            let mut rows = world.rows.clone();
            rows.put_name(table, &name, None);
            let mut mends = |expect: bool| {
                let (mut mend, mut found) = (Mend::new(false), 0);
                while mend.step(&mut rows, &mut |_| found += 1) {}
                assert_eq!(found > 0, expect, "{table:?} {name:?}");
            };
            mends(true);
            mends(false);
            let lost = table == NameTable::Media;
            assert!(lost || rows == world.rows, "{table:?} {name:?}");
        }
    }
    assert!(world.facts().post(post).is_some());
}

#[test]
fn a_post_of_which_a_repair_leaves_nothing_is_removed() {
    use rows::{NameTable, PutRows as _};
    let mut world = World::new();
    let media: Vec<_> = (1..=2).map(|content| added(&mut world, new(0, content))).collect();
    let posts = [("", &media[..1]), ("text", &media[1..])];
    let [empty, text] = posts.map(|(text, media)| published(&mut world, 0, text, media));
    for media in &media {
        world.rows.put_name(NameTable::Media, &media.0.to_be_bytes(), None);
    }
    let (mut mend, mut found) = (Mend::new(false), Vec::new());
    while mend.step(&mut world.rows, &mut |finding| found.push(finding)) {}
    assert!(world.facts().post(empty).is_none(), "{found:?}");
    assert_eq!(world.facts().post(text).map(|post| post.content.media), Some(vec![]));
    let (mut mend, mut again) = (Mend::new(false), Vec::new());
    while mend.step(&mut world.rows, &mut |finding| again.push(finding)) {}
    assert!(again.is_empty(), "{again:?}");
}
