//! Tables of the feed. Each is declared once: as a relation, as a table of whole rows, or here, with the check of its
//! records and the removal of a deleted user's items. A table without a declaration is a compile error.
//!
//! **Invariant:** the rows of a deleted user are removed in the order of these declarations, then those of relations:
//! lists before the follows of their members, scheduled posts before their pictures.
//! **Invariant:** this order is part of the format: the progress of a user's removal is stored and logged as a table,
//! and all tables before it count as done. New tables may be declared anywhere; none is moved within a format version.

use rows::{NameTable, PointTable, SetTable, Table, encode, try_decode};
use serde::de::DeserializeOwned;

use crate::accounts::{Account, App, AppId, Grant, GrantId, Invite, Record as _};
use crate::done::Outcome;
use crate::due;
use crate::erase::items::Erase;
use crate::erase::{self, ErasurePhase};
use crate::ids::{PostId, SampleId, ScheduledId, StoryId, UserId};
use crate::index::{
    DIRECT_ROWS, GRANT_ROWS, IndexRow, MEDIA_ROWS, SCHEDULED_ROWS, Source, VIEW_ROWS, VOTE_ROWS,
};
use crate::limits::ERASE_ROWS_MAX;
use crate::lists::{List, ListId};
use crate::markers::Markers;
use crate::media::{Media, MediaId, MediaSpace};
use crate::notifications::NoticeState;
use crate::polls::{PollCounts, PollId};
use crate::posts::Post;
use crate::reactions::{PostCounts, Reaction};
use crate::relation::{RELATIONS, Relation};
use crate::samples::{Sample, SampleSet};
use crate::schedule::ScheduledPost;
use crate::stories::Story;
use crate::text::{Note, PostText};
use crate::users::{Counts, User};
use crate::whole::{WHOLE_ROWS, WHOLE_TABLES};

/// Declaration of a table that has neither a relation nor whole rows.
pub(crate) struct Declared {
    table: Table,
    /// Checks whether name and value of a row form a record; `None` if every row is valid.
    is_record: Option<RecordCheck>,
    /// Record that owns an index row.
    source: Option<fn(&IndexRow) -> Option<Source>>,
    /// Whether a row without its record proves a loss: the index lists every such record of an owner.
    proves_loss: bool,
    /// Removes items of a deleted user from the table, as many as one command may. In its rows, the items follow the id
    /// of the user. `None` if the rows are removed along with others or at the end, or stay, or belong to no user.
    erase: Option<fn(&mut Erase<'_, '_>)>,
}

type RecordCheck = fn(&[u8], &[u8]) -> bool;

macro_rules! declare {
    (@table Point $table:ident) => { Table::Point(PointTable::$table) };
    (@table Set $table:ident) => { Table::Set(SetTable::$table) };
    (@table Name $table:ident) => { Table::Name(NameTable::$table) };
    (@option) => { None };
    (@option $some:expr) => { Some($some) };
    (@flag) => { false };
    (@flag $some:expr) => { true };
    ($(
        $kind:ident $table:ident $(, record $is_record:expr)? $(, index $index:expr)? $(, list $list:expr)?
        $(, erase $erase:expr)?;
    )*) => {
        const DECLARED: &[Declared] = &[$(Declared {
            table: declare!(@table $kind $table),
            is_record: declare!(@option $($is_record)?),
            source: declare!(@option $($index)? $($list)?),
            proves_loss: declare!(@flag $($list)?),
            erase: declare!(@option $($erase)?),
        }),*];
    };
}

declare! {
    // Users.
    Point User, record is::<User>;
    Point Counts, record |_, row| Counts::try_decode(row).is_some();
    Point Markers, record is::<Markers>;
    Name Handle, record is::<UserId>;
    Set LockedUsers;
    Set DeletedUsers;
    Set ErasingUsers;
    Name FeaturedTag, record |name, row| name.len() > 4 && is::<u64>(name, row);
    Name FollowedTag, record |name, row| name.len() > 4 && is::<u64>(name, row);
    Point Note, record is::<Note>;

    // Posts.
    Point Post, record is::<Post>;
    Point PostCounts, record |_, row| PostCounts::try_decode(row).is_some();
    Set AuthorPosts, list |row| row.item().map(post), erase erase::items::posts;
    Set Replies, index |row| row.item().map(post);
    Set OpenReplies, index |row| row.item().map(post);
    Set Quotes, index |row| row.item().map(post);
    Set PostLists, index |row| row.item().map(post);
    Set Boosts, index |row| row.item().map(post);
    Set Mentions, index |row| row.item().map(post), erase |it| {
        it.each(1 + DIRECT_ROWS, |txn, user, post| {
            txn.remove_mention(user, post);
        });
    };
    Set DirectPosts, index |row| row.item().map(post);
    Name ConversationPost, index |row| row.id_before(0).map(newest_first);
    // Names end with the author.
    Name TagPost, index |row| row.id_before(4).map(newest_first);
    Name AuthorTag, index |row| row.id_before(0).map(newest_first);

    // Reactions and votes.
    Set Reactions;
    Set Favourites, erase |it| it.reactions(Reaction::Favourite);
    Set Bookmarks, erase |it| it.reactions(Reaction::Bookmark);
    Set Pins, erase |it| it.reactions(Reaction::Pin);
    Set Less, erase |it| it.reactions(Reaction::Less);
    Point PollCounts, record is::<PollCounts>;
    Set PollVotes;
    Set Votes, erase |it| {
        it.each(VOTE_ROWS + 1, |txn, user, poll| txn.erase_vote(PollId(poll), user));
    };
    Point NoticeState, record is::<NoticeState>;
    Set Notifications, erase erase::items::notifications;

    // Stories, which sweeping removes.
    Point Story, record is::<Story>;
    Point StoryText, record is::<PostText>;
    Set AuthorStories, list |row| row.item().map(|id| Source::Story(StoryId(id))),
        erase erase::items::stories;
    Set StoryViews;
    Set Seen, erase |it| it.each(VIEW_ROWS, |txn, user, story| {
        txn.remove_view(user, story);
    });

    // Lists, scheduled posts and pictures.
    Name List, record is::<List>, erase |it| {
        it.txn.erase_lists(it.user, ListId(it.from), ERASE_ROWS_MAX);
    };
    Name ListMember;
    Name ListedUser;
    Name Scheduled, record |name, row| name.len() == 12 && is::<ScheduledPost>(name, row),
        erase |it| {
            it.txn.erase_scheduled(it.user, ScheduledId(it.from), ERASE_ROWS_MAX / SCHEDULED_ROWS);
        };
    Name Media, record |name, row| {
        name.len() == 8 && try_decode::<Media>(row).is_some_and(|media| *encode(&media) == *row)
    };
    Name MediaFile, index |row| row.id_before(0).map(media);
    Name MediaOf, index |row| row.id_before(0).map(media), erase |it| {
        it.each(MEDIA_ROWS, |txn, _, media| txn.remove_media(MediaId(media)));
    };
    Name MediaSpace, record is::<MediaSpace>;

    // Accounts.
    Point Account, record |_, row| Account::try_of_row(row).is_some();
    Name Email, record is::<UserId>, index |row| row.value().map(Source::Account);
    Name Invite, record |name, row| name.len() == 32 && Invite::try_of_row(row).is_some();
    Point App, record |_, row| App::try_of_row(row).is_some();
    Point AppUses, record is::<u32>;
    Name UnusedApp, index |row| row.id_before(0).map(|id| Source::App(AppId(id)));
    Point Grant, record |_, row| Grant::try_of_row(row).is_some();
    Name GrantSecret, record |name, row| name.len() == 32 && is::<u64>(name, row),
        index |row| row.value().map(grant);
    Name GrantOf, index |row| row.id_before(0).map(grant), erase |it| {
        it.each(GRANT_ROWS, |txn, _, grant| txn.remove_grant(GrantId(grant)));
    };

    // Ranked feeds.
    Name Feed, record crate::feeds::is_record;

    // Samples.
    Point Sample, record is::<Sample>;
    Set Samples, list |row| row.item().map(|id| Source::Sample(SampleId(id)));
    Name SampleSet, record is::<SampleSet>;
    Name SampleLabel, record |name, row| name.len() > 8 && is::<u32>(name, row);

    // Due work, and results of idempotent requests.
    Name Due, record due::facts::is_record;
    Name Idempotency, record |name, row| name.len() == 20 && is::<([u8; 8], Outcome)>(name, row);

    // Tables of other crates.
    Point BucketOfSpace;
    Set OrphanedSpaces;
    Set FreeSpaces;
    Name Bucket;
    Name KeyExpiry;
    Name ClusterNode;
}

const fn post(id: u64) -> Source {
    Source::Post(PostId(id))
}

/// Post whose id has all bits inverted in names.
const fn newest_first(inverted: u64) -> Source {
    post(!inverted)
}

const fn media(id: u64) -> Source {
    Source::Media(MediaId(id))
}

const fn grant(id: u64) -> Source {
    Source::Grant(GrantId(id))
}

fn is<T: DeserializeOwned>(_: &[u8], row: &[u8]) -> bool {
    try_decode::<T>(row).is_some()
}

/// Check of the rows of a table; `None` if every row is valid.
pub(crate) fn record_check(table: Table) -> Option<impl Fn(&[u8], &[u8]) -> bool> {
    let declared = DECLARED.iter().find(|of| of.table == table).and_then(|of| of.is_record);
    let whole = WHOLE_ROWS.into_iter().find(|of| Table::Name(of.table()) == table);
    (declared.is_some() || whole.is_some()).then_some(move |name: &[u8], row: &[u8]| {
        declared.is_none_or(|check| check(name, row))
            && whole.is_none_or(|whole| whole.is_record(name, row))
    })
}

/// All tables of indexes.
pub fn index_tables() -> impl Iterator<Item = Table> {
    DECLARED.iter().filter(|of| of.source.is_some()).map(|of| of.table)
}

/// Record that owns an index row, and whether the row proves a loss if there is no such record.
pub(crate) fn source(table: Table, row: &IndexRow) -> (Option<Source>, bool) {
    let declared = DECLARED.iter().find(|of| of.table == table);
    let source = declared.and_then(|of| of.source?(row));
    (source, declared.is_some_and(|of| of.proves_loss))
}

/// Function that removes a deleted user's items from a table, unless it is a table of a relation.
pub(crate) fn eraser(table: Table) -> Option<fn(&mut Erase<'_, '_>)> {
    DECLARED.iter().find(|of| of.table == table).and_then(|of| of.erase)
}

/// All tables with items of users, in the order of removal.
fn erased_tables() -> impl Iterator<Item = Table> {
    let declared = DECLARED.iter().filter(|of| of.erase.is_some()).map(|of| of.table);
    declared.chain(RELATIONS.into_iter().flat_map(Relation::tables).map(Table::Set))
}

/// Order in which rows of a deleted user are removed.
impl ErasurePhase {
    /// First phase of the removal.
    #[must_use]
    pub fn first() -> Self {
        Self::in_table(erased_tables().next())
    }

    /// Next phase of the removal.
    #[must_use]
    pub fn next(self) -> Self {
        Self::in_table(self.and_after().nth(1))
    }

    /// Number of phases left, including this one.
    #[must_use]
    pub fn phases_left(self) -> usize {
        self.and_after().count()
    }

    /// Whether this phase exists.
    pub(crate) fn is_known(self) -> bool {
        self == Self::LAST || self.phases_left() > 0
    }

    fn and_after(self) -> impl Iterator<Item = Table> {
        erased_tables().skip_while(move |table| Some(*table) != self.table())
    }
}

/// Whether the table has exactly one declaration.
const fn is_declared_once(tag: u8) -> bool {
    let (mut found, mut at) = (0, 0);
    while let Some((first, _)) = DECLARED.split_at(at).1.split_first() {
        found += (first.table.tag() == tag) as usize;
        at += 1;
    }
    at = 0;
    while let Some((first, _)) = RELATIONS.split_at(at).1.split_first() {
        found += (first.forward.tag() == tag || first.backward.tag() == tag) as usize;
        at += 1;
    }
    at = 0;
    while let Some((first, _)) = WHOLE_TABLES.split_at(at).1.split_first() {
        found += (first.tag() == tag) as usize;
        at += 1;
    }
    found == 1
}

const _: () = {
    let mut tag = 0;
    // Tags from 0xfb on belong to no table of this format.
    while tag < 0xfb {
        assert!(Table::of_tag(tag).is_none() || is_declared_once(tag), "declare the table once");
        tag += 1;
    }
};
