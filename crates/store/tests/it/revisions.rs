//! Tests that every change of a row raises the revision of its subject, as soon as readers see the change.

use std::thread;

use kv::KeyRowsMut as _;
use rows::{NameTable, PointTable, PutRows, Rows as _, SetTable, Subject, Value};
use store::{Store, StoreOptions, StoreWriter};

const OPTIONS: StoreOptions = StoreOptions { cache_bytes: 4 << 20, bucket_bytes: 4 << 20 };

fn open(dir: &tempfile::TempDir) -> StoreWriter {
    Store::open(dir.path(), OPTIONS).unwrap().0
}

/// Returns the subject of row number 7 of each table. Add each new table here.
fn of_point(table: PointTable) -> Option<Subject> {
    match table {
        PointTable::User => Some(Subject::Profile(7)),
        PointTable::Counts => Some(Subject::User(7)),
        PointTable::Post => Some(Subject::Content(7)),
        PointTable::Story => None,
        PointTable::StoryText => None,
        PointTable::Sample => None,
        PointTable::BucketOfSpace => None,
        PointTable::Markers => None,
        PointTable::Note => None,
        PointTable::PollCounts => None,
        PointTable::Account => None,
        PointTable::App => None,
        PointTable::Grant => None,
        PointTable::AppUses => None,
        PointTable::PostCounts => Some(Subject::Post(7)),
        PointTable::NoticeState => None,
    }
}

fn of_member(table: SetTable) -> Option<Subject> {
    match table {
        SetTable::StoryViews => None,
        SetTable::Seen => None,
        SetTable::Samples => None,
        SetTable::OrphanedSpaces => None,
        SetTable::FreeSpaces => None,
        SetTable::Replies => Some(Subject::Post(7)),
        SetTable::ErasingUsers => None,
        SetTable::Reactions => Some(Subject::Post(7)),
        SetTable::Notes => None,
        SetTable::NotedBy => None,
        SetTable::FollowRequests => None,
        SetTable::Requested => None,
        SetTable::PollVotes => None,
        SetTable::Votes => None,
        SetTable::Boosts => None,
        SetTable::PostLists => None,
        SetTable::DirectPosts => None,
        SetTable::OpenReplies => Some(Subject::Post(7)),
        SetTable::Following => Some(Subject::User(7)),
        SetTable::Followers => Some(Subject::User(7)),
        SetTable::AuthorPosts => Some(Subject::User(7)),
        SetTable::Mentions => None,
        SetTable::Friends => None,
        SetTable::AuthorStories => None,
        SetTable::DeletedUsers => Some(Subject::Profile(7)),
        SetTable::Favourites => None,
        SetTable::Blocks => None,
        SetTable::BlockedBy => None,
        SetTable::Mutes => None,
        SetTable::MutedBy => None,
        SetTable::Bookmarks => None,
        SetTable::Pins => None,
        SetTable::Notifications => None,
        SetTable::Quotes => Some(Subject::Post(7)),
        SetTable::LockedUsers => Some(Subject::Profile(7)),
        SetTable::Less => None,
        SetTable::NotInterested => None,
        SetTable::NotInterestedBy => None,
    }
}

fn of_name(table: NameTable) -> Option<Subject> {
    match table {
        NameTable::Handle => None,
        NameTable::Idempotency => None,
        NameTable::SampleSet => None,
        NameTable::SampleLabel => None,
        NameTable::Bucket => None,
        NameTable::KeyExpiry => None,
        NameTable::ClusterNode => None,
        NameTable::Due => None,
        NameTable::Email => None,
        NameTable::Invite => None,
        NameTable::GrantSecret => None,
        NameTable::GrantOf => None,
        NameTable::UnusedApp => None,
        NameTable::TagPost => None,
        NameTable::AuthorTag => None,
        NameTable::FeaturedTag => None,
        NameTable::Filters => Some(Subject::Marks(7)),
        NameTable::Scheduled => None,
        NameTable::FollowedTag => None,
        NameTable::List => None,
        NameTable::ListMember => None,
        NameTable::ListedUser => None,
        NameTable::Media => Some(Subject::Media(7)),
        NameTable::MediaFile => None,
        NameTable::MediaOf => None,
        NameTable::MediaSpace => None,
        NameTable::PostVersions => None,
        NameTable::Conversations => None,
        NameTable::FollowOptions => None,
        NameTable::MutedThreads => Some(Subject::Marks(7)),
        NameTable::ConversationPost => None,
        NameTable::Feed => None,
        #[cfg(feature = "next-format")]
        NameTable::Next => None,
    }
}

#[test]
fn a_change_of_a_row_is_one_of_its_subject() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    let store = writer.store();
    let row = || Some(Value::from_slice(&[1]));
    // Later than the rows of number 7, which are not new then.
    for table in PointTable::ALL {
        writer.put_point(table, 9, row());
    }
    let subjects = [
        Subject::User(7),
        Subject::Profile(7),
        Subject::Post(7),
        Subject::Content(7),
        Subject::Media(7),
        Subject::Marks(7),
    ];
    let mut seen = subjects.map(|subject| store.revision(subject));
    let mut check = |what: &str, subject: Option<Subject>| {
        for (subject_now, seen) in subjects.iter().zip(&mut seen) {
            let now = store.revision(*subject_now);
            // A change of a part is also a change of the whole.
            let is_part = match *subject_now {
                Subject::User(_) => subject == Some(Subject::Profile(7)),
                Subject::Post(_) => subject == Some(Subject::Content(7)),
                _ => false,
            };
            let expect = is_part || subject == Some(*subject_now);
            assert_eq!(now > *seen, expect, "{what}: {subject_now:?}");
            *seen = now;
        }
    };
    for table in PointTable::ALL {
        let subject = of_point(table);
        writer.put_point(table, 7, row());
        check(&format!("{table:?}"), subject);
        writer.put_points(table, vec![(7, row()), (8, None)]);
        check(&format!("many of {table:?}"), subject);
    }
    for table in SetTable::ALL {
        let subject = of_member(table);
        writer.put_member(table, 7, 3, Some(0));
        check(&format!("{table:?}"), subject);
        writer.put_member_of_many(table, &[7, 8], 4, None);
        check(&format!("many of {table:?}"), subject);
    }
    for table in NameTable::ALL {
        let subject = of_name(table);
        writer.put_name(table, &7_u64.to_be_bytes(), row());
        check(&format!("{table:?}"), subject);
        writer.put_name(table, &7_u32.to_be_bytes(), row());
        check(&format!("a short name in {table:?}"), subject);
        writer.put_name(table, b"seven", row());
        check(&format!("another name in {table:?}"), None);
    }
}

/// Nothing was made of a user or post before it existed, and its id is greater than all others.
#[test]
fn a_new_user_or_post_is_no_change() {
    let dir = tempfile::tempdir().unwrap();
    let row = || Some(Value::from_slice(&[1]));
    let starts = [
        vec![
            ("new", 5, row(), false),
            ("changed", 5, row(), true),
            ("new, after a gap", 8, row(), false),
            ("imported with an earlier id", 6, row(), true),
            ("removed", 8, None, true),
            ("restored", 8, row(), true),
        ],
        vec![("changed after a start", 8, row(), true), ("new after a start", 9, row(), false)],
    ];
    for (applied, steps) in (1..).zip(starts) {
        let mut writer = open(&dir);
        let store = writer.store();
        for (what, id, value, is_change) in steps {
            let user = (PointTable::User, [Subject::Profile(id), Subject::User(id)]);
            let post = (PointTable::Post, [Subject::Content(id), Subject::Post(id)]);
            for (table, subjects) in [user, post] {
                let before = subjects.map(|subject| store.revision(subject));
                writer.put_point(table, id, value.clone());
                let after = subjects.map(|subject| store.revision(subject));
                let raised = [0, 1].map(|at: usize| after[at] > before[at]);
                assert_eq!(raised, [is_change; 2], "{what}: {table:?}");
            }
        }
        writer.freeze(applied).unwrap().run().unwrap();
    }
}

#[test]
fn who_reads_a_revision_reads_no_older_row() {
    const ROUNDS: u64 = 50_000;
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    let store = writer.store();
    thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                let revision = store.revision(Subject::Post(7)).count;
                let row = store.point(PointTable::Post, 7);
                let row =
                    row.map_or(0, |row| u64::from_le_bytes(row.as_slice().try_into().unwrap()));
                assert!(
                    row >= u64::from(revision),
                    "change {revision} is counted, and the row is {row}"
                );
                if row == ROUNDS {
                    break;
                }
            }
        });
        for round in 1..=ROUNDS {
            writer.put_point(PointTable::Post, 7, Some(Value::from_slice(&round.to_le_bytes())));
        }
    });
}

/// Undoing changes is a change of everything, because a cached entry may depend on rows of another subject: pictures
/// are rendered with their posts.
#[test]
fn taking_changes_back_is_a_change_of_everything() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = open(&dir);
    let store = writer.store();
    let subjects = [Subject::User(1), Subject::Content(2), Subject::Media(3), Subject::Marks(4)];
    let read = || (store.undone(), subjects.map(|subject| store.revision(subject)));
    writer.save();
    writer.put_point(PointTable::User, 7, Some(Value::from_slice(&[1])));
    let between = read();
    writer.undo();
    let after = read();
    assert!(after.0 > between.0);
    assert!(after.1.iter().zip(between.1).all(|(after, between)| *after > between), "{after:?}");
}
