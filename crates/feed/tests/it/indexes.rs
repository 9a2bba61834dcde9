//! Indexes: records have the rows that the tables describe; a repair restores each missing row of a record, and removes each
//! row that no record has.

use crate::mend::mend;
use crate::support::{self, id};
use crate::{accounts, media};
use feed::accounts::{AccountState, SecretHash};
use feed::limits::{CODE_SECS, UNATTACHED_MS};
use feed::{
    Command, Draft, DueWork, Patch, PostId, PostText, Reaction, ScheduledId, StoryId, UserId,
    Visibility, index_tables,
};
use rows::{NameTable, PutRows as _, Rows as _, Scan as _, SetTable, Stamp, Table, Value, encode};
use testkit::MemoryRows;

/// The tables of indexes, and the table of due work, whose rows also follow from records.
fn tables() -> (Vec<SetTable>, Vec<NameTable>) {
    let (mut sets, mut names) = (Vec::new(), vec![NameTable::Due]);
    for table in index_tables() {
        match table {
            Table::Set(table) => sets.push(table),
            Table::Name(table) => names.push(table),
            Table::Point(table) => panic!("{table:?} is no index"),
        }
    }
    (sets, names)
}

fn reply(parent: PostId, visibility: Visibility, text: &str) -> Command {
    let new = Draft::new(id(1), PostText::parse(text).unwrap());
    let (parent, quote) = (Some(parent), Some(parent));
    Command::Publish(Box::new(Draft { visibility, parent, quote, ..new }))
}

fn boost(user: u32, post: PostId) -> Command {
    Command::React { user: id(user), post, reaction: Reaction::Boost, on: true }
}

fn sample() -> Command {
    Command::AddSample {
        set: feed::SetName::parse("set").unwrap(),
        label: feed::Label::parse("label").unwrap(),
        bits: Box::new(feed::SampleBits::from([7; 128])),
    }
}

/// Creates a world with at least one record with rows in each of these tables, a poll that is over, a mention that an edit
/// added, and a post of a disabled account.
fn world() -> MemoryRows {
    let (mut world, app) = accounts::world();
    world.run(support::poll(0, None)).unwrap();
    world.now_ms += 301_000;
    assert_eq!(world.do_due_of(|work| matches!(work, DueWork::EndPoll { .. })), 1);
    let unused = media::new(0, 2);
    media::added(&mut world, unused);
    let picture = media::new(0, 1);
    let picture = media::added(&mut world, picture);
    let post = media::published(&mut world, 0, "#tag with @bob", &[picture]);
    accounts::run(&mut world, accounts::authorize(app, UserId(0), 1, None)).unwrap();
    accounts::register_app(&mut world);
    world.run(support::register("dan")).unwrap();
    let [edited, _] = [0, 3].map(|author| world.post(author, "a post"));
    world.set_account(3, AccountState::Disabled);
    world.relist();
    let (user, due_ms) = (0, world.now_ms + 400_000);
    for command in [
        reply(post, Visibility::Public, "a reply"),
        reply(post, Visibility::Direct, "a direct one"),
        boost(1, post),
        Command::edit(edited, Patch::of_text(PostText::parse("now with @bob").unwrap())),
        sample(),
        support::poll(0, None),
        support::schedule(user, due_ms),
        support::mute(0, 1, Some(60)),
        support::post_story(0, "a story", 60),
        Command::DeleteUser { user: id(2) },
    ] {
        world.run(command).unwrap();
    }
    world.rows
}

type Member = (SetTable, u64, u64, u64);
type Name = (NameTable, Vec<u8>, Vec<u8>);

fn name(table: NameTable, parts: &[&[u8]], value: &[u8]) -> Name {
    (table, parts.concat(), value.to_vec())
}

fn due(at_ms: u64, work: DueWork) -> Name {
    name(NameTable::Due, &[&at_ms.to_be_bytes(), &encode(&work)], &[])
}

/// All rows of these tables, sorted.
fn index_rows(rows: &MemoryRows) -> (Vec<Member>, Vec<Name>) {
    let (sets, names) = tables();
    let members = sets.into_iter().flat_map(|table| {
        let found = rows.members_from(table, (0, 0), usize::MAX).0.into_iter();
        found.map(move |(owner, item, number)| (table, owner, item, number))
    });
    let names = names.into_iter().flat_map(|table| {
        let keys = rows.first_names(table, &[], usize::MAX).into_iter();
        keys.map(move |key| {
            let value = rows.name(table, &key).unwrap();
            name(table, &[&key], &value)
        })
    });
    (sorted(members.collect()), sorted(names.collect()))
}

fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort_unstable();
    all
}

/// The expected rows follow from the descriptions of the tables and were written by hand.
#[test]
fn records_have_the_rows_that_the_tables_describe() {
    let (mut world, app) = accounts::world();
    let [unused, picture] = [2, 1].map(|file| media::added(&mut world, media::new(0, file)));
    let post = media::published(&mut world, 0, "#tag with @bob", &[picture]);
    accounts::run(&mut world, accounts::authorize(app, UserId(0), 1, None)).unwrap();
    let code_ms = world.now_ms + CODE_SECS * 1_000;
    let unused_app = accounts::register_app(&mut world);
    let mut run = |command| {
        world.run(command).unwrap();
        (world.log.last().unwrap().stamp.0, world.now_ms)
    };
    let (open, _) = run(reply(post, Visibility::Public, "a reply"));
    let (direct, _) = run(reply(post, Visibility::Direct, "a direct one"));
    let (boost, _) = run(boost(1, post));
    let (sample, _) = run(sample());
    let (asked, asked_ms) = run(support::poll(0, None));
    let (scheduled, _) = run(support::schedule(0, asked_ms + 400_000));
    let (_, muted_ms) = run(support::mute(0, 1, Some(60)));
    let (story, story_ms) = run(support::post_story(0, "a story", 60));
    let (_, deleted_ms) = run(Command::DeleteUser { user: id(2) });
    let (grant, _) = world.facts().grant_of(&SecretHash([1; 32])).unwrap();

    let sets = vec![
        (SetTable::AuthorPosts, 0, post.0, 0),
        (SetTable::AuthorPosts, 0, asked, 0),
        // User 0 is replied to, or boosted.
        (SetTable::AuthorPosts, 1, open, 1),
        (SetTable::AuthorPosts, 1, direct, 1 | 3 << 33),
        (SetTable::AuthorPosts, 1, boost, 1 | 1 << 35 | 1 << 36),
        (SetTable::PostLists, 0, post.0, 0),
        (SetTable::PostLists, 0, asked, 0),
        (SetTable::PostLists, 1, post.0, 0),
        (SetTable::PostLists, 1 << 32, post.0, 0),
        (SetTable::Mentions, 1, post.0, 0),
        (SetTable::Mentions, 0, open, 0),
        (SetTable::Mentions, 0, direct, 2),
        (SetTable::Replies, post.0, open, 0),
        (SetTable::Replies, post.0, direct, 3),
        (SetTable::OpenReplies, post.0, open, 1),
        (SetTable::Quotes, post.0, open, 1),
        (SetTable::Boosts, post.0, boost, 1),
        (SetTable::DirectPosts, 0, direct, direct),
        (SetTable::DirectPosts, 1, direct, direct),
        (SetTable::AuthorStories, 0, story, story_ms + 60_000),
        (SetTable::Samples, sample, sample, 0),
    ];
    let (id, ada, bob) = (u64::to_be_bytes, [0; 4], [0, 0, 0, 1]);
    let (tag, newest) = (b"tag\0", id(!post.0));
    let file = |content, media| name(NameTable::MediaFile, &[&[content; 32], &id(media)], &[]);
    let names = vec![
        name(NameTable::TagPost, &[tag, &newest, &ada], &[]),
        name(NameTable::AuthorTag, &[&ada, tag, &newest], &[]),
        name(NameTable::ConversationPost, &[&ada, &id(direct), &id(!direct)], &[]),
        name(NameTable::ConversationPost, &[&bob, &id(direct), &id(!direct)], &[]),
        name(NameTable::MediaOf, &[&ada, &id(unused.0)], &[]),
        name(NameTable::MediaOf, &[&ada, &id(picture.0)], &[]),
        file(2, unused.0),
        file(102, unused.0),
        file(1, picture.0),
        file(101, picture.0),
        name(NameTable::Email, &[b"ada@example.org"], &[0]),
        name(NameTable::GrantSecret, &[&[1; 32]], &encode(&grant.0)),
        name(NameTable::GrantOf, &[&[0; 9], &id(grant.0)], &[]),
        name(NameTable::UnusedApp, &[&id(unused_app.0)], &[]),
        due(Stamp(unused.0).unix_ms() + UNATTACHED_MS, DueWork::RemoveMedia { media: unused }),
        due(code_ms, DueWork::ExpireGrant { grant }),
        due(asked_ms + 300_000, DueWork::EndPoll { post: PostId(asked) }),
        due(asked_ms + 400_000, DueWork::Publish { user: UserId(0), id: ScheduledId(scheduled) }),
        due(muted_ms + 60_000, DueWork::EndMute { user: UserId(0), other: UserId(1) }),
        due(story_ms + 60_000, DueWork::RemoveStory { story: StoryId(story) }),
        due(deleted_ms, DueWork::Erase { user: UserId(2) }),
    ];
    assert_eq!(index_rows(&world.rows), (sorted(sets), sorted(names)));
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
    let (sets, names) = tables();
    for table in sets {
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
    for table in names {
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
