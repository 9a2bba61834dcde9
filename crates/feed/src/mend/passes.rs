//! What a check does with each table, in order.

use rows::{NameTable, PointTable, SetTable, Table};

use crate::facts::relation::{RELATIONS, Relation};
use crate::facts::tables::{index_tables, record_check};
use crate::facts::whole::WHOLE_TABLES;

/// The action for a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pass {
    Points(PointTable),
    Members(SetTable),
    /// Adds up the rows of a direction of a relation.
    Relations(&'static Relation, SetTable),
    /// Adds rows that only the other direction has.
    Complete(&'static Relation),
    /// Adds rows of a relation that only its texts have.
    Texts(&'static Relation, PointTable),
    /// Removes rows of a relation without a text.
    WithText(&'static Relation, SetTable),
    Names(NameTable),
    /// Removes rows that are no records.
    Records(Table),
    /// All that an owner has of something.
    Whole(NameTable),
    /// Removes rows of an index whose record does not have them.
    Index(Table),
    Users,
    Counts,
    Samples,
    /// Adds uses of apps that have no row.
    AppUses,
    /// Pictures.
    Media,
    /// What pictures take.
    MediaSpaces,
    /// Scheduled posts.
    Scheduled,
    /// Rows of what is due without a record that says so.
    Pending,
    /// Rows of what is due.
    Due,
    Totals,
}

/// All passes. Later ones rely on what earlier ones have made consistent.
pub(super) fn passes() -> Vec<Pass> {
    let records = Table::all().filter(|table| record_check(*table).is_some()).map(Pass::Records);
    let related = RELATIONS.into_iter().flat_map(relation);
    let whole = WHOLE_TABLES.into_iter().map(Pass::Whole);
    let indexes = index_tables().map(Pass::Index);
    let checked = records.chain(BEFORE_RELATIONS).chain(related).chain(LISTS);
    checked.chain(whole).chain(LAST).chain(indexes).chain(COUNTED).collect()
}

fn relation(relation: &'static Relation) -> Vec<Pass> {
    let tables = relation.tables();
    if let Some(text) = relation.text {
        let rows = tables.map(|table| Pass::WithText(relation, table));
        return std::iter::once(Pass::Texts(relation, text)).chain(rows).collect();
    }
    let compare = tables.map(|table| Pass::Relations(relation, table));
    // Each block ends other relations, a mute may end, and what has become a follow is no request.
    let more = matches!(relation.forward, SetTable::Blocks | SetTable::Mutes);
    let more = (more || relation.becomes.is_some()).then_some(Pass::Members(relation.forward));
    compare.chain([Pass::Complete(relation)]).chain(more).collect()
}

const BEFORE_RELATIONS: [Pass; 27] = [
    Pass::Pending,
    Pass::Members(SetTable::DeletedUsers),
    Pass::Members(SetTable::ErasingUsers),
    Pass::Names(NameTable::Handle),
    Pass::Points(PointTable::User),
    Pass::Users,
    Pass::Points(PointTable::Account),
    Pass::Points(PointTable::Grant),
    Pass::Points(PointTable::AppUses),
    Pass::AppUses,
    Pass::Points(PointTable::App),
    Pass::Points(PointTable::Post),
    Pass::Scheduled,
    Pass::Media,
    Pass::MediaSpaces,
    Pass::Names(NameTable::FeaturedTag),
    Pass::Names(NameTable::FollowedTag),
    Pass::Members(SetTable::Favourites),
    Pass::Members(SetTable::Bookmarks),
    Pass::Members(SetTable::Pins),
    Pass::Members(SetTable::Reactions),
    Pass::Members(SetTable::Votes),
    Pass::Members(SetTable::PollVotes),
    Pass::Points(PointTable::PollCounts),
    Pass::Points(PointTable::PostCounts),
    Pass::Members(SetTable::Notifications),
    Pass::Points(PointTable::Inbox),
];

/// Lists need follows.
const LISTS: [Pass; 3] = [
    Pass::Names(NameTable::List),
    Pass::Names(NameTable::ListMember),
    Pass::Names(NameTable::ListedUser),
];

const LAST: [Pass; 8] = [
    Pass::Points(PointTable::Markers),
    Pass::Members(SetTable::LockedUsers),
    Pass::Points(PointTable::Story),
    Pass::Points(PointTable::StoryText),
    Pass::Members(SetTable::StoryViews),
    Pass::Members(SetTable::Seen),
    Pass::Points(PointTable::Sample),
    Pass::Samples,
];

/// These follow from all records and their rows.
const COUNTED: [Pass; 3] = [Pass::Due, Pass::Counts, Pass::Totals];
