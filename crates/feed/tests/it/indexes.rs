//! Indexes: a repair restores each missing row of a record, and removes each row that no record has.

use crate::mend::mend;
use crate::support::{self, id};
use crate::{accounts, media};
use feed::{Command, Draft, PostText, Reaction, UserId, Visibility};
use rows::{NameTable, PutRows as _, Rows as _, Scan as _, SetTable, Value};
use testkit::MemoryRows;

const SETS: [SetTable; 9] = [
    SetTable::AuthorPosts,
    SetTable::Mentions,
    SetTable::Replies,
    SetTable::OpenReplies,
    SetTable::Boosts,
    SetTable::PostLists,
    SetTable::DirectPosts,
    SetTable::AuthorStories,
    SetTable::Samples,
];

const NAMES: [NameTable; 10] = [
    NameTable::ConversationPost,
    NameTable::TagPost,
    NameTable::AuthorTag,
    NameTable::MediaFile,
    NameTable::MediaOf,
    NameTable::Email,
    NameTable::GrantSecret,
    NameTable::GrantOf,
    NameTable::UnusedApp,
    NameTable::Due,
];

/// Creates a world with at least one record with rows in each of these tables.
fn world() -> MemoryRows {
    let (mut world, app) = accounts::world();
    let unused = media::new(0, 2);
    media::added(&mut world, unused);
    let picture = media::new(0, 1);
    let picture = media::added(&mut world, picture);
    let post = media::published(&mut world, 0, "#tag with @bob", &[picture]);
    accounts::run(&mut world, accounts::authorize(app, UserId(0), 1, None)).unwrap();
    accounts::register_app(&mut world);
    let write = |visibility, text| {
        let new = Draft::new(id(1), PostText::parse(text).unwrap());
        Command::Publish(Box::new(Draft { visibility, parent: Some(post), ..new }))
    };
    let (user, due_ms) = (id(1), world.now_ms + 400_000);
    let boost = Command::React { user, post, reaction: Reaction::Boost, on: true };
    let sample = Command::AddSample {
        set: feed::SetName::parse("set").unwrap(),
        label: feed::Label::parse("label").unwrap(),
        bits: Box::new(feed::SampleBits::from([7; 128])),
    };
    for command in [
        write(Visibility::Public, "a reply"),
        write(Visibility::Direct, "a direct one"),
        boost,
        sample,
        support::poll(0, None),
        support::schedule(0, due_ms),
        support::mute(0, 1, Some(60)),
        support::post_story(0, "a story", 60),
        Command::DeleteUser { user: id(2) },
    ] {
        world.run(command).unwrap();
    }
    world.rows
}

#[test]
fn rows_of_indexes_are_those_of_their_records() {
    let mut whole = world();
    assert_eq!(mend(&mut whole), vec![]);
    let check = |what: String, change: &dyn Fn(&mut MemoryRows)| {
        let mut rows = whole.clone();
        change(&mut rows);
        assert!(!mend(&mut rows).is_empty(), "{what}");
        assert!(rows == whole, "{what}");
    };
    for table in SETS {
        let found = whole.members_from(table, (0, 0), usize::MAX).0;
        assert!(!found.is_empty(), "{table:?}");
        for (owner, item, number) in found {
            let what = |what| format!("{table:?} {owner}, {item}: {what}");
            check(what("missing"), &|rows| rows.put_member(table, owner, item, None));
            check(what("of another owner"), &|rows| {
                rows.put_member(table, owner ^ 9, item, Some(number));
            });
            check(what("of no record"), &|rows| {
                rows.put_member(table, owner, item ^ 9, Some(number));
            });
        }
    }
    for table in NAMES {
        let found = whole.first_names(table, &[], usize::MAX);
        assert!(!found.is_empty(), "{table:?}");
        for name in found {
            let value = whole.name(table, &name);
            let what = |what| format!("{table:?} {}: {what}", name.escape_ascii());
            check(what("missing"), &|rows| rows.put_name(table, &name, None));
            for at in 0..name.len() {
                let mut other = name.clone();
                other[at] ^= 9;
                check(what("of no record"), &|rows| rows.put_name(table, &other, value.clone()));
            }
        }
    }
    let mut rows = whole.clone();
    rows.put_name(NameTable::Due, &[7; 16], Some(Value::new()));
    assert_eq!(mend(&mut rows).len(), 1);
}
